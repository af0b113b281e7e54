"""Scans along an axis: what a monoid makes of every element and all before it, and NumPy's cumulative sum."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import attrs
import numpy as np

from ..algos.choice import fitting_scan
from ..algos.fit import fitted_scan_policy
from ..algos.scan import scan_rows, shares
from ..machine import TargetInfo
from ..types.dtypes import number_for
from ..types.elements import dtype_of
from ..types.indices import ScanKind
from ..types.monoids import Monoid, RunningSum
from ..types.params import ScanPolicy
from ..types.specs import Spec
from ..types.truths import of_truths
from .base import (
    DType,
    HostArray,
    Operation,
    Output,
    Part,
    Work,
    checked_axis,
    require_readable,
    rows_of,
    rows_together,
)
from .reduce import require_floats, result_dtype


@attrs.frozen
class Scanning(Operation):
    """Every element becomes a state."""

    axis: int | None = -1
    kind: ScanKind = ScanKind.INCLUSIVE
    policy: ScanPolicy | None = None

    def axes(self, number: int, given: Spec) -> tuple[int, ...]:
        if self.axis is None or (not given.shape and self.axis in (0, -1)):  # which NumPy lets pass
            return tuple(range(len(given.shape)))
        return (checked_axis(self.axis, len(given.shape)),)

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        axes = self.axes(0, x)
        if self.axis is None or not x.shape:
            return (Output((x.size,), self.result(x), (0,)),)
        return (Output(x.shape, self.result(x), axes),)

    def answer(self, *given: Spec) -> tuple[HostArray, ...] | None:
        (output,) = self.outputs(*given)
        return None if given[0].size else (np.empty(output.shape, output.dtype),)

    @abstractmethod
    def result(self, given: Spec) -> DType: ...

    @abstractmethod
    def monoid(self, given: Spec) -> Monoid[Any, Any]: ...

    def works(self, given: tuple[Spec, ...], info: TargetInfo, in_place: bool) -> tuple[Work, ...] | None:
        (x,) = given
        monoid, (rows, length) = self.monoid(x), rows_of(x, self.axes(0, x))
        require_floats(monoid, info)
        wished = None if self.policy is None else fitted_scan_policy(self.policy, monoid.state, info)
        policy = wished or fitting_scan(monoid.state, length, info)
        state, result = dtype_of(monoid.state), self.result(x)
        largest = max(x.dtype.itemsize, state.itemsize)
        together = rows_together(length, length * largest, shares(rows, length, policy)[1], info)
        written = None if state.itemsize == result.itemsize else state
        parts = {"data": Part(0, length), "results": Part(1, length, written)}
        return (
            Work(rows, together, lambda count: scan_rows(monoid, count, length, self.kind, policy), parts),
        )  # fmt: skip


@attrs.frozen
class Scan(Scanning):
    """A scan over any monoid."""

    of: Monoid[Any, Any] = attrs.field(kw_only=True)
    commutes = False

    @property
    def checked_monoid(self) -> Monoid[Any, Any] | None:
        return self.of

    def result(self, given: Spec) -> DType:
        require_readable("x", given, self.of.element, type(self.of).__name__)
        return dtype_of(self.of.state)

    def monoid(self, given: Spec) -> Monoid[Any, Any]:
        return of_truths(self.of) if given.dtype.kind == "b" else self.of


@attrs.frozen
class Cumsum(Scanning):
    """NumPy's cumulative sum."""

    def is_the_hosts(self, given: Spec) -> bool:
        return given.dtype.kind == "m"

    def result(self, given: Spec) -> DType:
        number_for(given.dtype, "x")
        return result_dtype("cumsum", given.dtype)

    def monoid(self, given: Spec) -> Monoid[Any, Any]:
        return RunningSum(number_for(given.dtype, "x"))
