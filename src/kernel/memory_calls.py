"""Reader, part 4: calls of memories and of the invocation: atomics, barriers and subgroup operations."""

from __future__ import annotations

import ast

from ..types import ops
from ..types.elements import dtype_of, scalar_of, unit_of, units_in
from ..types.layout import Type
from ..types.ops import AtomicOp, SubgroupOp
from . import access, ir
from .builder import convert
from .expressions import ExpressionReader
from .span import KernelError, Span
from .values import MemoryMethod, MemoryValue, Static, Value, describe, lift, rebuild

_SUBGROUP = {
    "ballot": SubgroupOp.BALLOT, "match": SubgroupOp.MATCH, "shuffle": SubgroupOp.SHUFFLE,
    "shuffle_xor": SubgroupOp.SHUFFLE_XOR, "shuffle_up": SubgroupOp.SHUFFLE_UP,
    "shuffle_down": SubgroupOp.SHUFFLE_DOWN, "subgroup_add": SubgroupOp.ADD, "exclusive_add": SubgroupOp.EXCLUSIVE_ADD,
}  # fmt: skip


class MemoryReader(ExpressionReader):
    """Calls of memories, of the invocation and of `Registers` in one inlined function."""

    memories: list[ir.Memory]  # of the kernel, all functions' registers included

    def positional(self, node: ast.Call) -> list[Value]:
        if node.keywords:
            self.expected(node, "positional arguments, e.g. `minimum(a, b)`")
        return [self.read(argument) for argument in node.args]

    def registers(self, node: ast.Call) -> Value:
        element, length = self.positional(node) if len(node.args) == 2 else (None, None)
        if not (isinstance(element, Static) and isinstance(length, Static) and isinstance(length.value, int)):
            self.expected(node, "an element class and a compile-time length, e.g. `Registers(U32, 8)`")
        if length.value < 1:
            self.expected(node, f"a length of at least 1, found {length.value}, e.g. `Registers(U32, 8)`")
        try:
            dtype_of(element.value)
        except TypeError as error:
            raise KernelError(self.source.span(node), f"{error}, e.g. `Registers(U32, 8)`") from None
        stride = units_in(element.value)
        made = ir.Memory(
            f"registers_{len(self.memories)}", ir.Space.REGISTERS, unit_of(element.value), stride * length.value, stride
        )
        self.memories.append(made)
        return MemoryValue(element.value, made)

    def memory_method(self, node: ast.Call, callee: MemoryMethod) -> Value:
        array, span = callee.memory, self.source.span(node)
        name = callee.name.removeprefix("atomic_")
        if name == callee.name or name not in {op.value for op in AtomicOp}:
            self.expected(node, f"a method of an array, found `.{callee.name}`, e.g. `counts.atomic_add(i, U32(1))`")
        if scalar_of(array.element) is not Type.U32 or array.memory.space is ir.Space.REGISTERS:
            self.expected(node, "Storage[U32] or Workgroup[U32] for an atomic, e.g. `counts: Workgroup[U32]`")
        op = AtomicOp(name)
        wanted, shown = 2, "an index and a value, e.g. `{}(i, x)`"
        if op is AtomicOp.LOAD:
            wanted, shown = 1, "an index, e.g. `{}(i)`"
        if len(node.args) != wanted or node.keywords:
            self.expected(node, shown.format(f"counts.{callee.name}"))
        index = self.index(node.args[0])
        access.require_inside(array, index, span)
        value = self.operand(node.args[1], Type.U32) if wanted == 2 else None
        if op is AtomicOp.STORE:
            self.builder.emit(ir.Atomic(None, op, array.memory, index, value, span))
            return Static(None)
        variable = self.builder.fixed("old", Type.U32)
        self.builder.emit(ir.Atomic(variable, op, array.memory, index, value, span))
        return ir.Read(variable, span)

    def operand(self, node: ast.expr, type: Type) -> ir.Expression:
        value = lift(self.read(node), self.source.span(node))
        if isinstance(value, Static):
            return self.literal(value.value, type, node)
        if not isinstance(value, ir.Expression) or value.type is not type:
            self.expected(node, f"{type}, found {describe(value)}, e.g. `{type}(1)`")
        return value

    def load_uniform(self, node: ast.Call, span: Span) -> Value:
        """Emits a barrier, a uniform load and a barrier."""
        array = self.read(node.args[0]) if len(node.args) == 2 and not node.keywords else None
        if (
            not isinstance(array, MemoryValue)
            or array.memory.space is not ir.Space.WORKGROUP
            or scalar_of(array.element) is not Type.U32
        ):
            self.expected(node, "workgroup memory of U32 and an index, e.g. `cx.load_uniform(shared, 0)`")
        index = self.operand(node.args[1], Type.U32)
        access.require_inside(array, index, span)
        variable = self.builder.fixed(array.memory.name + "_for_all", Type.U32)
        self.builder.emit(ir.Barrier(span))
        self.builder.emit(ir.Load(variable, array.memory, index, span, uniform=True))
        self.builder.emit(ir.Barrier(span))
        return ir.Read(variable, span)

    def invocation_method(self, node: ast.Call, name: str) -> Value:
        span = self.source.span(node)
        if name == "barrier":
            if node.args or node.keywords:
                self.expected(node, "no argument, e.g. `cx.barrier()`")
            self.builder.emit(ir.Barrier(span))
            return Static(None)
        if name == "load_uniform":
            return self.load_uniform(node, span)
        op = _SUBGROUP.get(name)
        if op is None:
            self.expected(node, f"something an invocation has, found `.{name}`, e.g. `cx.local_id` or `cx.barrier()`")
        if len(node.args) != op.operand_count or node.keywords:
            self.expected(node, f"{op.operand_count} argument(s), e.g. `cx.shuffle(value, lane)`")
        if op.types is not None:
            taken, given = op.types
            return self.subgroup(op, (self.operand(node.args[0], taken),), given, span)
        lane = self.builder.hold("lane", self.operand(node.args[1], Type.U32), span)
        return rebuild(lift(self.read(node.args[0]), span), lambda leaf: self.shuffle(node, op, leaf, lane, span))

    def subgroup(self, op: SubgroupOp, operands: tuple[ir.Expression, ...], type: Type, span: Span) -> ir.Read:
        variable = self.builder.fixed(op.value, type)
        self.builder.emit(ir.Subgroup(variable, op, operands, span))
        return ir.Read(variable, span)

    def shuffle(self, node: ast.Call, op: SubgroupOp, leaf: Value, lane: ir.Expression, span: Span) -> Value:
        if isinstance(leaf, Static):
            return leaf
        if not isinstance(leaf, ir.Expression):
            self.expected(
                node,
                f"a scalar or a struct to shuffle, found {describe(leaf)}, e.g. `cx.shuffle(pair, lane)`",
            )
        if leaf.type in (Type.BOOL, Type.U8, Type.U16):  # shuffled as a U32
            moved = self.subgroup(op, (convert(ops.CAST, leaf, Type.U32, span), lane), Type.U32, span)
            if leaf.type is Type.BOOL:
                return ir.Apply(ops.NE, (moved, ir.Const(0, Type.U32, span)), Type.BOOL, span)
            return convert(ops.CAST, moved, leaf.type, span)
        return self.subgroup(op, (leaf, lane), leaf.type, span)
