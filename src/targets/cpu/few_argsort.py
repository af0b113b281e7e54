"""Stable argsort of a long row of few different elements: a byte says which of them each is, and bytes are counted."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from ...types.dtypes import key_for
from ...types.indices import SortOrder
from ..base import HostArray
from .argsort import Places
from .counting_argsort import argsort_by_counting
from .plan import are_few, few_values, slices
from .policy import SortPolicy
from .pool import Pool
from .ranks import Elements, bits_of, ordered_ranks

U8s = npt.NDArray[np.uint8]
U64s = npt.NDArray[np.uint64]

_MOST = 256  # as many as a byte tells apart
_SEEN_OF_MOST = 176  # so many of them are seen at a glance, or a few more than that
_SAMPLE = 4096  # here all of them are seen, unless some are rare
_TRIES = 64


@attrs.frozen
class _Finder:
    """Finds an element among a few by a product: its highest bits are another number for each."""

    values: Elements
    multiplier: np.uint64
    shift: np.uint64
    table: U8s

    @classmethod
    def of(cls, values: Elements) -> _Finder | None:
        bits = max(8, 2 * (values.size - 1).bit_length())
        shift, wide = np.uint64(64 - bits), values.astype(np.uint64)
        rng = np.random.default_rng(values.size)
        for _ in range(_TRIES):  # about every other multiplier will do
            multiplier = rng.integers(0, 1 << 64, dtype=np.uint64) | np.uint64(1)
            slots = (wide * multiplier) >> shift
            if np.unique(slots).size == values.size:
                table = np.zeros(1 << bits, np.uint8)
                table[slots] = np.arange(values.size)
                return cls(values, multiplier, shift, table)
        return None


def argsort_few(source: HostArray, places: Places, order: SortOrder, policy: SortPolicy, pool: Pool) -> bool:
    """Whether the row is of few different elements, and is done."""
    from .rank_kernels import tell_which

    is_worth_it = source.itemsize == 8 or source.size >= policy.deal_from
    if not is_worth_it or not are_few(source, policy.glance, _SEEN_OF_MOST):
        return False
    values = few_values(source, _SAMPLE, _MOST)
    finder = _Finder.of(values) if values.size else None
    if finder is None:
        return False
    ranks = ordered_ranks(key_for(source.dtype), values, order)
    own: U8s = np.unique(ranks, return_inverse=True)[1].astype(np.uint8)  # what compares equal ranks equal
    bits, which = bits_of(source), np.empty(source.size, np.uint8)
    pieces = slices(source.size, 4 * pool.threads)
    others: list[int] = []

    def look(number: int) -> None:
        piece = pieces[number]
        if not others and not tell_which(
            bits[piece], finder.values, finder.table, finder.multiplier, finder.shift, own, which[piece]
        ):
            others.append(number)

    pool.run(look, len(pieces))
    if others:
        return False
    argsort_by_counting(which, places, SortOrder.ASCENDING, pool)
    return True
