"""What a kernel means, alike on every target: loops near 2**32, numbers beside scalars, the world outside."""

from __future__ import annotations

import enum
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.kernel.span import KernelError
from gpusort.kernel.specialise import specialise
from gpusort.targets import registry
from gpusort.targets.base import prepared_by
from gpusort.targets.binding import is_lasting
from gpusort.targets.cuda.compile import compile_ptx
from gpusort.types.errors import GpusortError, IterationLimitError
from gpusort.types.intrinsics import bitcast, dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import F32, I32, I64, U8, U16, U32, U64, Bool
from tests.plain_launches import take_rows

OUT = Buffer("out", U32, 8, Role.OUTPUT)


def run(target: str, kernel: Kernel[...], *arguments: object) -> npt.NDArray[np.uint32]:
    """What a kernel of one invocation, with `out` as its last argument, has written."""
    out = np.zeros(8, np.uint32)
    registry.target(target).run(Schedule((OUT,), (kernel.launch(Grid(1, 1), *arguments, OUT),)), {"out": out})
    return out


# -- loops ------------------------------------------------------------------------------------------------


@kernel
def rounds(cx: Invocation, start: U32, stop: U32, step: U32, out: Storage[U32]) -> None:
    count, met = U32(0), U32(0)
    for i in dynamic_range(start, stop, step):
        count = count + 1
        met = met ^ i
    known = U32(0)
    for i in dynamic_range(U32(0xFFFFFFF0), U32(0xFFFFFFFF), U32(7)):
        known = known * 31 + i
    sevens = U32(0)
    for _ in dynamic_range(start, stop, U32(0x7FFFFFFF)):
        sevens = sevens + 1
    for k in range(8):
        out[k] = U32(0)
    out[0] = count
    out[1] = met
    out[2] = known
    out[3] = sevens


LAST = 0xFFFF_FFFF


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (LAST - 15, LAST, 7),
        (0, LAST, 1 << 31),
        (0, LAST, LAST),
        (LAST - 1, LAST, 1),
        (LAST, LAST, 3),
        (9, 3, 1),
        (0, 10, 3),
    ],
)
def test_a_loop_ends_before_its_counter_wraps(target: str, start: int, stop: int, step: int) -> None:
    met = 0
    for i in range(start, stop, step):
        met ^= i
    known = 0
    for i in range(0xFFFFFFF0, 0xFFFFFFFF, 7):
        known = (known * 31 + i) & LAST
    expected = [len(range(start, stop, step)), met, known, len(range(start, stop, 0x7FFFFFFF)), 0, 0, 0, 0]
    assert run(target, rounds, U32(start), U32(stop), U32(step)).tolist() == expected


def test_a_step_of_zero_counts_as_one_where_it_is_not_an_error(target: str) -> None:
    if target in ("python", "simulator"):
        with pytest.raises((ValueError, IterationLimitError), match=r"must not be zero|a step of 0 never ends"):
            run(target, rounds, U32(3), U32(20), U32(0))
    else:
        assert run(target, rounds, U32(3), U32(21), U32(0))[:2].tolist() == [18, 3 ^ 20]  # 4 to 19 cancel each other


@kernel
def known_size(cx: Invocation, out: Storage[U32]) -> None:
    for k in range(8):
        out[k] = U32(0)
    out[0] = cx.group_size - 2
    out[1] = cx.group_size << 31
    out[2] = cx.group_size * 0xFFFFFFFF
    out[3] = (cx.group_size + 0xFFFFFFFF) // 3


def test_the_size_of_a_group_is_a_number_like_others(target: str) -> None:
    """WGSL refuses constant expressions that overflow: they are computed before it sees them."""
    assert run(target, known_size).tolist() == [LAST, 1 << 31, LAST, 0, 0, 0, 0, 0]


@kernel
def waits_in_a_branch(cx: Invocation, first: U32, out: Storage[U32]) -> None:
    for k in range(8):
        out[k] = U32(k)
    if first > 2:
        cx.barrier()
    else:
        cx.barrier()
        cx.barrier()
    for _ in dynamic_range(U32(0), first):
        cx.barrier()
    out[0] = first


