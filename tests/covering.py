"""Fewer cases from the product of a test's parameters: a few in which every two values still meet, or each is there.

A test over targets, dtypes, orders and lengths has hundreds of cases, and what goes wrong in a kernel mostly takes one
value, or two together, to go wrong. A test marked by `few_cases` is run with so many of its cases that every two values
that meet in the whole product meet in one of them: a target and a dtype, a dtype and an order. The choice hangs on the
parameters alone, so that it is the same in every run, and what a case is called stays what it was.

    @few_cases(whole=["simulator"], can=lambda case: case["target"] != "python")

Where values hardly depend on each other, or each case takes long, `pairs=False` is enough: every value meets every
target, or occurs at all where there is no target. In the body of a test the fixture `in_turn` does the same for loops:

    for dtype, length in in_turn(DTYPES, LENGTHS):

What draws random cases draws `examples(60)`: a third of them, or all. Of a loop over seeds or parts `can` tells which
are run.

On `cuda`, which is fast and has nobody else to judge it, all cases are run (where it is not here, one is skipped and
says so), and on the targets that the mark names as `whole`. These are left out of account: the others cover the pairs
among themselves. Cases that a test would only skip cover nothing, so `can` tells which it would run. `pytest --whole`
(`make test-all`) runs every case of every test.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import combinations, product
from typing import Any, Protocol, TypeAlias, TypeVar, cast, overload

import attrs
import pytest

MARK = "covering(whole=(), can=None, pairs=True): not all cases of the product of parameters, but every two values meet"
TARGET = "target"
ALWAYS_WHOLE = "cuda"

WHOLE = "GPUSORT_TEST_WHOLE"  # an environment variable, which conftest.py sets: read as modules of tests are imported

Row: TypeAlias = Sequence[int]  # by what each parameter's value is known
Can: TypeAlias = Callable[[Mapping[str, object]], bool]
_Value: TypeAlias = tuple[int, int]  # the number of a column, and what stands there
_Met: TypeAlias = tuple[_Value, _Value]
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


def few_cases(*, whole: Collection[str] = (), can: Can | None = None, pairs: bool = True) -> pytest.MarkDecorator:
    """Marks a test. `whole`: targets on which all cases are run. `can`: whether a case is to be run at all. `pairs`:
    whether any two values meet, and not only any with a target."""
    return pytest.mark.covering(whole=whole, can=can, pairs=pairs)


def covering(rows: Sequence[Row], pairs: bool = True) -> set[int]:
    """Indices of a few rows in which every two values meet that meet in any; those of the first column evenly.

    Without `pairs` every value meets every one of the first column, and the others as it happens, but evenly.
    """
    all_met = [_pairs_of(row) for row in rows]
    met = all_met if pairs else [{pair for pair in found if pair[0][0] == 0} for found in all_met]
    missing = {pair for found in met for pair in found}
    seen: set[_Met] = set()
    new = [len(found) for found in met]
    used: Counter[_Value] = Counter()
    chosen: set[int] = set()

    def worth(index: int) -> tuple[int, ...]:
        first, *others = enumerate(rows[index])
        if pairs:
            return (-used[first],)
        return -used[first], len(all_met[index] - seen), -sum(used[value] for value in others)

    while missing:
        most = max(new)
        best = max((index for index, count in enumerate(new) if count == most), key=worth)
        chosen.add(best)
        used.update(enumerate(rows[best]))
        seen |= all_met[best]
        missing -= met[best]
        new = [len(found & missing) if new[index] else 0 for index, found in enumerate(met)]
    return chosen


def _pairs_of(row: Row) -> set[_Met]:
    return set(combinations(enumerate(row), 2))


def is_whole() -> bool:
    """Whether all cases are asked for, as known when modules of tests are imported."""
    return bool(os.environ.get(WHOLE))


def examples(count: int) -> int:
    """How many random cases are drawn where all are so many."""
    return count if is_whole() else max(count // 3, 8)


@attrs.frozen
class InTurn:
    """Rows of the values of several loops: all of the product, or about as many as the longest loop has values.

    Each value of each loop occurs in these, and no two loops always go in step.
    """

    whole: bool

    @overload
    def __call__(self, first: Iterable[A], second: Iterable[B], /) -> Iterator[tuple[A, B]]: ...
    @overload
    def __call__(self, first: Iterable[A], second: Iterable[B], third: Iterable[C], /) -> Iterator[tuple[A, B, C]]: ...
    @overload
    def __call__(
        self, first: Iterable[A], second: Iterable[B], third: Iterable[C], fourth: Iterable[D], /
    ) -> Iterator[tuple[A, B, C, D]]: ...
    def __call__(self, *loops: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        values = [list(loop) for loop in loops]
        rows = list(product(*map(range, map(len, values))))
        chosen = range(len(rows)) if self.whole else sorted(covering([(0, *row) for row in rows], pairs=False))
        for number in chosen:
            yield tuple(own[place] for own, place in zip(values, rows[number], strict=True))


def cases_of(metafunc: pytest.Metafunc) -> None:
    """Leaves of a test's cases those that are run, before anything is made of the others: of four cases, three."""
    mark = metafunc.definition.get_closest_marker("covering")
    cases = cast("list[_Case]", getattr(metafunc, "_calls"))  # noqa: B009  # which pytest has no public name for
    if mark is not None and cases:
        chosen = _chosen(mark, [case.params for case in cases])
        cases[:] = [case for number, case in enumerate(cases) if number in chosen]


class _Case(Protocol):
    params: Mapping[str, object]


def _chosen(mark: pytest.Mark, cases: Sequence[Mapping[str, object]]) -> set[int]:
    """The numbers of the cases that are run."""
    whole: Collection[object] = {ALWAYS_WHOLE, *cast("Collection[str]", mark.kwargs.get("whole", ()))}
    can = cast("Can | None", mark.kwargs.get("can"))
    others = [number for number, case in enumerate(cases) if case.get(TARGET) not in whole]
    missing = [number for number, case in enumerate(cases) if case.get(TARGET) == ALWAYS_WHOLE and not has_card()]
    able = [number for number in others if can is None or can(cases[number])]
    # The target is the first column: none of them gets all the work.
    names = sorted(cases[able[0]], key=lambda name: name != TARGET) if able else []
    pairs = bool(mark.kwargs.get("pairs", True)) and len(names) != 1  # one alone has no other to meet
    rows = [[id(cases[number][name]) for name in names] for number in able]
    if not pairs and TARGET not in names:
        rows = [[0, *row] for row in rows]  # all of one target
    return {*range(len(cases))} - {*others, *missing[1:]} | {able[index] for index in covering(rows, pairs)}


@cache
def has_card() -> bool:
    return find_spec("cupy") is not None
