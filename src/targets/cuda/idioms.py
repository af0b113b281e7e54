"""Idioms that Numba CUDA writes in instructions of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir
from numba.cuda import types

from .lanes import lanes_alike
from .lower import I32, Lowering, constant, lowered
from .workgroup import shared_element

if TYPE_CHECKING:
    from numba.extending import CodegenContext

# The lanes go in step: all of them have read before one writes, and it has written before they read again. The last
# lane of each digit writes, for the digit's lanes up to it are all of them. Cheaper than an atomic and a shuffle.
_TAKE = """{
.reg .pred last; .reg .u32 before, upto;
and.b32 upto, $2, $3;
setp.eq.u32 last, upto, $2;
popc.b32 upto, upto;
ld.volatile.shared.u32 before, [$1];
add.u32 upto, upto, before;
bar.warp.sync $4;
@last st.volatile.shared.u32 [$1], upto;
bar.warp.sync $4;
sub.u32 $0, upto, 1; }"""


@lowered
def take_in_order(
    mask: types.Type, counters: types.Type, first: types.Type, digit: types.Type,
    bits: types.Type,
) -> Lowering | None:  # fmt: skip
    """Counts a lane at its digit's counter, of which `first` is that of digit 0; gives the count before it."""
    if not isinstance(bits, types.IntegerLiteral) or not isinstance(counters, types.Array):
        return None
    count = int(bits.literal_value)

    def emit(context: CodegenContext, builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        mask, digit = args[0], args[3]
        assert isinstance(counters, types.Array)
        address = shared_element(context, builder, counters, args[1:])
        lane = builder.call(ir.InlineAsm(ir.FunctionType(I32, []), "mov.u32 $0, %laneid;", "=r"), [])
        upto = builder.sub(builder.shl(constant(2), lane), constant(1))
        alike = lanes_alike(builder, mask, digit, count)
        kind = ir.FunctionType(I32, [address.type, I32, I32, I32])
        assembly = ir.InlineAsm(kind, _TAKE.replace("\n", " "), "=r,l,r,r,r,~{memory}", side_effect=True)
        return builder.call(assembly, [address, alike, upto, mask])

    return types.uint32(types.uint32, counters, types.uint32, types.uint32, bits), emit
