"""The page of examples/web, in headless Chromium: what it sorts equals NumPy's, and it can be used by all."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from examples.web.build import KEYS, build
from examples.web.network import MOST
from tests.chromium import Browser, Page
from tests.reference import sample

_PHONE: dict[str, Any] = {"width": 360, "height": 740}
_BEGIN = 'const page = await import("/page.js"); const device = await page.ready;'
# Every control that the Tab key comes to, in its order.
_CONTROLS = [
    "play", "forward", "launch", "count", "pattern", "order", "again", "measure", "type", "kernel", "python", "wgsl",
]  # fmt: skip
_SORTED = f"""
{_BEGIN}
const {{ ARRAYS }} = await import("/throughput.js");
const {{ sortArray }} = await import("/gpusort.js");
const {{ statesOf }} = await import("/network.js");
const refused = [];
device.addEventListener("uncapturederror", ({{ error }}) => refused.push(error.message));
const text = (array) => new Uint8Array(array.buffer).toBase64();
const found = [];
for (const {{ type, bytes, few }} of CASES) {{
  const keys = new ARRAYS[type](Uint8Array.fromBase64(bytes).buffer);
  for (const descending of [false, true])
    found.push(few ? (await statesOf(device, keys, {{ descending }})).map(text)
      : [text(await sortArray(device, keys, {{ descending }}))]);
}}
if (refused.length) throw new Error(refused.join());
return found;
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page")
    build(place)
    return place


@pytest.fixture(scope="module")
def page(browser: Browser, folder: Path) -> Iterator[Page]:
    """As a reader with a desk sees it."""
    opened = Page(browser, folder)
    yield opened
    opened.close()


def _sorted(keys: npt.NDArray[np.generic], down: bool) -> npt.NDArray[np.generic]:
    """As NumPy has it; descending, NaN stays last."""
    found: npt.NDArray[np.generic] = np.sort(keys)
    if down:
        count = len(keys) - int(np.isnan(keys).sum()) if keys.dtype.kind == "f" else len(keys)
        found[:count] = found[:count][::-1].copy()
    return found


def test_the_first_sort_is_soon_there(page: Page) -> None:
    """Compilation included. How long it may take is a generous bound: machines differ."""
    milliseconds = page.run(f"""{_BEGIN}
const {{ sortArray }} = await import("/gpusort.js");
const keys = Uint32Array.from({{ length: 1 << 16 }}, (_, i) => Math.imul(i, 2654435761));
const start = performance.now();
const sorted = await sortArray(device, keys);
if (!sorted.every((key, i) => i === 0 || sorted[i - 1] <= key)) throw new Error("not sorted");
return performance.now() - start;""")
    print(f"first sort of 2^16, compilation included: {milliseconds:.0f} ms")
    assert milliseconds < 20_000


def test_what_it_sorts_equals_numpys(page: Page) -> None:
    """Arrays by the radix sort; few elements by the network, with the state after every launch."""
    lengths = [(0, False), (1, False), (3585, False), (20_001, False), *((n, True) for n in (1, 2, 3, 33, MOST))]
    asked = [(type, n, few) for type in KEYS for n, few in lengths]
    keys = [sample(KEYS[type], n) for type, n, _ in asked]
    cases = [
        {"type": type, "few": few, "bytes": base64.b64encode(x.tobytes()).decode()}
        for (type, _, few), x in zip(asked, keys, strict=True)
    ]
    answers = iter(page.run(_SORTED.replace("CASES", str(cases).replace("True", "true").replace("False", "false"))))
    for (type, n, few), x in zip(asked, keys, strict=True):
        for down in (False, True):
            states = [np.frombuffer(base64.b64decode(state), KEYS[type]) for state in next(answers)]
            np.testing.assert_array_equal(states[-1], _sorted(x, down), err_msg=f"{type} {n} {down}")
            if few:
                stages = (n - 1).bit_length()
                assert len(states) == 1 + stages * (stages + 1) // 2
                assert states[0].tobytes() == x.tobytes()
                for state in states:
                    np.testing.assert_array_equal(np.sort(state), np.sort(x))


def test_launches_can_be_gone_through_by_keyboard(page: Page) -> None:
    """The keys of a slider move on by a launch; the drawing and its words follow."""
    shown = """return [document.getElementById("state").textContent,
        document.querySelectorAll("#bars rect").length,
        [...document.querySelectorAll("#network .pass")].findIndex((pass) => pass.classList.contains("now")),
        [...document.querySelectorAll("#bars rect")].map((bar) => bar.style.transform).join()];"""
    page.run(f'{_BEGIN} document.getElementById("launch").focus();')
    state, bars, now, before = page.run(shown)
    assert (state, bars, now) == ("24 elements, 15 launches", 24, -1)
    page.press("ArrowRight")
    page.press("ArrowRight")
    state, bars, now, after = page.run(shown)
    assert state.startswith("Launch 2 of 15 · stage 2, pass 1: blocks of 4, mirrored · ")
    assert (bars, now) == (24, 1)
    assert sorted(after.split(",")) == sorted(before.split(","))
    page.press("ArrowLeft")
    assert page.run(shown)[0].startswith("Launch 1 of 15 · stage 1, pass 1: blocks of 2, mirrored · ")


