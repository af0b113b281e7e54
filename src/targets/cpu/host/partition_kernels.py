"""The compiled two-way partition of large arrays. Imported only for those: it loads Numba.

An x86 processor with AVX-512 parts a vector of elements by two compressions; any other takes them one by one, without
branches. Numba keeps compiled code by processor, so a cache may be shared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir as llvm
from numba import types
from numba.extending import intrinsic

from ..jit import inner, njit
from ..keeping import kept

if TYPE_CHECKING:
    from numba.core.typing import Signature
    from numba.extending import CodegenContext, TypingContext

Emitter: TypeAlias = "Callable[[CodegenContext, llvm.IRBuilder, Signature, tuple[llvm.Value, ...]], llvm.Value]"
# 32- or 64-bit elements that np.sort orders: Numba compiles a version for each.
Elements: TypeAlias = npt.NDArray[Any]

Counts: TypeAlias = npt.NDArray[np.int64]

VECTOR_BYTES = 64
_PATIENCE = 1 << 13  # looks at what another thread has come to: some ten microseconds


@intrinsic
def part_vector(
    typing: TypingContext, source: types.Type, pivot: types.Number, lows: types.Type, highs: types.Type
) -> tuple[Signature, Emitter]:
    """Parts the 64 bytes of elements at address `source`: those below `pivot` go to address `lows`, all others to
    `highs`, in their order. Up to 64 bytes are written at each: what is too much is anything. The count of lows."""

    def emit(context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, values: Any) -> llvm.Value:
        bits = 64 if pivot in (types.int64, types.uint64, types.float64) else 32
        parting = _Parting(builder, pivot, values[1], bits)
        return (parting.by_compression if _has_compress(context) else parting.one_by_one)(values[0], *values[2:])

    return types.intp(types.uintp, pivot, types.uintp, types.uintp), emit


def _has_compress(context: CodegenContext) -> bool:
    """Whether the processor that Numba compiles for compresses vectors of 32 and 64 bits."""
    _, _, features = context.codegen().magic_tuple()
    return "+avx512f" in features.split(",")


class _Parting:
    """Writes the LLVM instructions for one vector."""

    def __init__(self, builder: llvm.IRBuilder, type: types.Number, pivot: llvm.Value, bits: int) -> None:
        self.builder = builder
        self.type = type
        self.pivot = pivot
        self.bits = bits
        self.lanes = 8 * VECTOR_BYTES // bits
        self.element = pivot.type

    def by_compression(self, source: llvm.Value, lows: llvm.Value, highs: llvm.Value) -> llvm.Value:
        builder, lanes = self.builder, self.lanes
        vector, words = llvm.VectorType(self.element, lanes), llvm.VectorType(llvm.IntType(self.bits), lanes)
        mask = llvm.VectorType(llvm.IntType(1), lanes)
        nothing = llvm.Constant(vector, llvm.Undefined)
        first = builder.insert_element(nothing, self.pivot, llvm.IntType(32)(0))
        everywhere = llvm.Constant(llvm.VectorType(llvm.IntType(32), lanes), [0] * lanes)
        pivots = builder.shuffle_vector(first, nothing, everywhere)
        address = builder.inttoptr(source, vector.as_pointer())
        elements = builder.load(address, align=self.bits // 8, typ=vector)
        below = self._less(elements, pivots)
        others = builder.xor(below, llvm.Constant(mask, [True] * lanes))
        compress = self._declared(
            f"llvm.x86.avx512.mask.compress.v{lanes}i{self.bits}", llvm.FunctionType(words, [words, words, mask])
        )
        moved = builder.bitcast(elements, words)
        unused = llvm.Constant(words, llvm.Undefined)
        for chosen, target in ((below, lows), (others, highs)):
            compressed = builder.call(compress, [moved, unused, chosen])
            builder.store(compressed, builder.inttoptr(target, words.as_pointer()), align=self.bits // 8)
        count = builder.ctpop(builder.bitcast(below, llvm.IntType(lanes)))
        return builder.zext(count, llvm.IntType(64))

    def one_by_one(self, source: llvm.Value, lows: llvm.Value, highs: llvm.Value) -> llvm.Value:
        builder, index = self.builder, llvm.IntType(64)
        pointer = self.element.as_pointer()
        source, lows, highs = (builder.inttoptr(place, pointer) for place in (source, lows, highs))
        count: llvm.Value = index(0)
        for lane in range(self.lanes):
            element = builder.load(builder.gep(source, [index(lane)], source_etype=self.element), typ=self.element)
            builder.store(element, builder.gep(lows, [count], source_etype=self.element))
            past = builder.sub(index(lane), count)
            builder.store(element, builder.gep(highs, [past], source_etype=self.element))
            count = builder.add(count, builder.zext(self._less(element, self.pivot), index))
        return count

    def _less(self, left: llvm.Value, right: llvm.Value) -> llvm.Value:
        if isinstance(self.type, types.Float):
            return self.builder.fcmp_ordered("<", left, right)
        if isinstance(self.type, types.Integer) and self.type.signed:
            return self.builder.icmp_signed("<", left, right)
        return self.builder.icmp_unsigned("<", left, right)

    def _declared(self, name: str, type: llvm.FunctionType) -> llvm.Function:
        known = self.builder.module.globals.get(name)
        return known if isinstance(known, llvm.Function) else llvm.Function(self.builder.module, type, name)


@intrinsic
def claim(typing: TypingContext, counter: types.Type, amount: types.Type) -> tuple[Signature, Emitter]:
    """Adds to the number at an address, in one step whatever other threads do. What it was before. Who finds the sum
    there finds all that was written before, too."""

    def emit(context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, values: Any) -> llvm.Value:
        pointer = builder.inttoptr(values[0], llvm.IntType(64).as_pointer())
        return builder.atomic_rmw("add", pointer, values[1], "acq_rel")

    return types.int64(types.uintp, types.int64), emit


@intrinsic
def arrived(typing: TypingContext, counter: types.Type) -> tuple[Signature, Emitter]:
    """The number at an address, as `claim` leaves it."""

    def emit(context: CodegenContext, builder: llvm.IRBuilder, signature: Signature, values: Any) -> llvm.Value:
        pointer = builder.inttoptr(values[0], llvm.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8, typ=llvm.IntType(64))

    return types.int64(types.uintp), emit


@kept
@njit(nogil=True)
def part_all(
    source: Elements, pivots: Elements, target: Elements, spare: Elements, block: int, claimed: Counts, bounds: Counts,
    first: int,
) -> bool:  # fmt: skip
    """This thread's share of all passes, each of which parts every part in two, to and fro between `spare` and
    `target`; whether that is all there is to do. If not, another thread is late, and who calls again goes on.

    `bounds` becomes those of all parts. Row 1 of `claimed` is the whole, rows 2 * k and 2 * k + 1 are the halves of k.
    Threads that start with different parts, `first`, get less into each other's way.
    """
    parts = pivots.size + 1
    bounds[0], bounds[parts] = 0, source.size
    row, to_target = 2, True  # where the pass goes: the last one there
    while row < parts:
        row, to_target = 2 * row, not to_target
    row = 1
    ended = _pass(source, pivots, target if to_target else spare, block, claimed, bounds, row, first)
    while ended and 2 * row < parts:
        row, to_target = 2 * row, not to_target
        if to_target:
            ended = _pass(spare, pivots, target, block, claimed, bounds, row, first)
        else:
            ended = _pass(target, pivots, spare, block, claimed, bounds, row, first)
    return ended


@inner
def _pass(
    source: Elements, pivots: Elements, target: Elements, block: int, claimed: Counts, bounds: Counts, row: int,
    first: int,
) -> bool:  # fmt: skip
    """Parts `row` parts in two, and waits for the other threads, though not for long."""
    stride = (pivots.size + 1) // row
    for number in range(row):
        mine = (first + number) % row
        start, stop = bounds[mine * stride], bounds[(mine + 1) * stride]
        pivot = pivots[mine * stride + stride // 2 - 1]
        part(source[start:stop], pivot, target[start:stop], block, claimed[row + mine])
    for mine in range(row):
        start, stop = bounds[mine * stride], bounds[(mine + 1) * stride]
        rounds = 0
        while arrived(claimed[row + mine].ctypes.data + 24) < stop - start:
            rounds += 1
            if rounds == _PATIENCE:
                return False
        bounds[mine * stride + stride // 2] = start + claimed[row + mine][1]
    return True


@inner
def part(source: Elements, pivot: Any, target: Elements, block: int, claimed: Counts) -> None:
    """Copies elements below the pivot to the front of `target`, all others to its back: this thread's share of them.

    Threads take block by block, count it, claim as much room as it needs, and move it, which finds it in the cache.
    `claimed`, which all of them add to, says how much of the source, the front and the back is taken, and how much is
    moved.
    """
    lanes = VECTOR_BYTES // source.itemsize
    beyond = np.empty((2, lanes), source.dtype)  # made before anything is claimed: it may fail
    while True:
        start = claim(claimed.ctypes.data, block)
        if start >= source.size:
            return
        own = source[start : start + block]
        low = _count_below(own, pivot)
        high = own.size - low
        front = claim(claimed.ctypes.data + 8, low)
        back = target.size - claim(claimed.ctypes.data + 16, high)
        _move(own, pivot, target[front : front + low], target[back - high : back], beyond)
        claim(claimed.ctypes.data + 24, own.size)


@inner
def _count_below(source: Elements, pivot: Any) -> int:
    """How many elements are below the pivot. A NaN is not."""
    count = 0
    for index in range(source.size):
        count += source[index] < pivot
    return count


@inner
def _move(source: Elements, pivot: Any, lows: Elements, highs: Elements, beyond: Elements) -> None:
    """Copies elements below the pivot to `lows`, all others to `highs`: exactly as many as are there.

    Nothing is written beyond them, whatever another thread does to the source meanwhile.
    """
    size = source.itemsize
    lanes = VECTOR_BYTES // size
    spare_lows, spare_highs = beyond[0], beyond[1]
    from_, to_lows, to_highs = source.ctypes.data, lows.ctypes.data, highs.ctypes.data
    low, high = 0, 0
    whole = source.size - source.size % lanes
    for start in range(0, whole, lanes):
        # Whole vectors are stored: near an end they go elsewhere first.
        low_fits, high_fits = low + lanes <= lows.size, high + lanes <= highs.size
        low_address = to_lows + low * size if low_fits else spare_lows.ctypes.data
        high_address = to_highs + high * size if high_fits else spare_highs.ctypes.data
        count = part_vector(from_ + start * size, pivot, low_address, high_address)
        if not low_fits:
            for k in range(min(count, lows.size - low)):
                lows[low + k] = spare_lows[k]
        if not high_fits:
            for k in range(min(lanes - count, highs.size - high)):
                highs[high + k] = spare_highs[k]
        low += count
        high += lanes - count
    for start in range(whole, source.size):
        element = source[start]
        if element < pivot:
            if low < lows.size:
                lows[low] = element
            low += 1
        else:
            if high < highs.size:
                highs[high] = element
            high += 1
