"""The CUDA target's operation table: how each IR operation is written in a kernel's source, mostly as an intrinsic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...kernel import ir
from ...types.layout import Type
from ...types.ops import SubgroupOp
from ..kernel_text import OPERATIONS, TYPE_NAMES
from ..render import Row

# The intrinsics that a generated module may import, by the module that defines them.
INTRINSICS: Mapping[str, Sequence[str]] = {
    "arithmetic": (
        "add", "as_i4", "as_i8", "as_u1", "as_u2", "as_u4", "as_u8", "bits_and", "bits_not", "bits_or", "bits_xor",
        "equal", "greater", "greater_equal", "less", "less_equal", "multiply", "negative", "quotient", "subtract",
        "unequal",
    ),
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
    """Float products by an intrinsic that NVVM cannot contract to a fused multiply-add."""
    return f"{'multiply_rounded' if node.type.is_float else 'multiply'}({operands[0]}, {operands[1]})"


def _cast(node: ir.Apply, operands: Sequence[str]) -> str:
    """Integer to integer by an intrinsic. From Bool to float by way of U32."""
    given = node.operands[0].type
    if node.type.is_integer and not given.is_float:
        return f"as_{TYPE_NAMES[node.type]}({operands[0]})"
    value = f"as_u4({operands[0]})" if given is Type.BOOL else operands[0]
    return f"{TYPE_NAMES[node.type]}({value})"


def _bitcast(node: ir.Apply, operands: Sequence[str]) -> str:
    """Between integers of one width a conversion keeps the bits."""
    of_integers = node.type.is_integer and node.operands[0].type.is_integer
    return f"{'as' if of_integers else 'bits'}_{TYPE_NAMES[node.type]}({operands[0]})"


CUDA_OPERATIONS: Mapping[str, Row] = {
    **OPERATIONS,
    "add": "add({0}, {1})",
    "add_nowrap": "add({0}, {1})",
    "sub": "subtract({0}, {1})",
    "mul": _product,
    "div": "quotient({0}, {1})",
    "floordiv": "divide({0}, {1})",
    "mod": "remainder({0}, {1})",
    "neg": "negative({0})",
    "and": "bits_and({0}, {1})",
    "or": "bits_or({0}, {1})",
    "xor": "bits_xor({0}, {1})",
    "invert": "bits_not({0})",
    "shl": "shift_left({0}, {1})",
    "shr": "shift_right({0}, {1})",
    "eq": "equal({0}, {1})",
    "ne": "unequal({0}, {1})",
    "lt": "less({0}, {1})",
    "le": "less_equal({0}, {1})",
    "gt": "greater({0}, {1})",
    "ge": "greater_equal({0}, {1})",
    "min": "minimum({0}, {1})",
    "max": "maximum({0}, {1})",
    "select": "choose({0}, {1}, {2})",
    "leading_zeros": "leading_zeros({0})",
    "trailing_zeros": "trailing_zeros({0})",
    "cast": _cast,
    "bitcast": _bitcast,
}

# Subgroup operations whose intrinsic has another name.
LANE_OPERATIONS: Mapping[SubgroupOp, str] = {
    SubgroupOp.ADD: "lanes_add",
    SubgroupOp.EXCLUSIVE_ADD: "lanes_exclusive_add",
}
