"""What reductions and scans share: operations over monoids, with NumPy's result dtypes."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..machine import Capability, Limits, TargetInfo
from ..types.dtypes import number_for
from ..types.elements import dtype_of, leaves
from ..types.errors import CapabilityError, UnsupportedTypeError
from ..types.layout import Type
from ..types.scalars import I64, U32, U64
from ..types.specs import DType, Spec
from .base import Operation, Part, Work, Works, dtype_within, require_methods, require_readable, single
from .pieces import fits_binding, require_counted

if TYPE_CHECKING:
    from ..kernel.launch import Schedule
    from ..types.finishes import Finish
    from ..types.monoids import Monoid
    from ..types.params import ReducePolicy, ScanPolicy


class OverMonoid(Operation):
    """An operation that combines the elements of each row."""

    policy: ReducePolicy | ScanPolicy | None = None  # the caller's own

    @abstractmethod
    def monoid(self, given: Spec) -> Monoid[Any, Any]:
        """The monoid over elements as kernels read them."""

    def finish(self, given: Spec) -> Finish[Any, Any]:
        """What is written of a state: what NumPy's function returns."""
        from ..types.finishes import finish_of

        return finish_of(self.monoid(given))

    @property
    def ignores_indices(self) -> bool:
        """Whether the indices of elements in their row do not matter."""
        return False

    def largest(self, given: Spec) -> int:
        """Bytes of what is bound for an element, of the largest buffer."""
        return given.dtype.itemsize

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        (x,) = given
        monoid = self.monoid(x)
        # What `outputs` of a user's own has let pass: kernels would take the bits of one dtype for another.
        require_readable("x", x, monoid.element, type(self).__name__)
        require_floats(monoid, info)
        found = self.as_it_lies(x, info)
        if found is not None and is_within(found, info.limits):
            return Works((single(found, {"data": Part(0, x.size), "results": Part(1, x.size)}, as_it_lies=True),))
        length = self.rows(x)[1]
        if fits_binding(length, self.largest(x), info):
            return Works((self.in_batches(x, info),))
        if not self.ignores_indices:
            require_counted(length, info)
        return self.in_pieces(x, info)

    @abstractmethod
    def as_it_lies(self, given: Spec, info: TargetInfo) -> Schedule | None:
        """A schedule that reads the strided array in place; None if it must be packed, or read in several runs."""

    @abstractmethod
    def in_batches(self, given: Spec, info: TargetInfo) -> Work:
        """Of whole rows."""

    @abstractmethod
    def in_pieces(self, given: Spec, info: TargetInfo) -> Works:
        """A work for each piece of each row, for rows that no binding holds."""


def is_within(schedule: Schedule, limits: Limits) -> bool:
    """Whether a target has as many workgroups as each launch takes, and binds its buffers, scratch memory included."""
    from ..kernel.launch import is_buffer

    return all(
        launch.grid.groups <= limits.groups
        and all(bound.nbytes <= limits.storage_bytes for bound in filter(is_buffer, launch.arguments))
        for launch in schedule.launches
    )


@attrs.frozen(slots=False)  # so that it stands beside another base with fields
class ByMonoid(OverMonoid):
    """An operation by a caller's monoid, whose states are the result."""

    of: Monoid[Any, Any] = attrs.field(kw_only=True)  # whose laws a target may check on the data
    policy: ReducePolicy | ScanPolicy | None = attrs.field(default=None, kw_only=True)

    def monoid(self, given: Spec) -> Monoid[Any, Any]:
        from ..types.monoids import over_bools

        return over_bools(self.of) if given.dtype.kind == "b" else self.of

    def finish(self, given: Spec) -> Finish[Any, Any]:
        from ..types.finishes import AsItIs

        return AsItIs(self.of.state)

    def result(self, given: Spec) -> DType:
        """The dtype of states; raises UnsupportedTypeError if the monoid does not read the array, or has none."""
        reader = type(self.of).__name__
        require_readable("x", given, self.of.element, reader)
        state = dtype_within(reader, "state", self.of.state)
        require_methods(self.of, identity=0, lift=2, combine=2)
        return state


_COUNTS_OR_ADDS = ("argmin", "argmax", "sum", "prod", "cumsum")


_NAT = -(1 << 63)


@attrs.frozen(cache_hash=True)
class SumOfTimes:
    """The sum of timedelta64, of which the least number is NaT, and stays so whatever is added: for arrays that only a
    device can add up."""

    element: type[U64] = U64
    state: type[I64] = I64

    def identity(self) -> I64:
        return I64(0)

    def lift(self, element: U64, index: U32) -> I64:
        return I64(element)

    def combine(self, a: I64, b: I64) -> I64:
        return a if a == _NAT else b if b == _NAT else a + b


def of_numbers(make: Callable[[Any], Monoid[Any, Any]], dtype: DType) -> Monoid[Any, Any]:
    """A monoid of an array's numbers; if they are times, which can only be added, their sum."""
    number = number_for(dtype, "x")
    return SumOfTimes() if dtype.kind == "m" else make(number)


@lru_cache(maxsize=512)
def result_dtype(function: str, dtype: DType) -> DType:
    """The result dtype of NumPy's function on a 64-bit platform."""
    numpys: Callable[..., Any] = getattr(np, function)
    try:
        found: DType = np.asarray(numpys(np.zeros((1, 1), dtype), axis=1)).dtype
    except TypeError as error:
        raise UnsupportedTypeError(f"x: {function} takes no elements of dtype {dtype}") from error
    # In WebAssembly NumPy counts and adds in 32 bits.
    return np.dtype(f"{found.kind}8") if function in _COUNTS_OR_ADDS and found.kind in "iu" else found


def adds_as_numpy(monoid: Monoid[Any, Any], function: str, dtype: DType) -> bool:
    """Whether a built-in monoid gives the same as NumPy's function, result dtype included."""
    try:
        is_its = getattr(monoid, "number", None) == number_for(dtype)
    except UnsupportedTypeError:
        return False
    return is_its and dtype.isnative and dtype_of(monoid.state) == result_dtype(function, dtype)


# In a page there is no LLVM for "cpu".
_HAS_DOUBLES = "simulator" if sys.platform == "emscripten" else "cpu"


def require_floats(monoid: Monoid[Any, Any], info: TargetInfo) -> None:
    """Raises CapabilityError for 64-bit float arithmetic on a target without it, before anything is compiled."""
    if Capability.FLOAT64 in info.capabilities:
        return
    if any(leaf.type is Type.F64 for element in (monoid.element, monoid.state) for leaf in leaves(element)):
        raise CapabilityError(
            f"x: {type(monoid).__name__} of float64 needs {Capability.FLOAT64.value}, which target {info.name!r} "
            f"({info.adapter}) lacks; use target={_HAS_DOUBLES!r}, or convert to float32"
        )
