"""A monoid tried on some elements, by a target that looks for mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.kinds import HostArray
from ..operations.base import Operation
from ..targets.base import ChecksMonoids
from ..types.dtypes import native
from ..types.elements import dtype_of
from ..types.monoids import Monoid

_LOOKED_AT = 12


def try_laws(target: ChecksMonoids, operation: Operation, monoid: Monoid[Any, Any], rows: HostArray, row: int) -> None:
    """On elements of all of the rows, which are `row` long."""
    places = np.unique(np.linspace(0, math.prod(rows.shape) - 1, _LOOKED_AT).astype(np.intp))
    found = np.array(rows.flat[places], native(rows.dtype)).view(dtype_of(monoid.element))
    target.check_monoid(monoid, found, [int(place) % row for place in places], operation.commutes)
