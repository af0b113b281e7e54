"""The side-by-side run, on small arrays: it ends, nothing fails, and what it writes has the form that is promised."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gpusort
from benchmarks import compare, compare_cpu, sweep, throughput
from benchmarks.layers import LIBRARY, SCHEDULE, TARGETS, WIDEST, picture_of_the_layers
from benchmarks.peers import Sorter
from benchmarks.pictures import newest, picture_of
from benchmarks.sweep_cases import Case
from benchmarks.timing import Result

ROOT = Path(__file__).parent.parent
THROUGHPUT = sorted((ROOT / "benchmarks/results").glob("throughput-*.json"))


def test_it_runs_and_writes_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    monkeypatch.setattr(sys, "argv", ["compare", "--largest", "1024", "--only", "cpu", "--json", str(path)])
    assert compare.main() == 0
    written = json.loads(path.read_text())
    assert {"processor", "python", "packages", "targets"} <= set(written["machine"])
    assert len(written["results"]) == len(list(compare_cpu.comparisons(1024)))
    for result in written["results"]:
        assert result["ratio"] == pytest.approx(result["peer_s"] / result["ours_s"])
    assert "0 failed" in capsys.readouterr().out


def test_the_sweep_runs_and_finds_nothing_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sweep.json"
    options = ["--only", "^numpy (sum|argsort|any of zeros) i4", "--largest", "120", "--seconds", "0", "--all"]
    monkeypatch.setattr(sys, "argv", ["sweep", *options, "--json", str(path)])
    assert sweep.main() == 0
    written = json.loads(path.read_text())
    assert written["wrong"] == []
    ways = {(case["function"], *case["shape"], case["layout"], case["axis"]) for case in written["results"]}
    assert {("sum", 4, 5, 6, "Fortran", 1), ("argsort", 10, 10, "C", None), ("any of zeros", 10, "strided", 0)} <= ways
    assert len(ways) == len(written["results"]) == 3 * (2 * 2 + 4 * 3 + 4 * 4)
    printed = capsys.readouterr().out
    assert f"of {len(ways)} under 0.8" in printed
    assert "WRONG" not in printed


def test_short_arrays_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a processor foresees the branches of a sort that it has seen before."""
    sorted_ones: set[float] = set()
    argsort = gpusort.argsort

    def seen(x: np.ndarray[tuple[int, ...], np.dtype[np.float32]], axis: int | None) -> object:
        sorted_ones.add(float(x[0]))
        return argsort(x, axis=axis)

    monkeypatch.setattr(gpusort, "argsort", seen)
    options = ["--only", "^numpy argsort f4 1000 C axis 0", "--seconds", "0", "--all"]
    monkeypatch.setattr(sys, "argv", ["sweep", *options])
    assert sweep.main() == 0
    assert len(sorted_ones) == -(-(1 << 16) // 1000)


@pytest.mark.parametrize("command", [compare, sweep])
def test_nothing_to_compare_is_an_error(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["it", "--only", "misspelt"])
    with pytest.raises(SystemExit) as error:
        command.main()
    assert error.value.code == 2
    assert "is chosen" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["nothing", "nothing.within", "numpy.nothing"])
def test_a_peer_that_is_not_installed_is_missing(module: str) -> None:
    assert Sorter("it", module, "iuf", lambda x: lambda: x).missing() == f"{module} is not installed"
    assert Sorter("it", "numpy.linalg", "iuf", lambda x: lambda: x).missing() is None


def test_the_sweep_names_a_wrong_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(x: np.ndarray[tuple[int, ...], np.dtype[np.int32]], axis: int | None) -> object:
        return np.sum(x, axis=axis) + (axis == 1)

    monkeypatch.setattr(gpusort, "sum", wrong)
    options = ["--only", "^numpy sum i4 10 x 10 C", "--seconds", "0", "--all"]
    monkeypatch.setattr(sys, "argv", ["sweep", *options])
    assert sweep.main() == 1
    assert "WRONG: numpy sum i4 10 x 10 C axis 1: another result than NumPy's" in capsys.readouterr().out


