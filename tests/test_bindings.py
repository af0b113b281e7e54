"""What is bound to a schedule: every target refuses the same, in the same words, before anything is written."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule, unbound
from gpusort.targets.registry import target as target_of
from gpusort.types.errors import InvalidArgumentError, UninitializedReadError, UnsupportedTypeError
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.scalars import U8, U32, U64

Array = npt.NDArray[Any]
N = 8
GRID = Grid(1, N)


@attrs.frozen
class Pair:
    low: U8
    high: U64


@kernel
def copy(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = data[cx.global_id]


@kernel
def add_one(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = data[cx.global_id] + 1


@kernel
def count_up(cx: Invocation, data: Storage[U32]) -> None:
    if cx.global_id > 100:
        data.atomic_add(U32(0), U32(1))


@kernel
def widen_pairs(cx: Invocation, pairs: Storage[Pair], out: Storage[U64]) -> None:
    out[cx.global_id] = pairs[cx.global_id].high + U64(pairs[cx.global_id].low)


def words(name: str, role: Role, count: int = N) -> Buffer[U32]:
    return Buffer(name, U32, count, role)


DATA, OUT, MINE = words("data", Role.INPUT), words("out", Role.OUTPUT), words("mine", Role.INOUT)
COPY = Schedule((DATA, OUT), (copy.launch(GRID, DATA, OUT),))
# The first launch would write, were it not for what is wrong with the second.
BOTH = Schedule((DATA, OUT, MINE), (add_one.launch(GRID, MINE), copy.launch(GRID, DATA, OUT)))


def ramp() -> Array:
    return np.arange(N, dtype=np.uint32)


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def refused(name: str, schedule: Schedule, arrays: Mapping[str, object], message: str) -> None:
    """A target says this, and leaves all arrays as they were."""
    given = memory_of(arrays)
    with pytest.raises(InvalidArgumentError, match=message):
        target_of(name).run(schedule, arrays)
    assert memory_of(arrays) == given


def memory_of(arrays: Mapping[str, object]) -> dict[str, bytes]:
    """All bytes that arrays hold."""
    return {name: cast(Array, array).tobytes() for name, array in arrays.items() if isinstance(array, np.ndarray)}


# -- arrays ------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[object, str]] = {
    "nothing": (None, ".*found nothing$"),
    "a list": ([1, 2], ".*found list$"),
    "bytes": (b"12345678" * 4, ".*found bytes$"),
    "a mask": (np.ma.masked_array(ramp()), ".*found MaskedArray$"),
    "too short": (np.zeros(3, np.uint32), ", found 3 x uint32$"),
    "of another dtype": (np.zeros(N, np.float32), r", found 8 x float32; for its bits, array\.view\('uint32'\)$"),
    "signed": (np.zeros(N, np.int32), r", found 8 x int32; for its bits, array\.view\('uint32'\)$"),
    "as many bytes": (np.zeros(N // 2, np.uint64), ", found 4 x uint64$"),
    "of the other byte order": (np.zeros(N, np.uint32).astype(">u4"), ", found 8 x >u4$"),
    "of two dimensions": (np.zeros((2, N // 2), np.uint32), r", found shape \(2, 4\) of uint32$"),
    "of none": (np.array(3, np.uint32), r", found shape \(\) of uint32$"),
    "strided": (np.zeros(2 * N, np.uint32)[::2], ", found one that is not contiguous$"),
    "backwards": (np.zeros(N, np.uint32)[::-1], ", found one that is not contiguous$"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", ["data", "out"])
def test_an_array_that_does_not_fit(target: str, name: str, what: str) -> None:
    array, message = WRONG[what]
    arrays: dict[str, object] = {"mine": ramp(), "data": ramp(), "out": ramp(), name: array}
    start = rf"^arrays\['{name}'\]: expected a contiguous array of 8 x uint32"
    refused(target, BOTH, arrays, start + message)


def test_a_read_only_array_for_what_is_written(target: str) -> None:
    for name in ("out", "mine"):
        arrays = {"mine": ramp(), "data": ramp(), "out": ramp(), name: read_only(ramp())}
        refused(target, BOTH, arrays, rf"^arrays\['{name}'\]: .* that can be written, found a read-only one$")


def test_a_read_only_array_for_what_is_read(target: str) -> None:
    out = np.zeros(N, np.uint32)
    target_of(target).run(COPY, {"data": np.frombuffer(ramp().tobytes(), np.uint32), "out": out})
    assert out.tolist() == list(range(N))


def test_names(target: str) -> None:
    both = {"mine": ramp(), "data": ramp()}
    refused(target, BOTH, both, r"^arrays\['out'\]: expected a contiguous array of 8 x uint32, found nothing$")
    some: Any = [ramp()]
    with pytest.raises(InvalidArgumentError, match=r"^arrays: expected a dict of arrays by buffer name, found list$"):
        target_of(target).run(BOTH, some)
    more = {**both, "out": ramp(), "extra": ramp()}
    refused(target, BOTH, more, r"^arrays\['extra'\]: the schedule has no such buffer; it has 'data', 'out', 'mine'$")
    refused(target, Schedule((), ()), {"extra": ramp()}, r"^arrays\['extra'\]: the schedule .*; it has none$")


def test_structs_are_bound_as_such(target: str) -> None:
    pairs, out = Buffer("pairs", Pair, N, Role.INPUT), Buffer("out", U64, N, Role.OUTPUT)
    schedule = Schedule((pairs, out), (widen_pairs.launch(GRID, pairs, out),))
    given, found = np.array([(i, 10) for i in range(N)], pairs.dtype), np.zeros(N, np.uint64)
    target_of(target).run(schedule, {"pairs": given, "out": found})
    assert found.tolist() == list(range(10, 10 + N))
    packed = np.zeros(N, np.dtype([("low", "u1"), ("high", "u8")]))
    refused(target, schedule, {"pairs": packed, "out": found}, r"^arrays\['pairs'\]: .* found 8 x \[\('low'")


def test_memory_that_is_handed_in_twice(target: str) -> None:
    x = np.arange(3 * N, dtype=np.uint32)
    apart = "share memory, which a kernel may write to; hand in a copy of one$"
    for a, b in ((x[:N], x[:N]), (x[:N], x[N - 1 : 2 * N - 1]), (x[N - 1 : 2 * N - 1], x[:N])):
        refused(target, COPY, {"data": a, "out": b}, f"^arrays: '.*' and '.*' {apart}")
        refused(target, BOTH, {"data": ramp(), "out": a, "mine": b}, f"^arrays: '.*' and '.*' {apart}")
        refused(target, BOTH, {"data": x, "out": ramp(), "mine": x[:N]} | {"data": a, "mine": b}, apart)
    target_of(target).run(BOTH, {"data": x[:N], "out": x[N : 2 * N], "mine": x[2 * N :]})  # side by side
    assert x[N : 2 * N].tolist() == list(range(N))


def test_memory_that_is_only_read_may_be_handed_in_twice(target: str) -> None:
    other = words("other", Role.INPUT)
    schedule = Schedule((DATA, other, OUT), (copy.launch(GRID, DATA, OUT), copy.launch(GRID, other, OUT)))
    x, out = ramp(), np.zeros(N, np.uint32)
    target_of(target).run(schedule, {"data": x, "other": x, "out": out})
    assert out.tolist() == list(range(N))


def test_scratch_may_be_handed_in_and_is_checked(target: str) -> None:
    between = words("between", Role.SCRATCH)
    launches = copy.launch(GRID, DATA, between), copy.launch(GRID, between, OUT)
    schedule = Schedule((DATA, between, OUT), launches)
    for more in ({}, {"between": np.zeros(N, np.uint32)}):
        out = np.zeros(N, np.uint32)
        target_of(target).run(schedule, {"data": ramp(), "out": out, **more})
        assert out.tolist() == list(range(N))
    refused(target, schedule, {"data": ramp(), "out": ramp(), "between": ramp()[1:]}, r"^arrays\['between'\]: ")
    same = ramp()
    refused(target, schedule, {"data": ramp(), "out": same, "between": same}, "share memory")


# -- what kernels write ------------------------------------------------------------------------------------


def test_a_kernel_that_writes_an_input(target: str) -> None:
    """By the line, before anything runs: what is only read may be anybody's."""
    schedule = Schedule((DATA, MINE), (add_one.launch(GRID, MINE), add_one.launch(GRID, DATA)))
    line = r"test_bindings\.py:\d+: kernel 'add_one' writes to 'data', to which the INPUT buffer 'data' is bound; .*\n"
    message = rf"{line} +data\[cx\.global_id\] = data"
    owned = bytes(4 * N)
    refused(target, schedule, {"data": np.frombuffer(owned, np.uint32), "mine": ramp()}, message)
    assert owned == bytes(4 * N)
    with mmap.mmap(-1, 4 * N, access=mmap.ACCESS_READ) as mapped:
        refused(target, schedule, {"data": np.frombuffer(mapped, np.uint32), "mine": ramp()}, message)


