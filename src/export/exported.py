"""The contents of an export, independent of its format: kernels, and plans of schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from ..kernel import ir
from ..kernel.launch import Schedule
from .kernels import ExportedKernel, Kernels, wgsl_kernel
from .operations import OPERATIONS, Variant
from .plans import Plan, plans_of, plans_of_rows
from .request import Request


@attrs.frozen
class ExportedSchedule:
    """An operation on elements of one type, for all lengths."""

    variant: Variant
    plans: tuple[Plan, ...]
    descending: tuple[Plan, ...]  # empty if the operation has no order

    @property
    def by_name(self) -> dict[str, tuple[Plan, ...]]:
        """The plans of each order."""
        name = self.variant.name
        return {name: self.plans, **({f"{name} descending": self.descending} if self.descending else {})}


@attrs.frozen
class Exported:
    """Kernels, and schedules that refer to them by index."""

    operations: tuple[str, ...]
    request: Request
    kernels: Kernels
    schedules: tuple[ExportedSchedule, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the ES module that are needed besides the driver."""
        parts = dict.fromkeys(OPERATIONS[name].part for name in self.operations)
        has_results = any(schedule.variant.result[1] for schedule in self.schedules)
        return (*(["results"] if has_results else []), *parts)


def exported_of(
    operations: Sequence[str], request: Request, make: Callable[[ir.Program], ExportedKernel] = wgsl_kernel
) -> Exported:
    """The kernels and plans of some operations. `make` compiles a program."""
    kernels = Kernels(request.info.limits, make)
    schedules = tuple(
        ExportedSchedule(
            variant,
            _plans_of(variant, variant.make, kernels),
            _plans_of(variant, variant.descending, kernels) if variant.descending is not None else (),
        )
        for operation in operations
        for variant in OPERATIONS[operation].variants(request)
    )
    return Exported(tuple(operations), request, kernels, schedules)


def _plans_of(variant: Variant, make: Callable[..., Schedule], kernels: Kernels) -> tuple[Plan, ...]:
    return (plans_of_rows if variant.of_rows else plans_of)(make, kernels, variant.shortest)
