"""The contents of an export, independent of its format: kernels, and plans of schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from ..kernel import ir
from ..kernel.launch import Schedule
from ..types.traced import Formula, Term, Unknown
from .kernels import ExportedKernel, Kernels
from .operations import OPERATIONS
from .plans import Plan, plans_of
from .row_plans import plans_of_rows
from .variants import Request, Variant


@attrs.frozen
class ExportedSchedule:
    """An operation on elements of one type, for all lengths."""

    variant: Variant
    plans: tuple[Plan, ...]
    descending: tuple[Plan, ...]  # empty if the operation has no order


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
    operations: Sequence[str], request: Request, *, unrolled: bool = False,
    make: Callable[[ir.Program], ExportedKernel] | None = None,
) -> Exported:  # fmt: skip
    """The kernels and plans of some operations. `make` compiles a program; by default to WGSL."""
    kernels = Kernels(request.info.limits, unrolled=unrolled, make=make)
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


Json: TypeAlias = "int | str | list[Json] | dict[str, Json]"


def plain(term: Term) -> Json:
    """A term as JSON."""
    match term:
        case Unknown():
            return term.value
        case Formula(operator, left, right):
            return [operator.value, plain(left), plain(right)]
        case _:
            return int(term)
