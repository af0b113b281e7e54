"""Subgroup operations in NumPy, on a 2D array with a row for each subgroup and a column for each lane."""

from __future__ import annotations

from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ...types.ops import SubgroupOp
from ..host_buffers import Values
from .races import Mask

Numbers: TypeAlias = npt.NDArray[np.uint32]


def combine(op: SubgroupOp, values: Values, present: Mask) -> Values:
    """The operations of one operand. `present` masks the existing lanes: the last subgroup may be partial."""
    width = values.shape[1]
    if op is SubgroupOp.BALLOT:
        votes = cast(Mask, values) & present
        return np.broadcast_to(_mask(votes)[:, None], values.shape)
    if op is SubgroupOp.MATCH:
        alike = (values[:, :, None] == values[:, None, :]) & present[:, None, :]
        return _mask(alike)
    counted = np.where(present, cast(Numbers, values), np.uint32(0))
    sums = np.cumsum(counted, axis=1, dtype=np.uint32)
    if op is SubgroupOp.ADD:
        return np.broadcast_to(sums[:, width - 1 :], values.shape)
    assert op is SubgroupOp.EXCLUSIVE_ADD, op
    return sums - counted


def source_lane(op: SubgroupOp, lanes: Numbers, operand: Numbers, size: int, count: Numbers) -> npt.NDArray[np.int64]:
    """The lane that a shuffle reads in a subgroup of `size` lanes of which `count` exist; may be one that does not."""
    mine, asked = lanes.astype(np.int64), operand.astype(np.int64)
    if op is SubgroupOp.SHUFFLE:
        return asked % size
    if op is SubgroupOp.SHUFFLE_XOR:
        return mine ^ asked
    wanted = mine - asked if op is SubgroupOp.SHUFFLE_UP else mine + asked
    return np.where((wanted >= 0) & (wanted < count), wanted, mine)


def _mask(votes: Mask) -> npt.NDArray[np.uint64]:
    """Packs the last axis into lane masks, bit i for lane i."""
    bits = np.uint64(1) << np.arange(votes.shape[-1], dtype=np.uint64)
    return cast("npt.NDArray[np.uint64]", np.sum(np.where(votes, bits, np.uint64(0)), axis=-1))
