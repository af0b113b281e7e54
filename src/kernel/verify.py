"""The verifier: the rules of the IR, checked after a kernel is read and after every transformation. A failure is a bug
in the reader or a pass, not in the kernel."""

from __future__ import annotations

from typing import NoReturn

from ..types import ops
from ..types.layout import Type
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
    low, high = constant.type.bounds
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
        if node.op in ops.CONVERSIONS:
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
        if isinstance(node, ir.Access):
            self.require(node.memory in self.memories, span, "a memory is declared", node.memory.name)
        if isinstance(node, ir.Atomic):
            memory, is_load = node.memory, node.op is AtomicOp.LOAD
            shared = memory.space is not ir.Space.REGISTERS and memory.type is Type.U32
            self.require(shared, span, "an atomic works on shared U32", f"{memory.type} in {memory.space.value}")
            self.require((node.value is None) == is_load, span, "all atomics but LOAD take a value", str(node.op))
        elif isinstance(node, ir.Subgroup):
            op, count = node.op, node.op.operand_count
            self.require(len(node.operands) == count, span, f"{op.value} takes {count}", str(len(node.operands)))
        elif isinstance(node, ir.Break):
            self.require(in_loop, span, "a break stands in a loop", "none")
        takes, gives = _types(node)
        for expression, expected in zip(expressions_of(node), takes, strict=False):  # an atomic may have no value
            self.expression(expression, expected)
        if variable is not None:
            self.require(variable in self.variables, span, "a variable is declared", variable.name)
            if variable.type is not gives:
                what = node.op.value if isinstance(node, ir.Subgroup) else type(node).__name__.lower()
                self.refuse(span, f"{what} gives {gives}", str(variable.type))


def _types(node: ir.Statement) -> tuple[tuple[Type, ...], Type | None]:
    """The types of a statement's expressions, and of the variable that it sets."""
    match node:
        case ir.Assign():
            return (node.variable.type,), node.variable.type
        case ir.Load():
            return (Type.U32,), node.memory.type
        case ir.Store():
            return (Type.U32, node.memory.type), None
        case ir.Atomic():
            return (Type.U32, Type.U32), Type.U32
        case ir.Subgroup():
            operand, result = node.op.types or (node.operands[0].type, node.operands[0].type)
            return (operand, Type.U32), result
        case ir.If():
            return (Type.BOOL,), None
        case ir.For():
            return (Type.U32, Type.U32, Type.U32), Type.U32
        case ir.Loop() | ir.Barrier() | ir.Break():
            return (), None
