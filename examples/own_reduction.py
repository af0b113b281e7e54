"""A function of arrays of one's own, as NumPy's ptp: the range of the elements of each row, along any axes.

It has a monoid, a finish (what is written of its last state), and shapes and dtypes of its results. Array libraries,
strides, batches, targets and `gpusort.plan` come with the base.
"""

from __future__ import annotations

import attrs
import numpy as np

import gpusort
from gpusort.api.call import call
from gpusort.kernel.language import F32, U32
from gpusort.operations.base import Output
from gpusort.operations.reduce import Reduction
from gpusort.types.dtypes import native
from gpusort.types.specs import Spec


@attrs.frozen
class Range:
    low: F32
    high: F32


@attrs.frozen
class Ranges:
    """Satisfies Monoid[F32, Range], and Finish[Range, F32]."""

    element: type[F32] = F32
    state: type[Range] = Range
    result: type[F32] = F32

    def identity(self) -> Range:
        return Range(F32(np.inf), F32(-np.inf))

    def lift(self, element: F32, index: U32) -> Range:
        return Range(element, element)

    def combine(self, a: Range, b: Range) -> Range:
        return Range(b.low if b.low < a.low else a.low, b.high if b.high > a.high else a.high)

    def finish(self, state: Range) -> F32:
        return state.high - state.low


@attrs.frozen
class PeakToPeak(Reduction):
    """Compares by value, with the axes and keepdims of its base: it is part of a plan's key."""

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        if native(x.dtype) != np.float32:
            raise gpusort.UnsupportedTypeError(f"x: expected float32, found {x.dtype}")
        if self.rows(x)[1] == 0:
            raise gpusort.InvalidArgumentError("x: an empty row has no range")
        return (Output(self.shape(x), x.dtype, (), is_scalar=not self.keepdims),)

    def monoid(self, given: Spec) -> Ranges:
        return Ranges()

    def finish(self, given: Spec) -> Ranges:
        return Ranges()

    @property
    def ignores_indices(self) -> bool:
        return True  # so axes that do not merge are reduced one after another, without a packed copy


def ptp(
    x: object, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, target: str = "auto"
) -> object:
    return call(PeakToPeak, (axis, keepdims), target, x)


def main(where: str = "cpu") -> None:
    x = np.random.default_rng(1).standard_normal((6, 7, 8), dtype=np.float32)
    for axis in (None, 0, -1, (0, 2)):
        assert np.array_equal(np.asarray(ptp(x, axis=axis, target=where)), np.ptp(x, axis=axis))
    swapped = x.astype(x.dtype.newbyteorder())  # of the other byte order, which is packed first
    assert ptp(swapped, target=where) == np.ptp(x)
    prepared = gpusort.plan(ptp, x.T, axis=1, target=where)  # of a transposed array, which is not copied
    assert np.array_equal(np.asarray(prepared(x.T)), np.ptp(x.T, axis=1))
    print(ptp(x, axis=(1, 2), target=where))


if __name__ == "__main__":
    main()
