"""Autotuning results of the user's machine: rules that precede those of the table, in the cache directory, a JSON file
for each adapter. A file that is not such a table is ignored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
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
_unkept: dict[str, bytes] = {}  # tables that could not be written to the cache directory, for this process


def tuned_host_sort(target: str, adapter: str) -> HostSort:
    """HostSort with the thresholds measured on this machine, else the default ones."""
    found = [line.algorithm for line in tuned_rules(target, adapter) if isinstance(line.algorithm, HostSort)]
    return found[0] if found else HostSort()


@lru_cache(maxsize=64)
def tuned_rules(target: str, adapter: str) -> tuple[SortRule, ...]:
    """The rules measured for an adapter; none if it was not tuned."""
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
    """The capabilities that an algorithm requires: a driver update may have removed some since it was measured."""
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

    policy: Mapping[str, Any] = entry["policy"]
    made: dict[str, Callable[[], SortAlgorithm]] = {
        "Radix": lambda: Radix(RadixPolicy(**policy)), "Bitonic": lambda: Bitonic(BitonicPolicy(**policy)),
        "HostSort": lambda: HostSort(HostSortPolicy(**policy)),
    }  # fmt: skip
    return made[entry["name"]]()


def keep_sorts(info: TargetInfo, lines: Sequence[SortRule]) -> Path | None:
    """Stores the rules for an adapter, replacing earlier ones; the file's path, or None if it could not be written."""
    from .sorts import Bitonic, Radix

    entries: list[dict[str, object]] = []
    for line in lines:
        kept = line.algorithm
        assert isinstance(kept, Radix | Bitonic | HostSort), kept
        policy = attrs.asdict(kept.policy)
        if isinstance(kept, HostSort):  # other thresholds stay the package's defaults, also after an update
            policy = {name: policy[name] for name in MEASURED}
        algorithm = {"name": type(kept).__name__, "policy": policy}
        lengths = [line.lengths.start, line.lengths.stop]
        entries.append({"bits": list(line.bits), "lengths": lengths, "algorithm": algorithm})
    return write(info.name, info.adapter, {"sorts": entries})


def read(target: str, adapter: str) -> dict[str, Any]:
    """The stored table of an adapter; empty if there is none."""
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
    """Stores a table for an adapter; its path. If it cannot be written, returns None, and this process keeps it."""
    name = _name(target, adapter)
    content = json.dumps({"format": _FORMAT, "target": target, "adapter": adapter, **table}, indent=1).encode()
    path = cache.write(_KIND, name, content)
    if path is None:
        _unkept[name] = content
    else:
        _unkept.pop(name, None)
    tuned_rules.cache_clear()
    return path


def forget(target: str, adapter: str) -> None:
    """Removes the table of an adapter."""
    name = _name(target, adapter)
    _unkept.pop(name, None)
    cache.remove(_KIND, name)
    tuned_rules.cache_clear()


def _name(target: str, adapter: str) -> str:
    return f"{target}-{hashlib.sha256(adapter.encode()).hexdigest()[:12]}.json"
