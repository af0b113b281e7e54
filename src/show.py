"""`gpusort show`: the code generated for a kernel by each target; `gpusort plan`: the launches of a call on machines
that need not be here. Neither needs a device."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from .algos.argsort import bitonic_argsort
from .algos.batch import Batch
from .algos.bitonic import bitonic_sort
from .algos.copy import Strided, copy_strided, copy_whole, take_rows, take_within
from .algos.layout import Layout
from .algos.merge import merge
from .algos.partition import partition
from .algos.radix_serial import SerialRadix
from .algos.radix_sorts import numbered, radix_sort
from .algos.reduce import reduce_rows
from .algos.reduce_axis import reduce_axis
from .algos.scan import scan_in_turn, scan_rows
from .algos.scan_axis import scan_axis
from .algos.select import ArgsortAndTake, SelectByParts, SelectBySamples, Selection, chosen_indices, top_k
from .algos.select_rows import PartPolicy
from .algos.select_sampled import SampledPolicy
from .algos.sort_parts import argsort_parts, sort_parts
from .algos.sorts import Bitonic, BitonicRows, Radix, RadixRows, bits_of
from .algos.ties import restore_ties
from .algos.words import write_elements, write_words
from .kernel.launch import Buffer, Grid, Launch, Role, Schedule
from .kernel.specialise import specialise
from .machine import Capability, Limits, TargetInfo
from .operations.argsort import Argsort, SortPairs
from .operations.base import Operation
from .operations.merge import Merge
from .operations.reduce import Reduce, Reducer
from .operations.scan import Cumsum
from .operations.select import TopK
from .operations.sort import Sort
from .targets.registry import FORMS, usual_info
from .types.checks import numbers_in
from .types.dtypes import ArrayKey, key_for, number_for
from .types.elements import dtype_of
from .types.errors import InvalidArgumentError, UnsupportedTypeError
from .types.finishes import AsItIs, finish_of
from .types.indices import Placement, ScanKind, SortOrder
from .types.keys import FloatKey, RankKey
from .types.memory import Workgroup
from .types.monoids import Maximum, Minimum, Sum
from .types.params import BitonicPolicy, MergePolicy, RadixPolicy, ReducePolicy, ScanPolicy
from .types.scalars import U32, U64
from .types.searches import ArgMin
from .types.specs import Spec

KEYS: dict[str, str] = {
    "bool": "?", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "f16": "f2", "f32": "f4", "f64": "f8", "datetime64": "M8[ns]", "timedelta64": "m8[ns]",
}  # fmt: skip

_LENGTH = 1 << 16  # long enough that schedules launch all their kernels
_COLUMNS = Layout(1, _LENGTH, 60, 0, 60, 1)
_SHORT_COLUMNS = Layout(1, 3, 1000, 0, 1000, 1)
_ROW = 60  # short enough for every kernel that sorts rows


@lru_cache(maxsize=16)
def launches_for(dtype: str) -> Mapping[str, Launch]:
    """An example launch of every kernel for this dtype, by the kernel's name."""
    found: dict[str, Launch] = {}
    key = key_for(dtype)
    extremes = [
        reduce_rows(m, 1, _LENGTH, ReducePolicy(), finish_of(m)) for m in (Minimum(key), Maximum(key), ArgMin(key))
    ]
    schedules = (*_sorts(key), *_sums(dtype), *extremes, *_selections(key), *_copies(key), *_ties(key))
    for launch in (*(launch for schedule in schedules for launch in schedule.launches), *_words(key)):
        found.setdefault(launch.kernel.name, launch)
    return found


