"""gpusort: sort, reduce, scan and top-k on GPUs and CPUs, with kernels written once in typed Python."""

from __future__ import annotations

from importlib import import_module
from os.path import realpath
from typing import TYPE_CHECKING

# First, so that its fork handlers are registered before anything else is set up.
from . import forks as _forks  # noqa: F401  # pyright: ignore[reportUnusedImport]  # it registers itself

if TYPE_CHECKING:
    from . import multi as multi
    from . import webgpu as webgpu
    from .algos.host_sort import HostSort as HostSort
    from .algos.host_sort import HostSortPolicy as HostSortPolicy
    from .algos.radix_serial import SerialRadix as SerialRadix
    from .algos.radix_serial import SerialRadixPolicy as SerialRadixPolicy
    from .algos.sorts import Bitonic as Bitonic
    from .algos.sorts import BitonicRows as BitonicRows
    from .algos.sorts import Radix as Radix
    from .algos.sorts import RadixRows as RadixRows
    from .algos.sorts import SortAlgorithm as SortAlgorithm
    from .api.files import argsort_file as argsort_file
    from .api.files import sort_file as sort_file
    from .api.prepared import PreparedCall as PreparedCall
    from .api.prepared import plan as plan
    from .api.reducing import all as all
    from .api.reducing import any as any
    from .api.reducing import argmax as argmax
    from .api.reducing import argmin as argmin
    from .api.reducing import cumsum as cumsum
    from .api.reducing import max as max
    from .api.reducing import min as min
    from .api.reducing import prod as prod
    from .api.reducing import reduce as reduce
    from .api.reducing import scan as scan
    from .api.reducing import sum as sum
    from .api.sorting import argsort as argsort
    from .api.sorting import merge as merge
    from .api.sorting import merge_by_key as merge_by_key
    from .api.sorting import sort as sort
    from .api.sorting import sort_by_key as sort_by_key
    from .api.sorting import sort_inplace as sort_inplace
    from .api.sorting import top_k as top_k
    from .export.exporting import export as export
    from .external.progress import Progress as Progress
    from .machine import Capability as Capability
    from .machine import Limits as Limits
    from .machine import TargetInfo as TargetInfo
    from .targets.base import Target as Target
    from .targets.registry import Unavailable as Unavailable
    from .targets.registry import target as target
    from .targets.registry import targets as targets
    from .tuning import forget_tuning as forget_tuning
    from .tuning import tune as tune
    from .types.dtypes import key_for as key_for
    from .types.dtypes import number_for as number_for
    from .types.errors import CapabilityError as CapabilityError
    from .types.errors import DeviceLostError as DeviceLostError
    from .types.errors import DeviceMemoryError as DeviceMemoryError
    from .types.errors import DiskFullError as DiskFullError
    from .types.errors import FileChangedError as FileChangedError
    from .types.errors import GpusortError as GpusortError
    from .types.errors import InvalidArgumentError as InvalidArgumentError
    from .types.errors import RankFailedError as RankFailedError
    from .types.errors import TargetUnavailableError as TargetUnavailableError
    from .types.errors import UnsupportedTypeError as UnsupportedTypeError
    from .types.indices import SortOrder as SortOrder
    from .types.params import BitonicPolicy as BitonicPolicy
    from .types.params import RadixPolicy as RadixPolicy
    from .types.params import ReducePolicy as ReducePolicy
    from .types.params import ScanPolicy as ScanPolicy

__version__ = "0.1.0"

# An editable install leads here through a symbolic link; debuggers expect modules' real paths.
__path__[:] = [realpath(folder) for folder in __path__]

# The module of each public name. Imported lazily, as most programs need few, and some are expensive to import.
_HOMES: dict[str, tuple[str, ...]] = {
    "algos.host_sort": ("HostSort", "HostSortPolicy"),
    "algos.radix_serial": ("SerialRadix", "SerialRadixPolicy"),
    "algos.sorts": ("Bitonic", "BitonicRows", "Radix", "RadixRows", "SortAlgorithm"),
    "api.sorting": ("argsort", "merge", "merge_by_key", "sort", "sort_by_key", "sort_inplace", "top_k"),
    "api.files": ("argsort_file", "sort_file"),
    "external.progress": ("Progress",),
    "api.prepared": ("PreparedCall", "plan"),
    "api.reducing": ("all", "any", "argmax", "argmin", "cumsum", "max", "min", "prod", "reduce", "scan", "sum"),
    "machine": ("Capability", "Limits", "TargetInfo"),
    "targets.base": ("Target",),
    "targets.registry": ("Unavailable", "target"),
    "tuning": ("forget_tuning", "tune"),
    "types.dtypes": ("key_for", "number_for"),
    "types.errors": (
        "CapabilityError",
        "DeviceLostError",
        "DeviceMemoryError",
        "DiskFullError",
        "FileChangedError",
        "GpusortError",
        "InvalidArgumentError",
        "RankFailedError",
        "TargetUnavailableError",
        "UnsupportedTypeError",
    ),
    "types.indices": ("SortOrder",),
    "types.params": ("BitonicPolicy", "RadixPolicy", "ReducePolicy", "ScanPolicy"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("export", "multi", "targets", "webgpu")  # export and targets can be called, too

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__ = [*_HOME_OF, *_MODULES]  # noqa: PLE0604  # strings they are, out of the table


def __getattr__(name: str) -> object:
    if name in _MODULES or name == "dask":
        return _imported(name)
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(_imported(home), name)
    globals()[name] = found
    return found


def _imported(home: str) -> object:
    """A module of this package. Not imported in the main thread: an interrupt would leave attrs half initialised."""
    from .targets.uninterrupted import import_uninterrupted

    import_uninterrupted(f"{__name__}.{home}")
    return import_module(f".{home}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_MODULES})
