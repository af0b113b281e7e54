"""Range analysis to the element: what a condition leaves of the indices is proven, and one element less is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
import pytest

from gpusort.kernel import ir
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role
from gpusort.kernel.passes.bounds import Ranges, relevant_parameters
from gpusort.kernel.passes.facts import Facts, Sum
from gpusort.kernel.span import Span
from gpusort.kernel.specialise import specialise
from gpusort.kernel.verify import verify
from gpusort.targets.cpu.limits import subgroup_size
from gpusort.types.intrinsics import count_ones, dynamic_range, maximum, minimum, select
from gpusort.types.invocation import Invocation
from gpusort.types.layout import Type
from gpusort.types.memory import Storage
from gpusort.types.scalars import F32, U32, Bool
from tests.test_bounds import needed

Guarded: TypeAlias = Callable[[Invocation, Storage[U32], U32], None]
INVOCATIONS, COUNT = 32, 20
LAST = 123_456  # an index that is asked for nowhere else


def below(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id < count:
        out[cx.global_id] = count


def not_from(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id >= count:
        out[0] = count
    else:
        out[cx.global_id] = count


def up_to(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id <= count:
        out[cx.global_id] = count


def not_beyond(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if not cx.global_id > count:
        out[cx.global_id] = count


def not_the_first(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id != 0:
        out[cx.global_id - 1] = count


def backwards_from_the_second(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id != 0:
        out[INVOCATIONS - 1 - cx.global_id] = count


def not_the_last(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id != 31:
        out[cx.global_id] = count


def only_one(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id == count:
        out[cx.global_id] = count


def between(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id > 3 and cx.global_id < count:
        out[cx.global_id - 4] = count


def not_outside(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id <= 3 or cx.global_id >= count:
        out[0] = count
    else:
        out[cx.global_id - 4] = count


def chosen_where_below(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id < count:
        inside = cx.global_id > 3
    else:
        inside = Bool(False)
    if inside:
        out[cx.global_id - 4] = count


def chosen_where_not_beyond(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id > count:
        inside = Bool(False)
    else:
        inside = cx.global_id > 3
    if inside:
        out[cx.global_id - 4] = count


def backwards(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id < count:
        out[count - 1 - cx.global_id] = count


def doubled(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id < count:
        out[cx.global_id * 2 + 1] = count


def halved(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id < count:
        out[cx.global_id // 2] = count


def shifted(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.global_id < count:
        out[cx.global_id >> 2] = count


def shifted_by_some(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[cx.global_id >> (cx.local_id % 3 + 2)] = count


def divided_by_some(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[(cx.global_id + count) // (cx.local_id % 3 + 2) - 5] = count


def remaining(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[cx.global_id % count] = count


def masked(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[(cx.global_id * count) & 15] = count


def in_steps(cx: Invocation, out: Storage[U32], count: U32) -> None:
    for i in dynamic_range(cx.global_id, count, U32(7)):
        out[i] = count


def by_ones(cx: Invocation, out: Storage[U32], count: U32) -> None:
    for i in dynamic_range(U32(0), count):
        out[i] = count


def by_steps_of_nothing(cx: Invocation, out: Storage[U32], count: U32) -> None:
    """A step of 0 is taken as 1."""
    for i in dynamic_range(U32(0), count, count - count):
        out[i] = count


def by_lane(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[cx.lane] = count


def by_place_in_the_group(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[cx.local_id] = count


def by_a_bool(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[U32(cx.global_id < count)] = count


def by_a_power(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[U32(1) << (cx.global_id % 5)] = count


def by_any_power(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[((U32(1) << cx.global_id) >> 27) // (count - 19)] = count


def of_some_bits(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[count_ones(cx.global_id * count)] = count


def at_most_some(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[minimum(cx.global_id, count)] = count


def at_least_some(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[maximum(cx.global_id % 4, count)] = count


def this_or_that(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[select(cx.global_id < count, cx.global_id + 3, count)] = count


def a_product(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[(cx.global_id % 4) * (cx.global_id % 7)] = count


def bits_of_either(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[(cx.global_id % 16) | (cx.local_id % 9)] = count


def common_bits(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[(cx.global_id + count) & (cx.global_id % 11)] = count


def rounded_down(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[cx.global_id - cx.global_id % 8] = count


def from_the_second(cx: Invocation, out: Storage[U32], count: U32) -> None:
    for i in dynamic_range(U32(1), count):
        out[i - 1] = cx.global_id


def what_one_round_sees(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at = U32(3)
    for i in dynamic_range(count - 1, count):
        out[at] = i
        at = cx.global_id * count


def what_each_round_sees(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at = U32(3)
    for i in dynamic_range(U32(0), count):
        out[at] = count
        at = i % 9


def what_rounds_in_rounds_see(cx: Invocation, out: Storage[U32], count: U32) -> None:
    for _ in dynamic_range(U32(0), count):
        at = U32(3)
        for i in dynamic_range(U32(0), count):
            out[at] = count
            at = i % 9


def what_a_loop_leaves(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at = U32(3)
    for i in dynamic_range(U32(0), count):
        at = i % 9
    out[at] = count


def what_a_loop_leaves_in_the_middle(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at = U32(3)
    for i in dynamic_range(U32(0), count):
        at = cx.global_id
        if i == cx.local_id:
            break
        at = U32(3)
    out[minimum(at, U32(8))] = count


def what_a_while_loop_leaves_in_the_middle(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at, i = U32(3), U32(0)
    while i < count:
        at = cx.global_id
        if i == cx.local_id:
            break
        at = U32(3)
        i = i + 1
    out[minimum(at, U32(8))] = count


def behind_a_loop_that_few_enter(cx: Invocation, out: Storage[U32], count: U32) -> None:
    for _ in dynamic_range(cx.global_id, count):
        out[0] = count
    out[cx.global_id] = count


def what_one_round_leaves(cx: Invocation, out: Storage[U32], count: U32) -> None:
    """It is not known, as it may be what was before the loop."""
    at = U32(3)
    for _ in dynamic_range(count - 1, count):
        at = cx.global_id
    out[minimum(at, U32(8))] = count


def set_on_either_side(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at = cx.global_id % 5
    if cx.global_id < count:
        at = cx.global_id % 9 + 2
    out[at] = count


def set_on_either_side_and_turned(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at = cx.global_id % 9 + 2
    if cx.global_id < count:
        at = cx.global_id % 5
    out[10 - at] = count


def set_where_it_is_known_to_be_less(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at = U32(0)
    if cx.global_id < count:
        at = cx.global_id
    out[at] = count


def set_alike_on_both_sides(cx: Invocation, out: Storage[U32], count: U32) -> None:
    if cx.local_id % 2 == 0:
        at = cx.global_id + 1
    else:
        at = U32(1) + cx.global_id
    if cx.global_id < 7:
        out[at] = count


def until_the_ninth(cx: Invocation, out: Storage[U32], count: U32) -> None:
    for i in dynamic_range(U32(0), count):
        if i >= 9:
            break
        out[i] = count


def set_while_below_nine(cx: Invocation, out: Storage[U32], count: U32) -> None:
    for i in dynamic_range(U32(0), count):
        at = cx.global_id
        if i < 9:
            at = i + 2
        else:
            break
        out[at] = count


def left_either_way(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at = cx.global_id % 6
    for _ in dynamic_range(U32(0), count):
        if cx.global_id < count:
            break
        else:
            break
    out[at] = count


def chosen_by_the_launch(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[select(count < 50, cx.global_id % 5, cx.global_id)] = count


def loaded_and_below(cx: Invocation, out: Storage[U32], count: U32) -> None:
    at = out[0]
    if at < count:
        out[at] = count


def where_one_of_two_is(cx: Invocation, out: Storage[U32], count: U32) -> None:
    """Of two Bools that differ, neither is known."""
    if (cx.global_id < count) == (cx.global_id < 3):
        out[0] = count
    else:
        out[INVOCATIONS - 1 - cx.global_id] = count


def below_by_a_float(cx: Invocation, out: Storage[U32], count: U32) -> None:
    """Which says nothing about the integer."""
    at = F32(cx.global_id)
    if at < F32(20):
        out[cx.global_id] = count


def of_a_product_that_may_wrap(cx: Invocation, out: Storage[U32], count: U32) -> None:
    product = (cx.global_id + 65_530) * (cx.global_id + 65_530)
    if product != 0 and product <= count:
        out[product - 1] = count


# How many elements each touches. What is masked is a multiple of four.
TOUCHED: dict[Guarded, int] = {
    below: COUNT, not_from: COUNT, up_to: COUNT + 1, not_beyond: COUNT + 1, not_the_first: INVOCATIONS - 1,
    backwards_from_the_second: INVOCATIONS - 1, not_the_last: INVOCATIONS - 1, only_one: COUNT + 1,
    between: COUNT - 4, not_outside: COUNT - 4,
    chosen_where_below: COUNT - 4, chosen_where_not_beyond: COUNT - 3, backwards: COUNT, doubled: 2 * COUNT,
    divided_by_some: (INVOCATIONS - 1 + COUNT) // 2 - 4,
    halved: COUNT // 2, shifted: COUNT // 4, shifted_by_some: INVOCATIONS // 4,
    remaining: COUNT, masked: 13, in_steps: COUNT,
    by_a_bool: 2, by_a_power: 17, by_any_power: 17, of_some_bits: 33, at_most_some: COUNT + 1, at_least_some: COUNT + 1,
    this_or_that: COUNT + 3, a_product: 3 * 6 + 1, bits_of_either: 16, common_bits: 11, rounded_down: INVOCATIONS - 7,
    from_the_second: COUNT - 1, by_ones: COUNT, by_steps_of_nothing: COUNT, what_one_round_sees: 4,
    what_a_loop_leaves: 9, behind_a_loop_that_few_enter: INVOCATIONS,
    what_a_loop_leaves_in_the_middle: 9, what_a_while_loop_leaves_in_the_middle: 9,
    what_one_round_leaves: 9, what_each_round_sees: 9, what_rounds_in_rounds_see: 9,
    set_where_it_is_known_to_be_less: COUNT,
    set_on_either_side: 11, set_on_either_side_and_turned: 11, set_alike_on_both_sides: 8, until_the_ninth: 9,
    set_while_below_nine: 11, left_either_way: 6,
    chosen_by_the_launch: 5, loaded_and_below: COUNT, where_one_of_two_is: INVOCATIONS,
    below_by_a_float: INVOCATIONS, of_a_product_that_may_wrap: COUNT,
    by_lane: subgroup_size(INVOCATIONS), by_place_in_the_group: INVOCATIONS,
}  # fmt: skip


@pytest.mark.parametrize("guarded", TOUCHED, ids=lambda function: function.__name__)
def test_exactly_what_is_touched_is_proven(guarded: Guarded) -> None:
    launch = kernel(guarded).launch(Grid(1, INVOCATIONS), Buffer("out", U32, TOUCHED[guarded], Role.OUTPUT), U32(COUNT))
    step = specialise(launch)
    assert needed(step) == 0
    shorter = Buffer("out", U32, TOUCHED[guarded] - 1, Role.OUTPUT)
    assert needed(attrs.evolve(step, buffers=dict.fromkeys(step.buffers, shorter))) == 1


def a_quotient_by_nothing(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[cx.global_id // (cx.global_id % 3)] = count


def a_remainder_by_nothing(cx: Invocation, out: Storage[U32], count: U32) -> None:
    out[cx.global_id % (cx.global_id % 3)] = count


@pytest.mark.parametrize("guarded", [a_quotient_by_nothing, a_remainder_by_nothing])
def test_of_a_division_by_what_may_be_zero_nothing_is_known(guarded: Guarded) -> None:
    """Targets differ in what it gives."""
    out = Buffer("out", U32, 1 << 20, Role.OUTPUT)
    assert needed(specialise(kernel(guarded).launch(Grid(1, INVOCATIONS), out, U32(COUNT)))) == 1


def in_the_first_subgroup(cx: Invocation, out: Storage[U32]) -> None:
    if cx.subgroup_id == 0:
        out[cx.local_id] = U32(1)


def by_all_of_them(
    cx: Invocation, out: Storage[U32], lanes: Storage[U32], groups: Storage[U32], sizes: Storage[U32]
) -> None:
    out[cx.global_id] = U32(1)
    lanes[cx.lane] = U32(1)
    lanes[cx.subgroup_id] = U32(1)
    groups[cx.group_id] = U32(1)
    groups[cx.num_groups - 1] = U32(1)
    sizes[cx.group_size - 1] = U32(1)
    sizes[cx.subgroup_size - 1] = U32(1)


@pytest.mark.parametrize(("lanes", "lane", "subgroup"), [(32, 32, 3), (16, 16, 5), (1, 1, 80), (128, 80, 1)])
def test_what_identities_are_at_most(lanes: int, lane: int, subgroup: int) -> None:
    """Of three groups of 80 invocations."""
    lengths = {"out": 240, "lanes": max(lane, subgroup), "groups": 3, "sizes": max(80, lanes)}

    def unproven(**changed: int) -> int:
        buffers = [Buffer(name, U32, length, Role.OUTPUT) for name, length in {**lengths, **changed}.items()]
        return needed(specialise(kernel(by_all_of_them).launch(Grid(3, 80), *buffers)), lanes)

    assert unproven() == 0
    assert unproven(out=239) == 1
    assert unproven(lanes=max(lane, subgroup) - 1) == 1
    assert unproven(lanes=min(lane, subgroup)) == 1
    assert unproven(lanes=min(lane, subgroup) - 1) == 2
    assert unproven(groups=2) == 2
    assert unproven(sizes=max(80, lanes) - 1) == 1
    assert unproven(sizes=min(80, lanes) - 1) == 2
    for length, expected in ((lane, 0), (lane - 1, 1)):
        launch = kernel(in_the_first_subgroup).launch(Grid(3, 80), Buffer("out", U32, length, Role.OUTPUT))
        assert needed(specialise(launch), lanes) == expected


def test_of_a_length_that_is_not_known_nothing_is_proven() -> None:
    launch = kernel(by_lane).launch(Grid(1, INVOCATIONS), Buffer("out", U32, 1000, Role.OUTPUT), U32(COUNT))
    assert len(Ranges(specialise(launch).program, 1, INVOCATIONS, {}).unproven) == 1


def test_what_a_second_round_sees_is_not_taken_for_known() -> None:
    def rounds(cx: Invocation, out: Storage[U32], count: U32) -> None:
        at = U32(0)
        for _ in dynamic_range(count - count, count):
            out[at] = count
            at = U32(9)

    made = kernel(rounds)
    for count, expected in ((0, 0), (1, 0), (2, 1)):
        launch = made.launch(Grid(1, INVOCATIONS), Buffer("out", U32, 9, Role.OUTPUT), U32(count))
        assert needed(specialise(launch)) == expected


def test_what_comes_round_after_round_is_not_taken_for_known() -> None:
    """From one variable to the next: in the first rounds all are as they were before the loop."""

    def handed_on(cx: Invocation, out: Storage[U32], count: U32) -> None:
        a, b, c, d, e = U32(0), U32(0), U32(0), U32(0), U32(0)
        for _ in dynamic_range(U32(0), count):
            for index in (a, b, c, d, e):
                out[index] = count
            a, b, c, d, e = b, c, d, e, e + 1

    made = kernel(handed_on)
    for count, expected in ((1, 0), (9, 5)):
        launch = made.launch(Grid(1, 1), Buffer("out", U32, 1, Role.OUTPUT), U32(count))
        assert needed(specialise(launch)) == expected


def test_a_counter_is_not_what_it_was_before_its_loop_or_what_its_body_sets() -> None:
    """The reader makes a variable for each counter, and another one for what a body assigns to its name."""
    span, out, at = Span(__file__, 1), ir.Memory("out", ir.Space.STORAGE, Type.U32), ir.Variable("at", Type.U32)

    def const(value: int) -> ir.Const:
        return ir.Const(value, Type.U32, span)

    store = ir.Store(out, ir.Read(at, span), const(1), span)
    for body in ((store, ir.Assign(at, const(2), span)), (ir.Assign(at, const(2), span), store), (store,)):
        loop = ir.For(at, const(0), const(COUNT), const(1), body, span)
        behind = ir.Store(out, ir.Read(at, span), const(1), span)
        program = ir.Program("counts", 1, (), (out,), (at,), (ir.Assign(at, const(3), span), loop, behind), span)
        verify(program)
        for length in (COUNT, COUNT - 1):
            unproven = Ranges(program, 1, 1, {out: length}).unproven
            assert unproven == {id(behind)} | ({id(store)} if length < COUNT and body[0] is store else set())


def test_what_is_loaded_is_not_what_was_there_before() -> None:
    span, out, at = Span(__file__, 1), ir.Memory("out", ir.Space.STORAGE, Type.U32), ir.Variable("at", Type.U32)
    three = ir.Const(3, Type.U32, span)
    store = ir.Store(out, ir.Read(at, span), three, span)
    body = ir.Assign(at, three, span), ir.Load(at, out, three, span), store
    program = ir.Program("loads", 1, (), (out,), (at,), body, span)
    verify(program)
    assert Ranges(program, 1, 1, {out: 4}).unproven == {id(store)}


def test_findings_depend_on_few_parameters() -> None:
    """What is only stored or added up is no index, no bound and in no condition; nor is a float's range known."""

    def of_many(cx: Invocation, out: Storage[U32], a: U32, b: U32, c: F32, d: U32, e: U32) -> None:
        at = U32(0)
        for _ in dynamic_range(U32(0), b):
            at = at + e
        if c < F32(1):
            out[at] = a + d

    out = Buffer("out", U32, 9, Role.OUTPUT)
    launch = kernel(of_many).launch(Grid(1, 1), out, U32(1), U32(2), F32(3), U32(4), U32(5))
    program = specialise(launch).program
    assert [parameter.name for parameter in relevant_parameters(program)] == ["b", "e"]


