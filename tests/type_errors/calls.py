"""What public functions give back, as the checkers see it, and calls that do not fit."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, Generic, Self, TypeVar, assert_type

import attrs
import numpy as np
import numpy.typing as npt

import gpusort
from gpusort.types.keys import UnsignedKey
from gpusort.types.monoids import MinMax, Monoid, Product, Sum
from gpusort.types.scalars import F32, U32

E = TypeVar("E")
S = TypeVar("S")
N = TypeVar("N")
G = TypeVar("G", bound=np.generic)
Real = TypeVar("Real", bound=np.floating)
F4s = np.ndarray[tuple[int], np.dtype[np.float32]]
I4s = np.ndarray[tuple[int], np.dtype[np.int32]]
Grid = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Places = np.dtype[np.int64]
HostArray = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def right(x: F4s, numbers: I4s, grid: Grid) -> None:
    assert_type(gpusort.sort(x), F4s)
    assert_type(gpusort.sort(grid, axis=0, descending=True), Grid)
    assert_type(gpusort.sort(grid, axis=None), F4s)
    assert_type(gpusort.sort(x, out=x), F4s)
    assert_type(gpusort.argsort(grid), np.ndarray[tuple[int, int], Places])
    assert_type(gpusort.argsort(grid, axis=None), np.ndarray[tuple[int], Places])
    assert_type(gpusort.cumsum(grid, axis=1), npt.NDArray[np.float32])
    assert_type(gpusort.cumsum(numbers), npt.NDArray[np.int64])
    keys, values = gpusort.sort_by_key(x, numbers)
    assert_type(keys, F4s)
    assert_type(values, I4s)


def right_in_buffers(x: gpusort.webgpu.Array) -> None:
    assert_type(gpusort.sort(x, axis=0), gpusort.webgpu.Array)
    assert_type(gpusort.sort_by_key(x, x), tuple[gpusort.webgpu.Array, gpusort.webgpu.Array])
    assert_type(gpusort.top_k(x, 2), tuple[gpusort.webgpu.Array, gpusort.webgpu.Array])
    assert_type(gpusort.argmax(x, axis=0), gpusort.webgpu.Array)
    assert_type(gpusort.sum(x), gpusort.webgpu.Array)
    assert_type(gpusort.cumsum(x), gpusort.webgpu.Array)
    print(-x.to_numpy(), np.zeros(3)[gpusort.argsort(x).to_numpy()])  # of whatever dtype it is, with no cast


class Tensor:
    """As torch's: NumPy could make an array of it, but that is not what comes back."""

    @property
    def is_cuda(self) -> bool:
        return False

    def detach(self) -> Self:
        return self

    def __array__(self) -> npt.NDArray[np.float32]:
        return np.zeros(3, np.float32)


def needs_numpys(found: HostArray | np.generic) -> None: ...


def may_be_a_tensor(x: F4s | Tensor) -> None:
    needs_numpys(gpusort.sort(x))  # E: arg-type, reportArgumentType
    needs_numpys(gpusort.argsort(x))  # E: arg-type, reportArgumentType
    needs_numpys(gpusort.cumsum(x))  # E: arg-type, reportArgumentType
    needs_numpys(gpusort.top_k(x, 2)[0])  # E: arg-type, reportArgumentType
    needs_numpys(gpusort.sum(x))  # E: arg-type, reportArgumentType
    needs_numpys(gpusort.min(x))  # E: arg-type, reportArgumentType


def along_an_axis_or_none(grid: Grid, axis: int | None) -> npt.NDArray[np.float32]:
    return gpusort.sort(grid, axis=axis)


# Without their arguments these classes have Any from NumPy 2.5 on, and mypy then does not say which overload is meant.
Date = np.datetime64[date]
Span = np.timedelta64[timedelta]


