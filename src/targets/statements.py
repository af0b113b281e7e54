"""Emits IR statements as typed Python, for the compiler of CPU and CUDA: what both write alike. kernel_text.py has the
expressions, and says what language it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import assert_never

from ..kernel import ir
from ..types.layout import Type
from .kernel_text import RESERVED_NAMES, Constants
from .render import Lines, Names, Row, render_operation


class StatementWriter(ABC):
    """Writes a program's statements, each where `lines` stand."""

    def __init__(
        self, target: str, program: ir.Program, lines: Lines, operations: Mapping[str, Row], reserved: frozenset[str]
    ) -> None:
        self.program = program
        self.lines = lines
        self.names = Names(RESERVED_NAMES | reserved)
        self.constants = Constants(self.names)
        self._target, self._operations = target, operations
        # by value: statements may hold equal copies of the program's own memories and parameters
        outer: tuple[ir.Memory | ir.Parameter, ...] = (*program.memories, *program.parameters)
        self._outer = {thing: self.names.of(thing, thing.name) for thing in outer}

    # -- what differs -------------------------------------------------------------------------------------

    @abstractmethod
    def identity(self, builtin: ir.Builtin) -> str:
        """An invocation's own number."""

    @abstractmethod
    def length(self, memory: ir.Memory) -> str:
        """The number of elements of a storage array."""

    @abstractmethod
    def loop(self, statement: ir.For | ir.While) -> None: ...

    @abstractmethod
    def subgroup(self, statement: ir.Subgroup) -> None: ...

    @abstractmethod
    def barrier(self) -> None: ...

    @abstractmethod
    def index_operands(self, memory: ir.Memory, index: ir.Expression) -> Sequence[str]:
        """An index, as calls for one element take it."""

    def place(self, memory: ir.Memory, index: ir.Expression) -> str:
        """An element, to read or to write."""
        return f"{self.memory(memory)}[{self.text(index)}]"

    def store(self, memory: ir.Memory, index: ir.Expression, value: str) -> None:
        self.lines.add(f"{self.place(memory, index)} = {value}")

    # -- names --------------------------------------------------------------------------------------------

    def variable(self, variable: ir.Variable) -> str:
        return self.names.of(variable, variable.name)

    def memory(self, memory: ir.Memory) -> str:
        return self._outer[memory]

    def parameter(self, parameter: ir.Parameter) -> str:
        return self._outer[parameter]

    def u4(self, value: int) -> str:
        return self.constants.of(value, Type.U32)

    def counter(self, statement: ir.For) -> str:
        """The counter of a loop: the body may assign to the loop variable."""
        return self.names.of(statement, f"{statement.variable.name}_at")

    # -- expressions --------------------------------------------------------------------------------------

    def text(self, node: ir.Expression) -> str:
        match node:
            case ir.Const():
                return self.constants.of(node.value, node.type)
            case ir.Read():
                return self.variable(node.variable)
            case ir.Argument():
                return self.parameter(node.parameter)
            case ir.Identity():
                return self.identity(node.builtin)
            case ir.Length():
                return self.length(node.memory)
            case ir.Apply():
                return self.operation(node, [self.text(operand) for operand in node.operands])
            case _:
                assert_never(node)

    def operation(self, node: ir.Apply, operands: Sequence[str]) -> str:
        return render_operation(self._target, self._operations, node, operands)

    # -- statements ---------------------------------------------------------------------------------------

    def block(self, block: ir.Block) -> None:
        before = self.lines.count
        for statement in block:
            self.statement(statement)
        if self.lines.count == before:
            self.lines.add("pass")

    def inside(self, block: ir.Block) -> None:
        with self.lines.indented():
            self.block(block)

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Assign():
                self.assign(statement.variable, self.text(statement.value))
            case ir.Load(variable=variable, memory=memory, index=index):
                place = self.place(memory, index)
                self.assign(variable, f"({place} != 0)" if memory.type is Type.BOOL else place)
            case ir.Store(memory=memory, index=index):
                value = self.text(statement.value)
                self.store(memory, index, f"u1({value})" if memory.type is Type.BOOL else value)
            case ir.Atomic():
                self.atomic(statement)
            case ir.Subgroup():
                self.subgroup(statement)
            case ir.Barrier():
                self.barrier()
            case ir.If():
                self.branch(statement)
            case ir.For() | ir.While():
                self.loop(statement)
            case ir.Break():
                self.lines.add("break")
            case _:
                assert_never(statement)

    def assign(self, variable: ir.Variable, value: str) -> None:
        self.lines.add(f"{self.variable(variable)} = {value}")

    def atomic(self, statement: ir.Atomic) -> None:
        memory = statement.memory
        operands = [self.memory(memory), *self.index_operands(memory, statement.index)]
        if statement.value is not None:
            operands.append(self.text(statement.value))
        call = f"atomic_{statement.op.value}({', '.join(operands)})"
        if statement.variable is None:
            self.lines.add(call)
        else:
            self.assign(statement.variable, call)

    def branch(self, statement: ir.If) -> None:
        self.lines.add(f"if {self.text(statement.condition)}:")
        self.inside(statement.then)
        if statement.otherwise:
            self.lines.add("else:")
            self.inside(statement.otherwise)

    def leave_unless(self, condition: ir.Expression) -> None:
        self.lines.add(f"if not {self.text(condition)}:")
        with self.lines.indented():
            self.lines.add("break")
