"""The choice of cases: every two values that meet in the product meet in a case that is run, and few are run."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tests import covering as covering_module
from tests.covering import WHOLE, InTurn, covering, examples

pytest_plugins = ["pytester"]


def pairs_of(rows: Sequence[tuple[int, ...]]) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    return {pair for row in rows for pair in itertools.combinations(enumerate(row), 2)}


@pytest.mark.parametrize("sizes", [(4, 14, 2, 2), (3, 8, 17), (5, 5), (1, 7, 3), (6,)])
def test_every_two_values_meet(sizes: tuple[int, ...]) -> None:
    rows = list(itertools.product(*map(range, sizes)))
    chosen = [rows[index] for index in covering(rows)]
    assert pairs_of(chosen) == pairs_of(rows)
    if len(sizes) > 2:
        two = sorted(sizes)[-2:]
        assert len(chosen) <= 1.25 * two[0] * two[1]


def test_values_that_never_meet_are_not_waited_for() -> None:
    rows = [row for row in itertools.product(range(4), range(6), range(2)) if row[0] != 1 or row[1] < 2]
    chosen = [rows[index] for index in covering(rows)]
    assert pairs_of(chosen) == pairs_of(rows)
    assert len(chosen) < len(rows)
    assert covering([]) == set()


def test_no_value_of_the_first_column_gets_all_the_work() -> None:
    rows = list(itertools.product(range(3), range(9), range(9)))
    counts = [[rows[index][0] for index in covering(rows)].count(value) for value in range(3)]
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("sizes", [(4, 14, 2, 2), (5, 3, 9), (5, 5), (1, 6, 3)])
def test_every_value_meets_those_of_the_first_column(sizes: tuple[int, ...]) -> None:
    """In as few rows as can be, and the others are not the same again and again."""
    rows = list(itertools.product(*map(range, sizes)))
    chosen = [rows[index] for index in covering(rows, pairs=False)]
    assert {(row[0], column, row[column]) for row in chosen for column in range(1, len(row))} == {
        (row[0], column, row[column]) for row in rows for column in range(1, len(row))
    }
    assert len(chosen) == sizes[0] * max(sizes[1:])
    for column, size in enumerate(sizes):
        counts = Counter(row[column] for row in chosen).values()
        assert len(counts) == size
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("sizes", [(4, 14), (4, 4), (3, 6, 2), (5, 2, 2, 4), (1, 1)])
def test_loops_in_turn_have_each_value(sizes: tuple[int, ...]) -> None:
    loops = [[(number, value) for value in range(size)] for number, size in enumerate(sizes)]
    few, whole = cast(Any, InTurn(False)), cast(Any, InTurn(True))
    found = list(few(*loops))
    assert {value for row in found for value in row} == {value for loop in loops for value in loop}
    assert len(found) == max(sizes)
    assert list(whole(*loops)) == list(itertools.product(*loops))


def test_loops_of_which_one_is_empty_have_no_rows() -> None:
    assert list(InTurn(False)([1, 2], ())) == list(InTurn(True)([1, 2], ())) == []


def test_two_loops_do_not_always_go_in_step() -> None:
    rows = list(InTurn(False)(range(8), "ab", "xy"))
    assert {(second, third) for _, second, third in rows} == {*itertools.product("ab", "xy")}


MARKED = """
import pytest

@pytest.fixture(params=["cpu", "simulator", "python", "cuda"])
def target(request): return request.param

def can(case):
    return case["target"] != "python" or case["length"] < 3

@pytest.mark.covering(whole=["simulator"], can=can)
@pytest.mark.parametrize("length", range(5))
@pytest.mark.parametrize("order", ["up", "down"])
@pytest.mark.parametrize("dtype", "abcde")
def test_marked(target, dtype, order, length): pass

@pytest.mark.parametrize("length", range(5))
def test_not_marked(target, length): pass

@pytest.mark.covering(can=lambda case: case["seed"] % 2)
@pytest.mark.parametrize("seed", range(10))
def test_alone(seed): pass
"""


@pytest.mark.parametrize("is_card_here", [False, True])
def test_what_a_mark_leaves_out(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, is_card_here: bool) -> None:
    """All on the targets that are whole, none that cannot be, everything where that is asked for."""
    monkeypatch.setattr(covering_module, "has_card", lambda: is_card_here)
    monkeypatch.setenv(WHOLE, "")  # which is set for --whole, and not for the tests behind this one
    pytester.makeconftest("from tests.conftest import pytest_addoption, pytest_configure, pytest_generate_tests")
    pytester.makepyfile(MARKED)
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-v")
    run = [line.split()[0] for line in done.outlines if " PASSED" in line]
    counts = {
        name: sum(f"test_marked[{name}" in node for node in run) for name in ("cpu", "simulator", "python", "cuda")
    }
    assert (counts["simulator"], counts["cuda"]) == (50, 50 if is_card_here else 1)
    assert counts["cpu"] + counts["python"] < 40
    assert min(counts["cpu"], counts["python"]) >= 5
    assert not any("test_marked[python" in node and node.endswith(("-3]", "-4]")) for node in run)
    assert sum("test_not_marked" in node for node in run) == 20
    assert sum("test_alone" in node for node in run) == 5, "one parameter has no two values to meet"
    assert examples(60) == 20
    pytester.runpytest_inprocess("-p", "no:cacheprovider", "--whole").assert_outcomes(passed=230)
    assert examples(60) == 60