def right_reductions(
    i2: npt.NDArray[np.int16], u1: npt.NDArray[np.uint8], times: npt.NDArray[Date], spans: npt.NDArray[Span]
) -> None:
    assert_type(gpusort.sum(i2), np.int64)
    assert_type(gpusort.sum(i2 > 0), np.int64)
    assert_type(gpusort.prod(u1), np.uint64)
    assert_type(gpusort.sum(u1, axis=0), npt.NDArray[np.uint64])
    assert_type(gpusort.sum(i2, axis=np.int64(0)), npt.NDArray[np.int64])
    assert_type(gpusort.sum(i2, keepdims=True), npt.NDArray[np.int64])
    assert_type(gpusort.sum(spans), Span)
    assert_type(gpusort.max(i2, axis=(0, 1)), npt.NDArray[np.int16])
    assert_type(gpusort.max(times), Date)
    assert_type(gpusort.min(times, axis=0), npt.NDArray[Date])
    assert_type(gpusort.argmax(times), np.int64)
    assert_type(gpusort.argmin(i2, axis=0, key=gpusort.key_for("i2")), npt.NDArray[np.int64])
    assert_type(gpusort.any(u1, axis=1), npt.NDArray[np.bool_])


def right_where_it_is_not_known(
    i2: npt.NDArray[np.int16], times: npt.NDArray[Date], kept: bool, axis: int | None
) -> None:
    assert_type(gpusort.sort(i2, axis=axis), np.ndarray[tuple[int, ...], np.dtype[np.int16]])
    gpusort.sort(i2, axis=axis, out=i2)
    assert_type(gpusort.sum(i2, axis=0, keepdims=kept), npt.NDArray[np.int64])
    assert_type(gpusort.sum(i2, keepdims=kept), np.int64 | npt.NDArray[np.int64])
    assert_type(gpusort.max(times, keepdims=kept), Date | npt.NDArray[Date])
    assert_type(gpusort.argmin(i2, keepdims=kept), np.int64 | npt.NDArray[np.int64])
    assert_type(gpusort.all(i2, keepdims=kept), np.bool_ | npt.NDArray[np.bool_])


def right_in_generic_functions(x: npt.NDArray[G], sizes: np.ndarray[tuple[int, ...], np.dtype[G]]) -> None:
    """Which are of any elements: no result is Any."""
    assert_type(gpusort.sort(x), npt.NDArray[G])
    assert_type(gpusort.sort(sizes, axis=0, descending=True), np.ndarray[tuple[int, ...], np.dtype[G]])
    assert_type(gpusort.argsort(x), npt.NDArray[np.int64])
    assert_type(gpusort.top_k(x, 2), tuple[np.ndarray[tuple[int, ...], np.dtype[G]], npt.NDArray[np.int64]])
    assert_type(gpusort.sort_by_key(x, x), tuple[npt.NDArray[G], npt.NDArray[G]])
    assert_type(gpusort.merge(x, x), npt.NDArray[G])
    assert_type(gpusort.merge_by_key(x, x, x, x), tuple[npt.NDArray[G], npt.NDArray[G]])
    assert_type(gpusort.max(x), G)
    assert_type(gpusort.min(sizes), G)
    assert_type(gpusort.max(sizes, axis=0), npt.NDArray[G])


def right_of_any_numbers(
    floats: npt.NDArray[Real], halves: npt.NDArray[np.floating], signed: npt.NDArray[np.signedinteger]
) -> None:
    assert_type(gpusort.sum(floats), Real)
    assert_type(gpusort.sum(floats, axis=0), npt.NDArray[Real])
    assert_type(gpusort.cumsum(floats), npt.NDArray[Real])
    assert_type(gpusort.sort(halves), npt.NDArray[np.floating])
    assert_type(gpusort.sum(halves), np.floating)
    assert_type(gpusort.prod(signed), np.int64)
    assert_type(gpusort.cumsum(signed), npt.NDArray[np.int64])


