"""The table of platforms in README: python -m web.platforms [--write] REPORT, of what a run of all tests reports.

`make test` leaves the report in build/tests.xml. A row says "tested here" if the tests that speak for it have passed in
that run. Where all were skipped, as without a browser, the run leaves the row open, and README stands as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from xml.etree import ElementTree

import attrs

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
_BEGIN, _END = "<!-- platforms: python -m web.platforms writes them -->", "<!-- end of platforms -->"
_HEAD = ("| host | target | driver | how it works | status |", "|---|---|---|---|---|")


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@attrs.frozen
class Case:
    """A test of a report."""

    module: str  # test_api
    name: str  # with its parameters in brackets
    outcome: Outcome


@attrs.frozen
class RunsHere:
    """Runs in continuous integration: the tests of some modules, or those of them that are for a target."""

    modules: tuple[str, ...]
    target: str = ""
    words = "tested here"

    def is_spoken_for_by(self, test: Case) -> bool:
        inside = test.name.partition("[")[2].rstrip("]").split("-")
        return test.module in self.modules and (not self.target or self.target in inside)


@attrs.frozen
class Translated(RunsHere):
    """Nothing of it runs here: its text is made, and judged."""

    words = "[translated and validated](docs/translations.md)"


@attrs.frozen
class Measured:
    """Was run by hand; the results tell of it: on a card, by hand alone, or in emulation of such a processor."""

    results: str  # a file of benchmarks/results
    how: str = "on a card"

    @property
    def words(self) -> str:
        return f"[tested {self.how}](benchmarks/results/{self.results})"


@attrs.frozen
class Expected:
    """Nobody has tried."""

    words = "should work"


@attrs.frozen
class Platform:
    host: str
    target: str
    driver: str
    how: str
    evidence: RunsHere | Translated | Measured | Expected

    @property
    def row(self) -> str:
        return f"| {self.host} | {self.target} | {self.driver} | {self.how} | {self.evidence.words} |"


_MATRIX = ("test_api", "test_meaning", "test_argsort", "test_reduce_api", "test_scan_api")  # every target runs these
_TRANSLATIONS = Translated(("test_translations",))
_EXPORT, _DAWN = "[an export](docs/howto/export.md)", "WebGPU: Dawn"
_H200 = Measured("h200-2026-11-22c.md")
_ARM64 = Measured("arm64-2026-11-28.md", "in emulation")
_BROWSERS = Measured("browsers-2026-11-28.md", "by hand")

PLATFORMS = (
    Platform("Linux, x86-64", "`cpu`", "none", "LLVM compiles kernels; NumPy sorts", RunsHere(_MATRIX, "cpu")),
    Platform("Linux", "`cuda`", "NVIDIA's, for CUDA 13", "NVVM makes PTX", _H200),
    Platform("Linux", "`wgsl`", "Vulkan: NVIDIA's", "WGSL; naga makes SPIR-V, in wgpu", _H200),
    Platform("Linux", "`wgsl`", "Vulkan: Mesa's, in software", "the same", RunsHere(_MATRIX, "wgsl")),
    Platform("Linux", "`wgsl`", "Vulkan: SwiftShader, in software", "the same", _BROWSERS),
    Platform("Linux", "`wgsl`", "Vulkan: Mesa's for AMD and Intel", "the same", Expected()),
    Platform("macOS", "`wgsl`", "Metal", "WGSL; naga makes MSL, in wgpu", _TRANSLATIONS),
    Platform("Windows", "`wgsl`", "Direct3D 12", "WGSL; naga makes HLSL, in wgpu", _TRANSLATIONS),
    Platform("Windows", "`wgsl`", "Vulkan", "as on Linux", Expected()),
    Platform("Linux, ARM64", "`cpu`", "none", "as on x86-64, without AVX-512", _ARM64),
    Platform("macOS, Windows", "`cpu`", "none", "as on x86-64, without AVX-512", Expected()),
    Platform("Linux, Chromium", "`simulator`", "none", "NumPy, in lockstep", RunsHere(_MATRIX, "simulator")),
    Platform("Linux", "`python`", "none", "CPython runs the kernel's function", RunsHere(_MATRIX, "python")),
    Platform("Chromium, in Python", "`wgsl`", _DAWN, "[Pyodide](docs/howto/pyodide.md)", RunsHere(("test_pyodide",))),
    Platform("Chromium", _EXPORT, _DAWN, "an ES module with WGSL in it", RunsHere(("test_web_page",))),
    Platform("node", _EXPORT, _DAWN, "the same module", RunsHere(("test_export_node",))),
    Platform("Firefox", "both", "WebGPU: naga", "the same WGSL", _BROWSERS),
    Platform("Safari", "both", "WebGPU", "the same WGSL", Expected()),
    Platform("C, Linux", "[an export](docs/howto/native.md)", "Vulkan", "SPIR-V", RunsHere(("test_vulkan_example",))),
)  # fmt: skip


def table() -> str:
    return "\n".join((_BEGIN, *_HEAD, *(platform.row for platform in PLATFORMS), _END))


def table_in(readme: str) -> str:
    """The part between the marks."""
    start = readme.index(_BEGIN)
    return readme[start : readme.index(_END) + len(_END)]


def report_of(text: str) -> Iterator[Case]:
    """The tests of a report in JUnit's form, which the project's own test run has written."""
    for case in ElementTree.fromstring(text).iter("testcase"):
        inside = {child.tag for child in case}
        failed, skipped = inside & {"failure", "error"}, "skipped" in inside
        outcome = Outcome.FAILED if failed else Outcome.SKIPPED if skipped else Outcome.PASSED
        yield Case(case.get("classname", "").rpartition(".")[2], case.get("name", ""), outcome)


def unfounded(tests: Iterable[Case]) -> Iterator[tuple[Platform, Outcome]]:
    """The rows for which nothing has passed, or something has failed."""
    known = [*tests]
    for platform in PLATFORMS:
        evidence = platform.evidence
        if isinstance(evidence, RunsHere):
            outcomes = {test.outcome for test in known if evidence.is_spoken_for_by(test)}
            if Outcome.FAILED in outcomes:
                yield platform, Outcome.FAILED
            elif Outcome.PASSED not in outcomes:
                yield platform, Outcome.SKIPPED


def main(arguments: list[str]) -> int:
    *options, report = arguments
    status = 0
    if not Path(report).exists():
        print(f"platforms: {report} is not here: `make test` writes it")
        return 1
    for platform, outcome in unfounded(report_of(Path(report).read_text("utf-8"))):
        failed = outcome is Outcome.FAILED
        print(f"platforms: {'not so in' if failed else 'left open by'} this run: {platform.row}")
        status |= failed
    readme = README.read_text("utf-8")
    if "--write" in options and not status:
        README.write_text(readme.replace(table_in(readme), table()), "utf-8")
    elif table_in(readme) != table():
        print("platforms: README's table is not this one: python -m web.platforms --write build/tests.xml")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
