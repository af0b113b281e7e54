"""Prefix scans: of any monoid, inclusive or exclusive, and NumPy's cumulative sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..operations.scan import Cumsum, Scan
from ..types.indices import ScanKind
from ..types.specs import HostArray
from .arguments import axis_or_none, check_like, check_policy, checked_flag, index_of
from .call import call
from .signatures import AxisOrAll, F, Nested, Other, Signed, Unsigned, Where
from .signatures_monoids import is_scan

if TYPE_CHECKING:
    from ..types.monoids import Monoid
    from ..types.params import ScanPolicy

E = TypeVar("E")
S = TypeVar("S")


@is_scan
def scan(
    x: object, /, monoid: Monoid[E, S], *, axis: SupportsIndex = -1, exclusive: bool = False,
    target: Where = "auto", policy: ScanPolicy | None = None,
) -> object:  # fmt: skip
    """The prefix scan of an array by a monoid, built in or your own: for every element the state of all up to it.

    With `exclusive` of all before it, so that the first state is the monoid's identity. The elements are read as
    `reduce` reads them, and are combined in their order: `combine` must be associative, nothing more. States come in an
    array of x's kind; those of several fields as a structured dtype, in host memory.
    """
    if axis.__class__ is not int:
        axis = index_of(axis)
    if exclusive is not False:
        exclusive = checked_flag("exclusive", exclusive)
    return call(_scan, (axis, exclusive, policy, monoid), target, x)


def _scan(axis: int, exclusive: bool, policy: ScanPolicy | None, monoid: Monoid[E, S]) -> Scan:
    from ..types.params import ScanPolicy

    check_like("monoid", monoid)
    check_policy(policy, ScanPolicy)
    return Scan(axis, ScanKind.EXCLUSIVE if exclusive else ScanKind.INCLUSIVE, of=monoid, policy=policy)


@overload
def cumsum(x: NDArray[F], /, *, axis: AxisOrAll = None, target: Where = "auto") -> NDArray[F]: ...
@overload
def cumsum(x: Signed, /, *, axis: AxisOrAll = None, target: Where = "auto") -> NDArray[np.int64]: ...
@overload
def cumsum(x: Unsigned, /, *, axis: AxisOrAll = None, target: Where = "auto") -> NDArray[np.uint64]: ...
@overload  # the ignores: to Python an int is a float, so these two overlap, and are read in turn
def cumsum(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
    x: Nested[int], /, *, axis: AxisOrAll = None, target: Where = "auto"
) -> NDArray[np.int64]: ...
@overload
def cumsum(x: Nested[float], /, *, axis: AxisOrAll = None, target: Where = "auto") -> NDArray[np.float64]: ...
@overload
def cumsum(x: Other, /, *, axis: AxisOrAll = None, target: Where = "auto") -> Other: ...
@overload
def cumsum(x: ArrayLike, /, *, axis: AxisOrAll = None, target: Where = "auto") -> HostArray: ...
def cumsum(x: object, /, *, axis: AxisOrAll = None, target: Where = "auto") -> object:
    """The cumulative sum along an axis, in the dtype of NumPy's `cumsum`.

    `axis=None` takes the flattened array. Floats are added in another order than NumPy's, from left to right within
    blocks, and the same way every time; float16 in 32 bits, rounded once, where NumPy rounds after each element.
    """
    if axis is not None and axis.__class__ is not int:
        axis = axis_or_none(axis)
    return call(Cumsum, (axis,), target, x)
