"""What is launched where, as `gpusort plan` prints it and docs/plans.md lists it: a change of a threshold, a tile or a
limit is a change that is seen. `--update-golden` writes the document's table anew."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

import gpusort
from gpusort import cli
from gpusort.operations.sort import Sort
from gpusort.show import CALLS, operation_of
from tests.documents import ROOT

DOCUMENT = ROOT / "docs" / "plans.md"
ROWS = dict(re.findall(r"^\| `(\w+ --.+?)` \| (.*) \|$", DOCUMENT.read_text(), re.MULTILINE))


@pytest.mark.parametrize("call", ROWS)
def test_a_plan_is_as_documented(call: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> None:
    assert cli.main(["plan", *call.split()]) == 0
    *launches, last = capsys.readouterr().out.splitlines()
    row = f"{'; '.join(launches)} | {last.removeprefix('temporary: ').removesuffix(' bytes')}"
    if request.config.getoption("--update-golden"):
        DOCUMENT.write_text(DOCUMENT.read_text().replace(f"| `{call}` | {ROWS[call]} |", f"| `{call}` | {row} |"))
    else:
        assert row == ROWS[call]


@pytest.mark.parametrize(
    ("call", "message"),
    [("sort --shape 3x4", "--shape: expected sizes such as 1000,300, found '3x4'"),
     ("sort --shape 3 --key u7", "--key: expected one of bool, u8"), ("sort --shape 3 --on moon", "--on: expected"),
     ("mix --shape 3", "FUNCTION: expected one of sort,"), ("top_k --shape 3 --k 4", "--k: expected 0 to the 3"),
     ("cumsum --shape 3 --axis 1", "--axis: expected one of 1 axes, found 1"),
     ("sum --shape 3 --stable", "--stable: expected none without the operation 'sort' or 'argsort', found True"),
     ("sort --shape 30 --k 10", "--k: expected none without the operation 'top_k', found 10"),
     ("merge --shape 3 --axis 0", "--axis: expected none without the operation 'sort' or 'argsort' or 'top_k' or")],
)  # fmt: skip
def test_a_plan_of_nothing_is_refused(call: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", *call.split()]) == 1
    assert message in capsys.readouterr().err


def test_what_has_no_axis_given_is_planned_as_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    """One launch of both rows for a sort along the last axis; reductions and cumulative sums go over all elements."""

    def told(call: str) -> str:
        assert cli.main(["plan", *call.split()]) == 0
        return capsys.readouterr().out

    assert told("sort --shape 2,300") == told("sort --shape 2,300 --axis -1")
    for reduction in ("sum", "cumsum", "any", "argmax"):
        assert told(f"{reduction} --shape 2,300000") == told(f"{reduction} --shape 600000")
        assert told(f"{reduction} --shape 2,300000") != told(f"{reduction} --shape 2,300000 --axis 1")


def test_every_function_with_kernels_can_be_planned() -> None:
    functions = {name for name in gpusort.__all__ if _takes_arrays(getattr(gpusort, name))}
    assert functions - set(CALLS) == {"sort_inplace", "reduce", "scan"}
    for call in CALLS:
        assert operation_of(call, {}).called == call


def test_what_a_function_does_with_its_results_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def greatest(x: Any, /, *, axis: int = -1) -> Any:
        return cast(Any, gpusort.sort)(x, axis=axis)[-1]

    def nothing(x: object, /) -> None:
        pass

    for function in (greatest, nothing):
        monkeypatch.setitem(cast(dict[str, Any], CALLS), function.__name__, function)
    assert operation_of("greatest", {"axis": 0, "stable": True}) == Sort(0)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^FUNCTION: nothing asks for no operation on arrays$"):
        operation_of("nothing", {})


def _takes_arrays(found: object) -> bool:
    return getattr(found, "__module__", "") in ("gpusort.api.sorting", "gpusort.api.reducing")


def test_an_array_without_elements_launches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "sort", "--shape", "0"]) == 0
    assert capsys.readouterr().out == "temporary: 0 bytes\n"
