from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from . import random as random

_Chunks: TypeAlias = tuple[tuple[int, ...], ...]
_Wanted: TypeAlias = int | str | Sequence[int | Sequence[int] | str] | Mapping[int, int | str]
_Index: TypeAlias = int | slice | Array | tuple[int | slice, ...]

class Array:
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def chunks(self) -> _Chunks: ...
    @property
    def shape(self) -> tuple[int, ...]: ...  # NaN where it is not known
    @property
    def size(self) -> int: ...
    @property
    def numblocks(self) -> tuple[int, ...]: ...
    def __getitem__(self, index: _Index) -> Array: ...
    def __gt__(self, other: object) -> Array: ...
    def __mod__(self, other: object) -> Array: ...
    def __eq__(self, other: object) -> Array: ...  # type: ignore[override]  # as NumPy's  # pyright: ignore[reportIncompatibleMethodOverride]
    def __array__(self) -> npt.NDArray[Any]: ...
    def __dask_graph__(self) -> Mapping[object, object]: ...
    def ravel(self) -> Array: ...
    def rechunk(
        self, chunks: _Wanted, threshold: int | None = None, *, method: Literal["tasks", "p2p"] | None = None
    ) -> Array: ...
    def map_blocks(
        self,
        func: Callable[..., object],
        *args: object,
        token: str | None = None,
        dtype: npt.DTypeLike | None = None,
        chunks: _Chunks | None = None,
        drop_axis: int | None = None,
        new_axis: int | None = None,
        meta: object = None,
    ) -> Array: ...
    def compute(self, *, scheduler: str | None = None) -> npt.NDArray[Any]: ...
    def persist(self) -> Array: ...
    def to_dask_dataframe(self, columns: Sequence[str]) -> object: ...

def map_blocks(
    func: Callable[..., object],
    *args: object,
    token: str | None = None,
    dtype: npt.DTypeLike | None = None,
    meta: object = None,
) -> Array: ...
def blockwise(
    func: Callable[..., object],
    out_ind: tuple[int, ...],
    *args: object,
    token: str | None = None,
    dtype: npt.DTypeLike | None = None,
    new_axes: Mapping[int, int] | None = None,
    align_arrays: bool = True,
    concatenate: bool | None = None,
    meta: object = None,
) -> Array: ...
def from_array(x: npt.NDArray[Any], chunks: _Wanted = "auto") -> Array: ...
def zeros(shape: int, *, chunks: int) -> Array: ...
def stack(seq: Sequence[Array], axis: int = 0) -> Array: ...