def test_it_plays_until_it_is_told_to_pause(page: Page) -> None:
    labels = page.run("""const [play, launch] = ["play", "launch"].map((id) => document.getElementById(id));
launch.value = 0;
launch.dispatchEvent(new Event("input"));
const labels = [play.textContent];
play.click();
labels.push(play.textContent);
while (launch.valueAsNumber < 1) await new Promise((done) => setTimeout(done, 20));
play.click();
return [...labels, play.textContent];""")
    assert labels == ["Play", "Pause", "Play"]


def test_the_tab_key_comes_to_every_control_in_order(browser: Browser, folder: Path) -> None:
    """And each shows that it has the focus; Back is off before the first launch."""
    page = Page(browser, folder)
    page.run(_BEGIN)
    found = list[list[str]]()
    for _ in _CONTROLS:
        page.press("Tab")
        found.append(
            page.run("""const e = document.activeElement;
return [e.id || e.firstElementChild.id, getComputedStyle(e).outlineStyle];""")
        )
    page.close()
    assert found == [[control, "solid"] for control in _CONTROLS]


def test_kernels_stand_side_by_side(page: Page) -> None:
    names, python, wgsl = page.run("""
const texts = ["python", "wgsl"].map((id) => document.getElementById(id));
return [[...document.getElementById("kernel").options].map(({ text }) => text), ...texts.map((e) => e.textContent)];""")
    assert "bitonic_step, f32" in names
    assert "radix_scatter, u32" in names
    assert "@kernel\ndef bitonic_step(cx: Invocation," in python
    assert "\nfn bitonic_step(" in wgsl
    assert page.run("""const [one, other] = ["python", "wgsl"].map((id) => document.getElementById(id)
        .getBoundingClientRect()); return one.top === other.top && one.left < other.left;""")


def test_throughput_is_measured(page: Page) -> None:
    rows = page.run(f'{_BEGIN} return page.measureAll(device, "u32", [1024, 4096], 1);')
    assert [(row["n"], row["equal"]) for row in rows] == [(1024, True), (4096, True)]
    assert all(row[name] > 0 for row in rows for name in ("gpu", "copied", "array"))
    lines = page.run('return [...document.querySelectorAll("#rows tr")].map((line) => line.innerText);')
    assert [line.split("\t")[0] for line in lines] == ["1,024", "4,096"]
    assert all(line.endswith("equal") for line in lines)
    assert page.run('return document.querySelectorAll("#chart path").length') == 3


def test_a_phone_in_the_dark(browser: Browser, folder: Path, tmp_path: Path) -> None:
    """Nothing is wider than the screen but what scrolls by itself, and fingers find every control."""
    phone = Page(browser, folder, **_PHONE, media={"prefers-color-scheme": "dark"})
    wide, small, paper = phone.run(f"""{_BEGIN}
await page.measureAll(device, "f32", [1024], 1);
const all = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.closest("pre code, svg"));
const box = (e) => e.getBoundingClientRect();
return [[...all.filter((e) => box(e).right > innerWidth + 1), document.documentElement].filter((e) => e.scrollWidth >
  innerWidth).map((e) => e.tagName), [...document.querySelectorAll("button, select, input")].filter((e) =>
  box(e).height < 44).map((e) => e.id), getComputedStyle(document.body).backgroundColor];""")
    phone.picture(tmp_path / "phone.png")
    phone.close()
    assert (wide, small) == ([], [])
    assert max(int(part) for part in paper[4:-1].split(",")) < 64


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("delete Navigator.prototype.gpu;", "has no WebGPU for this page. Nothing here can be sorted without it"),
        ("GPU.prototype.requestAdapter = async () => null;", "no GPU or driver that it works with"),
    ],
)
def test_without_webgpu_it_says_so(browser: Browser, folder: Path, script: str, words: str) -> None:
    """And shows what needs no GPU: the network and the kernels."""
    page = Page(browser, folder, first=script, **_PHONE)
    message, buttons, passes, python = page.run(f"""{_BEGIN}
const message = document.querySelector("#missing");
return [message.checkVisibility() && message.getAttribute("role") === "alert" && message.innerText,
  [...document.querySelectorAll("main button")].map((button) => button.disabled),
  document.querySelectorAll("#network .pass").length, document.getElementById("python").textContent];""")
    page.close()
    assert words in message
    assert all(buttons)
    assert passes == 15
    assert "def bitonic_step" in python


def test_it_is_small_and_asks_nobody(page: Page, folder: Path) -> None:
    """Static files, all of its own, in any folder of a server."""
    files = {file.name for file in folder.iterdir()}
    asked, origin = page.run("""const all = performance.getEntriesByType("resource").map(({ name }) => name);
return [all, location.origin];""")
    assert {Path(name).name for name in asked} == files - {"index.html"}
    assert all(name.startswith(f"{origin}/") for name in asked)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 200_000
    assert not re.search(r"""(src|href|from|import\()\s*=?\s*["']/""", (folder / "page.js").read_text("utf-8"))
