"""Reader, part 3: memories. Loads and stores of elements: of a struct by its fields, of a wide field by the units it is
stored in. Registers, atomics, and calls of the invocation: barriers and subgroup operations."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..types import ops
from ..types.elements import Leaf, class_of, dtype_of, leaves, scalar_of, unit_of, units_in
from ..types.layout import Type
from ..types.ops import AtomicOp, SubgroupOp
from ..types.scalars import Scalar
from . import examples, ir
from .builder import apply, convert
from .operators import OperatorReader
from .span import KernelError, Span
from .values import (
    EnumValue,
    MemoryMethod,
    MemoryValue,
    Static,
    StructValue,
    TupleValue,
    Value,
    describe,
    from_leaves,
    lift,
    parts,
    rebuild,
)

_SUBGROUP = {
    "ballot": SubgroupOp.BALLOT, "match": SubgroupOp.MATCH, "shuffle": SubgroupOp.SHUFFLE,
    "shuffle_xor": SubgroupOp.SHUFFLE_XOR, "shuffle_up": SubgroupOp.SHUFFLE_UP,
    "shuffle_down": SubgroupOp.SHUFFLE_DOWN, "subgroup_add": SubgroupOp.ADD, "exclusive_add": SubgroupOp.EXCLUSIVE_ADD,
}  # fmt: skip


class MemoryReader(OperatorReader):
    """Memories and the invocation in one inlined function."""

    memories: list[ir.Memory]  # of the kernel, all functions' registers included

    # -- elements --------------------------------------------------------------------------------------

    def place(self, node: ast.AST, array: Value, index: ast.expr, example: str) -> tuple[MemoryValue, ir.Expression]:
        """The array and the index of an element."""
        if not isinstance(array, MemoryValue):
            self.expected(node, f"an array before `[`, found {describe(array)}, e.g. `{example}`")
        if isinstance(index, ast.Slice):
            self.expected(index, "one index instead of a slice, e.g. a loop over `data[i]`")
        return array, self.index(index)

    def index(self, node: ast.expr) -> ir.Expression:
        value = self.read(node)
        if isinstance(value, Static) and isinstance(value.value, int):
            if value.value < 0:
                self.expected(node, f"an index counted from the front, found {value.value}, e.g. `data.length - 1`")
            return self.literal(value.value, Type.U32, node)
        if not isinstance(value, ir.Expression) or value.type is not Type.U32:
            hint = "data[row * width + column]" if isinstance(value, TupleValue) else "data[thread.value]"
            self.expected(node, f"a U32 index, found {describe(value)}, e.g. `{hint}`")
        return value

    def length(self, array: MemoryValue, span: Span) -> ir.Expression:
        units = ir.Const(units_in(array.element), Type.U32, span)
        if array.memory.length is not None:
            return ir.Const(array.memory.length // int(units.value), Type.U32, span)
        return apply(ops.FLOORDIV, (ir.Length(array.memory, span), units), span)

    def load(self, array: MemoryValue, index: ir.Expression, span: Span) -> Value:
        """Emits the loads of the element at an index; its scalars are in fresh variables."""
        element = array.element
        unit, stride = unit_of(element), units_in(element)
        self.require_inside(array, index, span)
        index = self.builder.hold("index", index, span) if stride > 1 else index

        def read(position: int) -> ir.Expression:
            variable = self.builder.fixed(array.memory.name + "_at", unit)
            self.builder.emit(ir.Load(variable, array.memory, _unit_index(index, stride, position, span), span))
            return ir.Read(variable, span)

        found: list[ir.Expression] = []
        for leaf in leaves(element):
            first = leaf.offset // unit.size
            units = [read(first + i) for i in range(max(1, leaf.type.size // unit.size))]
            found.append(self.builder.hold("field", _joined(units, leaf.type, span), span))
        return from_leaves(element, iter(found))

    def store(self, node: ast.expr, array: MemoryValue, index: ir.Expression, value: Value) -> None:
        """Emits the stores of an element. Raises KernelError unless it has the class and types of the array's."""
        element, span = array.element, self.source.span(node)
        value, cls = lift(value, span), class_of(element)
        match value:
            case StructValue():
                fits = class_of(value.element) is cls
            case EnumValue():
                fits = value.cls is cls
            case _:
                fits = issubclass(cls, Scalar)
        types = [part.type if isinstance(part, ir.Expression) else None for part in parts(value)]
        if not fits or types != [leaf.type for leaf in leaves(element)]:
            example = examples.element_of(element, value)
            self.expected(node, f"{cls.__name__} to store, found {describe(value)}, e.g. `{example}`")
        unit, stride = unit_of(element), units_in(element)
        self.require_inside(array, index, span)
        index = self.builder.hold("index", index, span) if stride > 1 else index
        for leaf, part in zip(leaves(element), parts(value), strict=True):
            assert isinstance(part, ir.Expression)
            for i, piece in enumerate(self.split(leaf, part, unit, span)):
                at = _unit_index(index, stride, leaf.offset // unit.size + i, span)
                self.builder.emit(ir.Store(array.memory, at, piece, span))

    def split(self, leaf: Leaf, value: ir.Expression, unit: Type, span: Span) -> list[ir.Expression]:
        """A field's value as the units it is stored in, the least significant first."""
        if unit is leaf.type:
            return [value]
        wide = Type.U64 if leaf.type.size == 8 else Type.U32
        if leaf.type in (Type.BOOL, Type.U8, Type.U16):
            whole = convert(ops.CAST, value, wide, span)
        else:
            whole = convert(ops.BITCAST, value, wide, span) if value.type is not wide else value
        whole = self.builder.hold("whole", whole, span)
        pieces: list[ir.Expression] = []
        for i in range(max(1, leaf.type.size // unit.size)):
            moved = apply(ops.SHR, (whole, ir.Const(i * unit.bits, Type.U32, span)), span)
            if unit in (Type.U8, Type.U16):
                moved = convert(ops.CAST, moved, Type.U32, span)
            pieces.append(convert(ops.CAST, moved, unit, span))
        return pieces

    def require_inside(self, array: MemoryValue, index: ir.Expression, span: Span) -> None:
        """Raises KernelError for a constant index beyond an array of known length."""
        if isinstance(index, ir.Const) and array.memory.length is not None:
            length = array.memory.length // units_in(array.element)
            if index.value >= length:
                raise KernelError(
                    span,
                    f"expected an index below {length}, the array's length, found {index.value}, e.g. `{length - 1}`",
                )

    # -- calls -----------------------------------------------------------------------------------------

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
        self.require_inside(array, index, span)
        value = self.operand(node.args[1], Type.U32) if wanted == 2 else None
        variable = None if op is AtomicOp.STORE else self.builder.fixed("old", Type.U32)
        self.builder.emit(ir.Atomic(variable, op, array.memory, index, value, span))
        return Static(None) if variable is None else ir.Read(variable, span)

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
        self.require_inside(array, index, span)
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


def _unit_index(index: ir.Expression, stride: int, position: int, span: Span) -> ir.Expression:
    if stride == 1:
        return index
    scaled = apply(ops.MUL, (index, ir.Const(stride, Type.U32, span)), span)
    return apply(ops.ADD, (scaled, ir.Const(position, Type.U32, span)), span)


def _joined(units: Sequence[ir.Expression], to: Type, span: Span) -> ir.Expression:
    """A field's value, assembled from its units, the least significant first."""
    unit = units[0].type
    if unit is to:
        return units[0]
    if to is Type.BOOL:
        return apply(ops.NE, (convert(ops.CAST, units[0], Type.U32, span), ir.Const(0, Type.U32, span)), span)
    wide = Type.U64 if to.size == 8 else Type.U32
    whole = convert(ops.CAST, units[0], wide, span)
    for i, piece in enumerate(units[1:], 1):
        shift = ir.Const(i * unit.bits, Type.U32, span)
        moved = apply(ops.SHL, (convert(ops.CAST, piece, wide, span), shift), span)
        whole = apply(ops.OR, (whole, moved), span)
    if to in (Type.U8, Type.U16):
        return convert(ops.CAST, whole, to, span)
    return convert(ops.BITCAST, whole, to, span) if whole.type is not to else whole
