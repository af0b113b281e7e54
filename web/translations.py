"""Which back ends take which kernels: python -m web.translations writes docs/translations.md."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from gpusort.export.naga import translated
from gpusort.export.plans import exported_of
from gpusort.export.request import checked_request
from gpusort.kernel import ir
from gpusort.kernel.launch import Launch
from gpusort.kernel.specialise import specialise
from gpusort.show import KEYS, launches_for
from gpusort.targets.wgsl.defaults import DEFAULTS
from gpusort.targets.wgsl.kernel import lower_to_wgsl
from gpusort.types.errors import CapabilityError
from tests.exported import WEB, node
from web.pack import MODULES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "translations.md"
VALIDATOR = "spirv-val"
BACK_ENDS = ("Tint", "naga", "MSL", "HLSL", "SPIR-V", VALIDATOR, "GLSL")
_EXPORTED = "exported"

_HEAD = """# Translations

Every kernel is generated as WGSL for every dtype that it supports. Each text is validated by Tint (Dawn, Chromium) and
by naga (wgpu, Firefox), and translated by naga to MSL, HLSL, SPIR-V and GLSL. Khronos's `spirv-val` validates the
SPIR-V, as an [export](howto/native.md) writes it, for Vulkan 1.1. `make test` repeats this and compares. It does not
run the translations: [platforms](../README.md#platforms) says what has run where.
"""
_LIMITS = """The last column counts the texts that stay within WebGPU's default limits, 16 KiB of workgroup memory and
256 invocations a workgroup; others are for devices with more. On devices with less than a text needs, gpusort chooses
smaller policies. Kernels that an [export](howto/export.md) makes are always within these limits.
"""


@attrs.frozen
class Text:
    """A kernel for one dtype."""

    kernel: str
    dtype: str
    text: str
    subgroups: bool
    bytes: int  # of workgroup memory
    group_size: int

    @property
    def is_small(self) -> bool:
        return self.bytes <= DEFAULTS.workgroup_bytes and self.group_size <= DEFAULTS.group_size


def texts(every: int = 1) -> Iterator[Text]:
    """What `gpusort show` knows of, and what the npm package has. Of the former each kernel for `every` so-many-th
    dtype that it is made for, and at least for one, not always the same ones; of the latter, where not every one is
    asked for, those for floats, whose texts have what the others' have and more."""
    lowered_once = cache(lower_to_wgsl)  # several dtypes have the same programs
    launches: dict[str, list[tuple[str, Launch]]] = {}
    for dtype, code in KEYS.items():
        for name, launch in launches_for(code).items():
            launches.setdefault(name, []).append((dtype, launch))
    for place, (name, made) in enumerate(launches.items()):
        for dtype, launch in made[place % min(every, len(made)) :: every]:
            try:
                legalized, shader = lowered_once(specialise(launch).program)
            except CapabilityError:  # 64-bit floats, which nobody adds in WGSL
                continue
            program = legalized.program
            held = sum(4 * (m.length or 0) for m in program.memories if m.space is ir.Space.WORKGROUP)
            yield Text(name, dtype, shader.text, shader.uses_subgroups, held, program.group_size)
    operations, keys, values = MODULES["all"]
    chosen = [key for key in keys if every == 1 or key.startswith("f")]
    for kernel in exported_of(operations, checked_request(operations, chosen, values, (), (), 0)).kernels.all:
        yield Text(kernel.name, _EXPORTED, kernel.text, False, kernel.workgroup_bytes, kernel.group_size)


def answers(asked: Sequence[Text]) -> list[Mapping[str, str]]:
    """For each text and back end, why it refuses it: nothing where it does not. Each text is asked about once."""
    different = dict.fromkeys((text.text, text.subgroups, text.bytes) for text in asked)
    found = _translated([*different])
    if shutil.which(VALIDATOR) is not None:
        fitting = [number for number, answer in enumerate(found) if answer.get("SPIR-V") == ""]
        judged = _validated([text for text, _, _ in ([*different][number] for number in fitting)])
        for number, refusal in zip(fitting, judged, strict=True):
            found[number][VALIDATOR] = refusal
    by_text = dict(zip(different, found, strict=True))
    return [by_text[text.text, text.subgroups, text.bytes] for text in asked]


def _validated(texts: Sequence[str]) -> list[str]:
    """Of each text's SPIR-V, why it is none."""
    package = WEB / "node_modules" / "naga-wasm"

    def refusal(code: bytes) -> str:
        command = [VALIDATOR, "--target-env", "vulkan1.1", "-"]
        done = subprocess.run(command, input=code, capture_output=True, check=False)
        return (done.stdout + done.stderr).decode().strip() if done.returncode else ""

    with ThreadPoolExecutor(max_workers=2) as threads:
        return list(threads.map(refusal, translated(texts, "spirv", package)))


def _translated(asked: Sequence[tuple[str, bool, int]]) -> list[dict[str, str]]:
    with TemporaryDirectory() as name:
        question, answer = Path(name) / "texts.json", Path(name) / "answers.json"
        names = ("text", "subgroups", "bytes")
        question.write_text(json.dumps([dict(zip(names, one, strict=True)) for one in asked]), "utf-8")
        subprocess.run([node(), WEB / "translate.mjs", question, answer], check=True, capture_output=True)
        found: list[dict[str, str]] = json.loads(answer.read_text("utf-8"))
    return found


def page(asked: Sequence[Text], found: Sequence[Mapping[str, str]]) -> str:
    """The document."""
    rows: dict[str, list[Text]] = {}
    for text in asked:
        name = f"`{text.kernel}`{', exported' if text.dtype == _EXPORTED else ''}"
        rows.setdefault(name, []).append(text)
    counts = [sum(answer.get(back_end) == "" for answer in found) for back_end in BACK_ENDS]
    accepted = [
        f"| texts | {' | '.join(BACK_ENDS)} |",
        f"|{'---:|' * (len(BACK_ENDS) + 1)}",
        f"| {len(asked)} | {' | '.join(map(str, counts))} |",
    ]
    lines = ["| kernel | texts | by default limits |", "|---|---:|---:|"]
    for name in sorted(rows):
        lines.append(f"| {name} | {len(rows[name])} | {sum(text.is_small for text in rows[name])} |")
    refused = [
        f"- `{text.kernel}` of {text.dtype}, {back_end}: {answer[back_end]}"
        for text, answer in zip(asked, found, strict=True)
        for back_end in BACK_ENDS
        if answer.get(back_end)
    ]
    end = ["Refused:", "", *refused] if refused else ["Nothing is refused."]
    return "\n".join([_HEAD, *accepted, "", *end, "", _LIMITS, *lines]) + "\n"


def main() -> int:
    asked = list(texts())
    PAGE.write_text(page(asked, answers(asked)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
