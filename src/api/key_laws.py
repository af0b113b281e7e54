"""The check of a caller's key on a few elements of a host array: that `from_word` is the inverse of `to_word`, that no
word is beyond `greatest` and `bits`, and that `mirrored` reverses their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain, combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..algos.sorts import bits_of
from ..operations.argsort import Argsort
from ..operations.base import Operation
from ..types.dtypes import native
from ..types.elements import decode, differ, dtype_of, encode, mismatch
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.keys import SortableKey, is_lossy, no_inverse
from ..types.scalars import Unsigned
from ..types.specs import HostArray

_LOOKED_AT = 12  # elements, by which laws are checked
Pair: TypeAlias = tuple[Any, Any]  # a word, and what it is mirrored to


def sampled(array: HostArray) -> npt.NDArray[np.intp]:
    """The indices, in C order, of the elements by which laws are checked."""
    return np.unique(np.linspace(0, max(0, array.size - 1), _LOOKED_AT).astype(np.intp))[: array.size]


def key_check(operation: Operation) -> Callable[[HostArray], None] | None:
    """The check of a key on a sample of an array; None for an argsort, whose results no inverse makes."""
    key: SortableKey[Any, Any] | None = getattr(operation, "key", None)
    if key is None or is_lossy(key) or isinstance(operation, Argsort):
        return None

    def check(array: HostArray) -> None:
        tops = set[int]()  # of words, above the bits that can differ
        flat = array.squeeze().flat  # which takes no more than 32 axes
        for place in sampled(array):
            given = np.array(flat[place], native(array.dtype)).view(dtype_of(key.element))
            try:
                word = key.to_word(decode(key.element, given[()]))
                found, exceeds = key.from_word(word), bool(key.greatest < word)
            except Exception:  # of a method of the user's: the run itself names it, with its line
                return
            fits = mismatch(key.word, word) is None and mismatch(key.element, found) is None  # else likewise
            if fits and isinstance(word, Unsigned):
                tops.add(int(word) >> bits_of(key))
            if len(tops) > 1:  # a radix sort would not look at them
                raise InvalidArgumentError(
                    f"key: {key} makes {word} of {given}, but says that words differ in {bits_of(key)} low bits alone"
                )
            if fits and exceeds:  # what pads a tile would then come before elements, in their place
                raise InvalidArgumentError(
                    f"key: {key} makes {word} of {given}, but says that its greatest word is {key.greatest}"
                )
            is_nan = given != given  # of which the bits may change on the way
            if fits and not is_nan and differ(np.array(encode(found), given.dtype), given):
                raise no_inverse(key, given, found)

    return check


def require_reversal(operation: Operation, array: HostArray) -> None:
    """Raises InvalidArgumentError for a descending call if a key's `mirrored` reverses no two words. Some it may leave
    in their order, as NaNs after numbers: where no two of the array's words are reversed, others tell."""
    key: SortableKey[Any, Any] | None = getattr(operation, "key", None)
    if key is None or getattr(operation, "order", None) is not SortOrder.DESCENDING:
        return
    to_word = key.to_rank if isinstance(operation, Argsort) and not operation.by_bits else key.to_word
    flat = array.squeeze().flat  # which takes no more than 32 axes
    given = np.array([flat[place] for place in sampled(array)], native(array.dtype)).view(dtype_of(key.element))
    others = np.zeros(1, given.dtype), np.ones(1, given.dtype), (~given.view(np.uint8)).view(given.dtype)
    try:
        found = _mirrored(key, to_word, given)
        kept = next((pair for pair in combinations(found, 2) if _differ(*pair)), None)
        if kept is None or _reverses(found) or _reverses(found + _mirrored(key, to_word, chain(*others))):
            return
    except Exception:  # of how words compare, likewise
        return
    (one, to_one), (other, to_other) = kept
    raise InvalidArgumentError(
        f"key: {key} mirrors {one} to {to_one} and {other} to {to_other}, which keeps their order; for descending "
        "order `mirrored` must reverse it, e.g. `return ~word`"
    )


def _mirrored(key: SortableKey[Any, Any], to_word: Callable[[Any], Any], elements: Iterable[Any]) -> list[Pair]:
    """Words, and what they are mirrored to, of the elements that the user's methods take. Where a method fails, the run
    itself names it, with its line."""
    found: list[Pair] = []
    for element in elements:
        with suppress(Exception):
            word = to_word(decode(key.element, element))
            mirrored = key.mirrored(word)
            if mismatch(key.word, word) is None and mismatch(key.word, mirrored) is None:
                found.append((word, mirrored))
    return found


def _differ(one: Pair, other: Pair) -> bool:
    return bool(one[0] < other[0]) or bool(other[0] < one[0])


def _reverses(found: list[Pair]) -> bool:
    """Whether any two words are in the other order once they are mirrored."""
    return any((a[0] < b[0] and b[1] < a[1]) or (b[0] < a[0] and a[1] < b[1]) for a, b in combinations(found, 2))
