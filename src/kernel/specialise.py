"""Specialisation: the Program for a launch, memoised by the kernel and the kinds of its arguments. The arguments are
split into memories, run-time parameters and compile-time values, and the reader reads the kernel with these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from weakref import WeakKeyDictionary

import attrs

from ..forks import OwnLock
from ..types.bounded import Bounded
from ..types.elements import fields_of
from ..types.errors import InvalidArgumentError
from ..types.layout import Type
from ..types.memory import Workgroup
from ..types.scalars import Scalar
from . import ir
from .builder import KernelBuilder
from .captures import Captures
from .launch import Buffer, Launch, Step, has_scalars, is_buffer, kind_of
from .memories import new_array
from .passes.walk import memories_in
from .reader import Reader
from .source import source_of
from .span import Span
from .values import InvocationValue, MemoryValue, StructValue, Value, has_number, of_object
from .verify import verify

_MOST_PROGRAMS = 1 << 10  # as many as plans: what a function defines anew in each call is of another kind each time
_programs: Bounded[object, tuple[_Reading, ...]] = Bounded(_MOST_PROGRAMS)  # by kind; the newest reading first
_captures: WeakKeyDictionary[ir.Program, Captures] = WeakKeyDictionary()
_lock = OwnLock()
_MOST_READINGS = 8  # cached for one key, where captured variables change


@attrs.frozen
class _Reading:
    """A program, and the captures that it is valid for."""

    program: ir.Program
    touched: tuple[int, ...]  # indices of the launch's buffers that it accesses; others are not bound
    captures: Captures


def specialise(launch: Launch) -> Step:
    """The program of a launch, with its buffers and run-time values. Reads the kernel on a cache miss: a new kind of
    argument, or a captured variable that has changed."""
    given = [argument for argument in launch.arguments if is_buffer(argument)]
    names = [buffer.name for buffer in given]
    firsts = tuple(map(names.index, names))  # arguments that are one buffer become one memory
    key = (launch.kernel.function, launch.grid.group_size, firsts, *map(kind_of, launch.arguments))
    found = _found(key)
    if found is None:
        with _lock.held:
            found = _found(key)
            if found is None:
                found = _read(launch)
                _programs[key] = (found, *_programs.get(key, ()))[:_MOST_READINGS]
                if not found.captures.is_empty:
                    _captures[found.program] = found.captures
    values = [value for argument in launch.arguments for value in _scalars_in(argument)]
    buffers, program = [given[number] for number in dict.fromkeys(firsts)], found.program
    touched = (buffers[number] for number in found.touched)
    bound = dict(zip(program.storage, touched, strict=True))
    return Step(program, bound, dict(zip(program.parameters, values, strict=True)), launch.grid.groups)


def _found(key: object) -> _Reading | None:
    """A cached reading whose captures are unchanged."""
    for reading in _programs.get(key, ()):
        if reading.captures.hold():
            return reading
    return None


def captures_of(steps: Iterable[Step]) -> tuple[Captures, ...]:
    """The captured variables of steps' kernels that may change, for callers that cache steps."""
    return tuple(_captures[step.program] for step in steps if step.program in _captures)


def _scalars_in(argument: object) -> Iterator[int | float | bool]:
    """The run-time scalars in an argument, in the order of its fields; for an enum in a struct, its number."""
    if isinstance(argument, Scalar):
        yield argument.item()
    elif has_scalars(argument):
        for part in (getattr(argument, name) for name in fields_of(type(argument))):
            if not isinstance(part, Enum):
                yield from _scalars_in(part)
            elif has_number(part):
                yield part.value
            else:
                raise InvalidArgumentError(
                    f"{part} must have a number from 0 to 2**32 - 1 as its value to reach a kernel"
                )


class _Binder:
    """Binds a kernel's parameters to memories, IR parameters and compile-time values."""

    def __init__(self, builder: KernelBuilder, span: Span) -> None:
        self.builder, self.span = builder, span
        self.storage: dict[str, MemoryValue] = {}  # by the buffer's name
        self.parameters: list[ir.Parameter] = []

    def bind(self, name: str, argument: object, in_struct: bool = False) -> Value:
        if isinstance(argument, Buffer):
            if argument.name not in self.storage:
                self.storage[argument.name] = new_array(self.builder, name, ir.Space.STORAGE, argument.kind, None)
            return self.storage[argument.name]
        if isinstance(argument, Workgroup):
            return new_array(self.builder, name, ir.Space.WORKGROUP, argument.kind, len(argument.items))
        if isinstance(argument, Scalar):
            return self.parameter(name, argument.type)
        if has_scalars(argument):
            fields = fields_of(type(argument))
            return StructValue(
                type(argument), {f: self.bind(f"{name}_{f}", getattr(argument, f), in_struct=True) for f in fields}
            )
        if in_struct and isinstance(argument, Enum):
            return StructValue(type(argument), {"value": self.parameter(name, Type.U32)})
        return of_object(argument, self.span)

    def parameter(self, name: str, type: Type) -> ir.Expression:
        taken = {parameter.name for parameter in self.parameters}  # a scalar `p_n` and the field `n` of `p` would clash
        made = ir.Parameter(ir.unused(name, taken), type)
        self.parameters.append(made)
        return ir.Argument(made, self.span)


def _read(launch: Launch) -> _Reading:
    source = source_of(launch.kernel.function)
    span = source.span(source.tree)
    builder = KernelBuilder()
    binder = _Binder(builder, span)
    bound = [binder.bind(*pair) for pair in zip(source.parameters[1:], launch.arguments, strict=True)]
    Reader(builder, source).inline(launch.kernel.function, [InvocationValue(), *bound], span)
    body = builder.finish()
    touched = memories_in(body)
    buffers = [memory for memory in builder.memories if memory.space is ir.Space.STORAGE]
    others = (memory for memory in builder.memories if memory.space is not ir.Space.STORAGE)
    program = ir.Program(
        launch.kernel.name, launch.grid.group_size, tuple(binder.parameters),
        tuple(memory for memory in (*buffers, *others) if memory in touched), tuple(builder.variables), body, span,
        launch.needs,
    )  # fmt: skip
    verify(program)
    numbers = tuple(number for number, memory in enumerate(buffers) if memory in touched)
    return _Reading(program, numbers, builder.captures)
