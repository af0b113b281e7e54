"""Kernels that leave their arrays, run in a process of their own: a target that lets them may not survive it.

Run as `python -m tests.bounds_cases TARGET`; what is wrong is an assertion, and the last line says that all was right.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import cast

import attrs
import numpy as np
import numpy.typing as npt

import gpusort
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.types.errors import OutOfBoundsError
from gpusort.types.intrinsics import add_nowrap
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import U8, U32, U64

Array = npt.NDArray[np.generic]
SIZE, SHARED, FENCE = 4, 6, 512
NEW = 77
ALL_RIGHT = "nothing outside was touched"


@attrs.frozen
class Pair:
    low: U32
    high: U64


@kernel
def stray(
    cx: Invocation, data: Storage[U32], small: Storage[U8], pairs: Storage[Pair], shared: Workgroup[U32],
    orders: Storage[U32], found: Storage[U32],
) -> None:  # fmt: skip
    """Does what `orders` says, at the place that it says: which is known to nobody before."""
    mine: Registers[U32] = Registers(U32, 4)
    for i in range(4):
        mine[i] = U32(i + 1)
    for i in range(SHARED):
        shared[i] = U32(i + 1)
    what, at = orders[0], orders[1]
    cx.barrier()
    value = U32(0)
    if what == 0:
        value = data[at]
    elif what == 1:
        data[at] = U32(NEW)
    elif what == 2:
        value = data.atomic_add(at, U32(NEW))
    elif what == 3:
        value = data.atomic_load(at)
    elif what == 4:
        data.atomic_store(at, U32(NEW))
    elif what == 5:
        value = U32(small[at])
    elif what == 6:
        small[at] = U8(NEW)
    elif what == 7:
        value = pairs[at].low + U32(pairs[at].high & 0xFFFF)
    elif what == 8:
        pairs[at] = Pair(U32(NEW), U64(NEW))
    elif what == 9:
        value = mine[at]
    elif what == 10:
        mine[at] = U32(NEW)
        value = mine[0] + mine[1] + mine[2] + mine[3]
    elif what == 11:
        value = shared[at]
    elif what == 12:
        shared[at] = U32(NEW)
    elif what == 13:
        value = shared.atomic_max(at, U32(NEW))
    elif what == 14:
        value = data.atomic_exchange(at, U32(NEW))
    elif what == 15:
        value = data[add_nowrap(at, U32(0))]
    found[0] = value
    found[1] = shared[0] + shared[1] + shared[2] + shared[3] + shared[4] + shared[5]


@kernel
def shifted(cx: Invocation, data: Storage[U32], found: Storage[U32], by: U32) -> None:
    """The same element as mine, so far on: what the launch's numbers rule out, or do not."""
    found[cx.global_id] = data[cx.global_id + by]


