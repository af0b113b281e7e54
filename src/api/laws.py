"""Checks the monoid laws (identity, associativity) on a sample of the elements, on targets that look for mistakes."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from ..arrays.kinds import HostArray
from ..operations.base import Operation, rows_of
from ..targets.base import ChecksMonoids, Target
from ..types.dtypes import native
from ..types.elements import dtype_of
from ..types.monoids import Monoid
from ..types.specs import Spec

_LOOKED_AT = 12


@attrs.frozen(eq=False)
class MonoidCheck:
    """The check before each call, on elements sampled from the whole array."""

    target: ChecksMonoids
    operation: Operation
    monoid: Monoid[Any, Any]
    spec: Spec

    @classmethod
    def of(cls, operation: Operation, spec: Spec, target: Target) -> MonoidCheck | None:
        """The check, for a user's monoid on a target that checks them; else None."""
        monoid = operation.checked_monoid
        return (
            cls(target, operation, monoid, spec) if monoid is not None and isinstance(target, ChecksMonoids) else None
        )

    def on(self, array: HostArray) -> None:
        axes = self.operation.axes(0, self.spec)
        rows = np.moveaxis(array, axes, range(-len(axes), 0))
        places = np.unique(np.linspace(0, math.prod(rows.shape) - 1, _LOOKED_AT).astype(np.intp))
        found = np.array(rows.flat[places], native(rows.dtype)).view(dtype_of(self.monoid.element))
        row = rows_of(self.spec, axes)[1]
        self.target.check_monoid(self.monoid, found, [int(place) % row for place in places], self.operation.commutes)
