"""The intermediate representation: what a kernel is once its Python is read.

Everything is a scalar by now: structs have become their fields, helpers have been inlined, generics and
compile-time values have been folded in. Expressions are pure; whatever touches memory, other invocations or
control is a statement. Every node knows the source line it came from.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import attrs

from ..types.layout import Type
from ..types.needs import Needs
from ..types.ops import AtomicOp, Op, SubgroupOp
from .span import Span


class Space(Enum):
    """Where a memory lives."""

    STORAGE = "storage"  # seen by every invocation; bound at launch
    WORKGROUP = "workgroup"  # one for each workgroup, not initialised
    REGISTERS = "registers"  # one for each invocation, not initialised


class Builtin(Enum):
    """What an invocation knows about itself and its launch; all are U32."""

    LOCAL_ID = "local_id"
    GROUP_ID = "group_id"
    GROUP_SIZE = "group_size"
    NUM_GROUPS = "num_groups"
    LANE = "lane"
    SUBGROUP_ID = "subgroup_id"
    SUBGROUP_SIZE = "subgroup_size"


@attrs.frozen
class Memory:
    """An array. `length` is None for storage: it comes with the buffer (see `Length`)."""

    name: str
    space: Space
    type: Type
    length: int | None = None


@attrs.frozen(eq=False)
class Variable:
    """A mutable scalar of one invocation. Compared by identity: two variables may want one name."""

    name: str
    type: Type


@attrs.frozen
class Parameter:
    """A scalar the host passes with a launch; the same for every invocation."""

    name: str
    type: Type


# -- expressions: pure ------------------------------------------------------------------------------------


@attrs.frozen
class Const:
    """A literal. Floats are held as Python floats, integers in their type's range, Bool as bool."""

    value: int | float | bool
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
class Identity:
    """One of the invocation's own numbers."""

    builtin: Builtin
    span: Span

    @property
    def type(self) -> Type:
        return Type.U32


@attrs.frozen
class Length:
    """How many elements a storage buffer holds (U32)."""

    memory: Memory
    span: Span

    @property
    def type(self) -> Type:
        return Type.U32


@attrs.frozen
class Apply:
    """An operation of the table in ops.py."""

    op: Op
    operands: tuple[Expression, ...]
    type: Type
    span: Span


Expression: TypeAlias = Const | Read | Argument | Identity | Length | Apply


# -- statements -------------------------------------------------------------------------------------------


@attrs.frozen
class Assign:
    variable: Variable
    value: Expression
    span: Span


@attrs.frozen
class Load:
    """variable = memory[index]

    `for_all`: of workgroup memory, between two barriers and at an index all agree on, so that all find the same.
    """

    variable: Variable
    memory: Memory
    index: Expression
    span: Span
    for_all: bool = False


@attrs.frozen
class Store:
    """memory[index] = value"""

    memory: Memory
    index: Expression
    value: Expression
    span: Span


@attrs.frozen
class Atomic:
    """variable = the element before the update. LOAD has no value, STORE no variable."""

    variable: Variable | None
    op: AtomicOp
    memory: Memory
    index: Expression
    value: Expression | None
    span: Span


@attrs.frozen
class Subgroup:
    """variable = op over the lanes of the subgroup; all of them take part."""

    variable: Variable
    op: SubgroupOp
    operands: tuple[Expression, ...]
    span: Span


@attrs.frozen
class Barrier:
    """Every invocation of the workgroup arrives here, and sees what the others wrote, before any goes on."""

    span: Span


@attrs.frozen
class Overridable:
    """What a block comes to, by a name: a target that knows the name may write something better for it."""

    name: str
    variable: Variable  # for the result
    memories: tuple[Memory, ...]
    operands: tuple[Expression, ...]


@attrs.frozen
class If:
    """A choice; or, always taken, the body of an overridable helper."""

    condition: Expression
    then: Block
    otherwise: Block
    span: Span
    overridable: Overridable | None = None


@attrs.frozen
class For:
    """variable runs from start while below stop, by step (U32, evaluated once; step is at least 1).

    `asks`: of a loop that may go on for ever, about how many statements a round takes. It asks now and then whether
    to stop, where a target can be asked.
    """

    variable: Variable
    start: Expression
    stop: Expression
    step: Expression
    body: Block
    span: Span
    asks: int = 0

    @property
    def ends_before_it_wraps(self) -> bool:
        """Whether the counter is known to pass the end within 32 bits."""
        if not isinstance(self.step, Const):
            return False
        return self.step.value == 1 or (isinstance(self.stop, Const) and self.stop.value + self.step.value <= 1 << 32)


@attrs.frozen
class While:
    """Runs head, tests condition, runs body, again. The head holds what the condition loads. `asks`: see For."""

    head: Block
    condition: Expression
    body: Block
    span: Span
    asks: int = 0


@attrs.frozen
class Break:
    """Leaves the innermost loop."""

    span: Span


Statement: TypeAlias = Assign | Load | Store | Atomic | Subgroup | Barrier | If | For | While | Break
Block: TypeAlias = tuple[Statement, ...]
Access: TypeAlias = Load | Store | Atomic  # what touches an element of a memory


@attrs.frozen(eq=False)
class Program:
    """A kernel ready for a target: one key, one policy, one group size. Compared by identity, as caches want it."""

    name: str
    group_size: int
    parameters: tuple[Parameter, ...]
    memories: tuple[Memory, ...]  # storage first, in the order of the kernel's arguments
    variables: tuple[Variable, ...]
    body: Block
    span: Span
    needs: tuple[Needs, ...] = ()  # of the machine, beside what the body shows

    @property
    def storage(self) -> tuple[Memory, ...]:
        return tuple(m for m in self.memories if m.space is Space.STORAGE)