@kernel
def tells_itself(cx: Invocation, shared: Workgroup[U32], out: Storage[U32]) -> None:
    for k in range(8):
        out[k] = U32(k)
    shared.atomic_store(0, U32(9))
    cx.barrier()
    out[0] = cx.load_uniform(shared, 0)


def test_one_invocation_alone_may_wait(target: str) -> None:
    """There a barrier is nothing, and what holds nothing else is empty."""
    assert run(target, waits_in_a_branch, U32(3)).tolist() == [3, 1, 2, 3, 4, 5, 6, 7]
    assert run(target, tells_itself, Workgroup(U32, 1)).tolist() == [9, 1, 2, 3, 4, 5, 6, 7]


@kernel
def divides_in_a_branch(cx: Invocation, n: U32, data: Storage[U32], out: Storage[U32]) -> None:
    if data[cx.local_id] > 3:
        out[cx.local_id] = data[n % data.length]


@kernel
def divides_in_a_loop(_: Invocation, n: U32, data: Storage[U32], out: Storage[U32]) -> None:
    for i in dynamic_range(U32(0), data.length):
        if data[i] > 3:
            out[i] = data[n % data.length]


@kernel
def divides_while(_: Invocation, n: U32, data: Storage[U32], out: Storage[U32]) -> None:
    i = U32(0)
    while i < data.length:
        if data[i] > 3:
            out[i] = data[n % data.length]
        i += 1


@pytest.mark.parametrize(
    ("divides", "lanes"), [(divides_in_a_branch, 16), (divides_in_a_loop, 1), (divides_while, 1)], ids=str
)
def test_a_division_that_only_some_come_to(
    target: str, divides: Kernel[[U32, Storage[U32], Storage[U32]]], lanes: int
) -> None:
    """All of these divide the same, and the first one does not: LLVM's vectors left it out for all, and a process died
    that read from where the quotient led to."""
    data, out = Buffer("data", U32, 16, Role.INPUT), Buffer("out", U32, 16, Role.INOUT)
    launch = divides.launch(Grid(1, lanes), U32(43), data, out)
    found, values = np.zeros(16, np.uint32), np.arange(16, dtype=np.uint32)
    registry.target(target).run(Schedule((data, out), (launch,)), {"data": values, "out": found})
    assert found.tolist() == [0] * 4 + [11] * 12


@kernel
def divides_twice(cx: Invocation, data: Storage[U32], out: Storage[U32], tile: Workgroup[U32]) -> None:
    x = data[cx.local_id] * 100
    tile[cx.local_id] = data[cx.local_id]
    cx.barrier()
    tile[cx.local_id] = x // tile[cx.local_id] // (cx.local_id + 1)
    cx.barrier()
    out[cx.local_id] = tile[cx.local_id] + x


