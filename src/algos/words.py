"""A key's methods vectorised over host arrays, elements to words and back, by NumPy (on_arrays.py): so a sort of
integers on the host sorts by any key."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ..kernel.language import *
from ..types.elements import dtype_of, scalar_of
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.keys import RankKey
from ..types.layout import Type
from .bitonic import from_ordered, to_ordered
from .on_arrays import OnArrays

Array: TypeAlias = npt.NDArray[Any]  # elements of whatever dtype a key has

Transform: TypeAlias = Callable[[Array], Array]  # of one-dimensional arrays

_SEEN = 32  # elements that a key is tested on


class Wanted(Enum):
    """Whether a key's words or ranks are computed."""

    WORDS = "words"  # different for different elements
    RANKS = "ranks"  # the same for elements that compare equal


@kernel
def write_words(
    cx: Invocation, key: SortableKey[E, W], elements: Storage[E], words: Storage[W], order: SortOrder, wanted: Wanted
) -> None:
    """Computes an element's word or rank for an order: lesser ones come first."""
    match wanted:
        case Wanted.WORDS:
            words[cx.group_id] = to_ordered(key, elements[cx.group_id], order)
        case Wanted.RANKS:
            words[cx.group_id] = to_ordered(RankKey(key), elements[cx.group_id], order)


@kernel
def write_elements(
    cx: Invocation, key: SortableKey[E, W], words: Storage[W], elements: Storage[E], order: SortOrder
) -> None:
    """Computes the element of a word: the inverse."""
    elements[cx.group_id] = from_ordered(key, words[cx.group_id], order)


@attrs.frozen
class KeyWords:
    """A key and an order, as functions of one-dimensional arrays."""

    key: SortableKey[Any, Any]
    order: SortOrder = SortOrder.ASCENDING
    _made: dict[Wanted | None, tuple[OnArrays, Transform]] = attrs.field(
        factory=dict["Wanted | None", "tuple[OnArrays, Transform]"], init=False, eq=False, repr=False
    )  # memoised: a key's methods are compiled once, not for every array

    @property
    def element(self) -> np.dtype[np.generic]:
        return dtype_of(self.key.element)

    @property
    def word(self) -> np.dtype[np.generic]:
        return dtype_of(self.key.word)

    def to_words(self, wanted: Wanted = Wanted.WORDS) -> Transform:
        """The transform from elements to words (or ranks): unsigned integers, the lesser of which come first."""
        return self._transform(wanted)

    def to_elements(self) -> Transform:
        """The transform from words back to elements."""
        return self._transform(None)

    def _transform(self, wanted: Wanted | None) -> Transform:
        """Memoised as long as its kernel's captures are unchanged. None for the elements of words."""
        known = self._made.get(wanted)
        if known is not None and known[0].holds:
            return known[1]
        element, word, one = self.element, self.word, Grid(1, 1)
        elements: Buffer[Any] = Buffer("elements", self.key.element, 1, Role.OUTPUT if wanted is None else Role.INPUT)
        words: Buffer[Any] = Buffer("words", self.key.word, 1, Role.INPUT if wanted is None else Role.OUTPUT)
        if wanted is None:
            run = OnArrays.of(write_elements.launch(one, self.key, words, elements, self.order))
        else:
            run = OnArrays.of(write_words.launch(one, self.key, elements, words, self.order, wanted))

        def to_word(given: Array) -> Array:
            found = np.empty(given.size, word)
            run({"elements": given.view(element), "words": found}, given.size)
            return found

        def to_element(given: Array) -> Array:
            found = np.empty(given.size, element)
            run({"elements": found, "words": given}, given.size)
            return found

        transform = to_element if wanted is None else to_word
        self._made[wanted] = run, transform
        return transform

    def require(self, dtype: np.dtype[np.generic]) -> None:
        """Raises UnsupportedTypeError for a key of another dtype, or whose words are not integers."""
        wanted = self.element
        fits = dtype == wanted or (
            wanted.kind == "u" and dtype.itemsize == wanted.itemsize and dtype.kind in "biufmM" and dtype.isnative
        )
        if not fits:
            raise UnsupportedTypeError(f"key: {self.key} orders elements of dtype {wanted}, not {dtype}")
        if scalar_of(self.key.word) not in (Type.U32, Type.U64):
            raise UnsupportedTypeError(
                f"key: expected words of U32 or U64 to sort by on the host, found {self.key.word.__name__} in "
                f"{self.key}; algorithm=Bitonic() sorts by any word"
            )

    def try_on(self, elements: Array, words: Transform, back: Transform) -> None:
        """Raises InvalidArgumentError if a few elements show that a key is no bijection and does not declare it."""
        some = elements[:: -(-elements.size // _SEEN)].copy().view(self.element)
        found = back(words(some))
        wrong = np.flatnonzero(_bits(found) != _bits(some))
        if wrong.size:
            raise InvalidArgumentError(
                f"key: {self.key} makes {found[wrong[0]]} of the word of {some[wrong[0]]}; from_word must give back "
                "the element, or the key must say `is_lossy = True`"
            )


def _bits(elements: Array) -> Array:
    """The bits of elements, to compare them exactly."""
    return elements.view(f"u{elements.itemsize}") if elements.dtype.kind in "iuf" else elements
