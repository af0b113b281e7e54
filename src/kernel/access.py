"""Lowers element access: a struct to loads and stores of its fields, a wide field to the units it is stored in."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import ops
from ..types.elements import Leaf, leaves, unit_of, units_in
from ..types.layout import Type
from . import ir
from .builder import KernelBuilder, apply, convert
from .span import KernelError, Span
from .values import MemoryValue, Value, from_leaves, parts


def load(builder: KernelBuilder, array: MemoryValue, index: ir.Expression, span: Span) -> Value:
    """Emits the loads of the element at an index; its scalars are in fresh variables."""
    element = array.element
    unit, stride = unit_of(element), units_in(element)
    require_inside(array, index, span)
    index = builder.hold("index", index, span) if stride > 1 else index

    def read(position: int) -> ir.Expression:
        variable = builder.fixed(array.memory.name + "_at", unit)
        builder.emit(ir.Load(variable, array.memory, _unit_index(index, stride, position, span), span))
        return ir.Read(variable, span)

    found: list[ir.Expression] = []
    for leaf in leaves(element):
        first = leaf.offset // unit.size
        units = [read(first + i) for i in range(max(1, leaf.type.size // unit.size))]
        found.append(builder.hold("field", _joined(units, leaf.type, span), span))
    return from_leaves(element, iter(found))


def store(builder: KernelBuilder, array: MemoryValue, index: ir.Expression, value: Value, span: Span) -> None:
    """Emits the stores of an element, whose type the caller has checked."""
    element = array.element
    unit, stride = unit_of(element), units_in(element)
    require_inside(array, index, span)
    index = builder.hold("index", index, span) if stride > 1 else index
    for leaf, part in zip(leaves(element), parts(value), strict=True):
        assert isinstance(part, ir.Expression)
        for i, piece in enumerate(_split(builder, leaf, part, unit, span)):
            at = _unit_index(index, stride, leaf.offset // unit.size + i, span)
            builder.emit(ir.Store(array.memory, at, piece, span))


def require_inside(array: MemoryValue, index: ir.Expression, span: Span) -> None:
    """Raises KernelError for a constant index beyond an array of known length."""
    if isinstance(index, ir.Const) and array.memory.length is not None:
        length = array.memory.length // units_in(array.element)
        if index.value >= length:
            raise KernelError(
                span, f"expected an index below {length}, the array's length, found {index.value}, e.g. `{length - 1}`"
            )


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


def _split(builder: KernelBuilder, leaf: Leaf, value: ir.Expression, unit: Type, span: Span) -> list[ir.Expression]:
    """A field's value as the units it is stored in, the least significant first."""
    if unit is leaf.type:
        return [value]
    wide = Type.U64 if leaf.type.size == 8 else Type.U32
    if leaf.type in (Type.BOOL, Type.U8, Type.U16):
        whole = convert(ops.CAST, value, wide, span)
    else:
        whole = convert(ops.BITCAST, value, wide, span) if value.type is not wide else value
    whole = builder.hold("whole", whole, span)
    pieces: list[ir.Expression] = []
    for i in range(max(1, leaf.type.size // unit.size)):
        moved = apply(ops.SHR, (whole, ir.Const(i * unit.bits, Type.U32, span)), span)
        if unit in (Type.U8, Type.U16):
            moved = convert(ops.CAST, moved, Type.U32, span)
        pieces.append(convert(ops.CAST, moved, unit, span))
    return pieces
