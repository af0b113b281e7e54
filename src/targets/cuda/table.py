"""The CUDA target's operation table, where it is another than the CPU's; and what its kernels' texts call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...kernel import ir
from ...types.ops import SubgroupOp
from ..kernel_text import OPERATIONS
from ..render import Row, render_operation

# No name of a kernel's may be one of these.
CALLED = frozenset([
    "atomic_add", "atomic_and", "atomic_exchange", "atomic_load", "atomic_max", "atomic_min", "atomic_or",
    "atomic_store", "atomic_xor", "ballot", "byte", "lanes_add", "lanes_exclusive_add", "load_workgroup", "match",
    "match_and_rank", "match_low_bits", "multiply_rounded", "shuffle", "shuffle_down", "shuffle_up", "shuffle_xor",
    "store_workgroup",
])  # fmt: skip


def _product(node: ir.Apply, operands: Sequence[str]) -> str:
    """Float products by a function that NVVM cannot contract to a fused multiply-add."""
    if node.type.is_float:
        return f"multiply_rounded({operands[0]}, {operands[1]})"
    return render_operation("cuda", OPERATIONS, node, operands)


CUDA_OPERATIONS: Mapping[str, Row] = {**OPERATIONS, "mul": _product}

# Subgroup operations that are called by another name.
LANE_OPERATIONS: Mapping[SubgroupOp, str] = {
    SubgroupOp.ADD: "lanes_add",
    SubgroupOp.EXCLUSIVE_ADD: "lanes_exclusive_add",
}