@pytest.mark.parametrize("lanes", [3, 7, 12, 13])
def test_divisions_of_few_invocations(lanes: int, target: str) -> None:
    """By so few LLVM ended the process, as it chose how long its vectors were to be."""
    data, out = Buffer("data", U32, lanes, Role.INPUT), Buffer("out", U32, lanes, Role.OUTPUT)
    launch = divides_twice.launch(Grid(1, lanes), data, out, Workgroup(U32, lanes))
    values = np.arange(1, lanes + 1, dtype=np.uint32)
    found = np.zeros(lanes, np.uint32)
    registry.target(target).run(Schedule((data, out), (launch,)), {"data": values, "out": found})
    assert found.tolist() == [100 // k + 100 * k for k in range(1, lanes + 1)]


# -- numbers beside scalars -------------------------------------------------------------------------------


@kernel
def literals(cx: Invocation, f: F32, u: U32, i: I64, b: Bool, out: Storage[U32]) -> None:
    out[0] = U32(1.0 / f == 0.25) + U32(1.0 - f == -3.0) * 2 + U32(0.0 / (f - f) != 0.0) * 4
    out[1] = 100 // u
    out[2] = 100 % u
    out[3] = 2 - u
    out[4] = U32(5 - i == 12) + U32(-1 * i == 7) * 2 + U32(+i == -7) * 4
    out[5] = U32(True & b) + U32(True ^ b) * 2 + U32(False | b) * 4
    out[6] = 1 & u | 8
    out[7] = U32(f / F32(0) > 3.4e38) + U32(f / -0.0 < -3.4e38) * 2 + U32(f * 1e39 == f * 1e39) * 4


def test_a_literal_may_stand_left(target: str) -> None:
    found = run(target, literals, F32(4), U32(7), I64(-7), Bool(True))
    assert found.tolist() == [7, 14, 2, LAST - 4, 7, 5, 9, 7]


@kernel
def narrows(_: Invocation, number: U32, out: Storage[U32]) -> None:
    for k in range(8):
        out[k] = U32(0)
    byte, half = Registers(U8, 1), Registers(U16, 1)
    byte[0], half[0] = U8(number), U16(number)
    out[0] = U32(U8(number))
    out[1] = U32(U16(number))
    out[2] = U32(byte[0])
    out[3] = U32(half[0])


def test_what_is_made_narrow_and_wide_again_has_lost_its_upper_bits(target: str) -> None:
    assert run(target, narrows, U32(0x7FFFF)).tolist() == [0xFF, 0xFFFF, 0xFF, 0xFFFF, 0, 0, 0, 0]


# -- what is refused ----------------------------------------------------------------------------------------


@attrs.frozen
class Pair:
    low: U32
    high: F32


# Each is wrong to the checkers as well, as long as nothing is said to be Any.
@kernel
def stores_float(_: Invocation, out: Storage[U32]) -> None:
    half: Any = F32(0.5)
    out[0] = half


@kernel
def stores_number(_: Invocation, out: Storage[U32]) -> None:
    one: Any = 1
    out[0] = one


@kernel
def stores_wide(_: Invocation, out: Storage[U32]) -> None:
    wide: Any = U64(1)
    out[0] = wide


@kernel
def stores_in_register(_: Invocation, out: Storage[U32]) -> None:
    mine: Any = Registers(F32, 2)
    mine[0] = U32(1)


@kernel
def stores_misfit_of_field(_: Invocation, out: Storage[U32]) -> None:
    mine: Any = Registers(Pair, 2)
    low: Any = F32(1)
    mine[0] = Pair(low, F32(2))


@kernel
def swaps_float(_: Invocation, out: Storage[U32]) -> None:
    one: Any = F32(1)
    out.atomic_store(0, one)


@kernel
def indexes_by_signed(_: Invocation, out: Storage[U32]) -> None:
    place: Any = I32(0)
    out[place] = U32(0)


@kernel
def adds_bool(_: Invocation, out: Storage[U32]) -> None:
    out[0] = U32(1) + True


@kernel
def adds_bool_to_float(_: Invocation, out: Storage[U32]) -> None:
    out[0] = U32(F32(1) + True == 2.0)


@kernel
def shifts_by_wide(_: Invocation, out: Storage[U32]) -> None:
    amount: Any = U64(1)
    out[0] = U32(1) << amount


@kernel
def adds_negative(_: Invocation, out: Storage[U32]) -> None:
    less: Any = -1
    out[0] = out.length + less


@kernel
def counts_down(_: Invocation, out: Storage[U32]) -> None:
    for i in dynamic_range(U32(4), U32(0), -1):  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        out[i] = i


@kernel
def counts_in_signed(_: Invocation, out: Storage[U32]) -> None:
    stop: Any = I32(4)
    for i in dynamic_range(U32(0), stop):
        out[i] = i


@kernel
def indexes_by_a_float(_: Invocation, out: Storage[U32]) -> None:
    place: Any = 1.0
    out[place] = U32(0)


@kernel
def votes_by_a_number(cx: Invocation, out: Storage[U32]) -> None:
    number: Any = out.length
    out[0] = U32(cx.ballot(number))


@kernel
def matches_wide(cx: Invocation, out: Storage[U32]) -> None:
    wide: Any = U64(1)
    out[0] = U32(cx.match(wide))


@kernel
def adds_wide_lanes(cx: Invocation, out: Storage[U32]) -> None:
    wide: Any = U64(1)
    out[0] = U32(cx.subgroup_add(wide))


@kernel
def reads_a_lane_below_all(cx: Invocation, out: Storage[U32]) -> None:
    below: Any = -1
    out[0] = cx.shuffle(out.length, below)


@kernel
def reads_a_signed_lane(cx: Invocation, out: Storage[U32]) -> None:
    lane: Any = I32(0)
    out[0] = cx.shuffle_xor(out.length, lane)


@kernel
def loads_storage_for_all(cx: Invocation, out: Storage[U32]) -> None:
    storage: Any = out
    out[0] = cx.load_uniform(storage, 0)


REFUSED = [stores_float, stores_number, stores_wide, stores_in_register, stores_misfit_of_field, swaps_float,
           indexes_by_signed, adds_bool, adds_bool_to_float, shifts_by_wide, adds_negative, counts_down,
           counts_in_signed, indexes_by_a_float, votes_by_a_number, matches_wide, adds_wide_lanes,
           reads_a_lane_below_all, reads_a_signed_lane, loads_storage_for_all]  # fmt: skip


@pytest.mark.parametrize("wrong", REFUSED, ids=lambda k: k.name)
def test_what_one_target_refuses_all_refuse(target: str, wrong: Kernel[...]) -> None:
    with pytest.raises(KernelError) as caught:
        run(target, wrong)
    first = wrong.function.__code__.co_firstlineno
    assert caught.value.span.file == __file__
    assert first + 1 < caught.value.span.line <= first + 5  # below the line that names it


@kernel
def writes_where_it_may(cx: Invocation, out: Storage[U32]) -> None:
    for i in range(8):
        out[i] = U32(i)
    none = U32(0) - 1
    if none < out.length:
        out[none] = out[none] + 9


def test_a_known_index_may_be_in_no_array_where_nothing_comes_there(target: str) -> None:
    assert run(target, writes_where_it_may).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


# -- the world outside ------------------------------------------------------------------------------------


class Settings:
    width = 3

    def __init__(self) -> None:
        self.depth = 4


SIZE: Any = 1
LIST: Any = [1, 2]
SCALAR: Any = U32(5)
SIGN: Any = 0.0
WEIGHTS: Any = {"a": 0.0, "b": 1.0}
SETTINGS: Any = Settings()


def helper(x: U32) -> U32:
    return x + 1


def other_helper(x: U32) -> U32:
    return x + 2


def stepped(x: U32, by: U32 = SCALAR, *, times: int = 1) -> U32:
    return x + by * times


def stepped_back(x: U32, by: U32 = SCALAR, *, times: int = 1) -> U32:
    return x - by * times


def _with_cell() -> tuple[Kernel[...], Any]:
    cell = 10

    @kernel
    def outside(cx: Invocation, out: Storage[U32]) -> None:
        out[0] = U32(SIZE)
        out[1] = U32(LIST[0])
        out[2] = SCALAR
        out[3] = helper(U32(0)) + stepped(U32(0)) - 5
        out[4] = U32(Settings.width)
        out[5] = U32(SETTINGS.depth)
        out[6] = U32(cell)
        out[7] = U32(len(LIST)) + U32(1.0 / F32(SIGN) > 0.0) * 16 + U32(1.0 / F32(WEIGHTS["a"]) > 0.0) * 32
        for name in WEIGHTS:
            out[7] = out[7] * 2 + U32(name == "b")

    def change(value: int) -> None:
        nonlocal cell
        cell = value

    return outside, change


def _changes(patch: pytest.MonkeyPatch, change_cell: Any) -> Iterator[tuple[int, int]]:
    """Changes one thing after another: which result each shows in, and as what."""
    patch.setattr(f"{__name__}.SIZE", 2)
    yield 0, 2
    patch.setattr(f"{__name__}.LIST", [7, 8])
    yield 1, 7
    patch.setattr(f"{__name__}.SCALAR", U32(6))
    yield 2, 6
    patch.setattr(f"{__name__}.helper", other_helper)
    yield 3, 2
    patch.setattr(stepped, "__defaults__", (U32(7),))
    yield 3, 4
    patch.setattr(stepped, "__kwdefaults__", {"times": 2})
    yield 3, 11
    patch.setitem(cast(Any, stepped).__kwdefaults__, "times", 3)
    yield 3, 18
    patch.setattr(stepped, "__code__", stepped_back.__code__)  # as IPython's autoreload does
    yield 3, (1 << 32) - 24
    LIST.append(9)
    yield 7, 205
    patch.setattr(Settings, "width", 30)
    yield 4, 30
    patch.setattr(SETTINGS, "depth", 40)
    yield 5, 40
    change_cell(100)
    yield 6, 100
    patch.setattr(f"{__name__}.SIGN", -0.0)
    yield 7, 141
    patch.setitem(WEIGHTS, "a", -0.0)
    yield 7, 13
    patch.setattr(f"{__name__}.WEIGHTS", {"b": 1.0, "a": -0.0})
    yield 7, 14


def test_what_changes_outside_changes_the_kernel(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Python, which looks names up each time it comes to them. Targets may keep what they made of a schedule."""
    outside, change = _with_cell()
    expected = [1, 1, 5, 1, 3, 4, 10, 201]
    schedule = Schedule((OUT,), (outside.launch(Grid(1, 1), OUT),))
    changes, prepared = _changes(monkeypatch, change), prepared_by(registry.target(target), schedule)
    for some in (0, 4, *4 * [1], 5, 1, 1):  # each of the four of a helper shows by itself
        for place, value in itertools.islice(changes, some):
            expected[place] = value
        out, other = np.zeros(8, np.uint32), np.zeros(8, np.uint32)
        registry.target(target).run(schedule, {"out": out})
        prepared.run([other])
        assert out.tolist() == other.tolist() == expected


@attrs.define
class Checked:
    size: int = attrs.field(default=1, validator=attrs.validators.instance_of(int))


SIZES: Any = [1]
ROWS: Any = [[1, 2], [3, 4]]
PAIR: Any = ([5], deque([6]))
NUMBERS: Any = np.array([[1, 2], [3, 4]])
SPACE: Any = SimpleNamespace(sizes=deque([7, 8]), names={"a": [9]})
CHECKED = Checked()


@attrs.frozen
class Scaled:
    by: int
    sizes: list[int]
    shift: ClassVar[int] = 1

    @property
    def twice(self) -> int:
        return self.by * 2

    def of(self, x: U32) -> U32:
        return x * self.by


def of_three(scaled: Scaled, x: U32) -> U32:
    return x * scaled.by * 3


SCALED: Any = Scaled(5, [1])
QUEUE: Any = deque([1])


@attrs.define
class Moved:
    by: U32


MOVED = Moved(U32(1))


class Counted:
    """Hashed by identity, and yet of another truth and length once it changes."""

    def __init__(self) -> None:
        self.count = 2

    def __len__(self) -> int:
        return self.count


COUNTED: Any = Counted()
SIGNS: Any = np.zeros(1, np.float32)
INSIDE: Any = ([1, 2],)
MEMBERS: Any = frozenset([0, 8])
EIGHTS: Any = frozenset([8, 0])  # equal, and in another order


@kernel
def computed_outside(cx: Invocation, out: Storage[U32]) -> None:
    out[0] = U32(7 in NUMBERS) + U32(7 in INSIDE[0]) * 10
    out[1] = U32(int((NUMBERS + NUMBERS)[0][1]))
    out[2] = U32(1.0 / F32(float(SIGNS[0])) > 0.0)
    out[3] = U32(len(COUNTED))
    out[4] = U32(1) if COUNTED else U32(2)
    out[5] = U32(0) if not SIZES else U32(1)
    total = U32(0)
    for member in MEMBERS:
        total = total * 10 + member
    out[6] = total


@kernel
def deep_outside(cx: Invocation, out: Storage[U32]) -> None:
    out[0] = U32(ROWS[1][0])
    out[1] = U32(PAIR[0][0]) * 10 + len(PAIR[1])
    out[2] = U32(int(NUMBERS[1][1]))
    out[3] = U32(SPACE.sizes[0]) * 10 + SPACE.names["a"][0]
    out[4] = U32(CHECKED.size) + MOVED.by
    total = U32(0)
    for row in ROWS:
        total = total * 10 + sum(row)
        for size in SPACE.sizes:
            total = total * 10 + size
    for row in NUMBERS:
        for number in row:
            total = total * 10 + int(number)
    out[5] = total
    out[6] = SCALED.of(U32(SCALED.twice)) + SCALED.shift * 1000 + U32(7 in SCALED.sizes) * 10000
    out[7] = U32(7 in QUEUE)


def test_what_changes_deep_inside_changes_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CHECKED, "size", CHECKED.size)
    monkeypatch.setattr(MOVED, "by", MOVED.by)
    monkeypatch.setattr(SPACE, "sizes", deque(SPACE.sizes))
    set_ = monkeypatch.setattr

    changes: tuple[Callable[[], object], ...] = (
        lambda: None, lambda: ROWS[1].insert(0, 4), lambda: NUMBERS.put(3, 5), lambda: PAIR[0].insert(0, 7),
        lambda: PAIR[1].append(1), lambda: SPACE.sizes.appendleft(3), lambda: SPACE.names["a"].insert(0, 5),
        lambda: setattr(CHECKED, "size", 6), lambda: setattr(MOVED, "by", U32(20)), lambda: set_(Scaled, "shift", 2),
        lambda: set_(Scaled, "twice", 7), lambda: set_(Scaled, "of", of_three),
        lambda: SCALED.sizes.append(7), lambda: QUEUE.append(7),
    )  # fmt: skip
    seen = set[tuple[int, ...]]()
    for change in changes:
        change()
        found = run("simulator", deep_outside)
        assert found.tolist() == run("python", deep_outside).tolist()
        seen.add(tuple(found.tolist()))
    assert len(seen) == len(changes)


def test_what_is_computed_of_what_changes_changes_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators and conditions too, which say of a container what no element says that was read."""
    assert [*MEMBERS] != [*EIGHTS]
    numbers, sizes, inside = NUMBERS.copy(), [1], [1, 2]
    for name, value in {"NUMBERS": numbers, "SIZES": sizes, "INSIDE": (inside,)}.items():
        monkeypatch.setattr(f"{__name__}.{name}", value)
    changes: tuple[Callable[[], object], ...] = (
        lambda: None, lambda: inside.append(7), lambda: numbers.put(3, 7), lambda: numbers.put(1, 9),
        lambda: SIGNS.put(0, -0.0), lambda: setattr(COUNTED, "count", 1), lambda: setattr(COUNTED, "count", 0),
        sizes.clear, lambda: monkeypatch.setattr(f"{__name__}.MEMBERS", EIGHTS),
    )  # fmt: skip
    seen = set[tuple[int, ...]]()
    for change in changes:
        change()
        found = run("simulator", computed_outside)
        assert found.tolist() == run("python", computed_outside).tolist()
        seen.add(tuple(found.tolist()))
    assert len(seen) == len(changes)


def test_a_variable_that_has_no_value_yet_is_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is an element that is there no more."""

    @kernel
    def early(cx: Invocation, out: Storage[U32]) -> None:
        out[0] = U32(later) + SIZES[-1]

    monkeypatch.setattr(f"{__name__}.SIZES", [2])
    with pytest.raises(KernelError, match=r"expected a name that is defined, found 'later', e\.g\. "):
        run("simulator", early)
    later = 1
    assert run("simulator", early)[0] == 3
    SIZES.pop()
    with pytest.raises(
        KernelError, match=r"expected compile-time values that fit, found an error .IndexError: list index out of"
    ):
        run("simulator", early)
    SIZES.append(4)
    assert run("simulator", early)[0] == 5


@kernel
def bits(cx: Invocation, number: float, out: Storage[U32]) -> None:
    for k in range(8):
        out[k] = bitcast(U32, F32(number))


def test_arguments_that_are_equal_may_be_two(target: str) -> None:
    found = [int(run(target, bits, number)[0]) for number in (0.0, -0.0, 1.0, 0.0)]
    assert found == [0, 1 << 31, 0x3F800000, 0]


def test_each_change_is_seen_and_what_holds_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    outside, change = _with_cell()
    launch = outside.launch(Grid(1, 1), OUT)
    before = specialise(launch).program
    with monkeypatch.context() as patch:
        for place, _ in _changes(patch, change):
            now = specialise(launch).program
            assert now is not before, place
            assert specialise(launch).program is now
            before = now
    assert not is_lasting(Schedule((OUT,), (launch,)))
    assert is_lasting(take_rows(4, 1, 8, 2))  # ours name nothing that changes


def test_a_former_reading_is_used_once_it_holds_again(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = _with_cell()[0].launch(Grid(1, 1), OUT)
    first = specialise(launch).program
    monkeypatch.setattr(f"{__name__}.SIZE", 77)
    assert specialise(launch).program is not first
    monkeypatch.setattr(f"{__name__}.SIZE", 1)
    assert specialise(launch).program is first


# -- what compilers are told, and tell --------------------------------------------------------------------


@kernel
def wraps(cx: Invocation, a: I64, out: Storage[U32]) -> None:
    out[0] = U32(a + 1 > a)


def test_nvvm_is_not_told_that_signed_sums_fit() -> None:
    """`a + 1 > a` would hold always, and its value be a constant of the PTX."""
    pytest.importorskip("cuda.bindings")
    ptx = compile_ptx(specialise(wraps.launch(Grid(1, 1), I64(0), OUT)).program)
    assert "setp" in ptx


def test_what_wgpu_only_logs_is_raised() -> None:
    wgpu = pytest.importorskip("wgpu")
    from gpusort.targets.wgsl.errors import translated_errors

    assert wgpu is not None
    with (
        pytest.raises(GpusortError, match="running 'x': wgpu refuses: something is wrong"),
        translated_errors("running 'x'"),
    ):
        logging.getLogger("wgpu").error("something is wrong")
    with translated_errors("running 'x'"):
        logging.getLogger("wgpu").warning("something is odd")


# -- names behind branches --------------------------------------------------------------------------------


@kernel
def differing(cx: Invocation, x: U32, out: Storage[U32]) -> None:
    if x > 3:
        is_large, mode = Bool(True), Mode.LARGE
    else:
        is_large, mode = Bool(False), Mode.SMALL
    out[0] = U32(is_large)
    out[1] = U32(is_large & (x > 5))
    out[2] = U32(mode == Mode.SMALL)


class Mode(enum.Enum):
    SMALL = 2**32 - 1
    LARGE = 0
    BEYOND = 2**32
    BELOW = -1


@pytest.mark.parametrize("target", ["python", "simulator", "cpu"])
@pytest.mark.parametrize("x", [2, 4, 6])
def test_compile_time_values_that_differ_between_paths_become_variables(target: str, x: int) -> None:
    assert run(target, differing, U32(x))[:3].tolist() == [x > 3, x > 5, x <= 3]


@attrs.frozen
class Marked:
    count: U32
    mode: Mode


@kernel
def marked(cx: Invocation, one: Marked, out: Storage[U32]) -> None:
    out[0] = one.count + U32(one.mode == Mode.SMALL)


@pytest.mark.parametrize("mode", Mode)
def test_a_member_of_an_enum_in_a_struct_has_a_number_that_finds_room_in_a_word(mode: Mode) -> None:
    if 0 <= mode.value < 1 << 32:
        assert run("simulator", marked, Marked(U32(5), mode))[0] == 5 + (mode is Mode.SMALL)
    else:
        with pytest.raises(GpusortError, match="must have a number from 0 to 2"):
            run("simulator", marked, Marked(U32(5), mode))
