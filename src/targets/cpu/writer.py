"""Emits statements for one lane, shared by serial kernels and loops over lanes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import assert_never

from ...kernel import ir
from ...kernel.passes.walk import leaves_loop, statements_in
from ...types.layout import Type
from ...types.ops import AtomicOp, SubgroupOp
from ..kernel_text import OPERATIONS, RESERVED_NAMES, TYPE_NAMES, Constants, Expressions
from ..render import Lines, Names, Row

HELPERS = (
    "atomic_add", "atomic_and", "atomic_exchange", "atomic_load", "atomic_max", "atomic_min", "atomic_or",
    "atomic_store", "atomic_xor", "bits_f4", "bits_f8", "bits_i4", "bits_i8", "bits_u4", "bits_u8",
    "count_ones", "divide", "leading_zeros", "remainder", "select", "stack", "stopped", "trailing_zeros",
)  # fmt: skip
SCAFFOLDING = frozenset(
    {"first", "last", "num_groups", "group", "group_at", "lane", "local", "lead", "other", "mask", "total",
     "mine", "count", "position", "old", "kernel", "stop", "left"}
)  # fmt: skip

CPU_OPERATIONS: Mapping[str, Row] = {
    **OPERATIONS,
    "select": "select({0}, {1}, {2})",
    "count_ones": "count_ones({0})",
    "leading_zeros": "leading_zeros({0})",
    "trailing_zeros": "trailing_zeros({0})",
}

# Within a workgroup the lanes run one after the other: an atomic on its memory is a plain update.
_PLAIN_UPDATES: Mapping[AtomicOp, str] = {
    AtomicOp.ADD: "old + {0}",
    AtomicOp.MIN: "min(old, {0})",
    AtomicOp.MAX: "max(old, {0})",
    AtomicOp.AND: "old & {0}",
    AtomicOp.OR: "old | {0}",
    AtomicOp.XOR: "old ^ {0}",
    AtomicOp.EXCHANGE: "{0}",
}

# Statements between two looks at whether to stop: some milliseconds; and in a part of a loop that has parts.
PATIENCE = 1 << 22
_PART = 1 << 16

# Beyond this, arrays of one function live on the heap: threads may have small stacks.
_STACK_BYTES = 64 * 1024


@lru_cache(maxsize=512)
def asks(program: ir.Program) -> bool:
    """Whether a program has loops that ask whether to stop."""
    return any(isinstance(s, ir.For | ir.While) and s.poll_cost > 0 for s in statements_in(program.body))


def memory_type(type: Type) -> Type:
    """How an array holds elements of this type: Bools are bytes, so that one kind of array serves all."""
    return Type.U8 if type is Type.BOOL else type


class Writer:
    """Writes statements of one program, as if one invocation were all there is."""

    def __init__(self, program: ir.Program, lines: Lines) -> None:
        self.program = program
        self.lines = lines
        self.names = Names(RESERVED_NAMES | SCAFFOLDING | frozenset(HELPERS))
        self.constants = Constants(self.names)
        self._stack_left = _STACK_BYTES
        # by value: statements may hold equal copies of the program's own memories and parameters
        self._memories = {memory: self.names.of(memory, memory.name) for memory in program.memories}
        self._parameters = {parameter: self.names.of(parameter, parameter.name) for parameter in program.parameters}
        self.expressions = Expressions(
            target="cpu",
            operations=CPU_OPERATIONS,
            variable=self.variable,
            parameter=self.parameter,
            identity=self.identity,
            length=lambda memory: f"u4(len({self.memory(memory)}))",
            constant=self.constants.text,
        )

    # -- names --------------------------------------------------------------------------------------------

    def variable(self, variable: ir.Variable) -> str:
        return self.names.of(variable, variable.name)

    def memory(self, memory: ir.Memory) -> str:
        return self._memories[memory]

    def parameter(self, parameter: ir.Parameter) -> str:
        return self._parameters[parameter]

    def u4(self, value: int) -> str:
        return self.constants.of(value, Type.U32)

    def u8(self, value: int) -> str:
        return self.constants.of(value, Type.U64)

    def identity(self, builtin: ir.Builtin) -> str:
        """One invocation a workgroup: it is lane 0 of the only subgroup."""
        match builtin:
            case ir.Builtin.GROUP_ID:
                return "group"
            case ir.Builtin.NUM_GROUPS:
                return "num_groups"
            case ir.Builtin.GROUP_SIZE | ir.Builtin.SUBGROUP_SIZE:
                return self.u4(1)
            case ir.Builtin.LOCAL_ID | ir.Builtin.LANE | ir.Builtin.SUBGROUP_ID:
                return self.u4(0)

    # -- declarations -------------------------------------------------------------------------------------

    def array(self, name: str, type: Type, length: int) -> None:
        """An uninitialised array of the function: on the stack, where LLVM sees that nothing aliases it."""
        held = memory_type(type)
        size = max(length, 1)
        if size * held.size <= self._stack_left:
            self._stack_left -= size * held.size
            self.lines.add(f"{name} = stack({TYPE_NAMES[held]}, {size})")
        else:
            self.lines.add(f"{name} = np.empty({size}, np.{held.value})")

    def zero(self, variable: ir.Variable) -> None:
        """A start value, for the type's sake: every variable is assigned before it is read."""
        self.lines.add(f"{self.variable(variable)} = {self.constants.of(0, variable.type)}")

    # -- statements ---------------------------------------------------------------------------------------

    def text(self, expression: ir.Expression) -> str:
        return self.expressions.text(expression)

    def place(self, memory: ir.Memory, index: ir.Expression) -> str:
        """An element, to read or to write."""
        return f"{self.memory(memory)}[{self.text(index)}]"

    def block(self, block: ir.Block) -> None:
        if all(isinstance(statement, ir.Barrier) for statement in block):  # of which nothing is written
            self.lines.add("pass")
        for statement in block:
            self.statement(statement)

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Assign():
                self._assign(statement.variable, self.text(statement.value))
            case ir.Load():
                place = self.place(statement.memory, statement.index)
                self._assign(statement.variable, f"({place} != 0)" if statement.memory.type is Type.BOOL else place)
            case ir.Store():
                value = self.text(statement.value)
                place = self.place(statement.memory, statement.index)
                self.lines.add(f"{place} = u1({value})" if statement.memory.type is Type.BOOL else f"{place} = {value}")
            case ir.Atomic():
                self._atomic(statement)
            case ir.If():
                self.lines.add(f"if {self.text(statement.condition)}:")
                with self.lines.indented():
                    self.block(statement.then)
                if statement.otherwise:
                    self.lines.add("else:")
                    with self.lines.indented():
                        self.block(statement.otherwise)
            case ir.For() if statement.poll_cost and not leaves_loop(statement.body):
                self._in_parts(statement)
            case ir.For():
                self.loop_head(statement)
                with self.lines.indented():
                    self.ask(statement)
                    self.loop_variable(statement)
                    self.block(statement.body)
            case ir.While():
                self.lines.add("while True:")
                with self.lines.indented():
                    self.ask(statement)
                    for inner in statement.head:
                        self.statement(inner)
                    self.leave_unless(statement.condition)
                    self.block(statement.body)
            case ir.Break():
                self.lines.add("break")
            case ir.Subgroup():
                self._assign(statement.variable, self._alone(statement))
            case ir.Barrier():
                pass  # nobody to wait for
            case _:
                assert_never(statement)

    def loop_head(self, statement: ir.For) -> None:
        """Bounds are 64-bit: nothing overflows, and a range of U32 ends before it wraps. A step of 0 is taken as 1."""
        self.lines.add(f"for {self._counter(statement)} in range({', '.join(self._bounds(statement))}):")

    def _bounds(self, statement: ir.For) -> list[str]:
        bounds = (statement.start, statement.stop, statement.step)
        shown = [str(int(b.value)) if isinstance(b, ir.Const) else f"i8({self.text(b)})" for b in bounds]
        if not isinstance(statement.step, ir.Const):
            shown[2] = f"max({shown[2]}, 1)"
        return shown

    def _in_parts(self, statement: ir.For) -> None:
        """A loop that asks whether to stop between parts of many rounds: within them it vectorises as ever."""
        name, rounds = statement.variable.name, max(1, _PART // statement.poll_cost)
        part, end = (self.names.of((statement, word), f"{name}_{word}") for word in ("part", "end"))
        start, stop, step = self._bounds(statement)
        if isinstance(statement.step, ir.Const):
            long = str(int(step) * rounds)
        else:
            held = self.names.of((statement, "step"), f"{name}_step")
            self.lines.add(f"{held} = {step}")
            step, long = held, f"{held} * {rounds}"
        self.lines.add(f"{end} = i8({stop})")
        self.lines.add(f"for {part} in range({start}, {end}, {long}):")
        with self.lines.indented():
            self.ask(statement, rounds)
            counter = self._counter(statement)
            self.lines.add(f"for {counter} in range({part}, min({part} + {long}, {end}), {step}):")
            with self.lines.indented():
                self.loop_variable(statement)
                self.block(statement.body)

    def ask(self, loop: ir.For | ir.While, rounds: int = 1) -> None:
        """Leaves a loop that may go on for ever once the host wants it to end. `left` is work until it is asked."""
        if loop.poll_cost:
            self.lines.add(f"left -= {loop.poll_cost * rounds}")
            self.leave_if_stopped()

    def leave_if_stopped(self) -> None:
        """What leaves one loop leaves those around it too, for they ask again: nothing is left."""
        self.lines.add("if left < 0:")
        with self.lines.indented():
            self.lines.add("if stopped(stop):")
            with self.lines.indented():
                self.lines.add("break")
            self.lines.add(f"left = {PATIENCE}")

    def loop_variable(self, statement: ir.For) -> None:
        self._assign(statement.variable, f"u4({self._counter(statement)})")

    def leave_unless(self, condition: ir.Expression) -> None:
        self.lines.add(f"if not {self.text(condition)}:")
        with self.lines.indented():
            self.lines.add("break")

    def _counter(self, statement: ir.For) -> str:
        return self.names.of(statement, f"{statement.variable.name}_at")

    def _assign(self, variable: ir.Variable, value: str) -> None:
        self.lines.add(f"{self.variable(variable)} = {value}")

    def _atomic(self, statement: ir.Atomic) -> None:
        if statement.memory.space is ir.Space.STORAGE:
            operands = [self.memory(statement.memory), self.text(statement.index)]
            if statement.value is not None:
                operands.append(self.text(statement.value))
            call = f"atomic_{statement.op.value}({', '.join(operands)})"
            self.lines.add(call if statement.variable is None else f"{self.variable(statement.variable)} = {call}")
            return
        self.lines.add(f"position = {self.text(statement.index)}")
        place = f"{self.memory(statement.memory)}[position]"
        self.lines.add(f"old = {place}")
        if statement.value is not None:
            update = _PLAIN_UPDATES.get(statement.op, "{0}").format(self.text(statement.value))
            self.lines.add(f"{place} = u4({update})")
        if statement.variable is not None:
            self._assign(statement.variable, "old")

    def _alone(self, statement: ir.Subgroup) -> str:
        """A subgroup operation where the subgroup has one lane."""
        value = self.text(statement.operands[0])
        match statement.op:
            case SubgroupOp.BALLOT:
                return f"u8({value})"
            case SubgroupOp.MATCH:
                return self.u8(1)
            case SubgroupOp.EXCLUSIVE_ADD:
                return self.u4(0)
            case _:
                return value
