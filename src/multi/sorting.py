"""Public functions of gpusort.multi: sorts over several devices of one process, or over several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import index
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar, cast

import numpy as np

from ..api.arguments import ORDERS, check_like, checked_flag
from ..types.dtypes import key_for
from ..types.errors import GpusortError, InvalidArgumentError, UnsupportedTypeError
from ..types.keys import SortableKey
from .agreement import REFUSED, agreed_lengths
from .communicators import communicator_of
from .driving import Communicator, drive_all, drive_one
from .memory import DeviceArray
from .ranks import RankArray, rank_arrays
from .sample_sort import SampleSortPolicy, sort_by_samples
from .work import IndexWork, PairsWork, Work

A = TypeVar("A")
B = TypeVar("B")
Sizes: TypeAlias = Literal["kept", "balanced"] | Sequence[int]
Keyed: TypeAlias = SortableKey[Any, Any] | None
_Maker: TypeAlias = Callable[[np.dtype[Any]], Work]

_SAMPLE_SORT = SampleSortPolicy()


def sort(
    parts: Sequence[A], /, *, descending: bool = False, stable: bool = False, key: Keyed = None, sizes: Sizes = "kept"
) -> list[A]:
    """Sorts the elements of several one-dimensional arrays, as `sort` does, into new arrays on the same devices.

    The first array gets the least elements. `sizes` says how many each gets: "kept" as many as before, "balanced" equal
    shares, or a list of numbers. Sizes are exact, whatever the data. The arrays are NumPy's, cupy's or torch's, each on
    a device of its own, or several on one.
    """
    make = _maker(Work, descending, key, stable)
    return cast("list[A]", [columns[0] for columns in _in_one_process(make, {"parts": parts}, sizes)])


def argsort(
    parts: Sequence[object], /, *, descending: bool = False, key: Keyed = None, sizes: Sizes = "kept"
) -> list[Any]:
    """The stable argsort of several arrays: int64 indices into their concatenation."""
    make = _maker(IndexWork, descending, key, True)
    return [columns[1] for columns in _in_one_process(make, {"parts": parts}, sizes)]


def sort_by_key(
    keys: Sequence[A], values: Sequence[B], /, *, descending: bool = False, key: Keyed = None, sizes: Sizes = "kept"
) -> tuple[list[A], list[B]]:
    """Sorts keys, and values by their keys, stably."""
    make = _maker(PairsWork, descending, key, False)
    found = _in_one_process(make, {"keys": keys, "values": values}, sizes)
    return cast("list[A]", [columns[0] for columns in found]), cast("list[B]", [columns[1] for columns in found])


def sort_shard(
    x: A, communicator: Communicator | object, /, *, descending: bool = False, stable: bool = False, key: Keyed = None,
    sizes: Sizes = "kept",
) -> A:  # fmt: skip
    """This process's part of the sorted elements of all processes, each of which has an array. A collective call.

    `communicator` is cupy's `NcclCommunicator`, a process group of torch.distributed, or any `Communicator`.
    """
    make = partial(_maker, Work, descending, key, stable)
    return cast(A, _in_many(make, {"x": x}, communicator, sizes)[0])


def argsort_shard(
    x: object,
    communicator: Communicator | object,
    /,
    *,
    descending: bool = False,
    key: Keyed = None,
    sizes: Sizes = "kept",
) -> Any:
    """`argsort` as a collective call: indices into the concatenation of all ranks' arrays."""
    return _in_many(partial(_maker, IndexWork, descending, key, True), {"x": x}, communicator, sizes)[1]


def sort_by_key_shard(
    keys: A, values: B, communicator: Communicator | object, /, *, descending: bool = False, key: Keyed = None,
    sizes: Sizes = "kept",
) -> tuple[A, B]:  # fmt: skip
    """`sort_by_key` as a collective call."""
    make = partial(_maker, PairsWork, descending, key, False)
    return cast("tuple[A, B]", _in_many(make, {"keys": keys, "values": values}, communicator, sizes))


# -- drivers ----------------------------------------------------------------------------------------------


