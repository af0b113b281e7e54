"""`gpusort show`: the code generated for a kernel by each target; `gpusort plan`: the launches of a call on machines
that need not be here. Neither needs a device."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from inspect import isfunction, signature
from itertools import product
from math import prod
from typing import cast

import attrs
import numpy as np

from .algos.copy import Strided, copy_strided, copy_whole
from .algos.partition import partition
from .algos.radix_serial import SerialRadix
from .algos.radix_sorts import numbered, widened
from .algos.sorts import Bitonic
from .algos.words import write_elements, write_words
from .api import reducing, sorting
from .api.plan import most_scratch
from .arrays.kinds import ArrayKind
from .arrays.registry import KNOWN
from .export.request import named
from .kernel.ir import Space
from .kernel.kernel import Kernel
from .kernel.launch import Buffer, Grid, Launch, Role, Schedule
from .kernel.specialise import specialise
from .machine import Capability, Limits, TargetInfo
from .operations.base import Operation, Works
from .targets.registry import FORMS, usual_info
from .types.checks import check_like, numbers_in, require_taken
from .types.dtypes import ArrayKey, key_for
from .types.elements import dtype_of
from .types.errors import GpusortError, InvalidArgumentError
from .types.indices import Placement, SortOrder
from .types.params import ScanPolicy
from .types.scalars import U32
from .types.specs import Memory, Spec

KEYS: dict[str, str] = {
    "bool": "?", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "f16": "f2", "f32": "f4", "f64": "f8", "datetime64": "M8[ns]", "timedelta64": "m8[ns]",
}  # fmt: skip

_LENGTH = 1 << 16
# Of examples, with the axis: between them, calls on these take every kernel that a call has.
_LONG, _WIDE = (1 << 17,), (3, 1 << 17)
_SHAPES = (((300,), -1), (_LONG, -1), ((300, 300), 0), (_WIDE, -1), (_WIDE, 0), ((1000, 1100), -1), ((1 << 15, 60), -1))


@lru_cache(maxsize=16)
def launches_for(dtype: str) -> Mapping[str, Launch]:
    """An example launch of every kernel for this dtype, by the kernel's name."""
    found: dict[str, Launch] = {}
    for launch in (*_apart_from_calls(key_for(dtype)), *_of_calls(np.dtype(dtype))):
        found.setdefault(launch.kernel.name, launch)
    return found


