"""Memories: emits loads and stores of elements, register arrays, atomics, barriers and subgroup operations. A struct is
loaded and stored field by field. All scalars of a memory have one type, the unit: a field that is wider is split into
several units."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import ops
from ..types.elements import Leaf, bytes_held, class_of, dtype_of, leaves, scalar_of, unit_of, units_in
from ..types.layout import Type
from ..types.memory import MOST_REGISTER_BYTES
from ..types.ops import AtomicOp, SubgroupOp
from . import ir, messages
from .builder import KernelBuilder, apply, convert
from .compile_time import literal
from .messages import describe
from .span import KernelError, Span, expected
from .values import (
    Given,
    MemoryValue,
    Value,
    as_scalar,
    class_behind,
    from_leaves,
    is_known,
    is_tuple,
    lift,
    rebuild,
    scalars,
)

_SUBGROUP = {"subgroup_add" if op is SubgroupOp.ADD else op.value: op for op in SubgroupOp}
INVOCATION_METHODS = frozenset({"barrier", "load_uniform", *_SUBGROUP})


def new_array(builder: KernelBuilder, name: str, space: ir.Space, element: object, length: int | None) -> MemoryValue:
    """Adds a memory to the kernel."""
    stride = units_in(element)
    units = None if length is None else length * stride
    builder.memories.append(ir.Memory(name, space, unit_of(element), units, stride))
    return MemoryValue(element, builder.memories[-1])


def index_in(array: MemoryValue, given: Given) -> ir.Expression:
    """A value as an index. Raises KernelError for a constant beyond the end of an array of known length."""
    value, span = as_scalar(given.value), given.span
    if isinstance(value, int):
        if value < 0:
            expected(span, f"an index counted from the front, found {value}, e.g. `data.length - 1`")
        value = literal(value, Type.U32, span)
    if not isinstance(value, ir.Expression) or value.type is not Type.U32:
        hint = "data[row * width + column]" if is_tuple(value) else "data[thread.value]"
        hint = f"data[{messages.converted(value.type, Type.U32)}]" if isinstance(value, ir.Expression) else hint
        expected(span, f"a U32 index, found {describe(value)}, e.g. `{hint}`")
    if isinstance(value, ir.Const) and array.memory.length is not None:
        length = array.memory.length // array.memory.stride
        if value.value >= length:
            expected(span, f"an index below {length}, the array's length, found {value.value}, e.g. `{length - 1}`")
    return value


def length_of(array: MemoryValue, span: Span) -> ir.Expression:
    memory, units = array.memory, ir.Const(units_in(array.element), Type.U32, span)
    length = ir.Length(memory, span) if memory.length is None else ir.Const(memory.length, Type.U32, span)
    return apply(ops.FLOORDIV, (length, units), span)


def load(builder: KernelBuilder, array: MemoryValue, index: ir.Expression, span: Span) -> Value:
    """Emits the loads of an element into fresh variables, and gives its value."""
    memory, unit, stride = array.memory, unit_of(array.element), units_in(array.element)
    index = builder.hold("index", index, span) if stride > 1 else index

    def read(position: int) -> ir.Expression:
        at = _unit_index(index, stride, position, span)
        return builder.result(memory.name + "_at", unit, lambda variable: ir.Load(variable, memory, at, span))

    found: list[ir.Expression] = []
    for leaf in leaves(array.element):
        first = leaf.offset // unit.size
        units = [read(first + i) for i in range(max(1, leaf.type.size // unit.size))]
        found.append(builder.hold("field", _joined(units, leaf.type, span), span))
    return from_leaves(array.element, iter(found))


def store(builder: KernelBuilder, array: MemoryValue, index: ir.Expression, value: Value, span: Span) -> None:
    """Emits the stores of an element. Raises KernelError for a value of another class than the array's elements."""
    element, value, cls = array.element, lift(value, span), class_of(array.element)
    types = [scalar.type for scalar in scalars(value)]
    if class_behind(value) is not cls or types != [leaf.type for leaf in leaves(element)]:
        example = messages.element_of(element, value)
        expected(span, f"{cls.__name__} to store, found {describe(value)}, e.g. `{example}`")
    unit, stride = unit_of(element), units_in(element)
    index = builder.hold("index", index, span) if stride > 1 else index
    for leaf, scalar in zip(leaves(element), scalars(value), strict=True):
        for i, piece in enumerate(_split(builder, leaf, scalar, unit, span)):
            at = _unit_index(index, stride, leaf.offset // unit.size + i, span)
            builder.emit(ir.Store(array.memory, at, piece, span))


def _unit_index(index: ir.Expression, stride: int, position: int, span: Span) -> ir.Expression:
    if stride == 1:
        return index
    scaled = apply(ops.MUL, (index, ir.Const(stride, Type.U32, span)), span)
    return apply(ops.ADD, (scaled, ir.Const(position, Type.U32, span)), span)


def _split(builder: KernelBuilder, leaf: Leaf, value: ir.Expression, unit: Type, span: Span) -> list[ir.Expression]:
    """A field's value as units, the least significant first."""
    if unit is leaf.type:
        return [value]
    wide = Type.U64 if leaf.type.size == 8 else Type.U32
    op = ops.CAST if leaf.type.size < 4 else ops.BITCAST
    whole = builder.hold("whole", convert(op, value, wide, span), span)
    pieces: list[ir.Expression] = []
    for i in range(max(1, leaf.type.size // unit.size)):
        moved = apply(ops.SHR, (whole, ir.Const(i * unit.bits, Type.U32, span)), span)
        if unit.is_narrow:
            moved = convert(ops.CAST, moved, Type.U32, span)
        pieces.append(convert(ops.CAST, moved, unit, span))
    return pieces


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
    return convert(ops.CAST if to.is_narrow else ops.BITCAST, whole, to, span)


def registers(builder: KernelBuilder, given: Sequence[Given], span: Span) -> MemoryValue:
    """`Registers(U32, 8)`."""
    element, length = (one.value for one in given) if len(given) == 2 else (None, None)
    if not (is_known(element) and isinstance(length, int)):
        expected(span, "an element class and a compile-time length, e.g. `Registers(U32, 8)`")
    if length < 1:
        expected(span, f"a length of at least 1, found {length}, e.g. `Registers(U32, 8)`")
    try:
        dtype_of(element)
    except TypeError as error:
        raise KernelError(span, f"{error}, e.g. `Registers(U32, 8)`") from None
    most = MOST_REGISTER_BYTES // bytes_held(element)
    if length > most:
        expected(span, f"at most {most} registers of this class in an array, found {length}, "
                       "e.g. workgroup memory, a parameter `tile: Workgroup[U32]`")  # fmt: skip
    name = ir.unused(f"registers_{len(builder.memories)}", {memory.name for memory in builder.memories})
    return new_array(builder, name, ir.Space.REGISTERS, element, length)


def operand(given: Given, type: Type) -> ir.Expression:
    """An argument as a scalar of a type."""
    value = as_scalar(lift(given.value, given.span))
    if is_known(value):
        return literal(value, type, given.span)
    if not isinstance(value, ir.Expression) or value.type is not type:
        expected(given.span, f"{type}, found {describe(value)}, e.g. `{type}(1)`")
    return value


def memory_method(builder: KernelBuilder, array: MemoryValue, method: str, given: Sequence[Given], span: Span) -> Value:
    """`counts.atomic_add(i, x)`"""
    if scalar_of(array.element) is not Type.U32 or array.memory.space is ir.Space.REGISTERS:
        expected(span, "Storage[U32] or Workgroup[U32] for an atomic, e.g. `counts: Workgroup[U32]`")
    op = AtomicOp(method.removeprefix("atomic_"))
    if len(given) != (1 if op is AtomicOp.LOAD else 2):
        wanted, example = ("an index", "i") if op is AtomicOp.LOAD else ("an index and a value", "i, x")
        expected(span, f"{wanted}, e.g. `counts.{method}({example})`")
    index = index_in(array, given[0])
    value = operand(given[1], Type.U32) if len(given) == 2 else None
    if op is AtomicOp.STORE:
        builder.emit(ir.Atomic(None, op, array.memory, index, value, span))
        return None
    return builder.result("old", Type.U32, lambda variable: ir.Atomic(variable, op, array.memory, index, value, span))


def invocation_method(builder: KernelBuilder, method: str, given: Sequence[Given], span: Span) -> Value:
    """`cx.barrier()`, `cx.shuffle(value, lane)` and others."""
    if method == "barrier":
        if given:
            expected(span, "no argument, e.g. `cx.barrier()`")
        builder.emit(ir.Barrier(span))
        return None
    if method == "load_uniform":
        return _load_uniform(builder, given, span)
    op = _SUBGROUP[method]
    if len(given) != op.operand_count:
        expected(span, f"{op.operand_count} argument(s), e.g. `cx.shuffle(value, lane)`")
    if op.types is not None:
        return _subgroup(builder, op, (operand(given[0], op.types[0]),), op.types[1], span)
    lane = builder.hold("lane", operand(given[1], Type.U32), span)
    value = lift(given[0].value, span)
    if not scalars(value) and not is_known(value):
        expected(span, f"a scalar or a struct to shuffle, found {describe(value)}, e.g. `cx.shuffle(pair, lane)`")
    return rebuild(value, lambda scalar: _shuffle(builder, op, scalar, lane, span))


def _load_uniform(builder: KernelBuilder, given: Sequence[Given], span: Span) -> Value:
    """Emits a barrier, a uniform load and a barrier."""
    array = given[0].value if len(given) == 2 else None
    if (
        not isinstance(array, MemoryValue)
        or array.memory.space is not ir.Space.WORKGROUP
        or scalar_of(array.element) is not Type.U32
    ):
        expected(span, "workgroup memory of U32 and an index, e.g. `cx.load_uniform(shared, 0)`")
    index = index_in(array, given[1])
    name, memory = array.memory.name + "_for_all", array.memory
    builder.emit(ir.Barrier(span))
    found = builder.result(name, Type.U32, lambda variable: ir.Load(variable, memory, index, span, uniform=True))
    builder.emit(ir.Barrier(span))
    return found


def _shuffle(
    builder: KernelBuilder, op: SubgroupOp, value: ir.Expression, lane: ir.Expression, span: Span
) -> ir.Expression:
    wide = convert(ops.CAST, value, Type.U32, span) if value.type.size < 4 else value
    return _joined([_subgroup(builder, op, (wide, lane), wide.type, span)], value.type, span)


def _subgroup(
    builder: KernelBuilder, op: SubgroupOp, operands: tuple[ir.Expression, ...], type: Type, span: Span
) -> ir.Read:
    return builder.result(op.value, type, lambda variable: ir.Subgroup(variable, op, operands, span))