def _maker(work: type[Work], descending: bool, key: Keyed, stable: bool) -> _Maker:
    if key is not None:
        check_like("key", key)
    order, is_stable = ORDERS[checked_flag("descending", descending)], checked_flag("stable", stable)
    return lambda dtype: work(dtype, order, key, is_stable)


def _in_one_process(make: _Maker, named: dict[str, Sequence[Any]], sizes: Sizes) -> list[tuple[object, ...]]:
    columns = [rank_arrays(name, parts) for name, parts in named.items()]
    ranks = list(zip(*columns, strict=True)) if len({len(column) for column in columns}) == 1 else None
    if ranks is None:
        raise InvalidArgumentError(
            f"values: expected {len(columns[0])} arrays, one for each of keys, found {len(columns[1])}"
        )
    for number, rank in enumerate(ranks):
        _require_alike(rank, f"[{number}]")
    work = make(ranks[0][0].spec.dtype)
    _require_ordered(work, f"{next(iter(named))}[0]")
    lengths = [rank[0].spec.size for rank in ranks]
    wanted = sizes_of(sizes, lengths)
    memories = [rank[0].memory for rank in ranks]
    shards = [
        sort_by_samples(work, memory, tuple(given.seen for given in rank), number, lengths, wanted, _SAMPLE_SORT)
        for number, (rank, memory) in enumerate(zip(ranks, memories, strict=True))
    ]
    found = drive_all(shards, memories)
    return [_given_back(rank, results) for rank, results in zip(ranks, found, strict=True)]


def _in_many(
    make: Callable[[], _Maker], named: dict[str, object], communicator: object, sizes: Sizes
) -> tuple[object, ...]:
    comm = communicator_of(communicator)
    try:
        given = tuple(RankArray.of(name, x) for name, x in named.items())
        _require_alike(given, "")
        work, wanted = make()(given[0].spec.dtype), _checked_sizes(sizes)
        _require_ordered(work, next(iter(named)))
    except GpusortError:
        comm.gather(REFUSED)  # else the other ranks would wait for this one
        raise
    memory = given[0].memory
    with memory.scope():
        call = (type(work).__name__, work.order.value, work.stable, type(work.key).__name__, wanted)
        lengths = agreed_lengths(comm, given[0].spec.size, (*call, *[one.spec.dtype.str for one in given]))
        columns = tuple(one.seen for one in given)
        shard = sort_by_samples(work, memory, columns, comm.rank, lengths, sizes_of(wanted, lengths), _SAMPLE_SORT)
        return _given_back(given, drive_one(shard, comm))


def sizes_of(sizes: Sizes, lengths: Sequence[int]) -> list[int]:
    """The number of elements that each rank gets. Raises InvalidArgumentError."""
    total, ranks, found = sum(lengths), len(lengths), _checked_sizes(sizes)
    if isinstance(found, str):
        balanced = [(total * (i + 1)) // ranks - total * i // ranks for i in range(ranks)]
        return list(lengths) if found == "kept" else balanced
    if len(found) != ranks or min(found) < 0 or sum(found) != total:
        raise InvalidArgumentError(f"sizes: expected {ranks} numbers that add up to {total}, found {list(found)}")
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


def _require_ordered(work: Work, name: str) -> None:
    """Raises UnsupportedTypeError if there is no order for the dtype, naming the argument."""
    if work.key is None:
        key_for(work.dtype, name)


def _require_alike(rank: Sequence[RankArray], where: str) -> None:
    for other in rank[1:]:
        if other.spec.shape != rank[0].spec.shape or other.spec.memory != rank[0].spec.memory:
            raise UnsupportedTypeError(
                f"values{where}: expected one for each key, on the same device; found shapes {rank[0].spec.shape} and "
                f"{other.spec.shape}"
            )


def _given_back(rank: Sequence[RankArray], results: tuple[DeviceArray, ...]) -> tuple[object, ...]:
    """Results as arrays of the callers' libraries; an argsort's indices as of the keys'."""
    return tuple(rank[min(number, len(rank) - 1)].given_back(result) for number, result in enumerate(results))
