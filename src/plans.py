"""`gpusort plan`: the launches of a call on a machine of a kind, which need not be here."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from .kernel.launch import Launch, Schedule
from .machine import Capability, Limits, TargetInfo
from .operations.argsort import Argsort, SortPairs
from .operations.base import Operation
from .operations.merge import Merge
from .operations.reduce import Reduce, Reducer
from .operations.scan import Cumsum
from .operations.select import TopK
from .operations.sort import Sort
from .show import code_of
from .targets.registry import usual_info
from .types.checks import numbers_in
from .types.errors import InvalidArgumentError
from .types.memory import Workgroup
from .types.specs import Spec

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
    return [
        work.schedule(min(work.together, work.rows - first))
        for work in operation.works(given, info)
        for first in range(0, work.rows, max(1, work.together))
    ]


def launches_of(schedules: Sequence[Schedule]) -> list[str]:
    """Of each launch its kernel, the workgroups and the invocations of each, and a workgroup's memories; launches that
    are alike are counted."""
    told = Counter(_told(launch) for schedule in schedules for launch in schedule.launches)
    return [line if count == 1 else f"{line}, {count} times" for line, count in told.items()]


def _told(launch: Launch) -> str:
    memories = sum(one.items.nbytes for one in launch.arguments if isinstance(one, Workgroup))
    told = f"{launch.kernel.name}: {launch.grid.groups:,} x {launch.grid.group_size:,}"
    return f"{told}, {memories:,} bytes" if memories else told