def right_lists(flat: list[int], deep: list[list[float]], flags: list[bool]) -> None:
    assert_type(gpusort.sort([2, 1]), npt.NDArray[np.int64])
    assert_type(gpusort.sort(flags, descending=True), npt.NDArray[np.bool_])
    assert_type(gpusort.sort(deep, axis=0), npt.NDArray[np.float64])
    assert_type(gpusort.argsort(deep), np.ndarray[tuple[int, ...], Places])
    assert_type(gpusort.sum(flat), np.int64)
    assert_type(gpusort.sum(flags), np.int64)
    assert_type(gpusort.max(flags), np.bool_)
    assert_type(gpusort.max(deep), np.float64)
    assert_type(gpusort.cumsum(flat), npt.NDArray[np.int64])
    assert_type(gpusort.cumsum(deep), npt.NDArray[np.float64])


class Column(Generic[N]):
    """What pandas and polars have in common, and what their classes say to NumPy."""

    def __array__(self, dtype: object = None, copy: bool | None = None) -> npt.NDArray[np.float64]:
        return np.zeros(3)

    def to_frame(self, name: str | None = None) -> object:
        return name


def right_columns(keys: Column[int], values: Column[float]) -> None:
    assert_type(gpusort.sort(keys), Column[int])
    assert_type(gpusort.argsort(values, descending=True), Column[float])
    assert_type(gpusort.sort_by_key(keys, values), tuple[Column[int], Column[float]])
    assert_type(gpusort.merge_by_key(keys, values, keys, values), tuple[Column[int], Column[float]])
    assert_type(gpusort.merge(keys, keys), Column[int])
    assert_type(gpusort.top_k(values, 2), tuple[Column[float], Column[float]])
    assert_type(gpusort.cumsum(keys), Column[int])
    assert_type(gpusort.sum(keys), Any)  # NumPy's scalar for pandas, Python's for polars
    assert_type(gpusort.max(keys, axis=0), Any)
    assert_type(gpusort.argmin(keys), Any)


class Sharded:
    """As JAX's arrays: NumPy could make an array of it, but that is not what comes back."""

    @property
    def is_fully_addressable(self) -> bool:
        return True

    def __buffer__(self, flags: int, /) -> memoryview:
        return memoryview(b"")

    def __array__(self, dtype: object = None, copy: bool | None = None) -> npt.NDArray[np.float64]:
        return np.zeros(3)


def right_arrays_of_jax(x: Sharded) -> None:
    assert_type(gpusort.sort(x), Sharded)
    assert_type(gpusort.top_k(x, 2), tuple[Sharded, Sharded])
    assert_type(gpusort.merge(x, x), Sharded)
    assert_type(gpusort.sum(x), Sharded)
    assert_type(gpusort.argmax(x), Sharded)


class Series:
    """Whatever else NumPy can make an array of."""

    def __array__(self, dtype: object = None, copy: bool | None = None) -> npt.NDArray[np.float64]:
        return np.zeros(3)


def right_array_likes(series: Series, like: npt.ArrayLike) -> None:
    assert_type(gpusort.sort(series), HostArray)
    assert_type(gpusort.sort(like, axis=None), HostArray)
    assert_type(gpusort.argsort(series), np.ndarray[tuple[int, ...], Places])
    assert_type(gpusort.sort_by_key(series, [1, 2, 3]), tuple[HostArray, HostArray])
    assert_type(gpusort.merge(series, [1, 2, 3]), HostArray)
    assert_type(gpusort.merge_by_key(series, [1], like, (2.0, 3.0)), tuple[HostArray, HostArray])
    assert_type(gpusort.sum(like), np.generic | HostArray)
    assert_type(gpusort.cumsum(series), HostArray)
    assert_type(gpusort.argmin(series), np.int64)
    assert_type(gpusort.any(like), np.bool_)


class Labelled:
    """As xarray's arrays: of NumPy's kind to none but NumPy, and to mypy with every attribute that is asked for."""

    def __getattr__(self, name: str) -> Any: ...
    def __array__(self, dtype: object = None, copy: bool | None = None) -> npt.NDArray[np.float64]:
        return np.zeros(3)

    def rank(self, dim: object, *, pct: bool = False) -> Self:
        return self


