"""The rules of the tables of what is fastest: each condition counts, by itself, to the edges of its ranges."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from gpusort.algos.layout import Layout
from gpusort.algos.rules import PolicyRule, SelectRule, SortRule
from gpusort.machine import Capability, Limits, TargetInfo

NEEDS = frozenset({Capability.SUBGROUPS})
LIMITS = Limits(256, 16_384, 65_535, 1 << 30, 8, 32, 32)
INFO = TargetInfo("wgsl", "a device", "none", LIMITS, NEEDS)
OTHERS = (attrs.evolve(INFO, name="cuda"), attrs.evolve(INFO, capabilities=frozenset[Capability]()))
MORE = attrs.evolve(INFO, capabilities=NEEDS | {Capability.FLOAT64})


def sort_rule(**changed: Any) -> SortRule:
    rule = SortRule("wgsl", NEEDS, (32, 64), range(10, 101), range(2, 9), cast(Any, "a sort"))
    return attrs.evolve(rule, **changed)


def test_a_sort_is_taken_where_all_holds() -> None:
    for info in (INFO, MORE):
        for bits, rows, length in ((32, 2, 10), (64, 8, 10), (32, 2, 100), (64, 8, 100)):
            assert sort_rule().matches(info, bits, rows, length)


def test_a_sort_is_not_taken_where_one_thing_does_not_hold() -> None:
    assert not any(sort_rule().matches(info, 32, 2, 10) for info in OTHERS)
    for bits, rows, length in ((16, 2, 10), (33, 2, 10), (32, 1, 10), (32, 9, 10), (32, 2, 9), (32, 2, 101)):
        assert not sort_rule().matches(INFO, bits, rows, length)


@pytest.mark.parametrize(("elements", "taken"), [(range(20, 21), True), (range(21, 99), False), (range(20), False)])
def test_the_elements_of_all_rows_count(elements: range, taken: bool) -> None:
    assert sort_rule(elements=elements).matches(INFO, 32, 2, 10) is taken


def test_memory_and_what_a_device_has_besides_count() -> None:
    assert sort_rule(workgroup_bytes=16_384).matches(INFO, 32, 2, 10)
    assert not sort_rule(workgroup_bytes=16_385).matches(INFO, 32, 2, 10)
    both = frozenset({Capability.SUBGROUPS, Capability.FLOAT64})
    assert sort_rule(unless=both).matches(INFO, 32, 2, 10)
    assert not sort_rule(unless=both).matches(MORE, 32, 2, 10)
    assert not sort_rule(unless=NEEDS).matches(INFO, 32, 2, 10)


@pytest.mark.parametrize("in_rows", [False, True])
def test_policies_along_an_axis_go_by_how_it_lies(in_rows: bool) -> None:
    rule = PolicyRule("wgsl", NEEDS, in_rows, range(10, 101), range(3, 6), "a policy")

    def layout(length: int, results: int, rows: bool = in_rows) -> Layout:
        return Layout.rows(results, length) if rows else Layout(1, length, results, 0, results, 1)

    assert all(
        rule.matches(info, layout(length, results), 8)
        for info in (INFO, MORE)
        for length in (10, 100)
        for results in (3, 5)
    )
    assert not any(rule.matches(INFO, layout(*shape), 8) for shape in ((9, 3), (101, 3), (10, 2), (10, 6)))
    assert not rule.matches(INFO, layout(10, 3, not in_rows), 8)
    assert not any(rule.matches(info, layout(10, 3), 8) for info in OTHERS)
    assert attrs.evolve(rule, in_rows=None).matches(INFO, layout(10, 3, not in_rows))
    bounded = attrs.evolve(rule, row_bytes=80)
    assert [bounded.matches(INFO, layout(*shape), 8) for shape in ((10, 3), (11, 3))] == [True, False]
    assert [bounded.matches(INFO, layout(20, 3), itemsize) for itemsize in (4, 5)] == [True, False]


def test_selections_go_by_k_too() -> None:
    rule = SelectRule("wgsl", NEEDS, (32, 64), range(10, 101), range(2, 9), cast(Any, None), most_k=7)
    for bits, rows, length, k in ((32, 2, 10, 1), (64, 8, 100, 7), (32, 8, 10, 0)):
        assert rule.matches(INFO, bits, rows, length, k)
        assert not rule.matches(OTHERS[0], bits, rows, length, k)
    for one in ((16, 2, 10, 1), (32, 1, 10, 1), (32, 9, 10, 1), (32, 2, 9, 1), (32, 2, 101, 1), (32, 2, 10, 8)):
        assert not rule.matches(INFO, *one)
