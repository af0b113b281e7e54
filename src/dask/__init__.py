"""Sorting dask arrays and dataframes: lazily, into known chunks, on threads or a cluster.

Needs `pip install 'gpusort[dask]'`.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("dask") is None:
    raise ModuleNotFoundError("gpusort.dask needs dask: pip install 'gpusort[dask]'", name="dask")

from .frames import sort_values
from .selecting import top_k, unique
from .sorting import argsort, sort, sort_by_key

__all__ = ["argsort", "sort", "sort_by_key", "sort_values", "top_k", "unique"]
