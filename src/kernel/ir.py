"""The intermediate representation (IR): a structured, typed, scalar program, one for each specialised kernel.

Structs have been split into their fields, helpers inlined, generics monomorphised and compile-time values folded.
Expressions are pure; what touches memory, other invocations or control flow is a statement. Control flow is
structured (If, For, Loop, Break), and variables are mutable rather than in SSA form, as the targets that write
source text want both. Every node has the source line it came from. verify.py states the rules.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import ClassVar, TypeAlias

import attrs

from ..types.layout import Type
from ..types.needs import Needs
from ..types.ops import AtomicOp, Op, SubgroupOp
from .span import Span


class Space(Enum):
    """The address space of a memory."""

    STORAGE = "storage"  # global memory, shared by all invocations; bound at launch
    WORKGROUP = "workgroup"  # shared by a workgroup, uninitialised
    REGISTERS = "registers"  # private to an invocation, uninitialised

    __hash__ = object.__hash__  # Enum's own hashes the name, in Python, for each memory that is looked up


class Builtin(Enum):
    """The built-in indices and sizes of an invocation; all are U32."""

    LOCAL_ID = "local_id"
    GROUP_ID = "group_id"
    GROUP_SIZE = "group_size"
    NUM_GROUPS = "num_groups"
    LANE = "lane"
    SUBGROUP_ID = "subgroup_id"
    SUBGROUP_SIZE = "subgroup_size"


@attrs.frozen
class Memory:
    """An array of scalars in an address space. `length` counts scalars; for storage it is None, and read from the
    buffer at run time (see `Length`). An array of structs in the source takes `stride` scalars for each struct."""

    name: str
    space: Space
    type: Type
    length: int | None = None
    stride: int = 1


@attrs.frozen(eq=False)
class Variable:
    """A mutable scalar, private to an invocation. Compared by identity: names need not be unique."""

    name: str
    type: Type


def unused(name: str, taken: Collection[str]) -> str:
    """The wanted name, with underscores appended until it is not among those taken."""
    while name in taken:
        name += "_"
    return name


@attrs.frozen
class Parameter:
    """A scalar that the host passes with a launch: uniform over all invocations."""

    name: str
    type: Type


# -- expressions: pure ------------------------------------------------------------------------------------


@attrs.frozen
class Const:
    """A literal. Floats are held as Python floats, integers in their type's range, Bool as bool."""

    value: int | float | bool = attrs.field(eq=repr)  # -0.0 is not 0.0
    type: Type
    span: Span


@attrs.frozen
class Read:
    """The value of a variable."""

    variable: Variable
    span: Span

    @property
    def type(self) -> Type:
        return self.variable.type


@attrs.frozen
class Argument:
    """The value of a parameter."""

    parameter: Parameter
    span: Span

    @property
    def type(self) -> Type:
        return self.parameter.type


@attrs.frozen
class BuiltinValue:
    """The value of a built-in index or size."""

    builtin: Builtin
    span: Span
    type: ClassVar[Type] = Type.U32


@attrs.frozen
class Length:
    """The number of elements in a storage buffer (U32)."""

    memory: Memory
    span: Span
    type: ClassVar[Type] = Type.U32


@attrs.frozen
class Apply:
    """An operation of the table in types/ops.py, applied to operands."""

    op: Op
    operands: tuple[Expression, ...]
    type: Type
    span: Span


Expression: TypeAlias = Const | Read | Argument | BuiltinValue | Length | Apply


# -- statements -------------------------------------------------------------------------------------------


@attrs.frozen
class Assign:
    variable: Variable
    value: Expression
    span: Span


@attrs.frozen
class Load:
    """variable = memory[index]

    `uniform`: from workgroup memory, between two barriers and at a uniform index, so the value is uniform.
    """

    variable: Variable
    memory: Memory
    index: Expression
    span: Span
    uniform: bool = False


@attrs.frozen
class Store:
    """memory[index] = value"""

    memory: Memory
    index: Expression
    value: Expression
    span: Span


@attrs.frozen
class Atomic:
    """variable = the element before the (relaxed) update. LOAD has no value, STORE no variable."""

    variable: Variable | None
    op: AtomicOp
    memory: Memory
    index: Expression
    value: Expression | None
    span: Span


@attrs.frozen
class Subgroup:
    """variable = op over the lanes of the subgroup, all of which must take part."""

    variable: Variable
    op: SubgroupOp
    operands: tuple[Expression, ...]
    span: Span


@attrs.frozen
class Barrier:
    """An execution and memory barrier of the workgroup."""

    span: Span


@attrs.frozen
class Overridable:
    """Names a block's meaning, so that a target may emit its own implementation instead."""

    name: str
    variable: Variable  # for the result
    memories: tuple[Memory, ...]
    operands: tuple[Expression, ...]


@attrs.frozen
class If:
    """A branch. With `overridable`, the condition is true and `then` is the body of an overridable helper."""

    condition: Expression
    then: Block
    otherwise: Block
    span: Span
    overridable: Overridable | None = None


@attrs.frozen
class For:
    """variable runs from start while below stop, by step (U32, evaluated once; step is at least 1).

    `poll_cost`: greater than 0 in a loop that may not end, which polls now and then whether to stop, on targets that
    can be interrupted; it is about the number of statements of an iteration.
    """

    variable: Variable
    start: Expression
    stop: Expression
    step: Expression
    body: Block
    span: Span
    poll_cost: int = 0

    @property
    def ends_before_it_wraps(self) -> bool:
        """Whether the counter is known to reach stop without overflow."""
        if not isinstance(self.step, Const):
            return False
        return self.step.value == 1 or (isinstance(self.stop, Const) and self.stop.value + self.step.value <= 1 << 32)


@attrs.frozen
class Loop:
    """Repeats its body until a Break leaves it. `poll_cost`: see For."""

    body: Block
    span: Span
    poll_cost: int = 0

    @property
    def test(self) -> Expression | None:
        """The condition on which it is left, if it begins with a test: with `if condition: break`, and nothing more."""
        match self.body:
            case (If(condition, (Break(),), ()), *_):
                return condition
            case _:
                return None


@attrs.frozen
class Break:
    """Leaves the innermost loop."""

    span: Span


Statement: TypeAlias = Assign | Load | Store | Atomic | Subgroup | Barrier | If | For | Loop | Break
Block: TypeAlias = tuple[Statement, ...]
Access: TypeAlias = Load | Store | Atomic  # those with a memory and an index


@attrs.frozen(eq=False)
class Program:
    """A kernel, specialised for compile-time arguments and a group size. Compared by identity, as caches are keyed by
    it."""

    name: str
    group_size: int
    parameters: tuple[Parameter, ...]
    memories: tuple[Memory, ...]  # storage first, in the order of the kernel's arguments
    variables: tuple[Variable, ...]
    body: Block
    span: Span
    needs: tuple[Needs, ...] = ()  # required of the machine beyond what the body shows

    @property
    def storage(self) -> tuple[Memory, ...]:
        return tuple(m for m in self.memories if m.space is Space.STORAGE)
