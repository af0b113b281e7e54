"""Every example runs, on every target; so does what the README and the docs show."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # annotations are looked up through their module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["ipv4_key", "log_sum_exp", "own_kernel"])
def test_an_example_is_right_on_every_target(name: str, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(EXAMPLES / f"{name}.py").main(target)
    assert capsys.readouterr().out


def test_the_simulator_reports_the_race_with_both_lines() -> None:
    report = load(EXAMPLES / "race.py").report()
    assert report.startswith("DataRaceError: ")
    assert "memory 'tile'" in report
    assert "tile[cx.local_id] = data[cx.local_id]" in report
    assert "data[cx.local_id] = tile[cx.group_size - 1 - cx.local_id]" in report


def test_no_example_is_forgotten() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "ipv4_key",
        "log_sum_exp",
        "mistakes",
        "own_kernel",
        "race",
    }