def _sorts(key: ArrayKey) -> list[Schedule]:
    """One schedule of each algorithm to sort, argsort, sort pairs and merge."""
    order, ranks, bits = SortOrder.ASCENDING, RankKey(key), bits_of(key)
    sweeping = RadixPolicy(sweeps=True)
    rows = [sort.schedule(key, 2, _ROW, order, Placement.ELSEWHERE) for sort in (BitonicRows(), RadixRows())]
    return [
        bitonic_sort(key, 1, _LENGTH, order, BitonicPolicy()),
        *rows,
        sort_parts(key, (_LENGTH, _ROW), order, Bitonic(), BitonicPolicy()),
        bitonic_argsort(ranks, 1, _LENGTH, order, BitonicPolicy()),
        argsort_parts(ranks, (_LENGTH, _ROW), order, BitonicPolicy(), (Radix(RadixPolicy()), None)),
        BitonicRows().sort(Batch(ranks, 2, _ROW, order, places=U64)),
        BitonicRows().sort(Batch(key, 2, _ROW, order, value=U32)),
        radix_sort(Batch(key, 1, _LENGTH, order), RadixPolicy(), bits),
        radix_sort(Batch(key, 2, _LENGTH, order), RadixPolicy(), bits),  # with prefix sums
        radix_sort(Batch(key, 1, _LENGTH, order), sweeping, bits),
        radix_sort(Batch(key, 2, _LENGTH, order), sweeping, bits),
        radix_sort(Batch(ranks, 1, _LENGTH, order, places=U64), sweeping, bits),
        numbered(_LENGTH, U32),
        SerialRadix().schedule(key, 1, _LENGTH, order, Placement.ELSEWHERE),
        merge(key, _LENGTH, _LENGTH, order, MergePolicy(128, 7)),
        merge(key, _LENGTH, _LENGTH, order, MergePolicy(128, 7), U32),
        merge(key, _LENGTH, _LENGTH, order, MergePolicy(1, 127), U32),
        partition(key, _LENGTH, _LENGTH, order, ScanPolicy(128, 7, subgroups=True)),
    ]


def _sums(dtype: str) -> list[Schedule]:
    try:
        total = Sum(number_for(dtype))
    except UnsupportedTypeError:  # dates have no sum
        return []
    return [
        reduce_rows(total, 1, _LENGTH, ReducePolicy()),
        reduce_axis(total, _COLUMNS, ReducePolicy()),
        reduce_axis(total, _SHORT_COLUMNS, ReducePolicy(items=4, alone=True)),
        scan_rows(total, 1, _LENGTH, ScanKind.INCLUSIVE, ScanPolicy()),
        scan_axis(total, _COLUMNS, ScanKind.INCLUSIVE, ScanPolicy()),
        scan_axis(total, _SHORT_COLUMNS, ScanKind.INCLUSIVE, ScanPolicy(items=4, alone=True)),
        scan_in_turn(total, 1, _LENGTH, 1, ScanKind.INCLUSIVE, ScanPolicy(), AsItIs(total.state)),
    ]


def _selections(key: ArrayKey) -> list[Schedule]:
    parts = SelectByParts(PartPolicy(64, 2, 32, 40))
    samples = SelectBySamples(
        SampledPolicy(samples=64, group_size=64, ranked=32, filter_group=64, items=2, few=64, sorted_from=10)
    )
    ways: list[tuple[int, Selection]] = [(8, parts), (3, samples), (20, samples), (8, ArgsortAndTake())]
    selections = [top_k(key, 1, _LENGTH, k, SortOrder.DESCENDING, selection) for k, selection in ways]
    return [*selections, chosen_indices(1, 8, _ROW, 32, _LENGTH)]


def _copies(key: ArrayKey) -> list[Schedule]:
    shape, count = (12, 20), 12 * 20  # so long both ways that it is transposed by tiles
    rows, columns = Strided(0, (20, 1), count), Strided(0, (1, 12), count)
    spread = Strided(0, (40, 2), 2 * count)
    data, other = (
        Buffer(name, key.element, _ROW, role) for name, role in (("data", Role.INPUT), ("other", Role.OUTPUT))
    )
    return [
        Schedule((data, other), (copy_whole(data, other),)),
        copy_strided(key.element, shape, rows, columns),
        copy_strided(key.element, shape, rows, spread),
        take_rows(dtype_of(key.element).itemsize, 1, _ROW, 5),
        take_within(dtype_of(key.element).itemsize, 0, _ROW, 5),
    ]


def _ties(key: ArrayKey) -> list[Schedule]:
    """Tie restoration, which only floats need."""
    if not isinstance(key, FloatKey):
        return []
    return [restore_ties(key, *rows, SortOrder.ASCENDING, ScanPolicy()) for rows in ((2, _ROW), (1, _LENGTH))]


def _words(key: ArrayKey) -> list[Launch]:
    one, order = Grid(1, 1), SortOrder.ASCENDING
    elements, words = Buffer("elements", key.element, 1, Role.INOUT), Buffer("words", key.word, 1, Role.INOUT)
    return [
        write_words.launch(one, key, elements, words, order),
        write_elements.launch(one, key, words, elements, order),
    ]


