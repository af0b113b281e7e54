"""Sorting, reducing and scanning on every machine from one typed Python kernel."""

from __future__ import annotations

from importlib import import_module
from os.path import realpath
from typing import TYPE_CHECKING

# Before anything that a forked child could find half done.
from . import forks as _forks  # noqa: F401  # pyright: ignore[reportUnusedImport]  # it registers itself

if TYPE_CHECKING:
    from .algos.sorts import Bitonic as Bitonic
    from .algos.sorts import BitonicRows as BitonicRows
    from .algos.sorts import Radix as Radix
    from .algos.sorts import RadixRows as RadixRows
    from .algos.sorts import SortAlgorithm as SortAlgorithm
    from .api import sort as sort
    from .api import sort_inplace as sort_inplace
    from .api_argsort import argsort as argsort
    from .api_argsort import sort_by_key as sort_by_key
    from .api_reduce import all as all
    from .api_reduce import any as any
    from .api_reduce import argmax as argmax
    from .api_reduce import argmin as argmin
    from .api_reduce import max as max
    from .api_reduce import min as min
    from .api_reduce import prod as prod
    from .api_reduce import reduce as reduce
    from .api_reduce import sum as sum
    from .api_scan import cumsum as cumsum
    from .api_scan import scan as scan
    from .targets.base import Capability as Capability
    from .targets.base import Limits as Limits
    from .targets.base import Target as Target
    from .targets.base import TargetInfo as TargetInfo
    from .targets.registry import Unavailable as Unavailable
    from .targets.registry import target as target
    from .targets.registry import targets as targets
    from .tuning import forget_tuning as forget_tuning
    from .tuning import tune as tune
    from .types.dtypes import key_for as key_for
    from .types.dtypes import number_for as number_for
    from .types.errors import CapabilityError as CapabilityError
    from .types.errors import DeviceLostError as DeviceLostError
    from .types.errors import GpusortError as GpusortError
    from .types.errors import InvalidArgumentError as InvalidArgumentError
    from .types.errors import TargetUnavailableError as TargetUnavailableError
    from .types.errors import UnsupportedTypeError as UnsupportedTypeError
    from .types.indices import SortOrder as SortOrder
    from .types.params import BitonicPolicy as BitonicPolicy
    from .types.params import RadixPolicy as RadixPolicy
    from .types.params import ReducePolicy as ReducePolicy
    from .types.params import ScanPolicy as ScanPolicy

__version__ = "0.1.0"

# An editable install leads here through a link. Modules are to be known by the file they lie in, where breakpoints are.
__path__[:] = [realpath(folder) for folder in __path__]

__all__ = [
    "Bitonic",
    "BitonicPolicy",
    "BitonicRows",
    "Capability",
    "CapabilityError",
    "DeviceLostError",
    "GpusortError",
    "InvalidArgumentError",
    "Limits",
    "Radix",
    "RadixPolicy",
    "RadixRows",
    "ReducePolicy",
    "ScanPolicy",
    "SortAlgorithm",
    "SortOrder",
    "Target",
    "TargetInfo",
    "TargetUnavailableError",
    "Unavailable",
    "UnsupportedTypeError",
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "cumsum",
    "forget_tuning",
    "key_for",
    "max",
    "min",
    "number_for",
    "prod",
    "reduce",
    "scan",
    "sort",
    "sort_by_key",
    "sort_inplace",
    "sum",
    "target",
    "targets",
    "tune",
]

# Where each name comes from. They are fetched when first used: most programs need few of them, and some cost much.
_HOMES: dict[str, tuple[str, ...]] = {
    "algos.sorts": ("Bitonic", "BitonicRows", "Radix", "RadixRows", "SortAlgorithm"),
    "api_argsort": ("argsort", "sort_by_key"),
    "api": ("sort", "sort_inplace"),
    "api_reduce": ("all", "any", "argmax", "argmin", "max", "min", "prod", "reduce", "sum"),
    "api_scan": ("cumsum", "scan"),
    "targets.base": ("Capability", "Limits", "Target", "TargetInfo"),
    "targets.registry": ("Unavailable", "target"),
    "tuning": ("forget_tuning", "tune"),
    "types.dtypes": ("key_for", "number_for"),
    "types.errors": (
        "CapabilityError",
        "DeviceLostError",
        "GpusortError",
        "InvalidArgumentError",
        "TargetUnavailableError",
        "UnsupportedTypeError",
    ),
    "types.indices": ("SortOrder",),
    "types.params": ("BitonicPolicy", "RadixPolicy", "ReducePolicy", "ScanPolicy"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "targets":  # the package of that name, which can be called
        return import_module(".targets", __name__)
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
