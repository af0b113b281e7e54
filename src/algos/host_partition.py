"""What partitions elements about pivots, for sorts that partition pieces before they sort the parts."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


class Partition(Protocol):
    """A partition of elements of one dtype about pivots, into 2, 8, 32, ... parts, by the calling thread alone."""

    @property
    def most_parts(self) -> int:
        """How many parts are made sooner than the elements are sorted."""
        ...

    def __call__(self, source: Any, results: Any, pivots: Any, /) -> npt.NDArray[np.int64]:
        """Where parts begin in the results, and the last one's end. The source is overwritten."""
        ...
