"""Copies of arrays with any strides, on every target."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from gpusort.algos.copy import Strided, copy_whole
from gpusort.algos.layout import merged
from gpusort.algos.sizes import LARGEST_U32
from gpusort.api.step_calls import _copies  # pyright: ignore[reportPrivateUsage]
from gpusort.api.steps import Lines
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.targets import registry
from gpusort.targets.base import given_buffers
from gpusort.types.errors import CapabilityError
from gpusort.types.memory import Workgroup
from gpusort.types.scalars import U8, U16, U32, U64
from gpusort.types.specs import Spec, bounds, overlapping
from tests.covering import few_cases
from tests.plain_launches import copy_strided, take_rows

WORDS = {1: U8, 2: U16, 4: U32, 8: U64}


def strided(part: np.ndarray[Any, Any], whole: np.ndarray[Any, Any]) -> Strided:
    """How a view lies in its array."""
    size = whole.itemsize
    first = (part.ctypes.data - whole.ctypes.data) // size
    return Strided(first, tuple(step // size for step in part.strides), whole.size)


def run(on: str, schedule: Schedule, **arrays: np.ndarray[Any, Any]) -> None:
    registry.target(on).run(schedule, arrays)


@few_cases(whole=["simulator"])
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("case", range(7))
def test_copies_between_any_two_layouts(target: str, itemsize: int, case: int) -> None:
    word: Any = np.dtype(f"u{itemsize}")
    rng = np.random.default_rng(case)
    whole = rng.integers(0, 1 << 8 * itemsize, (4, 5, 6, 7), word, endpoint=False)
    room = np.zeros((7, 9, 8, 6), word)
    source, goal = [
        (whole, room.reshape(-1)[:840].reshape(4, 5, 6, 7)),
        (whole.transpose(3, 1, 2, 0), room[:, :5, :6, :4]),
        (whole[1:, ::2, 1::3, 2], room[1:4, 2:5, 1:3, 3]),
        (whole[2, 3, 4, 5:6], room[1, 1, 1, 1:2]),
        (whole[::3, ::2, ::2, ::3], room[1:3, 1:4, 2:5, 1:4]),
        (whole[:0], room[:0, :5, :6, :0].reshape(0, 5, 6, 7)),
        (whole[1, ::2, ::3, 2], room[1, 2:5, 1:3, 3]),
    ][case]
    expected = room.copy()
    view = np.lib.stride_tricks.as_strided(expected.reshape(-1)[strided(goal, room).first :], goal.shape, goal.strides)
    view[...] = source
    schedule = copy_strided(WORDS[itemsize], source.shape, strided(source, whole), strided(goal, room))
    run(target, schedule, source=whole.reshape(-1), target=room.reshape(-1))
    np.testing.assert_array_equal(room, expected)


@few_cases(pairs=False)
@pytest.mark.parametrize("itemsize", [1, 8])
@pytest.mark.parametrize(
    "shape", [(31, 33), (32, 32), (65, 3), (3, 1025), (5, 300), (300, 5), (2, 40, 35), (3, 2, 7, 130)]
)
def test_axes_change_places(target: str, itemsize: int, shape: tuple[int, ...]) -> None:
    """By tiles: full ones, and such as reach beyond an edge, of every form."""
    whole = np.arange(np.prod(shape)).astype(f"u{itemsize}").reshape(shape)
    axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    source = whole.transpose(axes)
    found = np.zeros_like(source, order="C")
    schedule = copy_strided(WORDS[itemsize], source.shape, strided(source, whole), strided(found, found))
    assert [launch.kernel.name for launch in schedule.launches] == ["transpose_elements"]
    run(target, schedule, source=whole.reshape(-1), target=found.reshape(-1))
    np.testing.assert_array_equal(found, source)


@pytest.mark.parametrize(
    ("down", "across", "sides"),
    [(9999, 9999, (32, 32)), (32, 32, (32, 32)), (31, 9999, (32, 32)), (16, 9999, (16, 64)), (9, 9999, (16, 64)),
     (8, 9999, (8, 128)), (4, 9999, (4, 256)), (2, 9999, (4, 256)), (9999, 33, (32, 32)), (9999, 17, (32, 32)),
     (9999, 16, (64, 16)), (9999, 9, (64, 16)), (9999, 8, (128, 8)), (9999, 4, (256, 4)), (9999, 2, (256, 4))],
)  # fmt: skip
def test_tiles_are_squares_unless_an_array_is_narrower(down: int, across: int, sides: tuple[int, int]) -> None:
    """What is read and written is in lines as long as can be, and few places of a tile are empty."""
    source, target = Strided(0, (across, 1), down * across), Strided(0, (1, down), down * across)
    (launch,) = copy_strided(U32, (down, across), source, target).launches
    assert launch.kernel.name == "transpose_elements"
    assert launch.arguments[-3:-1] == sides
    assert launch.grid.groups == -(-down // sides[0]) * -(-across // sides[1])
    (length,) = (len(one.items) for one in launch.arguments if isinstance(one, Workgroup))
    assert length == sides[0] * (sides[1] + 1), "a place more in each line, against conflicts of banks"


@pytest.mark.parametrize(("shape", "is_tiled"), [((4, 32), True), ((4, 31), False), ((2, 64), True), ((63, 2), False)])
def test_tiles_that_would_be_nearly_empty_are_not_made(shape: tuple[int, int], is_tiled: bool) -> None:
    """Those of which less than an eighth is used."""
    down, across = shape
    source, target = Strided(0, (across, 1), down * across), Strided(0, (1, down), down * across)
    (launch,) = copy_strided(U32, shape, source, target).launches
    assert launch.kernel.name == ("transpose_elements" if is_tiled else "copy_elements")
    assert launch.grid.group_size == 256


@pytest.mark.parametrize("dtype", ["u2", "f8", "c16", "V12", "V3"])
def test_rows_are_taken_by_index(target: str, dtype: str) -> None:
    """Elements of any size: of several words, where they are none."""
    x = np.arange(300 * np.dtype(dtype).itemsize).astype("u1").view(dtype).reshape(3, 100)
    indices = np.argsort(np.arange(300).reshape(3, 100) * 7 % 97, axis=1)[:, :40].astype("u8")
    found = np.zeros((3, 40), dtype)
    schedule = take_rows(x.itemsize, 3, 100, 40)
    words = schedule.buffers[0].dtype
    run(
        target,
        schedule,
        source=x.reshape(-1).view(words),
        indices=indices.reshape(-1),
        target=found.reshape(-1).view(words),
    )
    assert found.tobytes() == np.take_along_axis(x, indices.astype(np.intp), 1).tobytes()


@pytest.mark.parametrize(("count", "groups"), [(1, 1), (1024, 1), (1025, 2), (10_240, 10)])
def test_an_invocation_copies_four_elements(count: int, groups: int) -> None:
    """And a workgroup has eight warps."""
    spread, packed = Strided(0, (2,), 2 * count), Strided(0, (1,), count)
    for schedule in (copy_strided(U32, (count,), spread, packed), take_rows(4, 1, count, count)):
        (launch,) = schedule.launches
        assert launch.grid == Grid(groups, 256)
    whole = Buffer("whole", U32, count, Role.INPUT), Buffer("copy", U32, count, Role.OUTPUT)
    assert copy_whole(*whole).grid == Grid(-(-count // 256), 256), "or one, of contiguous ones"


@pytest.mark.parametrize(
    ("first", "stride", "fits"),
    [
        (0, 2, True),
        (1, 2, True),
        (2, 2, False),
        (8, -2, True),
        (7, -2, False),
        (9, -2, True),
        (10, -2, False),
        (5, 0, True),
        (10, 0, False),
    ],
)
def test_an_array_lies_in_its_buffer(first: int, stride: int, fits: bool) -> None:
    """From its first element to its last, whichever way."""
    here, there = Strided(first, (stride,), 10), Strided(0, (1,), 5)
    for pair in ((here, there), (there, here)):
        if fits:
            assert len(copy_strided(U32, (5,), *pair).launches) == 1
        else:
            with pytest.raises(ValueError, match="lie in its buffer"):
                copy_strided(U32, (5,), *pair)


def test_as_many_elements_are_copied_as_kernels_count() -> None:
    one, most = Strided(0, (1,), 1), Strided(LARGEST_U32 - 1, (1,), LARGEST_U32)
    assert len(copy_strided(U8, (1,), one, most).launches) == len(copy_strided(U8, (1,), most, one).launches) == 1
    for source, target in ((one, Strided(0, (1,), LARGEST_U32 + 1)), (Strided(0, (1,), LARGEST_U32 + 1), one)):
        with pytest.raises(CapabilityError, match=f"at most {LARGEST_U32} are copied"):
            copy_strided(U8, (1,), source, target)


def test_axes_in_one_line_are_one() -> None:
    assert merged((4, 5, 6), (30, 6, 1)) == ((120,), [(1,)])
    assert merged((4, 1, 6), (60, 6, 2), (6, 9, 1)) == ((4, 6), [(60, 2), (6, 1)])
    assert merged((4, 5, 6), (30, 6, 1), (1, 4, 20)) == ((4, 5, 6), [(30, 6, 1), (1, 4, 20)])
    assert merged((), ()) == ((), [()])
    assert merged((1, 1), (5, 5)) == ((), [()])


def test_any_number_of_axes_is_copied(target: str) -> None:
    shape = (2, 3, 2, 1, 3, 2, 2)
    whole = np.arange(np.prod(shape), dtype="u4").reshape(shape[::-1])
    found = np.zeros(shape, "u4")
    schedule = copy_strided(U32, shape, strided(whole.T, whole), strided(found, found))
    assert len(schedule.launches) == 4, "a kernel takes four axes"
    run(target, schedule, source=whole.reshape(-1), target=found.reshape(-1))
    np.testing.assert_array_equal(found, whole.T)


def test_the_bytes_of_an_array_that_lies_in_any_way() -> None:
    assert bounds((3, 2), (8, 4), 4) == (0, 24)
    assert bounds((3, 2), (-8, 4), 4) == (-16, 8)
    assert bounds((), (), 4) == (0, 4)
    assert bounds((3, 0), (8, 4), 4) == (0, 0)
    low, high = overlapping((-2, 2), (0, 4))
    assert [low < address - 8 < high for address in (6, 7, 13, 14)] == [False, True, True, False]


@pytest.mark.parametrize("first", [0, 4, 252])  # bytes
@pytest.mark.parametrize("step", [2, -2])
def test_copies_bind_no_more_of_a_buffer_than_a_device_allows(first: int, step: int) -> None:
    """And from places on alone where a binding may begin."""
    alignment, limits = 256, attrs.evolve(registry.target("simulator").info.limits, storage_bytes=1024)
    pieces = 0
    for count in (90, 97, 125, 127, 128, 129, 300):
        strides = (4 * step,)
        source = Lines(0, Spec((count,), np.dtype("u4"), strides=strides), origin=(first + 4096) % alignment)
        copies = list(_copies(source, Lines(1, Spec((count,), np.dtype("u4"))), alignment, limits))
        pieces += len(copies)
        for schedule, places in copies:
            for buffer, (number, offset) in zip(given_buffers(schedule), places, strict=True):
                assert buffer.nbytes <= limits.storage_bytes
                assert (offset + (source.origin, 0)[number]) % alignment == 0
    assert pieces > 7