def test_a_sweep_that_is_stopped_keeps_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the signal that `timeout` sends, in the third case."""
    started: list[str] = []
    timed = sweep.timed

    def stopped(case: Case, x: Sequence[object], seconds: float) -> Result:
        started.append(case.name)
        if len(started) == 3:
            signal.raise_signal(signal.SIGTERM)
        return timed(case, x, seconds)

    path = tmp_path / "sweep.json"
    options = ["--only", "^numpy sum i4 10 (C|strided)", "--seconds", "0", "--all", "--json", str(path)]
    monkeypatch.setattr(sys, "argv", ["sweep", *options])
    monkeypatch.setattr(sweep, "timed", stopped)
    assert sweep.main() != 0
    assert [case["name"] for case in json.loads(path.read_text())["results"]] == started[:2]
    printed = capsys.readouterr().out
    assert "stopped after 2 of 4 cases" in printed
    assert "of 2 under 0.8" in printed


def test_the_suite_runs() -> None:
    """Every benchmark once, on small arrays, untimed; the first sort of a process is left out, for it compiles."""
    command = [sys.executable, "-m", "pytest", "benchmarks", "--benchmark-disable", "--largest", "1024", "-q"]
    one_dtype = "not first_sort and (not wgsl or float32 or f4)"  # of each kernel that Mesa is to compile
    run = subprocess.run([*command, "-k", one_dtype], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout


def test_throughput_has_a_point_for_each_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "throughput.json"
    monkeypatch.setattr(sys, "argv", ["throughput", "--largest", "4096", "--json", str(path)])
    throughput.main()
    content = json.loads(path.read_text())
    assert {entry["who"] for entry in content["series"]} >= {"gpusort cpu", "np.sort"}
    for entry in content["series"]:
        assert [count for count, _ in entry["points"]] == [1 << 10, 1 << 12]
        assert all(seconds > 0 for _, seconds in entry["points"])
    assert picture_of(content).count("<polyline") == len(content["series"])


@pytest.mark.parametrize("name", newest(THROUGHPUT))
def test_pictures_are_those_of_the_newest_results(name: str) -> None:
    picture = ROOT / "docs" / f"{name}.svg"
    assert picture.read_text() == picture_of(json.loads(newest(THROUGHPUT)[name].read_text())), "make pictures"


def test_each_machine_has_one_picture() -> None:
    files = [
        Path(f"throughput-{name}.json") for name in ("a-2026-11-21b", "a-2026-11-21", "b-c-2026-01-02", "a-2025-12-31")
    ]
    assert newest(files) == {"throughput-a": files[0], "throughput-b-c": files[2]}
    assert {path.stem for path in (ROOT / "docs").glob("*.svg")} == {"layers", *newest(THROUGHPUT)}
    assert len(newest(THROUGHPUT)) >= 2


def test_the_picture_of_the_layers_is_current() -> None:
    assert (ROOT / "docs/layers.svg").read_text() == picture_of_the_layers(), "make pictures"


def test_words_stay_inside_their_boxes() -> None:
    """However wide a font is, up to so much a letter; and inside the picture."""
    found = re.findall(
        r'<rect.*? x="(\d+)" y="\d+" width="(\d+)" height="\d+"/>\n'
        r'<text x="(\d+)" y="\d+">(.+)</text>\n<text class="line" x="(\d+)" y="\d+">(.+)</text>',
        picture_of_the_layers(),
    )
    assert len(found) == len((*LIBRARY, SCHEDULE, *TARGETS))
    for x, width, name_at, name, line_at, line in found:
        for at, text, size in ((name_at, name, 14), (line_at, line, 11.5)):
            half = len(text) * size * WIDEST / 2
            assert int(x) < int(at) - half, text
            assert int(at) + half < int(x) + int(width), text