def test_a_write_that_is_never_reached_is_one(target: str) -> None:
    schedule = Schedule((DATA,), (count_up.launch(GRID, DATA),))
    refused(target, schedule, {"data": ramp()}, "kernel 'count_up' writes to 'data'")
    nothing = Schedule((DATA,), (count_up.launch(Grid(0, N), DATA),))
    refused(target, nothing, {"data": ramp()}, "kernel 'count_up' writes to 'data'")


def test_one_buffer_for_two_parameters_is_one_memory(target: str) -> None:
    x = ramp()
    target_of(target).run(Schedule((MINE,), (copy.launch(GRID, MINE, MINE), add_one.launch(GRID, MINE))), {"mine": x})
    assert x.tolist() == list(range(1, N + 1))
    refused(target, Schedule((DATA,), (copy.launch(GRID, DATA, DATA),)), {"data": x}, "writes to 'data', to which")


# -- schedules ---------------------------------------------------------------------------------------------


def test_a_buffer_that_the_schedule_does_not_name(target: str) -> None:
    launch = copy.launch(GRID, DATA, OUT)
    message = "^Schedule: kernel 'copy' is launched with buffer 'out', which is not among the schedule's buffers$"
    refused(target, Schedule((DATA,), (launch,)), {"data": ramp()}, message)
    refused(target, Schedule((DATA,), (launch,)), {"data": ramp(), "out": ramp()}, "buffer 'out'")


