"""What was measured on the user's own machine: lines that come before those of the table, kept in the cache directory.

One file an adapter. A file that cannot be read as such a table is left alone, and does not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs

from ..disk_cache import cache
from ..machine import Capability, TargetInfo
from ..types.errors import GpusortError
from .host_sort import MEASURED, HostSort, HostSortPolicy

if TYPE_CHECKING:
    from .rules import SortRule
    from .sorts import SortAlgorithm

_FORMAT = 2
_KIND = "tuned"
_ONE = range(1, 2)
_unkept: dict[str, bytes] = {}  # what found no place in the cache directory


def tuned_rules(info: TargetInfo) -> tuple[SortRule, ...]:
    """The lines measured for an adapter; none where nothing was."""
    return _lines(info.name, info.adapter)


def tuned_host_sort(target: str, adapter: str) -> HostSort:
    """The host's own sort: as it was measured on this machine, or as it comes."""
    found = [line.algorithm for line in _lines(target, adapter) if isinstance(line.algorithm, HostSort)]
    return found[0] if found else HostSort()


@lru_cache(maxsize=64)
def _lines(target: str, adapter: str) -> tuple[SortRule, ...]:
    found = read(target, adapter).get("sorts", [])
    try:
        return tuple(_line(target, entry) for entry in found)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, GpusortError):
        return ()


def _line(target: str, entry: Mapping[str, Any]) -> SortRule:
    from .rules import SortRule

    lengths, bits = range(*map(int, entry["lengths"])), tuple(map(int, entry["bits"]))
    algorithm = _algorithm(entry["algorithm"])
    return SortRule(target, needs_of(algorithm), bits, lengths, _ONE, algorithm)


def needs_of(algorithm: SortAlgorithm) -> frozenset[Capability]:
    """What it cannot do without. An adapter may have less than when it was measured, by another driver."""
    if isinstance(algorithm, HostSort):
        return frozenset({Capability.HOST_SORT})
    from .sorts import Radix

    if not isinstance(algorithm, Radix):
        return frozenset()
    wanted = {Capability.SUBGROUPS: algorithm.policy.subgroups, Capability.FORWARD_PROGRESS: algorithm.policy.sweeps}
    return frozenset(capability for capability, is_needed in wanted.items() if is_needed)


def _algorithm(entry: Mapping[str, Any]) -> SortAlgorithm:
    from ..types.params import BitonicPolicy, RadixPolicy
    from .sorts import Bitonic, Radix

    match entry["name"]:
        case "Radix":
            return Radix(RadixPolicy(**entry["policy"]))
        case "Bitonic":
            return Bitonic(BitonicPolicy(**entry["policy"]))
        case "HostSort":
            return HostSort(HostSortPolicy(**entry["policy"]))
        case name:
            raise ValueError(f"no algorithm named {name!r} is kept in tables")


def keep_sorts(info: TargetInfo, lines: Sequence[SortRule]) -> Path | None:
    """Writes the lines for an adapter, in place of what was measured before."""
    from .sorts import Bitonic, Radix

    entries: list[dict[str, object]] = []
    for line in lines:
        kept = line.algorithm
        assert isinstance(kept, Radix | Bitonic | HostSort), kept
        policy = attrs.asdict(kept.policy)
        if isinstance(kept, HostSort):  # all else goes by what comes with the package, of whichever version
            policy = {name: policy[name] for name in MEASURED}
        algorithm = {"name": type(kept).__name__, "policy": policy}
        lengths = [line.lengths.start, line.lengths.stop]
        entries.append({"bits": list(line.bits), "lengths": lengths, "algorithm": algorithm})
    return write(info.name, info.adapter, {"sorts": entries})


def read(target: str, adapter: str) -> dict[str, Any]:
    """What is kept for an adapter; empty where nothing is."""
    name = _name(target, adapter)
    content = _unkept.get(name) or cache.read(_KIND, name)
    if content is None:
        return {}
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    table = cast("dict[str, Any]", found)
    return table if table.get("format") == _FORMAT and table.get("adapter") == adapter else {}


def write(target: str, adapter: str, table: Mapping[str, object]) -> Path | None:
    """Keeps a table for an adapter; where it lies. Where nothing can be kept, this process has it all the same."""
    name = _name(target, adapter)
    content = json.dumps({"format": _FORMAT, "target": target, "adapter": adapter, **table}, indent=1).encode()
    path = cache.write(_KIND, name, content)
    if path is None:
        _unkept[name] = content
    else:
        _unkept.pop(name, None)
    _lines.cache_clear()
    return path


def forget(target: str, adapter: str) -> bool:
    """Removes what is kept for an adapter. Whether there was anything."""
    name = _name(target, adapter)
    had = _unkept.pop(name, None) is not None
    removed = cache.remove(_KIND, name)
    _lines.cache_clear()
    return had or removed


def _name(target: str, adapter: str) -> str:
    return f"{target}-{hashlib.sha256(adapter.encode()).hexdigest()[:12]}.json"
