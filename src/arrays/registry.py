"""Finds the kind of an array by its class, among what the caller has imported: nothing is imported here but cupy, for
an array on a CUDA device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeAlias, cast

import numpy as np

from ..types.errors import UnsupportedTypeError
from .host import NUMPY, SUBCLASS, converted
from .kinds import ArrayKind, Kind

# Tells the kind of one array, where those of one class can lie in several kinds of memory.
Chooser: TypeAlias = Callable[[str, Any], Kind]

# By class, once seen. What is in neither and not found below is handed to NumPy.
KNOWN: dict[type, Kind] = {np.ndarray: NUMPY}
CHOSEN: dict[type, Chooser] = {}
# By which a subclass says what becomes of its unit or mask: results made of its numbers would not know.
_OVERRIDES = ("__array_ufunc__", "__array_function__")
_PLAIN = frozenset((list, tuple, int, float, bool, range))  # of which NumPy makes arrays of its own class


def recognised(name: str, x: object) -> tuple[Kind, Any]:
    """The kind of an argument, and the argument, or the array that NumPy converts it to."""
    cls = type(x)
    kind = KNOWN.get(cls)
    if kind is not None:
        return kind, x
    choose = CHOSEN.get(cls)
    if choose is not None:
        return choose(name, x), x
    if cls in _PLAIN:
        return NUMPY, converted(name, x)
    found = _found(name, x)
    if found is not None:
        if isinstance(found, ArrayKind):
            KNOWN[cls] = found
        else:
            CHOSEN[cls] = found
        return recognised(name, x)
    made = converted(name, x)
    return recognised(name, made) if type(made) is not np.ndarray else (NUMPY, made)


def kind_of_all(arrays: Sequence[object]) -> Kind | None:
    """The kind of arrays that are all of one, and of one class that was seen before; None for any others."""
    cls = type(arrays[0])
    for x in arrays:
        if type(x) is not cls:
            return None
    kind = KNOWN.get(cls)
    if kind is None:
        choose = CHOSEN.get(cls)
        if choose is None:
            return None
        try:
            kind, *others = [choose("", x) for x in arrays]
        except UnsupportedTypeError:  # with the argument's name where each is looked at
            return None
        if others.count(kind) < len(others):
            return None
    return kind


# The packages of libraries, their classes, and the module and name of the kind of these, or of what chooses one.
_LIBRARIES = (
    ("torch", ("Tensor",), ".torch", "choose"),
    ("jax", ("Array",), ".dlpack", "choose_jax"),
    ("gpusort.webgpu", ("Array",), ".webgpu", "WEBGPU"),
    ("dask.array", ("Array",), "..dask.kind", "DASK"),  # which is built on all of the library
    ("pandas", ("Series", "Index"), ".tables", "PANDAS"),
    ("pandas.api.extensions", ("ExtensionArray",), ".tables", "PANDAS_ARRAYS"),
    ("polars", ("Series",), ".tables", "POLARS"),
    ("pyarrow", ("Array", "ChunkedArray"), ".tables", "PYARROW"),
)
# Whole tables: NumPy would make an array of them, without the columns' names and dtypes. And what has no dtype.
_TABLES = (
    ("pandas", ("DataFrame",), "x['a'] is a column, x.iloc[gpusort.argsort(x['a'])] sorts rows"),
    ("polars", ("DataFrame",), "x['a'] is a column, x[gpusort.argsort(x['a'])] sorts rows"),
    ("polars", ("LazyFrame",), "of x = x.collect(), x['a'] is a column, and x[gpusort.argsort(x['a'])] sorts rows"),
    ("pyarrow", ("Table", "RecordBatch"), "x['a'] is a column, x.take(gpusort.argsort(x['a'])) sorts rows"),
    ("dask.dataframe", ("DataFrame",), "gpusort.dask.sort_values(x, 'a') sorts rows, "
                                       "x['a'].to_dask_array() is a column"),
    ("dask.dataframe", ("Series",), "x.to_dask_array() is an array"),
    ("wgpu", ("GPUBuffer",), "gpusort.webgpu.array(x, dtype, shape) is an array in it"),
    ("torch.fx", ("Proxy",), "it has no elements while torch.fx traces, which leaves alone what torch.fx.wrap names"),
)  # fmt: skip


def _found(name: str, x: object) -> Kind | Chooser | None:
    """The kind of a class that was not seen before, or what chooses one; None for what NumPy makes arrays of."""
    if isinstance(x, np.ma.MaskedArray):
        raise UnsupportedTypeError(f"{name}: masked arrays are not supported; fill or compress it first")
    cls = type(x)
    if x.__class__ is not cls:  # a proxy, of which any other array may be behind the next one of its class
        return None
    if isinstance(x, np.ndarray):
        if any(getattr(cls, own) is not getattr(np.ndarray, own) for own in _OVERRIDES):
            raise UnsupportedTypeError(
                f"{name}: expected an array whose numbers say all, found {cls.__name__}, which computes for itself "
                f"(a unit, a mask); {name}.view(np.ndarray) has the numbers alone"
            )
        return _from("..api.mapped", "MAPPED") if isinstance(x, np.memmap) else SUBCLASS
    for package, classes, module, kind in _LIBRARIES:
        if _is_of(x, package, classes):
            return cast("Kind | Chooser", _from(module, kind))
    for package, classes, instead in _TABLES:
        if _is_of(x, package, classes):
            raise UnsupportedTypeError(
                f"{name}: expected an array or one column of a table, found a {type(x).__name__} of "
                f"{package.partition('.')[0]}: {instead}"
            )
    if hasattr(x, "__cuda_array_interface__"):
        return cast(Kind, _from(".cuda", "kind_of")(x))
    # NumPy's own scalars have no __dlpack__, and what has an array interface besides NumPy takes faster.
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        return cast(Chooser, _from(".dlpack", "choose"))
    return None


def _is_of(x: object, package: str, names: tuple[str, ...]) -> bool:
    """Whether this is of one of a package's classes; False if the package is not imported."""
    classes = [getattr(sys.modules.get(package), name, None) for name in names]
    return isinstance(x, tuple(found for found in classes if isinstance(found, type)))


def _from(module: str, name: str) -> Any:
    """A name of a module, which is imported lazily."""
    return getattr(import_module(module, __package__), name)