def right_labelled_arrays(x: Labelled) -> None:
    assert_type(gpusort.sort(x), HostArray)
    assert_type(gpusort.argsort(x), npt.NDArray[np.int64])
    assert_type(gpusort.top_k(x, 2), tuple[HostArray, npt.NDArray[np.int64]])
    assert_type(gpusort.cumsum(x), HostArray)
    needs_numpys(gpusort.sum(x))


def right_texts_and_memory(text: str, texts: list[list[str]], memory: bytearray) -> None:
    """Texts are refused; but no result has a dtype that it could not have."""
    assert_type(gpusort.sort(["b", "a"]), HostArray)
    assert_type(gpusort.sort(text), HostArray)
    assert_type(gpusort.cumsum(texts), HostArray)
    assert_type(gpusort.max(texts), np.generic | HostArray)
    assert_type(gpusort.sort(memory), HostArray)
    assert_type(gpusort.sum(memory), np.generic | HostArray)


def right_generic_monoids(x: F4s, monoid: Monoid[E, S]) -> None:
    assert_type(gpusort.reduce(x, monoid), np.generic | HostArray)
    assert_type(gpusort.scan(x, monoid), HostArray)


def right_monoids(x: F4s, numbers: I4s, kept: bool) -> None:
    total = Sum(gpusort.number_for(np.float32))
    assert_type(gpusort.reduce(x, total), np.float32)
    assert_type(gpusort.reduce(x, total, axis=0), npt.NDArray[np.float32])
    assert_type(gpusort.reduce(x, total, keepdims=kept), np.float32 | npt.NDArray[np.float32])
    assert_type(gpusort.reduce(numbers, Sum(gpusort.number_for(numbers.dtype))), np.int64)
    assert_type(gpusort.scan(numbers, Product(gpusort.number_for(np.int32))), npt.NDArray[np.int64])
    assert_type(gpusort.scan(x, Sum(gpusort.number_for(np.float64))), npt.NDArray[np.float64])
    assert_type(gpusort.reduce(x, Sum(gpusort.number_for("f4"))), np.float32)
    assert_type(gpusort.reduce(numbers, Sum(gpusort.number_for("i4")), axis=0), npt.NDArray[np.int64])
    assert_type(gpusort.scan(x, Product(gpusort.number_for("float64"))), npt.NDArray[np.float64])
    assert_type(gpusort.scan(x > 0, Sum(gpusort.number_for("?"))), npt.NDArray[np.uint64])
    extremes = MinMax(UnsignedKey(U32, U32, 32))
    assert_type(gpusort.reduce(x, extremes), np.void | npt.NDArray[np.void])
    assert_type(gpusort.scan(x, extremes), npt.NDArray[np.void])
    assert_type(gpusort.scan(x, extremes)["low"], npt.NDArray[Any])


def smallest(x: F4s, *, target: str = "auto") -> F4s:
    return gpusort.sort(x, target=target)[:2]


