"""Copies of host arrays between layouts: every element, and nothing beside the target's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host.copies import copy_alone, copy_shared, packed
from gpusort.targets.cpu.host.transpose import are_turned
from gpusort.targets.cpu.pool import ALONE

Array = npt.NDArray[Any]
MARK = 7


@pytest.fixture(autouse=True)
def _compiled_at_once() -> Any:
    with background.off():
        yield


def lain(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> tuple[Array, Array]:
    """An array of this shape that lies in any way, and all of its memory."""
    order = generator.permutation(len(shape))
    gap = int(generator.integers(2)) * 2
    memory = np.full([shape[axis] + gap for axis in order], MARK).astype(dtype)
    x = memory[tuple(slice(gap // 2, gap // 2 + shape[axis]) for axis in order)].transpose(np.argsort(order))
    for axis in range(len(shape)):
        if generator.random() < 0.2:
            x = np.flip(x, axis)
    return x, memory


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "M8[s]", "c16", ">i4", "O"])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_copies_between_arrays_that_lie_in_any_way(dtype: str, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", threads)
    generator = np.random.default_rng(1)
    turned = 0
    for number in range(150):
        dims = int(generator.integers(1, 5))
        shape = tuple(int(size) for size in generator.integers(1, (0, 300_000, 500, 70, 24)[dims], dims))
        source, _ = lain(generator, shape, dtype)
        source[...] = generator.integers(0, 100, shape).astype(dtype)
        to, memory = lain(generator, shape, dtype)
        beside = memory.size - to.size
        copy = (copy_shared, copy_alone, are_turned)[number % 3]
        if copy(source, to) is False:
            assert (memory == np.full(1, MARK).astype(dtype)).all()
            continue
        turned += copy is are_turned
        np.testing.assert_array_equal(to, source)
        to[...] = np.full(1, MARK).astype(dtype)
        assert memory.size - to.size == beside
        assert (memory == np.full(1, MARK).astype(dtype)).all()
    assert (turned > 3) == (dtype not in ("c16", "O"))


@pytest.mark.parametrize("shape", [(64, 64), (63, 65), (128, 1000), (1000, 16), (17, 4096), (200, 1)])
def test_tiles_of_any_size_are_turned(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape) * 16).reshape(16, *shape)
    found = np.zeros((16, *shape[::-1]), x.dtype)
    assert are_turned(x.transpose(0, 2, 1), found, ALONE) == (shape[1] >= 16)
    if shape[1] >= 16:
        np.testing.assert_array_equal(found, x.transpose(0, 2, 1))


def test_other_byte_orders_are_packed_to_the_machines() -> None:
    x = np.arange(250_000).reshape(500, 500).T
    made = packed(x.astype(">i8"))
    assert made.flags.c_contiguous
    assert made.dtype.isnative
    np.testing.assert_array_equal(made, x)
    assert packed(made) is made