def test_loops_in_loops_are_walked_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind others: each walk of a body that seeks ranges walks the loops in it as often again."""

    def nested(cx: Invocation, out: Storage[U32], count: U32) -> None:
        v, w = U32(5), U32(5)
        for _ in dynamic_range(U32(0), count):
            v = v + 1
        for _ in dynamic_range(U32(0), count):
            v = v + 1
        for _ in dynamic_range(U32(0), count):
            x = U32(5)
            for _ in dynamic_range(U32(0), count):
                y = U32(5)
                for _ in dynamic_range(U32(0), count):
                    z = U32(5)
                    for _ in dynamic_range(U32(0), count):
                        v, w, x, y, z = v + 1, w + 1, x + 1, y + 1, z + 1
                        out[v + w + x + y + z] = count

    walks = 0

    def counted(self: Facts, sum: Sum, most: int, at_most: Callable[[Facts, Sum, int], bool] = Facts.at_most) -> bool:
        nonlocal walks
        walks += most == LAST
        return at_most(self, sum, most)

    monkeypatch.setattr(Facts, "at_most", counted)
    launch = kernel(nested).launch(Grid(1, 1), Buffer("out", U32, LAST + 1, Role.OUTPUT), U32(COUNT))
    assert needed(specialise(launch)) == 1
    assert walks == 2 * 2, "as often again in each of the two outer ones"
