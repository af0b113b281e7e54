"""A look at a long row before work starts: some input is sorted faster than by sorting it."""

from __future__ import annotations

from enum import Enum

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ..crew import share
from ..loops import flag
from ..pool import Pool
from .key_words import Elements, bits_of, numbers_of
from .order_loops import is_monotonic

_FEW, _HARDLY_ANY = 24, 3


class Monotonicity(Enum):
    """What a sample of a row, or all of it, does from element to element."""

    ASCENDS = "ascends"
    DESCENDS = "descends"
    NEITHER = "neither"


def sample_of(source: Elements, count: int) -> Elements:
    """About so many elements from all over a row, as they come."""
    step = max(1, source.size // count)
    return source[step // 2 :: step].copy()


@attrs.frozen
class Sample:
    """Some of a row's elements: what a plan is made from. All that is done before must be little."""

    elements: Elements  # as they come
    numbers: Elements  # in order, without NaNs
    different: int  # how many numbers there are

    @classmethod
    def of(cls, source: Elements, policy: HostSortPolicy) -> Sample:
        elements = sample_of(source, policy.sample)
        numbers: Elements = elements[elements == elements] if elements.dtype.kind == "f" else elements.copy()
        numbers.sort()
        return cls(elements, numbers, numbers.size - int(np.count_nonzero(numbers[1:] == numbers[:-1])))

    @property
    def is_mostly_nan(self) -> bool:
        return 2 * self.numbers.size < self.elements.size


def order_of(source: Elements, policy: HostSortPolicy, pool: Pool) -> Monotonicity:
    """Which order a row is in as it lies, if NaN and NaT would lie last in either."""
    numbers = numbers_of(source)
    if source.dtype.kind in "Mm" and np.iinfo(np.int64).min in (numbers[0], numbers[-1]):
        return Monotonicity.NEITHER  # NaT
    if source.dtype == np.float16:
        return Monotonicity.NEITHER  # which no loop is compiled for
    return monotonicity_of(numbers, sample_of(numbers, policy.sample), pool)


def monotonicity_of(source: Elements, sample: Elements, pool: Pool) -> Monotonicity:
    """Whether a row is in order already. A NaN is in no order."""
    few = sample[:_FEW].tolist()
    if few not in (sorted(few), sorted(few, reverse=True)):
        return Monotonicity.NEITHER  # of most rows so much can be said at once
    if (sample[:-1] <= sample[1:]).all():
        return Monotonicity.ASCENDS if _everywhere(source, Monotonicity.ASCENDS, pool) else Monotonicity.NEITHER
    if (sample[:-1] >= sample[1:]).all():
        return Monotonicity.DESCENDS if _everywhere(source, Monotonicity.DESCENDS, pool) else Monotonicity.NEITHER
    return Monotonicity.NEITHER


def seems_in_order(source: Elements) -> bool:
    """Whether a few elements of a row are in one order or the other."""
    few = sample_of(source, _FEW).tolist()
    return few in (sorted(few), sorted(few, reverse=True))


def _everywhere(source: Elements, trend: Monotonicity, pool: Pool) -> bool:
    missed = flag()  # of all threads
    look = is_monotonic(source.dtype, "<=" if trend is Monotonicity.ASCENDS else ">=")
    share(look, source.size - 1, pool, source, missed)
    return not missed[0]


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


def few_values(source: Elements, count: int, most: int) -> Elements:
    """The bits of the different ones among about so many elements of a row; none if they are more."""
    sample = sample_of(bits_of(source), count)
    sample.sort()
    first = np.empty(sample.size, np.bool_)
    first[0] = True
    np.not_equal(sample[1:], sample[:-1], out=first[1:])
    return sample[first] if np.count_nonzero(first) <= most else sample[:0]
