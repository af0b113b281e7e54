"""Sort, reduce, scan and top-k on GPUs and CPUs, with kernels written once in typed Python.

`sort`, `argsort`, `sort_by_key`, `merge`, `top_k`; `sum`, `min`, `any`, `cumsum` and the like; `reduce` and `scan`, by
monoids of your own. They take arrays of NumPy, CuPy, torch and others. `targets()` tells what they can run on.
"""

from __future__ import annotations

from os.path import realpath
from typing import TYPE_CHECKING

# First, so that its fork handlers are registered before anything else is set up.
from . import forks as _forks  # noqa: F401  # pyright: ignore[reportUnusedImport]  # it registers itself

# Not with a function's first use: a signal handler that uses one in the midst of that import would find half of it.
from .targets.uninterrupted import import_uninterrupted as _import_uninterrupted

if TYPE_CHECKING:
    from . import multi, webgpu
    from .algos.host_sort import HostSort, HostSortPolicy
    from .algos.radix_serial import SerialRadix, SerialRadixPolicy
    from .algos.sorts import Bitonic, BitonicRows, Radix, RadixRows, SortAlgorithm
    from .api.files import argsort_file, sort_file
    from .api.prepared import PreparedCall, plan
    from .api.reducing import all, any, argmax, argmin, cumsum, max, min, prod, reduce, scan, sum
    from .api.sorting import argsort, merge, merge_by_key, sort, sort_by_key, sort_inplace, top_k
    from .export.exporting import export
    from .external.progress import Progress
    from .machine import Capability, Limits, TargetInfo
    from .targets.base import Target
    from .targets.registry import Unavailable, target, targets
    from .tuning import forget_tuning, tune
    from .types.dtypes import key_for, number_for
    from .types.errors import (
        CapabilityError,
        DeviceLostError,
        DeviceMemoryError,
        DiskFullError,
        FileChangedError,
        GpusortError,
        InvalidArgumentError,
        RankFailedError,
        TargetUnavailableError,
        UnsupportedTypeError,
    )
    from .types.indices import SortOrder
    from .types.params import BitonicPolicy, RadixPolicy, ReducePolicy, ScanPolicy

__version__ = "0.1.0"

# An editable install leads here through a symbolic link; debuggers expect modules' real paths.
__path__[:] = [realpath(folder) for folder in __path__]

__all__ = [
    "Bitonic", "BitonicPolicy", "BitonicRows", "Capability", "CapabilityError", "DeviceLostError", "DeviceMemoryError",
    "DiskFullError", "FileChangedError", "GpusortError", "HostSort", "HostSortPolicy", "InvalidArgumentError", "Limits",
    "PreparedCall", "Progress", "Radix", "RadixPolicy", "RadixRows", "RankFailedError", "ReducePolicy", "ScanPolicy",
    "SerialRadix", "SerialRadixPolicy", "SortAlgorithm", "SortOrder", "Target", "TargetInfo", "TargetUnavailableError",
    "Unavailable", "UnsupportedTypeError", "all", "any", "argmax", "argmin", "argsort", "argsort_file", "cumsum",
    "export", "forget_tuning", "key_for", "max", "merge", "merge_by_key", "min", "multi", "number_for", "plan", "prod",
    "reduce", "scan", "sort", "sort_by_key", "sort_file", "sort_inplace", "sum", "target", "targets", "top_k", "tune",
    "webgpu",
]  # fmt: skip

# The module of each name, imported with its first use: most programs need few, and some are expensive to import.
_HOMES = {
    "algos.host_sort": "HostSort HostSortPolicy",
    "algos.radix_serial": "SerialRadix SerialRadixPolicy",
    "algos.sorts": "Bitonic BitonicRows Radix RadixRows SortAlgorithm",
    "api.files": "argsort_file sort_file",
    "api.prepared": "PreparedCall plan",
    "api.reducing": "all any argmax argmin cumsum max min prod reduce scan sum",
    "api.sorting": "argsort merge merge_by_key sort sort_by_key sort_inplace top_k",
    "external.progress": "Progress",
    "machine": "Capability Limits TargetInfo",
    "targets.base": "Target",
    "targets.registry": "Unavailable target",
    "tuning": "forget_tuning tune",
    "types.dtypes": "key_for number_for",
    "types.errors": "CapabilityError DeviceLostError DeviceMemoryError DiskFullError FileChangedError GpusortError "
    "InvalidArgumentError RankFailedError TargetUnavailableError UnsupportedTypeError",
    "types.indices": "SortOrder",
    "types.params": "BitonicPolicy RadixPolicy ReducePolicy ScanPolicy",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_MODULES = ("dask", "export", "multi", "targets", "webgpu")  # export and targets can be called, too


def _found(name: str) -> object:
    if name in _MODULES:
        return _imported(name)
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(_imported(home), name)
    globals()[name] = found
    return found


# By its name as text, so that type checkers, which know all names from above, object to any other.
globals()["__getattr__"] = _found


def _imported(home: str) -> object:
    """A module of this package. Not imported in the main thread: an interrupt would leave attrs half initialised."""
    return _import_uninterrupted(f"{__name__}.{home}")


def __dir__() -> list[str]:
    # Without dask: who asks for each of these, as help() does, may not have it.
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
