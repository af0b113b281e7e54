"""A look at a long row before work starts: some input is sorted faster than by sorting it."""

from __future__ import annotations

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ...counts import count_nonzero
from ..loops import PIECE
from ..pool import Pool
from .key_words import Elements, bits_of

_FEW = 24


def sample_of(source: Elements, count: int) -> Elements:
    """About so many elements from all over a row, as they come."""
    return source[_spread(source.size, count)].copy()


def _spread(size: int, count: int) -> slice:
    """As far apart, by an odd number: what comes again after an even one is not seen as a constant."""
    step = size // count | 1
    return slice(step // 2, None, step)


@attrs.frozen
class Sample:
    """Some of a row's elements: what a plan is made from. All that is done before must be little."""

    numbers: Elements  # in order, without NaNs
    different: int  # how many numbers there are
    is_mostly_nan: bool

    @classmethod
    def of(cls, source: Elements, policy: HostSortPolicy) -> Sample:
        elements = sample_of(source, policy.sample)
        numbers: Elements = elements[elements == elements] if elements.dtype.kind == "f" else elements
        numbers.sort()
        different = numbers.size - count_nonzero(numbers[1:] == numbers[:-1])
        return cls(numbers, different, 2 * numbers.size < elements.size)


def is_monotonic(source: Elements, test: np.ufunc, pool: Pool) -> bool:
    """Whether all elements of a row compare so with the next one. A NaN does in no way."""

    def holds(own: slice) -> bool:
        return bool(test(source[own], source[own.start + 1 : own.stop + 1]).all())

    few = sample_of(source, _FEW)
    return bool(test(few[:-1], few[1:]).all()) and pool.all_over(source.size - 1, holds, -(-source.size // PIECE))


def seems_constant(source: Elements, few: int) -> bool:
    """Whether no more than a few differ among some elements of a row, or most are alike: seen at once, before anything
    is sampled."""
    seen = some_words(source, _FEW)
    different = set(seen)
    if len(different) <= few:
        return True
    return 2 * len(different) < len(seen) and 3 * max(map(seen.count, different)) >= 2 * len(seen)


def different_of(source: Elements, count: int) -> int:
    """How many differ among about so many elements: quick, for a decision."""
    return len(set(some_words(source, count)))


def some_words(source: Elements, count: int) -> list[int]:
    """The bits of about so many elements from all over a row, or several."""
    found: list[int] = bits_of(source.flat[_spread(source.size, count)]).tolist()
    return found