@attrs.define
class Arrays:
    """Buffers in the middle of one array, whose other elements nobody may touch."""

    whole: npt.NDArray[np.uint8]
    data: npt.NDArray[np.uint32]
    small: npt.NDArray[np.uint8]
    pairs: npt.NDArray[np.void]
    before: npt.NDArray[np.uint8]

    @classmethod
    def fresh(cls, count: int) -> Arrays:
        """`count` elements in each."""
        pair = Buffer("pairs", Pair, count, Role.INOUT).dtype
        sizes = [4 * count, count, pair.itemsize * count]
        whole = np.full(4 * FENCE + sum(sizes), 0xAB, np.uint8)
        views: list[npt.NDArray[np.uint8]] = []
        at = FENCE
        for size in sizes:
            views.append(whole[at : at + size])
            at += -(-size // 16) * 16 + FENCE
        arrays = cls(
            whole, views[0].view(np.uint32), views[1], cast("npt.NDArray[np.void]", views[2].view(pair)), whole
        )
        arrays.data[:] = np.arange(1, count + 1)
        arrays.small[:] = np.arange(1, count + 1)
        arrays.pairs["low"] = np.arange(1, count + 1)
        arrays.pairs["high"] = 0
        arrays.before = whole.copy()
        return arrays


def run_stray(target: str, arrays: Arrays, what: int, at: int) -> list[int]:
    """What a kernel finds that does one thing at one place."""
    count = len(arrays.data)
    buffers = (
        Buffer("data", U32, count, Role.INOUT), Buffer("small", U8, count, Role.INOUT),
        Buffer("pairs", Pair, count, Role.INOUT), Buffer("orders", U32, 2, Role.INPUT),
        Buffer("found", U32, 2, Role.OUTPUT),
    )  # fmt: skip
    data, small, pairs, orders, found = buffers
    launch = stray.launch(Grid(1, 1), data, small, pairs, Workgroup(U32, SHARED), orders, found)
    results = np.zeros(2, np.uint32)
    given: dict[str, Array] = {
        "data": arrays.data, "small": arrays.small, "pairs": arrays.pairs,
        "orders": np.array([what, at], np.uint32), "found": results,
    }  # fmt: skip
    gpusort.target(target).run(Schedule(buffers, (launch,)), given)
    return [int(value) for value in results]


READS, KINDS = (0, 3, 5, 7, 9, 11, 15), 16
_ON_DATA = frozenset({0, 1, 2, 3, 4, 14, 15})
FAR = (7, 100_000, 1 << 30, 1 << 31, 0xFFFFFFFF)


def length_of(what: int, count: int) -> int:
    return 4 if what in (9, 10) else SHARED if what in (11, 12, 13) else count


def check_inside(target: str) -> None:
    """Where the index is right, all is done as it is told."""
    for what in range(KINDS):
        arrays = Arrays.fresh(SIZE)
        value, shared = run_stray(target, arrays, what, 2)
        match what:
            case 0 | 2 | 3 | 5 | 7 | 9 | 11 | 13 | 14 | 15:
                assert value == 3, (what, value)
            case 10:
                assert value == 1 + 2 + NEW + 4
            case _:
                assert value == 0, (what, value)
        changed = {1: NEW, 2: NEW + 3, 4: NEW, 14: NEW}
        assert arrays.data.tolist() == [1, 2, changed.get(what, 3), 4], what
        assert arrays.small.tolist() == [1, 2, NEW if what == 6 else 3, 4]
        assert arrays.pairs["low"].tolist() == [1, 2, NEW if what == 8 else 3, 4]
        assert shared == 21 + (NEW - 3) * (what in (12, 13))


def outside(count: int) -> Iterator[tuple[int, int]]:
    for what in range(KINDS):
        yield from ((what, at) for at in (length_of(what, count), *FAR))


def check_outside(target: str, count: int) -> None:
    """Where it is not, the arrays are as before; or, where a driver sees to it, one of their elements is written."""
    for what, at in outside(count):
        if target == "wgsl" and not count and length_of(what, count) == 0:
            continue  # a binding there has a word at least
        arrays = Arrays.fresh(count)
        if target != "python" and what in (7, 8) and at in (1 << 30, 1 << 31):
            # the index of a struct's field wraps as any U32 does, and names another element
            run_stray(target, arrays, what, at) if count else None
            arrays.pairs["low"], arrays.pairs["high"] = np.arange(1, count + 1), 0
            assert np.array_equal(arrays.whole, arrays.before), (what, at)
            continue
        if target in ("python", "simulator"):
            try:
                run_stray(target, arrays, what, at)
            except OutOfBoundsError:
                continue
            raise AssertionError(f"nothing is raised by {what} at {at}")
        value, shared = run_stray(target, arrays, what, at)
        if target == "wgsl":
            elsewhere = np.isin(arrays.data, [1, 2, 3, 4, NEW, NEW + 1, NEW + 2, NEW + 3, NEW + 4])
            assert elsewhere.all(), (what, at, arrays.data)
            assert what not in READS or value in (*range(SHARED + 1), 8), (what, at, value)
            continue
        assert value == (10 if what == 10 else 0), (what, at, value)
        assert shared == 21, (what, at)
        assert np.array_equal(arrays.whole, arrays.before), (what, at)


def check_launch_facts(target: str) -> None:
    """A kernel that a launch's own numbers keep inside, and then do not."""
    for by in (0, 3, 40, 0xFFFFFFF8):
        data: Buffer[U32] = Buffer("data", U32, 40, Role.INPUT)
        found: Buffer[U32] = Buffer("found", U32, 32, Role.OUTPUT)
        source, results = np.arange(1, 41, dtype=np.uint32), np.zeros(32, np.uint32)
        schedule = Schedule((data, found), (shifted.launch(Grid(4, 8), data, found, U32(by)),))
        places = (np.arange(32) + by) % (1 << 32)
        inside = places < 40
        try:
            gpusort.target(target).run(schedule, {"data": source, "found": results})
        except OutOfBoundsError:
            assert target in ("python", "simulator")
            assert not inside.all()
            continue
        assert results[inside].tolist() == (places[inside] + 1).tolist()
        assert np.isin(results[~inside], source if target == "wgsl" else [0]).all() or not results[~inside].any()


def main() -> None:
    target = sys.argv[1]
    check_inside(target)
    check_outside(target, SIZE)
    check_outside(target, 0)
    check_launch_facts(target)
    print(ALL_RIGHT)


if __name__ == "__main__":
    main()
