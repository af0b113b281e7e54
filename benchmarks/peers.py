"""Who else sorts: each by a name, with what makes a call of it ready for an array. None need be installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import attrs
import numpy as np

import gpusort
from benchmarks.arrays import Array
from benchmarks.timing import Work
from gpusort.types.errors import TargetUnavailableError


@attrs.frozen
class Sorter:
    """`ready` takes an array of the host and gives back the call that is timed."""

    name: str
    needs: str | None  # a module; for gpusort, a target
    dtypes: str  # the kinds it sorts
    ready: Callable[[Array], Work]

    def missing(self) -> str | None:
        """Why it cannot run here."""
        if self.name.startswith("gpusort "):
            try:
                gpusort.target(str(self.needs))
            except TargetUnavailableError as error:
                return str(error)
            return None
        if self.needs is None or _is_installed(self.needs):
            return None
        return f"{self.needs} is not installed"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package that it is part of
        return False


def _gpusort(target: str) -> Sorter:
    return Sorter(f"gpusort {target}", target, "iuf", lambda x: lambda: gpusort.sort(x, target=target))


def _torch(x: Array) -> Work:
    torch: Any = import_module("torch")
    tensor = torch.from_numpy(x)
    return lambda: torch.sort(tensor)


def _polars(x: Array) -> Work:
    series: Any = import_module("polars").Series(x)
    sort: Work = series.sort
    return sort


# End to end: an array of the host in, another out.
ON_HOST = (
    _gpusort("cpu"),
    Sorter("np.sort", None, "iuf", lambda x: lambda: np.sort(x)),
    Sorter("np.sort stable", None, "iuf", lambda x: lambda: np.sort(x, kind="stable")),
    Sorter("torch.sort", "torch", "if", _torch),
    Sorter("polars", "polars", "iuf", _polars),
    _gpusort("cuda"),
    _gpusort("wgsl"),  # last: a software driver has threads of its own, which slow down whoever comes after
)


def _on_card(x: Array) -> Any:
    return import_module("cupy").asarray(x)


def _resident(x: Array) -> Work:
    source = _on_card(x)
    results = import_module("cupy").empty_like(source)
    return lambda: gpusort.sort(source, out=results)


def _cub(x: Array) -> Work:
    from benchmarks.card import cub_sort

    source = _on_card(x)
    return cub_sort(source, import_module("cupy").empty_like(source))


def _cupy(x: Array) -> Work:
    cupy: Any = import_module("cupy")
    source = cupy.asarray(x)
    return lambda: cupy.sort(source)


def _torch_on_card(x: Array) -> Work:
    torch: Any = import_module("torch")
    tensor = torch.from_numpy(x).cuda()
    return lambda: torch.sort(tensor)


# Resident: the array lies on the card before and after. All wait for nothing: who times them does.
ON_CARD = (
    Sorter("gpusort cuda", "cuda", "iuf", _resident),
    Sorter("CUB", "cuda.compute", "iuf", _cub),
    Sorter("cupy.sort", "cupy", "iuf", _cupy),
    Sorter("torch.sort", "torch", "if", _torch_on_card),
)
