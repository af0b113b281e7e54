"""A look at a long row before work starts: some input is sorted faster than by sorting it."""

from __future__ import annotations

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ..loops import PIECE
from ..pool import Pool
from .key_words import Elements, bits_of

_FEW, _HARDLY_ANY = 24, 3


def sample_of(source: Elements, count: int) -> Elements:
    """About so many elements from all over a row, as they come."""
    step = max(1, source.size // count)
    return source[step // 2 :: step].copy()


@attrs.frozen
class Sample:
    """Some of a row's elements: what a plan is made from. All that is done before must be little."""

    count: int
    numbers: Elements  # in order, without NaNs
    different: int  # how many numbers there are

    @classmethod
    def of(cls, source: Elements, policy: HostSortPolicy) -> Sample:
        elements = sample_of(source, policy.sample)
        numbers: Elements = elements[elements == elements] if elements.dtype.kind == "f" else elements.copy()
        numbers.sort()
        return cls(elements.size, numbers, numbers.size - int(np.count_nonzero(numbers[1:] == numbers[:-1])))

    @property
    def is_mostly_nan(self) -> bool:
        return 2 * self.numbers.size < self.count


def is_monotonic(source: Elements, test: np.ufunc, pool: Pool) -> bool:
    """Whether all elements of a row compare so with the next one. A NaN does in no way."""

    def holds(own: slice) -> bool:
        return bool(test(source[own], source[own.start + 1 : own.stop + 1]).all())

    return _seems_monotonic(source, test) and pool.all_over(source.size - 1, holds, -(-source.size // PIECE))


def seems_in_order(source: Elements) -> bool:
    """Whether a few elements of a row are in one order or the other."""
    return _seems_monotonic(source, np.less_equal) or _seems_monotonic(source, np.greater_equal)


def _seems_monotonic(source: Elements, test: np.ufunc) -> bool:
    few = sample_of(source, _FEW)
    return bool(test(few[:-1], few[1:]).all())


def seems_constant(source: Elements, few: int = _HARDLY_ANY) -> bool:
    """Whether hardly any differ among some elements of a row, or most are alike: seen at once, before anything is
    sampled."""
    seen = _some(source, _FEW)
    different = set(seen)
    if len(different) <= few:
        return True
    return 2 * len(different) < len(seen) and 3 * max(map(seen.count, different)) >= 2 * len(seen)


def different_of(source: Elements, count: int) -> int:
    """How many differ among about so many elements of a row: quick, for a decision."""
    return len(set(_some(source, count)))


def _some(source: Elements, count: int) -> list[int]:
    """The bits of about so many elements from all over a row."""
    step = max(1, source.size // count)
    found: list[int] = bits_of(source)[step // 2 :: step].tolist()
    return found
