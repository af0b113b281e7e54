"""Emits statements for one lane, shared by serial kernels and loops over lanes."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

from ...kernel import ir
from ...kernel.passes.scopes import Scopes
from ...kernel.passes.walk import leaves_loop, statements_in
from ...types.layout import Type
from ...types.ops import AtomicOp, SubgroupOp
from ..kernel_text import RESERVED_NAMES, TYPE_NAMES, KernelWriter, stored_type
from .limits import subgroup_size

# What texts call, and their own variables.
_RESERVED = RESERVED_NAMES | frozenset([
    *(f"atomic_{op.value}" for op in AtomicOp), "count", "first", "group", "group_at", "kernel", "lane", "last", "lead",
    "left", "local", "mask", "mine", "num_groups", "old", "other", "position", "stack", "stop", "stopped", "total",
])  # fmt: skip

# Within a workgroup the lanes run one after the other: an atomic on its memory is a plain update.
_PLAIN_UPDATES: Mapping[AtomicOp, str] = {
    AtomicOp.ADD: "old + {0}",
    AtomicOp.MIN: "min(old, {0})",
    AtomicOp.MAX: "max(old, {0})",
    AtomicOp.AND: "old & {0}",
    AtomicOp.OR: "old | {0}",
    AtomicOp.XOR: "old ^ {0}",
}

# Statements between two looks at whether to stop: some milliseconds; and in a part of a loop that has parts.
PATIENCE = 1 << 22
_PART = 1 << 16

# Beyond this, arrays of one function live on the heap: threads may have small stacks.
_STACK_BYTES = 64 * 1024


@lru_cache(maxsize=512)
def asks(program: ir.Program) -> bool:
    """Whether a program has loops that ask whether to stop."""
    return any(isinstance(s, ir.For | ir.Loop) and s.poll_cost > 0 for s in statements_in(program.body))


class Writer(KernelWriter):
    """Writes statements of one program, as if one invocation were all there is."""

    target, reserved = "cpu", _RESERVED
    _stack_left = _STACK_BYTES

    # -- names --------------------------------------------------------------------------------------------

    def u8(self, value: int) -> str:
        return self.number(value, Type.U64)

    def builtin(self, builtin: ir.Builtin) -> str:
        """One invocation a workgroup: it is lane 0 of the only subgroup."""
        match builtin:
            case ir.Builtin.GROUP_ID:
                return "group"
            case ir.Builtin.NUM_GROUPS:
                return "num_groups"
            case ir.Builtin.GROUP_SIZE:
                return self.u4(self.program.group_size)
            case ir.Builtin.SUBGROUP_SIZE:
                return self.u4(subgroup_size(self.program.group_size))
            case ir.Builtin.LOCAL_ID | ir.Builtin.LANE | ir.Builtin.SUBGROUP_ID:
                return self.u4(0)

    def length(self, memory: ir.Memory) -> str:
        return f"u4(len({self.memory(memory)}))"

    # -- declarations -------------------------------------------------------------------------------------

    def declare(self) -> None:
        """The arrays of the function."""
        for memory in self.program.memories:
            if memory.space is not ir.Space.STORAGE:
                assert memory.length is not None
                self.array(self.memory(memory), memory.type, memory.length * self.copies(memory))

    def copies(self, memory: ir.Memory) -> int:
        """How many of an array there are: one for each lane that needs one of its own."""
        return 1

    def group(self) -> None:
        """The work of one workgroup: plain serial code, as it stands in the kernel."""
        for variable in Scopes(self.program).declared:
            self.zero(variable)
        self.block(self.program.body)

    def array(self, name: str, type: Type, length: int) -> None:
        """An uninitialised array of the function: on the stack, where LLVM sees that nothing aliases it."""
        held = stored_type(type)
        size = max(length, 1)
        if size * held.size <= self._stack_left:
            self._stack_left -= size * held.size
            self.lines.add(f"{name} = stack({TYPE_NAMES[held]}, {size})")
        else:
            self.lines.add(f"{name} = np.empty({size}, np.{held.value})")

    def zero(self, variable: ir.Variable) -> None:
        """A start value, for the type's sake: every variable is assigned before it is read."""
        self.lines.add(f"{self.variable(variable)} = {self.number(0, variable.type)}")

    # -- statements ---------------------------------------------------------------------------------------

    def index_operands(self, memory: ir.Memory, index: ir.Expression) -> Sequence[str]:
        return [self.text(index)]

    def barrier(self) -> None:
        """Nobody to wait for."""

    def counted(self, loop: ir.For) -> None:
        if loop.poll_cost and not leaves_loop(loop.body):
            self._in_parts(loop)
        else:
            self.repeated(loop)

    def repeated(self, loop: ir.For | ir.Loop) -> None:
        with self.round_of(loop):
            self.block(loop.body)

    @contextmanager
    def round_of(self, loop: ir.For | ir.Loop, lanes: int = 1) -> Generator[None]:
        """Encloses what so many lanes do in each round of a loop."""
        head = self.loop_
        if isinstance(loop, ir.For):
            head = f"for {self.counter(loop)} in range({', '.join(self._bounds(loop))}):"
        with self.lines.nested(head):
            self._ask(loop, lanes)
            if isinstance(loop, ir.For):
                self._loop_variable(loop)
            yield

    def _bounds(self, statement: ir.For) -> list[str]:
        """They are 64-bit: nothing overflows, and a range of U32 ends before it wraps. A step of 0 is taken as 1."""
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
        with self.lines.nested(f"for {part} in range({start}, {end}, {long}):"):
            self._ask(statement, rounds)
            counter = self.counter(statement)
            with self.lines.nested(f"for {counter} in range({part}, min({part} + {long}, {end}), {step}):"):
                self._loop_variable(statement)
                self.block(statement.body)

    def _ask(self, loop: ir.For | ir.Loop, rounds: int) -> None:
        """Leaves a loop that may go on for ever once the host wants it to end. `left` is work until it is asked."""
        if loop.poll_cost:
            self.lines.add(f"left -= {loop.poll_cost * rounds}")
            self.leave_if_stopped()

    def leave_if_stopped(self) -> None:
        """What leaves one loop leaves those around it too, for they ask again: nothing is left."""
        with self.lines.nested("if left < 0:"):
            with self.lines.nested("if stopped(stop):"):
                self.lines.add(self.leave)
            self.lines.add(f"left = {PATIENCE}")

    def _loop_variable(self, statement: ir.For) -> None:
        self.assign(statement.variable, f"u4({self.counter(statement)})")

    def atomic(self, statement: ir.Atomic) -> None:
        if statement.memory.space is ir.Space.STORAGE:
            super().atomic(statement)
            return
        self.lines.add(f"position = {self.text(statement.index)}")
        place = f"{self.memory(statement.memory)}[position]"
        self.lines.add(f"old = {place}")
        if statement.value is not None:
            update = _PLAIN_UPDATES.get(statement.op, "{0}").format(self.text(statement.value))
            self.lines.add(f"{place} = u4({update})")
        if statement.variable is not None:
            self.assign(statement.variable, "old")

    def subgroup(self, statement: ir.Subgroup) -> None:
        """A subgroup operation where the subgroup has one lane."""
        value = self.text(statement.operands[0])
        match statement.op:
            case SubgroupOp.BALLOT:
                found = f"u8({value})"
            case SubgroupOp.MATCH:
                found = self.u8(1)
            case SubgroupOp.EXCLUSIVE_ADD:
                found = self.u4(0)
            case _:
                found = value
        self.assign(statement.variable, found)
