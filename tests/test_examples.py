"""Every example runs, on every target; so does what the README and the docs show."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gpusort
from gpusort.types.errors import CapabilityError
from tests.covering import few_cases
from tests.loading import load
from tests.reference import DTYPES, assert_same_bits, sample, sorted_by_numpy, whole_numbers

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("name", ["ipv4_key", "log_sum_exp", "own_kernel", "own_reduction", "own_search"])
def test_an_example_is_right_on_every_target(name: str, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(EXAMPLES / f"{name}.py").main(target)
    assert capsys.readouterr().out


def test_a_file_is_sorted_and_gone_on_with(capsys: pytest.CaptureFixture[str]) -> None:
    load(EXAMPLES / "sort_a_file.py").main()
    first, second = capsys.readouterr().out.splitlines()
    assert first == "stopped; by-price.npy is not there"
    assert second.startswith("200,000 records by price")


def test_the_simulator_reports_the_race_with_both_lines() -> None:
    report = load(EXAMPLES / "race.py").report()
    assert report.startswith("DataRaceError: ")
    assert "memory 'tile'" in report
    assert "tile[cx.local_id] = data[cx.local_id]" in report
    assert "data[cx.local_id] = tile[cx.group_size - 1 - cx.local_id]" in report


@pytest.fixture(scope="module")
def own_target() -> ModuleType:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: `cc` is not here")
    return load(EXAMPLES / "own_target.py")


@few_cases(can=lambda case: not (str(case["dtype"]).startswith("M") and case["what"] == "sum"), pairs=False)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("what", ["sort", "descending", "argmin", "sum"])
def test_a_target_of_ones_own_gives_what_numpy_gives(own_target: ModuleType, dtype: str, what: str) -> None:
    target, x, whole = own_target.CTarget(), sample(dtype, 5000, seed=7), whole_numbers(dtype, 5000)
    match what:
        case "argmin":
            assert gpusort.argmin(x, target=target) == np.argmin(x)
        case "sum" if dtype.startswith("M"):
            pytest.skip("dates have no sum")
        case "sum":
            assert gpusort.sum(whole, target=target) == np.sum(whole)
        case _:
            down = what == "descending"
            found = gpusort.sort(x, descending=down, stable=True, target=target)
            assert_same_bits(found, sorted_by_numpy(x, descending=down))


def test_an_operation_of_ones_own_runs_where_it_has_a_row(own_target: ModuleType) -> None:
    example = load(EXAMPLES / "own_operation.py")
    for where in (
        gpusort.target("simulator"),
        gpusort.target("python"),
        own_target.CTarget({**own_target.ROWS, "multiply_high": example.C_ROW}),
    ):
        example.main(where)


def test_an_operation_of_ones_own_is_refused_where_it_has_no_row(target: str) -> None:
    example = load(EXAMPLES / "own_operation.py")
    if target in ("simulator", "python"):
        pytest.skip(f"target {target!r} needs no row")
    expected = rf"own_operation\.py:\d+: target '{target}' has no operation 'multiply_high'"
    with pytest.raises(CapabilityError, match=expected):
        example.main(gpusort.target(target))


def test_no_example_is_forgotten() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "ipv4_key",
        "log_sum_exp",
        "mistakes",
        "own_kernel",
        "own_operation",
        "own_reduction",
        "own_search",
        "own_target",
        "race",
        "sort_a_file",
        "sort_with_dask",
    }