def right_prepared_calls(x: F4s, numbers: I4s, grid: Grid, buffer: gpusort.webgpu.Array, untyped: Any) -> None:
    call = gpusort.plan(gpusort.sort, x)
    assert_type(call, gpusort.PreparedCall[F4s])
    assert_type(call(x), F4s)
    assert_type(gpusort.plan(gpusort.sort, grid, axis=None, target="cpu")(grid), F4s)
    assert_type(gpusort.plan(gpusort.sort, numbers, out=numbers, descending=True)(numbers), I4s)
    assert_type(gpusort.plan(gpusort.argsort, grid)(grid), np.ndarray[tuple[int, int], Places])
    assert_type(gpusort.plan(gpusort.sort_by_key, x, numbers)(x, numbers), tuple[F4s, I4s])
    assert_type(gpusort.plan(gpusort.merge, x, x)(x, x), F4s)
    assert_type(gpusort.plan(gpusort.top_k, grid, 3)(grid)[1], npt.NDArray[np.int64])
    assert_type(gpusort.plan(gpusort.top_k, grid, k=3)(grid)[0], np.ndarray[tuple[int, ...], np.dtype[np.float32]])
    assert_type(gpusort.plan(gpusort.cumsum, numbers)(numbers), npt.NDArray[np.int64])
    assert_type(gpusort.plan(gpusort.sort, buffer).encode(None, buffer), gpusort.webgpu.Array)
    assert_type(gpusort.plan(smallest, x)(x), F4s)
    assert_type(gpusort.plan(untyped, x)(x), Any)
    # Instead of a scalar, an array of no dimension: it is written anew by each call.
    assert_type(gpusort.plan(gpusort.sum, numbers)(numbers), npt.NDArray[np.int64])
    assert_type(gpusort.plan(gpusort.argmax, x)(x), npt.NDArray[np.int64])
    assert_type(gpusort.plan(gpusort.max, grid, axis=0)(grid), npt.NDArray[np.float32])
    assert_type(gpusort.plan(gpusort.reduce, x, Sum(gpusort.number_for(np.float32)))(x), npt.NDArray[np.float32])


def wrong_prepared_calls(x: F4s) -> None:
    assert_type(gpusort.plan(gpusort.sort, x)(x), I4s)  # E: assert-type, reportAssertTypeFailure
    gpusort.plan(gpusort.sort)  # E: arg-type, reportCallIssue
    gpusort.plan(gpusort.sort, x, decending=True)  # E: arg-type, reportCallIssue
    gpusort.plan(gpusort.sort, x, axis="last")  # E: arg-type, reportArgumentType
    gpusort.plan(gpusort.merge, x)  # E: arg-type, reportCallIssue
    gpusort.plan(gpusort.sort(x), x)  # E: arg-type, reportArgumentType+reportCallIssue


def wrong_results(x: F4s) -> None:
    assert_type(gpusort.sort(x), I4s)  # E: assert-type, reportAssertTypeFailure
    gpusort.sort_by_key(x)  # E: call-overload, reportCallIssue


def wrong_names(x: F4s) -> None:
    gpusort.sorted(x)  # E: attr-defined, reportAttributeAccessIssue


def wrong_options(x: F4s) -> None:
    gpusort.sort(x, axis="last")  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sort(x, decending=True)  # E: call-overload, reportCallIssue
    gpusort.sort(x, -1)  # E: call-overload, reportCallIssue
    gpusort.sort(x, algorithm="bitonic")  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sort(x, target=1)  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.cumsum(x, axis=(0, 1))  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sort_inplace(x, axis=None)  # E: arg-type, reportArgumentType
    gpusort.argmin(x, axis=(0, 1))  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.any(x, key=gpusort.key_for("f4"))  # E: call-overload, reportCallIssue

    gpusort.sum(x, axis=0.5)  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sum(x, keepdims="yes")  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sort(x, algorithm=gpusort.Radix)  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.max(x, target=3)  # E: call-overload, reportArgumentType+reportCallIssue


def no_array() -> None:
    gpusort.sum(None)  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.max({1: 2})  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sort({1, 2})  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.sort_inplace([2, 1])  # E: arg-type, reportArgumentType


@attrs.frozen
class NoIdentity:
    """A monoid that forgets `identity`."""

    element: type[F32] = F32
    state: type[F32] = F32

    def lift(self, element: F32, index: U32) -> F32:
        return element

    def combine(self, a: F32, b: F32) -> F32:
        return a + b


def wrong_monoids(x: F4s) -> None:
    gpusort.reduce(x, NoIdentity())  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.reduce(x, np.add)  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.reduce(x, None)  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.scan(x, NoIdentity())  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.scan(x, Sum)  # E: call-overload, reportArgumentType+reportCallIssue
    gpusort.scan(x, gpusort.key_for("f4"))  # E: call-overload, reportArgumentType+reportCallIssue
