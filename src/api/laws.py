"""Checks the monoid laws (identity, associativity) on a sample of the elements, on targets that look for mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..operations.base import Operation
from ..targets.base import ChecksMonoids, Target
from ..types.dtypes import native
from ..types.elements import dtype_of
from ..types.specs import HostArray, Spec

_LOOKED_AT = 12


def law_check(operation: Operation, spec: Spec, target: Target) -> Callable[[HostArray], None] | None:
    """The check before each call, on elements sampled from the whole array; None if the monoid is no caller's own, or
    the target checks none."""
    monoid = operation.checked_monoid
    if monoid is None or not isinstance(target, ChecksMonoids):
        return None
    axes, element = operation.axes(spec), dtype_of(monoid.element)
    length = operation.rows(spec)[1]

    def check(array: HostArray) -> None:
        rows = np.moveaxis(array, axes, range(-len(axes), 0))
        places = np.unique(np.linspace(0, math.prod(rows.shape) - 1, _LOOKED_AT).astype(np.intp))
        found = np.array(rows.flat[places], native(rows.dtype)).view(element)
        target.check_monoid(monoid, found, [int(place) % length for place in places], operation.commutes)

    return check
