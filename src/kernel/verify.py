"""The verifier: the rules of the IR, checked after a kernel is read and after every transformation. A failure is a bug
in the reader or a pass, not in the kernel."""

from __future__ import annotations

from typing import NoReturn

from ..types import ops
from ..types.layout import Type, bounds
from ..types.ops import AtomicOp
from . import ir
from .passes.walk import blocks_of, expressions_of, variable_set_by
from .span import Span


class VerifyError(AssertionError):
    """Raised when a Program breaks a rule of the IR."""


def verify(program: ir.Program) -> None:
    """Raises VerifyError, with the node's source line, where a program breaks a rule."""
    _Verifier(program).block(program.body, in_loop=False)


def _fits(constant: ir.Const) -> bool:
    """Whether a constant's Python value is in its type's range."""
    if constant.type is Type.BOOL:
        return isinstance(constant.value, bool)
    if constant.type.is_float:
        return isinstance(constant.value, float)
    low, high = bounds(constant.type)
    return isinstance(constant.value, int) and not isinstance(constant.value, bool) and low <= constant.value <= high


class _Verifier:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.variables = set(program.variables)
        self.memories = set(program.memories)
        self.parameters = set(program.parameters)
        names = [memory.name for memory in program.memories]
        self.require(len(set(names)) == len(names), program.span, "memories have names of their own", str(names))
        given = [parameter.name for parameter in program.parameters]
        self.require(len(set(given)) == len(given), program.span, "parameters have names of their own", str(given))
        for memory in program.memories:
            has_length = memory.length is not None and memory.length >= 1
            storage = memory.space is ir.Space.STORAGE
            rule = f"{memory.space.value} memory comes {'without' if storage else 'with'} a length"
            self.require(memory.length is None if storage else has_length, program.span, rule, str(memory.length))
        self.require(program.group_size >= 1, program.span, "a group has an invocation", str(program.group_size))

    def require(self, holds: bool, span: Span, rule: str, found: str) -> None:
        if not holds:
            self.refuse(span, rule, found)

    def refuse(self, span: Span, rule: str, found: str) -> NoReturn:
        raise VerifyError(f"{span}: in {self.program.name}: {rule}; found {found}\n    {span.text}")

    # Messages about expressions are made only for a failure: there are too many expressions to make one for each.

    def expression(self, node: ir.Expression, expected: Type | None = None) -> None:
        match node:
            case ir.Const():
                if not _fits(node):
                    self.refuse(node.span, f"a {node.type} constant holds a {node.type}", repr(node.value))
            case ir.Read():
                self.require(node.variable in self.variables, node.span, "a variable is declared", node.variable.name)
            case ir.Argument():
                self.require(
                    node.parameter in self.parameters, node.span, "a parameter is declared", node.parameter.name
                )
            case ir.Length():
                declared = node.memory in self.memories and node.memory.space is ir.Space.STORAGE
                self.require(declared, node.span, "a length is that of a storage buffer", node.memory.name)
            case ir.BuiltinValue():
                pass
            case ir.Apply():
                self.apply(node)
        if expected is not None and node.type is not expected:
            self.refuse(node.span, f"the expression is {expected}", str(node.type))

    def apply(self, node: ir.Apply) -> None:
        for operand in node.operands:
            self.expression(operand)
        types = [operand.type for operand in node.operands]
        if node.op in (ops.CAST, ops.BITCAST):
            allowed = ops.can_cast if node.op is ops.CAST else ops.can_bitcast
            if not allowed(types[0], node.type):
                self.refuse(node.span, f"{node.op} reaches {node.type}", str(types[0]))
            return
        result = node.op.rule(types)
        if result is not node.type:
            self.refuse(node.span, f"{node.op} of {', '.join(map(str, types))} is {result}", str(node.type))

    def block(self, block: ir.Block, in_loop: bool) -> None:
        for statement in block:
            self.statement(statement, in_loop)
            for inner in blocks_of(statement):
                self.block(inner, in_loop or not isinstance(statement, ir.If))

    def statement(self, node: ir.Statement, in_loop: bool) -> None:
        """Checks a statement, without its blocks."""
        variable, span = variable_set_by(node), node.span
        if variable is not None:
            self.require(variable in self.variables, span, "a variable is declared", variable.name)
        if isinstance(node, ir.Access):
            self.require(node.memory in self.memories, span, "a memory is declared", node.memory.name)
            self.expression(node.index, Type.U32)
        match node:
            case ir.Assign():
                self.expression(node.value, node.variable.type)
            case ir.Load():
                self.require(
                    node.variable.type is node.memory.type, span, "a load keeps the type", str(node.memory.type)
                )
            case ir.Store():
                self.expression(node.value, node.memory.type)
            case ir.Atomic():
                self.atomic(node)
            case ir.Subgroup():
                self.subgroup(node)
            case ir.If() | ir.While():
                self.expression(node.condition, Type.BOOL)
            case ir.For():
                self.require(node.variable.type is Type.U32, span, "a loop counts in U32", str(node.variable.type))
                for bound in expressions_of(node):
                    self.expression(bound, Type.U32)
            case ir.Break():
                self.require(in_loop, span, "a break stands in a loop", "none")
            case ir.Barrier():
                pass

    def atomic(self, node: ir.Atomic) -> None:
        memory, span = node.memory, node.span
        shared = memory.space is not ir.Space.REGISTERS and memory.type is Type.U32
        self.require(shared, span, "an atomic works on shared U32", f"{memory.type} in {memory.space.value}")
        is_load = node.op is AtomicOp.LOAD
        self.require((node.value is None) == is_load, span, "all atomics but LOAD take a value", str(node.op))
        if node.value is not None:
            self.expression(node.value, Type.U32)
        if node.variable is not None:
            self.require(node.variable.type is Type.U32, span, "an atomic gives a U32", str(node.variable.type))

    def subgroup(self, node: ir.Subgroup) -> None:
        op, span, count = node.op, node.span, node.op.operand_count
        self.require(len(node.operands) == count, span, f"{op.value} takes {count}", str(len(node.operands)))
        expected, result = op.types or (node.operands[0].type, node.operands[0].type)
        self.expression(node.operands[0], expected)
        if count == 2:
            self.expression(node.operands[1], Type.U32)
        self.require(node.variable.type is result, span, f"{op.value} gives {result}", str(node.variable.type))
