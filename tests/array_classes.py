"""Classes of arrays that come and go with the libraries of a test."""

from __future__ import annotations

import numpy as np

from gpusort.arrays import registry
from gpusort.arrays.host import NUMPY


def forget_classes() -> None:
    """Empties the cache of kinds by class."""
    registry.KNOWN.clear()
    registry.KNOWN[np.ndarray] = NUMPY
    registry.CHOSEN.clear()
