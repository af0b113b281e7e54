"""Exported modules in a real browser: a page imports one and sorts, with results that equal NumPy's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

import gpusort
from tests.chromium import chromium, number, posted_by
from tests.reference import sample

_SCRIPT = """
const { sortArray } = await import("./gpusort.js");
const device = await (await navigator.gpu.requestAdapter()).requestDevice();
const refused = [];
device.addEventListener("uncapturederror", ({ error }) => refused.push(error.message));
const arrays = { u32: Uint32Array, f32: Float32Array };
const first = Uint32Array.from({ length: 1 << 16 }, (_, i) => Math.imul(i, 2654435761));
const start = performance.now();
await sortArray(device, first);
await post("first", JSON.stringify(performance.now() - start));
for (const [type, n] of CASES) {
  const bytes = await (await fetch(`/${type}-${n}.in`)).arrayBuffer();
  const keys = new arrays[type](bytes);
  for (const descending of [false, true]) {
    await post(`${type}-${n}-${descending}`, await sortArray(device, keys, { descending }));
  }
}
if (refused.length) throw new Error(refused.join());
"""


def _sorted(keys: npt.NDArray[np.generic], down: bool) -> npt.NDArray[np.generic]:
    """As NumPy has it; descending, NaN stays last."""
    found: npt.NDArray[np.generic] = np.sort(keys)
    if down:
        count = len(keys) - int(np.isnan(keys).sum()) if keys.dtype.kind == "f" else len(keys)
        found[:count] = found[:count][::-1].copy()
    return found


def test_a_page_sorts(tmp_path: Path) -> None:
    chromium()
    gpusort.export("sort", tmp_path, keys=("u32", "f32"))
    asked = [(name, n) for name in ("u32", "f32") for n in (1, 3585, 20_001)]
    for name, n in asked:
        (tmp_path / f"{name}-{n}.in").write_bytes(sample(f"{name[0]}4", n).tobytes())
    head, line, rest = _SCRIPT.partition("for (const [type, n] of CASES)")
    cases = line.replace("CASES", str([list(case) for case in asked]))
    posted = posted_by(head + cases + rest, tmp_path)
    for name, n in asked:
        dtype = f"{name[0]}4"
        keys = sample(dtype, n)
        for down in (False, True):
            found = np.frombuffer(posted[f"{name}-{n}-{'true' if down else 'false'}"], dtype)
            np.testing.assert_array_equal(found, _sorted(keys, down))
    print(f"first sort of 2^16, compilation included: {number(posted['first']):.0f} ms")