def kernel_names() -> tuple[str, ...]:
    """The names of all kernels, some of which exist for floats only."""
    return tuple({**launches_for("u4"), **launches_for("f4")})


def code_of(key: str) -> str:
    """NumPy's code of a dtype that `--key` names."""
    if key not in KEYS:
        raise InvalidArgumentError(f"--key: expected one of {', '.join(KEYS)}, found {key!r}")
    return KEYS[key]


def text_of(kernel: str, key: str, form: str) -> str:
    """A kernel's code. Raises InvalidArgumentError if there is none for the key."""
    launches = launches_for(code_of(key))
    if kernel not in launches:
        raise InvalidArgumentError(f"KERNEL: {kernel!r} is not made for {key}; there are {', '.join(launches)}")
    return FORMS[form](specialise(launches[kernel]))


_MOST_BYTES = 1 << 40
_KERNELS = frozenset(Capability) - {Capability.HOST_SORT}
MACHINES = {
    "cuda": TargetInfo("cuda", "an H200", "", Limits(1024, 227 << 10, (1 << 31) - 1, 1 << 36, 256, 32, 32), _KERNELS),
    "vulkan": TargetInfo(
        "wgsl", "an H200, by Vulkan", "", Limits(1024, 48 << 10, 1 << 31, 1 << 31, 8, 32, 32),
        frozenset({Capability.SUBGROUPS}),
    ),
    "webgpu": usual_info("wgsl"), "cpu": usual_info("cpu"),
}  # fmt: skip
CALLS: Mapping[str, Callable[[argparse.Namespace], Operation]] = {
    "sort": lambda said: Sort(said.axis, stable=said.stable), "argsort": lambda said: Argsort(said.axis),
    "sort_by_key": lambda _: SortPairs(), "merge": lambda _: Merge(), "top_k": lambda said: TopK(said.k, said.axis),
    "sum": lambda said: Reduce(axis=said.axis), "cumsum": lambda said: Cumsum(said.axis),
    "argmin": lambda said: Reduce(axis=said.axis, reducer=Reducer.ARGMIN),
}  # fmt: skip


def schedules_of(options: argparse.Namespace) -> list[Schedule]:
    """What the machine that the command's options name runs for the call that they name, on arrays of one shape and
    dtype: once more for the rows that do not go together. Raises InvalidArgumentError for one that says nothing."""
    make, info, lengths = CALLS.get(options.function), MACHINES.get(options.on), numbers_in(options.shape.split(","))
    if info is None:
        raise InvalidArgumentError(f"--on: expected one of {', '.join(MACHINES)}, found {options.on!r}")
    if make is None:
        raise InvalidArgumentError(f"FUNCTION: expected one of {', '.join(CALLS)}, found {options.function!r}")
    dtype = np.dtype(code_of(options.key))
    if lengths is None:
        raise InvalidArgumentError(f"--shape: expected sizes such as 1000,300, found {options.shape!r}")
    if prod(lengths) * dtype.itemsize > _MOST_BYTES:  # the launches are made, each of them
        raise InvalidArgumentError(f"--shape: expected at most {_MOST_BYTES:,} bytes, found {options.shape!r}")
    if not -len(lengths) <= options.axis < len(lengths):
        raise InvalidArgumentError(f"--axis: expected one of {len(lengths)} axes, found {options.axis}")
    operation = make(options)
    given = (Spec(tuple(lengths), dtype),) * len(operation.names)
    operation.outputs(*given)
    return [work.schedule(count) for work in operation.works(given, info) for _, count in work.batches]


def launches_of(schedules: Sequence[Schedule]) -> list[str]:
    """Of each launch its kernel, the workgroups and the invocations of each, and a workgroup's memories; launches that
    are alike are counted."""
    told = Counter(_told(launch) for schedule in schedules for launch in schedule.launches)
    return [line if count == 1 else f"{line}, {count} times" for line, count in told.items()]


def _told(launch: Launch) -> str:
    memories = sum(one.items.nbytes for one in launch.arguments if isinstance(one, Workgroup))
    told = f"{launch.kernel.name}: {launch.grid.groups:,} x {launch.grid.group_size:,}"
    return f"{told}, {memories:,} bytes" if memories else told
