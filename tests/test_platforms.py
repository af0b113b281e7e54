"""README's table of platforms says what a run of the tests has shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from web import platforms
from web.platforms import (
    PLATFORMS,
    README,
    ROOT,
    Case,
    Measured,
    Outcome,
    RunsHere,
    report_of,
    table,
    table_in,
    unfounded,
)

_REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_api" name="test_sort[u4-cpu]"/>
<testcase classname="tests.test_api" name="test_sort[u4-wgsl]"><skipped message="no adapter"/></testcase>
<testcase classname="tests.test_pyodide" name="test_it"/>
<testcase classname="tests.test_pyodide" name="test_not"><failure message="no"/></testcase>
</testsuite></testsuites>"""


def test_readme_has_the_table() -> None:
    assert table_in(README.read_text("utf-8")) == table()


def test_what_speaks_for_a_row_is_there() -> None:
    for platform in PLATFORMS:
        evidence = platform.evidence
        if isinstance(evidence, RunsHere):
            assert [name for name in evidence.modules if not (ROOT / "tests" / f"{name}.py").exists()] == []
        elif isinstance(evidence, Measured):
            assert (ROOT / "benchmarks" / "results" / evidence.results).exists()


def test_a_row_needs_a_test_that_passed_and_none_that_failed() -> None:
    found = list(report_of(_REPORT))
    assert [test.outcome for test in found] == [Outcome.PASSED, Outcome.SKIPPED, Outcome.PASSED, Outcome.FAILED]
    said = {(platform.host, platform.target): outcome for platform, outcome in unfounded(found)}
    assert ("Linux, x86-64", "`cpu`") not in said
    assert said["Linux", "`wgsl`"] is Outcome.SKIPPED
    assert said["Chromium, in Python", "`wgsl`"] is Outcome.FAILED
    assert said["Linux, Chromium", "`simulator`"] is Outcome.SKIPPED
    assert not any(platform.evidence.words == "should work" for platform, _ in unfounded(found))


def test_a_run_that_left_no_report_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert platforms.main([str(tmp_path / "tests.xml")]) == 1
    assert "`make test` writes it" in capsys.readouterr().out


@pytest.mark.parametrize(("outcome", "status"), [(Outcome.PASSED, 0), (Outcome.SKIPPED, 0), (Outcome.FAILED, 1)])
def test_a_run_in_which_something_fails_is_not_written(
    outcome: Outcome, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def report_of(text: str) -> Iterator[Case]:
        yield Case("test_translations", "test_it", outcome)

    monkeypatch.setattr(platforms, "report_of", report_of)
    monkeypatch.setattr(platforms, "README", tmp_path / "README.md")
    before = README.read_text("utf-8").replace("should work", "works")
    (tmp_path / "README.md").write_text(before)
    (tmp_path / "tests.xml").write_text("")
    assert platforms.main(["--write", str(tmp_path / "tests.xml")]) == status
    written = (tmp_path / "README.md").read_text()
    assert written == before if status else table_in(written) == table()
    told = capsys.readouterr().out
    assert ("not so in this run: | macOS" in told) is (outcome is Outcome.FAILED)
    assert ("left open by this run: | macOS" in told) is (outcome is Outcome.SKIPPED)
