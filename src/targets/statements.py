"""Emits a program as text, statement by statement: the walk over the IR that all targets which emit text share. What is
written for each node is up to the target: wgsl/text.py, and kernel_text.py for CPU and CUDA."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, assert_never

from ..kernel import ir
from .render import Lines, Names, Row, render_operation


class StatementWriter(ABC):
    """Writes a program's statements to `lines`."""

    target: ClassVar[str]
    operations: ClassVar[Mapping[str, Row]]
    reserved: ClassVar[frozenset[str]]  # no name of a kernel's may be one of these
    not_first: ClassVar[str] = ""  # letters that no name begins with
    leave: ClassVar[str] = "break"
    if_, else_, loop_, end = "if {}:", "else:", "while True:", ""  # heads of blocks, and what closes them
    unread: frozenset[ir.Variable] = frozenset()  # statements that only set these are omitted

    def __init__(self, program: ir.Program, lines: Lines) -> None:
        self.program, self.lines, self.names = program, lines, Names(self.reserved, self.not_first)

    @abstractmethod
    def constant(self, constant: ir.Const) -> str: ...

    @abstractmethod
    def variable(self, variable: ir.Variable) -> str: ...

    @abstractmethod
    def parameter(self, parameter: ir.Parameter) -> str: ...

    @abstractmethod
    def builtin(self, builtin: ir.Builtin) -> str:
        """The value of a built-in index or size."""

    @abstractmethod
    def length(self, memory: ir.Memory) -> str:
        """The number of elements of a storage array."""

    @abstractmethod
    def loaded(self, load: ir.Load) -> str:
        """The loaded value."""

    @abstractmethod
    def assign(self, variable: ir.Variable, value: str) -> None: ...

    @abstractmethod
    def store(self, memory: ir.Memory, index: ir.Expression, value: str) -> None: ...

    @abstractmethod
    def atomic(self, statement: ir.Atomic) -> None: ...

    @abstractmethod
    def subgroup(self, statement: ir.Subgroup) -> None: ...

    @abstractmethod
    def barrier(self) -> None: ...

    def branch(self, statement: ir.If) -> None:
        head = self.if_.format(self.text(statement.condition))
        self.inside(head, statement.then, "" if statement.otherwise else self.end)
        if statement.otherwise:
            self.inside(self.else_, statement.otherwise, self.end)

    @abstractmethod
    def counted(self, loop: ir.For) -> None: ...

    def repeated(self, loop: ir.Loop) -> None:
        self.inside(self.loop_, loop.body, self.end)

    def text(self, node: ir.Expression) -> str:
        match node:
            case ir.Const():
                return self.constant(node)
            case ir.Read():
                return self.variable(node.variable)
            case ir.Argument():
                return self.parameter(node.parameter)
            case ir.BuiltinValue():
                return self.builtin(node.builtin)
            case ir.Length():
                return self.length(node.memory)
            case ir.Apply():
                return self.operation(node, [self.text(operand) for operand in node.operands])
            case _:
                assert_never(node)

    def operation(self, node: ir.Apply, operands: list[str]) -> str:
        return render_operation(self.target, self.operations, node, operands)

    def block(self, block: ir.Block) -> None:
        for statement in block:
            self.statement(statement)

    def inside(self, head: str, block: ir.Block, end: str = "") -> None:
        with self.lines.nested(head, end):
            self.block(block)

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Assign() | ir.Load() if statement.variable in self.unread:
                pass
            case ir.Assign():
                self.assign(statement.variable, self.text(statement.value))
            case ir.Load():
                self.assign(statement.variable, self.loaded(statement))
            case ir.Store():
                self.store(statement.memory, statement.index, self.text(statement.value))
            case ir.Atomic():
                self.atomic(statement)
            case ir.Subgroup():
                self.subgroup(statement)
            case ir.Barrier():
                self.barrier()
            case ir.If():
                self.branch(statement)
            case ir.For():
                self.counted(statement)
            case ir.Loop():
                self.repeated(statement)
            case ir.Break():
                self.lines.add(self.leave)
            case _:
                assert_never(statement)
