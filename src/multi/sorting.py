"""Public functions of gpusort.multi: sorts over several devices of one process, or over several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from operator import index
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar, cast

import attrs
import numpy as np

from ..api.arguments import checked_order
from ..operations.merge import MergeByKey
from ..types.checks import checked_flag
from ..types.dtypes import key_for
from ..types.errors import InvalidArgumentError
from ..types.keys import SortableKey
from ..types.scalars import Scalar
from .communicators import Communicator, agreed_lengths, communicator_of, tell_failure
from .driving import Interrupts, drive_all, drive_one
from .memory import RankArray, rank_arrays
from .sample_sort import sort_by_samples
from .shard import IndexWork, PairsWork, Runs, Work, merged

A = TypeVar("A")
B = TypeVar("B")
Sizes: TypeAlias = Literal["kept", "balanced"] | Sequence[int]
Keyed: TypeAlias = SortableKey[Any, Any] | None


def sort(
    parts: Sequence[A], /, *, descending: bool = False, stable: bool = False, key: Keyed = None, sizes: Sizes = "kept"
) -> list[A]:
    """Sorts the elements of several one-dimensional arrays, `parts`, into new arrays on the same devices.

    `descending`, `stable` and `key` are those of `gpusort.sort`. The first array gets the least elements. `sizes` says
    how many each gets: "kept" as many as before, "balanced" equal shares, or a list of numbers. Sizes are exact,
    whatever the data. The arrays are NumPy's, cupy's or torch's, each on a device of its own, or several on one.
    """
    found = _in_one_process(Work, {"parts": parts}, sizes, descending, key, stable)
    return [columns[0] for columns in found]


def argsort(
    parts: Sequence[object], /, *, descending: bool = False, key: Keyed = None, sizes: Sizes = "kept"
) -> list[Any]:
    """The stable argsort of several arrays: int64 indices into their concatenation. Arguments are as for `sort`."""
    found = _in_one_process(IndexWork, {"parts": parts}, sizes, descending, key, True)
    return [columns[1] for columns in found]


def sort_by_key(
    keys: Sequence[A], values: Sequence[B], /, *, descending: bool = False, key: Keyed = None, sizes: Sizes = "kept"
) -> tuple[list[A], list[B]]:
    """Sorts keys, and values by their keys, stably. Arguments are as for `sort`."""
    found = _in_one_process(PairsWork, {"keys": keys, "values": values}, sizes, descending, key)
    return [columns[0] for columns in found], [columns[1] for columns in found]


def sort_shard(
    x: A, communicator: Communicator | object, /, *, descending: bool = False, stable: bool = False, key: Keyed = None,
    sizes: Sizes = "kept",
) -> A:  # fmt: skip
    """This process's part of the sorted elements of all processes, each of which has an array. A collective call.

    `communicator` is cupy's `NcclCommunicator`, a process group of torch.distributed, or any `Communicator`. Where a
    process refuses its arguments or fails, the others raise an error, too. The rest is as for `sort`.
    """
    return cast(A, _in_many(Work, {"x": x}, communicator, sizes, descending, key, stable)[0])


def argsort_shard(
    x: object, communicator: Communicator | object, /, *, descending: bool = False, key: Keyed = None,
    sizes: Sizes = "kept",
) -> Any:  # fmt: skip
    """`argsort` as a collective call: indices into the concatenation of all ranks' arrays. Arguments are as for
    `sort_shard`."""
    return _in_many(IndexWork, {"x": x}, communicator, sizes, descending, key, True)[1]


def sort_by_key_shard(
    keys: A, values: B, communicator: Communicator | object, /, *, descending: bool = False, key: Keyed = None,
    sizes: Sizes = "kept",
) -> tuple[A, B]:  # fmt: skip
    """`sort_by_key` as a collective call. Arguments are as for `sort_shard`."""
    named = {"keys": keys, "values": values}
    found_keys, found_values = _in_many(PairsWork, named, communicator, sizes, descending, key)
    return found_keys, found_values


# -- drivers ----------------------------------------------------------------------------------------------


def _in_one_process(
    kind: type[Work], named: Mapping[str, Sequence[Any]], sizes: Sizes, descending: bool, key: Keyed,
    stable: bool = False,
) -> list[tuple[Any, ...]]:  # fmt: skip
    columns = [rank_arrays(name, parts) for name, parts in named.items()]
    if len(columns[0]) != len(columns[-1]):
        raise InvalidArgumentError(
            f"values: expected {len(columns[0])} arrays, one for each of keys, found {len(columns[1])}"
        )
    ranks = list(zip(*columns, strict=True))
    for number, rank in enumerate(ranks):
        _require_alike(rank, f"[{number}]")
    work = _checked_work(kind, ranks[0][0].spec.dtype, f"{next(iter(named))}[0]", descending, key, stable)
    lengths = [rank[0].spec.size for rank in ranks]
    wanted = sizes_of(sizes, lengths)
    memories = [rank[0].memory for rank in ranks]
    if len(ranks) > 1:
        _require_merged(work, ranks[0])
    shards = [
        sort_by_samples(work, memory, tuple(given.seen for given in rank), number, lengths, wanted)
        for number, (rank, memory) in enumerate(zip(ranks, memories, strict=True))
    ]
    found, made = drive_all(shards, memories), list[tuple[Any, ...]]()
    for rank, memory in zip(ranks, memories, strict=True):
        with memory.scope():
            made.append(_merged(work, found.pop(0), rank))  # nothing else holds its runs, which are freed on the way
    return made


def _in_many(
    kind: type[Work], named: Mapping[str, object], communicator: object, sizes: Sizes, descending: bool, key: Keyed,
    stable: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    comm, interrupts = communicator_of(communicator), Interrupts()
    with interrupts.held():
        try:
            with interrupts.let_in():
                given = [RankArray.of(name, x) for name, x in named.items()]
                _require_alike(given, "")
                work = _checked_work(kind, given[0].spec.dtype, next(iter(named)), descending, key, stable)
                if comm.size > 1:
                    _require_merged(work, given)
                wanted = _checked_sizes(sizes)
                memory, columns = given[0].memory, tuple(one.seen for one in given)
        except BaseException as error:
            tell_failure(comm, error)
            raise
        with memory.scope():
            call = type(work).__name__, work.order.value, work.stable, _told(work.key), wanted
            dtypes = [one.spec.dtype.str for one in given]
            lengths = agreed_lengths(comm, given[0].spec.size, (*call, memory.where.value, *dtypes))
            shard = sort_by_samples(work, memory, columns, comm.rank, lengths, sizes_of(wanted, lengths))
            runs = drive_one(shard, comm, memory, interrupts)
    with memory.scope():
        return _merged(work, runs, given)


def _merged(work: Work, runs: Runs, rank: Sequence[RankArray]) -> tuple[Any, ...]:
    """A rank's result as arrays of the caller's libraries; an argsort's indices as of the keys'."""
    return tuple(
        rank[min(number, len(rank) - 1)].given_back(result) for number, result in enumerate(merged(work, runs))
    )


def _told(value: object) -> object:
    """What a key is, in words that do not depend on the process: its class, and the fields of an attrs class."""
    kind = type(value)
    if attrs.has(kind):
        return kind.__qualname__, *[_told(getattr(value, field.name)) for field in attrs.fields(kind)]
    match value:
        case type():
            return value.__qualname__
        case tuple():
            return tuple(map(_told, cast("tuple[object, ...]", value)))
        case int() | float() | str() | bytes() | Enum() | Scalar():
            return repr(value)
        case _:
            return kind.__qualname__


# -- arguments --------------------------------------------------------------------------------------------


def _checked_work(
    kind: type[Work], dtype: np.dtype[Any], name: str, descending: bool, key: Keyed, stable: bool
) -> Work:  # fmt: skip
    if key is None:
        key_for(dtype, name)
    return kind(dtype, checked_order(descending, key), key, checked_flag("stable", stable))


def _require_merged(work: Work, given: Sequence[RankArray]) -> None:
    """Raises UnsupportedTypeError for values that cannot be merged in the end."""
    if len(given) > 1:
        MergeByKey(work.order, work.key).outputs(*[one.spec for one in given] * 2)


def sizes_of(sizes: Sizes, lengths: Sequence[int]) -> list[int]:
    """The number of elements that each rank gets. Raises InvalidArgumentError."""
    total, ranks, found = sum(lengths), len(lengths), _checked_sizes(sizes)
    if isinstance(found, str):
        balanced = [(total * (i + 1)) // ranks - total * i // ranks for i in range(ranks)]
        return list(lengths) if found == "kept" else balanced
    if len(found) != ranks or min(found) < 0 or sum(found) != total:
        raise InvalidArgumentError(f"sizes: expected {ranks} numbers that add up to {total}, found {found}")
    return list(found)


def _checked_sizes(sizes: Sizes) -> Sizes:
    """What of the sizes can be told without those of other ranks. Raises InvalidArgumentError."""
    if isinstance(sizes, str) and sizes in ("kept", "balanced"):
        return sizes
    try:
        return [index(cast(SupportsIndex, size)) for size in sizes]
    except TypeError as error:
        expected = "sizes: expected 'kept', 'balanced' or numbers"
        raise InvalidArgumentError(f"{expected}, found {sizes!r}") from error


def _require_alike(rank: Sequence[RankArray], where: str) -> None:
    first, last = rank[0].spec, rank[-1].spec
    if last.shape != first.shape or last.memory != first.memory:
        raise InvalidArgumentError(
            f"values{where}: expected one for each key, on the same device; found shapes {first.shape} and {last.shape}"
        )
