"""Stable argsort of a long row of few different elements: a byte says which of them each is, and bytes are counted."""

from __future__ import annotations

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from ..pool import Pool, slices
from .counting_argsort import argsort_by_counting
from .key_words import bits_of, ordered_ranks
from .packed_argsort import Places
from .perfect_hash import U8s, finder_for


def argsort_few(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> bool:
    """Whether the row is of few different elements, and is done."""
    from .counting_kernels import tell_which

    is_worth_it = source.itemsize == 8 or source.size >= policy.deal_from
    finder = finder_for(source, policy) if is_worth_it else None
    if finder is None:
        return False
    ranks = ordered_ranks(key_for(source.dtype), finder.values, order)
    own: U8s = np.unique(ranks, return_inverse=True)[1].astype(np.uint8)  # what compares equal ranks equal
    bits, which = bits_of(source), np.empty(source.size, np.uint8)
    pieces = slices(source.size, 4 * pool.threads)

    def told(number: int) -> bool:
        piece = pieces[number]
        return tell_which(bits[piece], finder.values, finder.table, finder.multiplier, finder.shift, own, which[piece])

    if not pool.all(told, len(pieces)):
        return False
    argsort_by_counting(which, places, SortOrder.ASCENDING, pool)
    return True