def _of_calls(dtype: np.dtype[np.generic]) -> Iterator[Launch]:
    """What machines launch for calls, with workgroups as every device has; of one, bindings hold half a row."""
    machines = [_evolved(info, group_size=256) for info in MACHINES.values()]
    short = _evolved(MACHINES["webgpu"], storage_bytes=prod(_LONG) // 2 * dtype.itemsize)
    for info, (shape, axis) in [*product(machines, _SHAPES), (short, (_LONG, -1))]:
        settings = [{"axis": axis, "k": k, "stable": k == 8} for k in (8, 100, 5000)]
        for operation in dict.fromkeys(operation_of(call, said) for call, said in product(CALLS, settings)):
            with suppress(GpusortError):  # of sums of dates, of more elements than there are
                for schedule in schedules_of(_works(operation, shape, dtype, info)):
                    yield from schedule.launches


def _evolved(info: TargetInfo, **limits: int) -> TargetInfo:
    return attrs.evolve(info, limits=attrs.evolve(info.limits, **limits))


def _apart_from_calls(key: ArrayKey) -> Iterator[Launch]:
    """Sorts that are to be asked for, and parts of calls that are no launches of theirs on one device."""
    one, order = Grid(1, 1), SortOrder.ASCENDING
    elements, words = Buffer("elements", key.element, 1, Role.INOUT), Buffer("words", key.word, 1, Role.INOUT)
    limits = MACHINES["webgpu"].limits
    shape, count = (12, 20), 12 * 20  # so long both ways that it is transposed by tiles
    rows, columns, spread = Strided(0, (20, 1), count), Strided(0, (1, 12), count), Strided(0, (40, 2), 2 * count)
    for schedule in (
        Bitonic().schedule(key, 1, _LENGTH, order),
        SerialRadix().schedule(key, 1, _LENGTH, order, Placement.ELSEWHERE),
        partition(key, _LENGTH, _LENGTH, order, ScanPolicy(128, 7, subgroups=True)),
        copy_strided(key.element, shape, rows, columns, limits=limits),
        copy_strided(key.element, shape, rows, spread, limits=limits),
        numbered(_LENGTH, U32, limits=limits),
        widened(_LENGTH, limits=limits),
    ):
        yield from schedule.launches
    yield copy_whole(elements, Buffer("copies", key.element, 1, Role.OUTPUT))
    yield write_words.launch(one, key, elements, words, order)
    yield write_elements.launch(one, key, words, elements, order)


def kernel_names() -> tuple[str, ...]:
    """The names of all kernels, some of which exist for floats only."""
    return tuple({**launches_for("u4"), **launches_for("f4")})


def code_of(key: str, others: str = "") -> str:
    """NumPy's code of a dtype that `--key` names."""
    if key not in KEYS:
        raise InvalidArgumentError(f"--key: expected one of {', '.join(KEYS)}{others}, found {key!r}")
    return KEYS[key]


def text_of(kernel: str, key: str, form: str) -> str:
    """A kernel's code. Raises InvalidArgumentError if there is none for the key."""
    launches = launches_for(code_of(key))
    if kernel not in launches:
        raise InvalidArgumentError(f"KERNEL: {kernel!r} is not made for {key}; there are {', '.join(launches)}")
    return FORMS[form](specialise(launches[kernel]))


def own_text(name: str, form: str) -> str:
    """The code of each kernel of a caller's schedule, which "module:attribute" is, or makes of a length."""
    (found,) = named("KERNEL", (name,)).values()
    made = found(_LENGTH) if callable(found) and not isinstance(found, Kernel) else found
    if not isinstance(made, Schedule):
        raise InvalidArgumentError(
            f"KERNEL: expected a Schedule, or a function of a length that makes one, for {name!r}, found {made!r}"
        )
    return "\n".join(dict.fromkeys(FORMS[form](specialise(launch)) for launch in made.launches))


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


class _Found(Exception):
    """The operation that a call asks for. It is raised, as the function is not to do anything with results."""


class _Asked(ArrayKind["_Asked"]):
    """Stands for an array in such a call."""

    is_deferred = True

    def spec(self, name: str, array: _Asked) -> Spec:
        raise NotImplementedError

    def deferred(self, operation: object, target: object, arrays: tuple[_Asked, ...]) -> object:
        raise _Found(operation)


_EXAMPLES = {"k": 10}  # of settings without a default
_OTHERS = ("sort_inplace", "reduce", "scan")  # which give nothing back, or take a monoid
# The public functions by name. Of kernels that several launch, the first one's is the example.
CALLS: Mapping[str, Callable[..., object]] = {
    name: function
    for module in (sorting, reducing)
    for name, function in vars(module).items()
    if isfunction(function) and function.__module__ == module.__name__ and name[0] != "_" and name not in _OTHERS
}


def operation_of(call: str, settings: Mapping[str, object]) -> Operation:
    """What a call asks for, with those of the settings that it takes."""
    function, settings, asked = CALLS[call], {**_EXAMPLES, **settings}, _Asked()
    KNOWN[_Asked] = asked
    takes = signature(function).parameters.values()
    arrays = [asked for one in takes if one.kind is one.POSITIONAL_ONLY]
    said = {one.name: settings[one.name] for one in takes if one.name in settings}
    try:
        function(*arrays, **said)
    except _Found as found:
        return cast(Operation, found.args[0])
    raise InvalidArgumentError(f"FUNCTION: {call} asks for no operation on arrays")


def works_of(options: argparse.Namespace) -> Works:
    """What the machine that the command's options name runs for the call that they name, on arrays of one shape and
    dtype: once more for the rows that do not go together. Raises InvalidArgumentError for one that says nothing."""
    call, info, lengths = options.function, MACHINES.get(options.on), numbers_in(options.shape.split(","))
    if info is None:
        raise InvalidArgumentError(f"--on: expected one of {', '.join(MACHINES)}, found {options.on!r}")
    if call not in CALLS:
        raise InvalidArgumentError(f"FUNCTION: expected one of {', '.join(CALLS)}, found {call!r}")
    key = next(iter(named("--key", (options.key,)).values())) if ":" in options.key else None
    if key is not None:
        check_like("key", key)
    dtype = np.dtype(code_of(options.key, " or module:attribute")) if key is None else dtype_of(key.element)
    if lengths is None:
        raise InvalidArgumentError(f"--shape: expected sizes such as 1000,300, found {options.shape!r}")
    if prod(lengths) * dtype.itemsize > _MOST_BYTES:  # the launches are made, each of them
        raise InvalidArgumentError(f"--shape: expected at most {_MOST_BYTES:,} bytes, found {options.shape!r}")
    told = {"axis": options.axis, "stable": options.stable, "k": options.k, "key": key}
    settings = {name: value for name, value in told.items() if value is not None}
    for name in settings:
        takers = [one for one, function in CALLS.items() if name in signature(function).parameters]
        require_taken(f"--{name}", getattr(options, name), takers, (call,))
    if not -len(lengths) <= settings.get("axis", 0) < len(lengths):
        raise InvalidArgumentError(f"--axis: expected one of {len(lengths)} axes, found {options.axis}")
    return _works(operation_of(call, settings), tuple(lengths), dtype, info)


def _works(operation: Operation, shape: tuple[int, ...], dtype: np.dtype[np.generic], info: TargetInfo) -> Works:
    where = {"cuda": Memory.CUDA, "wgsl": Memory.WEBGPU}.get(info.name, Memory.HOST)
    given = (Spec(shape, dtype, where),) * len(operation.names)
    operation.outputs(*given)
    return operation.works(given, info)


def schedules_of(works: Works) -> list[Schedule]:
    return [work.schedule(count) for work in works for _, count in work.batches]


def temporary_bytes(works: Works, schedules: Sequence[Schedule]) -> int:
    """What lies between works, and the most scratch that one of their schedules takes."""
    return most_scratch(schedules) + sum(prod(one.shape) * one.dtype.itemsize for one in works.between)


def launches_of(schedules: Sequence[Schedule]) -> list[str]:
    """Of each launch its kernel, the workgroups and the invocations of each, and a workgroup's memories; launches that
    are alike are counted."""
    told = Counter(_told(launch) for schedule in schedules for launch in schedule.launches)
    return [line if count == 1 else f"{line}, {count} times" for line, count in told.items()]


def _told(launch: Launch) -> str:
    touched = [one for one in specialise(launch).program.memories if one.space is Space.WORKGROUP]
    memories = sum((one.length or 0) * one.type.size for one in touched)
    told = f"{launch.kernel.name}: {launch.grid.groups:,} x {launch.grid.group_size:,}"
    return f"{told}, {memories:,} bytes" if memories else told
