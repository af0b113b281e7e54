"""Finds the kind of an array by its class, without importing any array library.

A library is looked for only among what the caller has imported: nothing is imported here for its sake but cupy, and
that only for an array on a CUDA device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
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
_PLAIN = frozenset((list, tuple, int, float, bool, range))  # of which NumPy makes arrays of its own class


def recognised(name: str, x: object) -> tuple[Kind, Any]:
    """The kind of an argument, and the argument, or the array that NumPy converts it to."""
    kind = KNOWN.get(type(x))
    if kind is not None:
        return kind, x
    if type(x) in _PLAIN:
        return NUMPY, converted(name, x)
    choose = CHOSEN.get(type(x))
    if choose is not None:
        return choose(name, x), x
    for find in _FINDERS:
        found = find(name, x)
        if found is not None:
            if isinstance(found, ArrayKind):
                KNOWN[type(x)] = found
            else:
                CHOSEN[type(x)] = found
            return recognised(name, x)
    made = converted(name, x)
    return recognised(name, made) if type(made) is not np.ndarray else (NUMPY, made)


def forget_classes() -> None:
    """Empties the cache of kinds by class: for tests, in which libraries come and go."""
    KNOWN.clear()
    KNOWN[np.ndarray] = NUMPY
    CHOSEN.clear()


# -- finding ----------------------------------------------------------------------------------------------


def _is_of(x: object, package: str, *names: str) -> bool:
    """Whether this is of one of a package's classes; False if the package is not imported."""
    classes = [getattr(sys.modules.get(package), name, None) for name in names]
    return isinstance(x, tuple(found for found in classes if isinstance(found, type)))


def _from(module: str, name: str) -> Any:
    """A name of a module, which is imported lazily."""
    return getattr(import_module(module, __package__), name)


def _numpy(name: str, x: object) -> Kind | None:
    if isinstance(x, np.ma.MaskedArray):
        raise UnsupportedTypeError(f"{name}: masked arrays are not supported; fill or compress it first")
    return SUBCLASS if isinstance(x, np.ndarray) else None


def _table(name: str, x: object) -> Kind | None:
    for package, names in _COLUMNS.items():
        if _is_of(x, package, *names):
            return cast(Kind, _from(".tables", "KINDS")[package])
    for package, (names, instead) in _TABLES.items():
        if _is_of(x, package, *names):
            raise UnsupportedTypeError(
                f"{name}: expected an array or one column of a table, found a {type(x).__name__} of "
                f"{package.partition('.')[0]}: {instead}"
            )
    return None


def _torch(name: str, x: object) -> Chooser | None:
    if not _is_of(x, "torch", "Tensor"):
        return None
    return cast(Chooser, _from(".torch", "chooser")(sys.modules["torch"]))


def _library(name: str, x: object) -> Kind | Chooser | None:
    for package, (cls, module, found) in _LIBRARIES.items():
        if _is_of(x, package, cls):
            return cast("Kind | Chooser", _from(module, found))
    return None


def _cuda(name: str, x: object) -> Kind | None:
    return cast(Kind, _from(".cuda", "kind_of")(x)) if hasattr(x, "__cuda_array_interface__") else None


def _dlpack(name: str, x: object) -> Chooser | None:
    """NumPy's own scalars have no __dlpack__, and what has an array interface besides NumPy takes faster."""
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        return None
    return cast(Chooser, _from(".dlpack", "choose"))


# The class of arrays; and the kind of them, or what chooses one, by its module.
_LIBRARIES = {
    "jax": ("Array", ".dlpack", "choose_jax"),
    "gpusort.webgpu": ("Array", ".webgpu", "WEBGPU"),
    "dask.array": ("Array", "..dask.kind", "DASK"),  # which is built on all of the library
}
_COLUMNS = {
    "pandas": ("Series", "Index"),
    "pandas.api.extensions": ("ExtensionArray",),
    "polars": ("Series",),
    "pyarrow": ("Array", "ChunkedArray"),
}
# Whole tables: NumPy would make an array of them, without the columns' names and dtypes.
_TABLES = {
    "pandas": (("DataFrame",), "x['a'] is a column, x.iloc[gpusort.argsort(x['a'])] sorts rows"),
    "polars": (("DataFrame", "LazyFrame"), "x['a'] is a column, x[gpusort.argsort(x['a'])] sorts rows"),
    "pyarrow": (("Table", "RecordBatch"), "x['a'] is a column, x.take(gpusort.argsort(x['a'])) sorts rows"),
    "dask.dataframe": (("DataFrame", "Series"), "gpusort.dask.sort_values(frame, 'a') sorts rows, "
                                                "x['a'].to_dask_array() is a column"),
}  # fmt: skip
_FINDERS: tuple[Callable[[str, object], Kind | Chooser | None], ...] = (
    _numpy, _torch, _library, _table, _cuda, _dlpack,
)  # fmt: skip
