"""An operation of one's own: the upper word of a product, and by it words spread evenly over buckets.

The rows say what it means and how one target writes it. A target that lacks the row refuses the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpusort import CapabilityError, Target, target
from gpusort.kernel.language import U32, Buffer, Grid, Invocation, Role, Schedule, Storage, kernel
from gpusort.types.intrinsics import operation
from gpusort.types.layout import Type
from gpusort.types.ops import Op

Words = npt.NDArray[np.uint32]


def _two_words(types: Sequence[Type]) -> Type | None:
    return Type.U32 if tuple(types) == (Type.U32, Type.U32) else None


def _upper(a: Words, b: Words) -> Words:
    return (a.astype(np.uint64) * b >> np.uint64(32)).astype(np.uint32)


# Its meaning, on arrays: the simulator runs it, and the reader where both operands are known.
MULTIPLY_HIGH = Op("multiply_high", _two_words, _upper, "two U32")
# How C writes it.
C_ROW = "(uint32_t)((uint64_t){0} * {1} >> 32)"


@operation(MULTIPLY_HIGH)
def multiply_high(a: U32, b: U32) -> U32:
    """The upper 32 of the 64 bits of a product. What kernels call, and what the target `python` runs."""
    return U32(int(a) * int(b) >> 32)


@kernel
def spread(cx: Invocation, data: Storage[U32], buckets: U32) -> None:
    """Replaces each word by the number of its bucket."""
    if cx.global_id < data.length:
        data[cx.global_id] = multiply_high(data[cx.global_id], buckets)


def buckets_of(words: Words, count: int, where: Target) -> Words:
    found = words.copy()
    data = Buffer("data", U32, len(words), Role.INOUT)
    size = min(64, where.info.limits.group_size)
    launch = spread.launch(Grid(-(-len(words) // size), size), data, U32(count))
    where.run(Schedule((data,), (launch,)), {"data": found})
    return found


def main(where: Target) -> None:
    words = np.random.default_rng(1).integers(0, 1 << 32, 1000, dtype=np.uint32)
    found = buckets_of(words, 10, where)
    print(np.bincount(found))
    assert found.tolist() == [int(word) * 10 >> 32 for word in words]


if __name__ == "__main__":
    main(target("simulator"))
    try:
        main(target("cpu"))
    except CapabilityError as error:
        print(error)