def test_scratch_need_not_be_named(target: str) -> None:
    """It is what the launches use, of one length; a stand-in for memory that none of them touches is no buffer."""
    spare = words("spare", Role.SCRATCH)
    schedule = Schedule((DATA, OUT), (copy.launch(GRID, DATA, spare), copy.launch(GRID, spare, OUT)))
    assert schedule.buffers == (DATA, OUT, spare)
    out = np.zeros(N, np.uint32)
    target_of(target).run(schedule, {"data": ramp(), "out": out})
    assert out.tolist() == ramp().tolist()
    other = words("spare", Role.SCRATCH, 2 * N)
    with pytest.raises(InvalidArgumentError, match=r"^Schedule: two buffers are named 'spare'"):
        Schedule((DATA, OUT), (copy.launch(GRID, DATA, spare), copy.launch(GRID, other, OUT)))
    assert Schedule((DATA,), (copy.launch(GRID, DATA, unbound(U32)),)).buffers == (DATA,)


def test_buffers_of_one_name() -> None:
    again, longer = words("data", Role.INPUT), words("data", Role.INPUT, 2 * N)
    assert Schedule((DATA, OUT), (copy.launch(GRID, again, OUT),)).buffers == (DATA, OUT)  # it stands for the same
    for other in (longer, words("data", Role.INOUT), Buffer("data", U64, N, Role.INPUT)):
        with pytest.raises(InvalidArgumentError, match=r"^Schedule: two buffers are named 'data'"):
            Schedule((DATA, other), ())
    for other in (longer, words("data", Role.INOUT)):
        with pytest.raises(InvalidArgumentError, match=r"^Schedule: two buffers are named 'data'"):
            Schedule((DATA, OUT), (copy.launch(GRID, other, OUT),))


def test_what_is_no_schedule_is_named(target: str) -> None:
    """A comma forgotten in `(launch,)`, buffers and launches in the other order, a launch in a schedule's place."""
    launch: Any = add_one.launch(GRID, MINE)
    buffer: Any = MINE
    consumed: Any = iter((MINE,))
    of_buffers, of_launches = (
        "Schedule: buffers: expected a tuple of Buffer",
        "Schedule: launches: expected a tuple of Launch",
    )
    for made, message in (
        (lambda: Schedule((MINE,), launch), rf"^{of_launches}, e\.g\. `\(launch,\)`, found a Launch$"),
        (lambda: Schedule(buffer, (launch,)), rf"^{of_buffers}, e\.g\. `\(buffer,\)`, found a Buffer$"),
        (lambda: Schedule((launch,), (buffer,)), rf"^{of_buffers}, .* found a Launch in it$"),
        (lambda: Schedule((MINE,), (launch.kernel,)), rf"^{of_launches}, .* found a Kernel in it$"),
        (lambda: Schedule(consumed, (launch,)), rf"^{of_buffers}, .* found a tuple_iterator$"),
        (lambda: target_of(target).run(launch, {"mine": ramp()}), "^schedule: expected a Schedule, .* found a Launch$"),
    ):
        with pytest.raises(UnsupportedTypeError, match=message):
            made()


