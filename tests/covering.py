"""Fewer cases from the product of a test's parameters: a few in which every two values still meet.

A test over targets, dtypes, orders and lengths has hundreds of cases, and what goes wrong in a kernel mostly takes one
value, or two together, to go wrong. A test marked by `few_cases` is run with so many of its cases that every two values
that meet in the whole product meet in one of them: a target and a dtype, a dtype and an order. The choice hangs on the
parameters alone, so that it is the same in every run, and what a case is called stays what it was.

    @few_cases(whole=["simulator"], can=lambda case: case["target"] != "python")

On `cuda`, which is fast and has nobody else to judge it, all cases are run, and so they are on the targets that the
mark names as `whole`. These are left out of account: the others cover the pairs among themselves. Cases that a test
would only skip cover nothing, so `can` tells which it would run. `pytest --whole` runs every case of every test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias, cast

import pytest

MARK = "covering(whole=(), can=None): not all cases of the product of parameters, but every two values meet in one"
_TARGET = "target"
_ALWAYS_WHOLE = "cuda"

Row: TypeAlias = Sequence[int]  # by what each parameter's value is known
Can: TypeAlias = Callable[[Mapping[str, object]], bool]
_Pair: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


def few_cases(*, whole: Collection[str] = (), can: Can | None = None) -> pytest.MarkDecorator:
    """Marks a test. `whole`: targets on which all cases are run. `can`: whether a case is to be run at all."""
    return pytest.mark.covering(whole=whole, can=can)


def covering(rows: Sequence[Row]) -> set[int]:
    """Indices of a few rows in which every two values meet that meet in any; those of the first column evenly."""
    pairs = [_pairs_of(row) for row in rows]
    missing = {pair for found in pairs for pair in found}
    new = [len(found) for found in pairs]
    used: Counter[int] = Counter()
    chosen: set[int] = set()
    while missing:
        best = max(range(len(rows)), key=lambda index: (new[index], -used[rows[index][0]]))
        chosen.add(best)
        used[rows[best][0]] += 1
        missing -= pairs[best]
        new = [len(found & missing) if new[index] else 0 for index, found in enumerate(pairs)]
    return chosen


def _pairs_of(row: Row) -> set[_Pair]:
    return set(combinations(enumerate(row), 2))


def chosen_of(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The items that are run, and those that marks leave out."""
    tests: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("covering") is not None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for cases in tests.values():
        left_out.update(_left_out(cases))
    return [item for item in items if item not in left_out], [item for item in items if item in left_out]


def _left_out(cases: Sequence[pytest.Function]) -> set[pytest.Function]:
    mark = cases[0].get_closest_marker("covering")
    assert mark is not None
    whole: Collection[object] = {_ALWAYS_WHOLE, *cast("Collection[str]", mark.kwargs.get("whole", ()))}
    can = cast("Can | None", mark.kwargs.get("can"))
    others = [case for case in cases if case.callspec.params.get(_TARGET) not in whole]
    able = [case for case in others if can is None or can(case.callspec.params)]
    # The target is the first column: none of them gets all the work.
    names = sorted(able[0].callspec.params, key=lambda name: name != _TARGET) if able else []
    chosen = covering([[id(case.callspec.params[name]) for name in names] for case in able])
    return {*others} - {able[index] for index in chosen}
