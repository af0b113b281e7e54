"""What was measured on the user's own machine: lines that come before those of the table, kept in the cache directory.

One file an adapter. A file that cannot be read as such a table is left alone, and does not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import attrs

from ..targets.base import TargetInfo
from ..targets.cache import cache_directory, write_atomically
from ..types.params import BitonicPolicy, RadixPolicy
from .sorts import Bitonic, Radix, SortAlgorithm
from .table import SortLine

_FORMAT = 2
_ONE = range(1, 2)


def tuned_lines(info: TargetInfo) -> tuple[SortLine, ...]:
    """The lines measured for an adapter; none where nothing was."""
    return _lines(info.name, info.adapter)


@lru_cache(maxsize=64)
def _lines(target: str, adapter: str) -> tuple[SortLine, ...]:
    found = read(target, adapter).get("sorts", [])
    try:
        return tuple(_line(target, entry) for entry in found)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return ()


def _line(target: str, entry: Mapping[str, Any]) -> SortLine:
    lengths, bits = range(*map(int, entry["lengths"])), tuple(map(int, entry["bits"]))
    return SortLine(target, frozenset(), bits, lengths, _ONE, _algorithm(entry["algorithm"]))


def _algorithm(entry: Mapping[str, Any]) -> SortAlgorithm:
    match entry["name"]:
        case "Radix":
            return Radix(RadixPolicy(**entry["policy"]))
        case "Bitonic":
            return Bitonic(BitonicPolicy(**entry["policy"]))
        case name:
            raise ValueError(f"no algorithm named {name!r} is kept in tables")


def keep_sorts(info: TargetInfo, lines: Sequence[SortLine]) -> Path:
    """Writes the lines for an adapter, in place of what was measured before."""
    entries: list[dict[str, object]] = []
    for line in lines:
        kept = line.algorithm
        assert isinstance(kept, Radix | Bitonic), kept
        algorithm = {"name": type(kept).__name__, "policy": attrs.asdict(kept.policy)}
        lengths = [line.lengths.start, line.lengths.stop]
        entries.append({"bits": list(line.bits), "lengths": lengths, "algorithm": algorithm})
    return write(info.name, info.adapter, {"sorts": entries})


def read(target: str, adapter: str) -> dict[str, Any]:
    """What is kept for an adapter; empty where nothing is."""
    try:
        found: object = json.loads(_path(target, adapter).read_text())
    except (OSError, RecursionError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    table = cast("dict[str, Any]", found)
    return table if table.get("format") == _FORMAT and table.get("adapter") == adapter else {}


def write(target: str, adapter: str, table: Mapping[str, object]) -> Path:
    """Keeps a table for an adapter; where it lies."""
    path = _path(target, adapter)
    path.parent.mkdir(exist_ok=True)
    content = {"format": _FORMAT, "target": target, "adapter": adapter, **table}
    write_atomically(path, json.dumps(content, indent=1).encode())
    _lines.cache_clear()
    return path


def forget(target: str, adapter: str) -> bool:
    """Removes what is kept for an adapter. Whether there was anything."""
    try:
        _path(target, adapter).unlink()
    except FileNotFoundError:
        return False
    finally:
        _lines.cache_clear()
    return True


def _path(target: str, adapter: str) -> Path:
    return cache_directory() / "tuned" / f"{target}-{hashlib.sha256(adapter.encode()).hexdigest()[:12]}.json"