def test_no_workgroups_and_no_elements(target: str) -> None:
    x = ramp()
    target_of(target).run(Schedule((MINE,), (add_one.launch(Grid(0, N), MINE),)), {"mine": x})
    assert x.tolist() == list(range(N))
    none = words("data", Role.INPUT, 0), words("out", Role.OUTPUT, 0)
    empty = np.zeros(0, np.uint32)
    target_of(target).run(Schedule(none, (copy.launch(Grid(0, N), *none),)), {"data": empty, "out": empty})
    target_of(target).run(Schedule((), ()), {})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Grid(-1, 8), InvalidArgumentError, "^Grid: groups: expected at least 0, found -1$"),
        (lambda: Grid(1, 0), InvalidArgumentError, "^Grid: group_size: expected at least 1, found 0$"),
        (lambda: Grid(True, 8), UnsupportedTypeError, "^Grid: groups: expected an int, found True$"),
        (lambda: Grid(1, np.True_), UnsupportedTypeError, "^Grid: group_size: expected an int, found "),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the mistake
        (lambda: Grid(1.0, 8), UnsupportedTypeError, r"^Grid: groups: expected an int, found 1\.0$"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the mistake
        (lambda: Grid(np.arange(3), 8), UnsupportedTypeError, "^Grid: groups: expected an int, found array"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the mistake
        (
            lambda: Grid(1 << 15000, 8),
            InvalidArgumentError,
            "groups: .* 9223372036854775807, found an int of 15001 bits$",
        ),
        (lambda: Grid(1, -(1 << 15000)), InvalidArgumentError, "at least 1, found an int of 15001 bits$"),
        (
            lambda: words("data", Role.INPUT, 1 << 63),
            InvalidArgumentError,
            "'data': count: .* found 9223372036854775808$",
        ),
        (lambda: Workgroup(U32, 0), InvalidArgumentError, "^Workgroup: length: expected at least 1, found 0$"),
        (lambda: Workgroup(U32, 2.5), UnsupportedTypeError, "^Workgroup: length: expected an int, found 2.5$"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the mistake
        (lambda: words("data", Role.INPUT, -1), InvalidArgumentError, "'data': count: expected at least 0, found -1$"),
        (lambda: Buffer("data", U32, 2.0, Role.INPUT), UnsupportedTypeError, "an int, found 2.0$"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the mistake
        (lambda: words("my data", Role.INPUT), InvalidArgumentError, "a name such as 'data', found 'my data'$"),
        (lambda: words("", Role.INPUT), InvalidArgumentError, "a name such as 'data', found ''$"),
        (lambda: words("for", Role.INPUT), InvalidArgumentError, "a name such as 'data', found 'for'$"),
        (lambda: Buffer(3, U32, 1, Role.INPUT), UnsupportedTypeError, "a str as its name, found 3$"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the mistake
        (lambda: Buffer("data", int, 1, Role.INPUT), UnsupportedTypeError, "the class of an element, e.g. U32 "),
        (lambda: Buffer("data", np.uint32, 1, Role.INPUT), UnsupportedTypeError, "the class of an element"),
        (lambda: Buffer("data", U32, 1, "input"), UnsupportedTypeError, "a Role, e.g. Role.INOUT, found 'input'$"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the mistake
    ],
)
def test_counts_names_and_roles(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_numpy_integers_are_counts() -> None:
    assert Grid(np.int64(3), np.uint8(8)) == Grid(3, 8)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # as shapes and products bring them
    count: Any = np.prod([2, 4])
    assert words("data", Role.INPUT, count).nbytes == 32


# -- at random ---------------------------------------------------------------------------------------------


def random_binding(seed: int) -> tuple[Schedule, dict[str, object]]:
    """A chain of copies through buffers of any role, bound to arrays of which some are wrong."""
    draw = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"][: draw.integers(2, 5)]
    roles = list(Role)
    buffers = [words(name, roles[draw.integers(4)]) for name in names]
    launches: list[Launch] = [
        copy.launch(GRID, buffers[draw.integers(len(buffers))], buffers[draw.integers(len(buffers))])
        for _ in range(draw.integers(1, 4))
    ]
    declared = buffers if draw.random() < 0.9 else buffers[1:]
    pool = np.arange(4 * N, dtype=np.uint32)
    arrays: dict[str, object] = {}
    for number, buffer in enumerate(declared):
        if buffer.role is Role.SCRATCH and draw.random() < 0.7:
            continue
        start = number * N if draw.random() < 0.9 else int(draw.integers(3 * N))
        array: object = pool[start : start + N]
        if draw.random() < 0.15:
            array = list(WRONG.values())[draw.integers(len(WRONG))][0]
        arrays[buffer.name] = array
    if draw.random() < 0.1:
        arrays["more"] = ramp()
    return Schedule(tuple(declared), tuple(launches)), arrays


def outcome(name: str, seed: int) -> str:
    """What a target says; that it was done, where it was. Where it is refused, nothing is written."""
    schedule, arrays = random_binding(seed)
    before = memory_of(arrays)
    try:
        target_of(name).run(schedule, arrays)
    except InvalidArgumentError as error:
        assert memory_of(arrays) == before
        return str(error).replace(", of NumPy, cupy or with __cuda_array_interface__", ", a NumPy array")
    except UninitializedReadError:
        pass  # what is read before it is written may be anything; two of the targets say so
    return "done"


def test_random_bindings_are_answered_alike(target: str) -> None:
    seeds = range(60)
    found = [outcome(target, seed) for seed in seeds]
    assert found == [outcome("simulator", seed) for seed in seeds]
    assert 10 < found.count("done") < 50
