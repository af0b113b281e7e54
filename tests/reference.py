"""What tests of the API compare with: arrays that hold what sorts get wrong, and NumPy's answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]  # of any dtype: tests hand them to NumPy and to us alike

DTYPES = ("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "M8[ns]", "m8[s]")
COMPILED = ("u1", "f2", "f4", "i8")  # every size and kind: a kernel for a dtype takes seconds to compile for the CPU
SWAPPED = (">u2", ">i4", ">u8", ">f2", ">f4", ">f8", ">M8[us]")


def sample(dtype: str, shape: int | tuple[int, ...], seed: int = 0) -> Array:
    """Elements of any bits (so NaNs with payloads, subnormals, NaT), extremes, zeros and many equals among them."""
    numbers = np.random.default_rng(seed)
    native = np.dtype(dtype).newbyteorder("=")
    count = int(np.prod(shape))
    if native.kind == "b":  # any byte but zero is true, and comes back as it is
        found: Array = (numbers.integers(0, 256, count) * numbers.integers(0, 2, count)).astype("u1").view("?")
        return found.reshape(shape)
    values: Array = np.frombuffer(numbers.bytes(count * native.itemsize), native).copy()
    few = numbers.random(count) < 0.5
    if native.kind == "f":
        special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan], native)
    else:
        bits = 8 * native.itemsize
        patterns = [0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1, 7]
        special = np.array(patterns, f"u{native.itemsize}").view(native)
    values[few] = numbers.choice(special, int(few.sum()))
    return values.astype(dtype).reshape(shape)


def whole_numbers(dtype: str, shape: int | tuple[int, ...], seed: int = 0) -> Array:
    """Small whole numbers, whose sums are exact in every dtype; at least one is zero and one is not."""
    low = 0 if np.dtype(dtype).kind in "bu" else -3
    values: Array = np.random.default_rng(seed).integers(low, 4, shape).astype(dtype)
    return values


def sorted_by_numpy(x: Array, axis: int = -1, descending: bool = False) -> Array:
    """NumPy's stable order: equals as they came, NaN and NaT last in both directions."""
    if not descending:
        return np.sort(x, axis=axis, kind="stable")
    return np.apply_along_axis(_descending, axis, x).astype(x.dtype) if x.size else x.copy()


def _descending(row: Array) -> Array:
    backwards = np.sort(row[::-1], kind="stable")[::-1]  # stable twice over, and what is last is first
    nans = int(np.count_nonzero(backwards != backwards))
    return np.concatenate([backwards[nans:], backwards[:nans]])


def assert_same_bits(found: object, expected: Array) -> None:
    """Same class, dtype, shape and bytes: -0.0 is not 0.0 here, and a NaN is not another."""
    assert type(found) is type(expected)
    assert isinstance(found, np.ndarray | np.generic)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def run_in_threads(work: Callable[[int], None], count: int = 8) -> None:
    """Calls work(0) … work(count - 1) side by side, and waits for all; raises what any of them has raised."""
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def laid_out(x: Array, layout: str) -> Array:
    """The same values with other strides: "Fortran", "strided", "backwards" along the first axis, "mirrored" along the
    first and the last, or "cropped", with others between the lines."""
    match layout:
        case "Fortran":
            return np.asfortranarray(x)
        case "strided":
            return np.repeat(x, 2, axis=-1)[..., ::2]
        case "cropped":
            return np.concatenate([x[..., :1], x, x[..., :1]], axis=-1)[..., 1:-1]
        case "backwards":
            return x[::-1].copy()[::-1]
        case "mirrored" if x.ndim > 1:
            return x[::-1, ..., ::-1].copy()[::-1, ..., ::-1]
        case "mirrored":
            return x[::-1].copy()[::-1]
        case _:
            return x
