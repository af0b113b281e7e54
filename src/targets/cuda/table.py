"""How each operation reads in Numba CUDA source: a row an operation, most of them a call of an intrinsic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...kernel import ir
from ...types.layout import Type
from ...types.ops import SubgroupOp
from ..numba_text import OPERATIONS, TYPE_NAMES
from ..render import Row, render_operation

# The intrinsics a module may import, by where they are defined.
INTRINSICS: Mapping[str, Sequence[str]] = {
    "lanes": (
        "ballot", "lanes_add", "lanes_exclusive_add", "match", "match_low_bits", "shuffle", "shuffle_down",
        "shuffle_up", "shuffle_xor", "match_and_rank",
    ),
    "memory": (
        "atomic_add", "atomic_and", "atomic_exchange", "atomic_load", "atomic_max", "atomic_min", "atomic_or",
        "atomic_store", "atomic_xor", "load_workgroup", "store_workgroup",
    ),
    "ops": (
        "bits_f4", "bits_f8", "bits_i4", "bits_i8", "bits_u4", "bits_u8", "byte", "choose", "count_ones", "divide",
        "leading_zeros", "maximum", "minimum", "multiply_rounded", "remainder", "shift_left", "shift_right",
        "trailing_zeros",
    ),
}  # fmt: skip


def _product(node: ir.Apply, operands: Sequence[str]) -> str:
    """NVVM may fuse a product of floats with the sum behind it, so those have a form of their own."""
    if node.type.is_float:
        return f"multiply_rounded({operands[0]}, {operands[1]})"
    return render_operation("cuda", OPERATIONS, node, operands)


def _cast(node: ir.Apply, operands: Sequence[str]) -> str:
    """Numba goes from a Bool to a float by way of an integer."""
    value = f"u4({operands[0]})" if node.operands[0].type is Type.BOOL else operands[0]
    return f"{TYPE_NAMES[node.type]}({value})"


CUDA_OPERATIONS: Mapping[str, Row] = {
    **OPERATIONS,
    "mul": _product,
    "floordiv": "divide({0}, {1})",
    "mod": "remainder({0}, {1})",
    "shl": "shift_left({0}, {1})",
    "shr": "shift_right({0}, {1})",
    "min": "minimum({0}, {1})",
    "max": "maximum({0}, {1})",
    "select": "choose({0}, {1}, {2})",
    "leading_zeros": "leading_zeros({0})",
    "trailing_zeros": "trailing_zeros({0})",
    "cast": _cast,
}

# Those that are called otherwise than the operation.
LANE_OPERATIONS: Mapping[SubgroupOp, str] = {
    SubgroupOp.ADD: "lanes_add",
    SubgroupOp.EXCLUSIVE_ADD: "lanes_exclusive_add",
}
