"""A key's methods vectorised over host arrays, elements to words and back, by NumPy (on_arrays.py): so a sort of
integers on the host sorts by any key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ..kernel.language import *
from ..types.elements import differ, dtype_of, scalar_of
from ..types.errors import UnsupportedTypeError
from ..types.keys import RankKey, no_inverse
from ..types.layout import Type
from .bitonic import from_ordered, to_ordered
from .on_arrays import OnArrays

Array: TypeAlias = npt.NDArray[Any]  # elements of whatever dtype a key has

Transform: TypeAlias = Callable[[Array], Array]  # of one-dimensional arrays

_SEEN = 32  # elements that a key is tested on


@kernel
def write_words(
    cx: Invocation, key: SortableKey[E, W], elements: Storage[E], words: Storage[W], order: SortOrder
) -> None:
    """Computes an element's word for an order: lesser ones come first."""
    words[cx.group_id] = to_ordered(key, elements[cx.group_id], order)


@kernel
def write_elements(
    cx: Invocation, key: SortableKey[E, W], words: Storage[W], elements: Storage[E], order: SortOrder
) -> None:
    """Computes the element of a word: the inverse."""
    elements[cx.group_id] = from_ordered(key, words[cx.group_id], order)


@attrs.frozen(eq=False)
class KeyTransform:
    """A function of one-dimensional arrays, by the kernel that states it for one element."""

    run: OnArrays
    source: Buffer[Any]
    target: Buffer[Any]

    def __call__(self, given: Array) -> Array:
        found = np.empty(given.size, self.target.dtype)
        self.run({self.source.name: given.view(self.source.dtype), self.target.name: found}, given.size)
        return found


@attrs.frozen
class KeyWords:
    """A key and an order, as functions of one-dimensional arrays."""

    key: SortableKey[Any, Any]
    order: SortOrder = SortOrder.ASCENDING
    _made: dict[str, KeyTransform] = attrs.field(
        factory=dict[str, "KeyTransform"], init=False, eq=False, repr=False
    )  # memoised: a key's methods are read once, not for every array

    @property
    def element(self) -> np.dtype[np.generic]:
        return dtype_of(self.key.element)

    @property
    def word(self) -> np.dtype[np.generic]:
        return dtype_of(self.key.word)

    def to_words(self, *, ranks: bool = False) -> KeyTransform:
        """The transform from elements to words: unsigned integers, the lesser of which come first. With `ranks`,
        elements that compare equal have the same one."""
        return self._transform("ranks" if ranks else "words")

    def to_elements(self) -> KeyTransform:
        """The transform from words back to elements."""
        return self._transform("elements")

    def _transform(self, name: str) -> KeyTransform:
        """Memoised as long as its kernel's captures are unchanged."""
        known = self._made.get(name)
        if known is not None and known.run.holds:
            return known
        key: SortableKey[Any, Any] = RankKey(self.key) if name == "ranks" else self.key
        launch: Callable[..., Launch] = write_elements.launch if name == "elements" else write_words.launch
        given, made = ("elements", key.element), ("words", key.word)
        if name == "elements":
            given, made = made, given
        source, target = Buffer(*given, 1, Role.INPUT), Buffer(*made, 1, Role.OUTPUT)
        run = OnArrays.of(launch(Grid(1, 1), key, source, target, self.order))
        self._made[name] = KeyTransform(run, source, target)
        return self._made[name]

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

    def try_on(self, elements: Array, words: Array, back: Transform) -> None:
        """Raises InvalidArgumentError if a few elements, whose words these are, show that a key is no bijection and
        does not declare it."""
        step = -(-elements.size // _SEEN)
        some = elements[::step].view(self.element)
        found = back(words[::step].copy())
        wrong = np.flatnonzero(differ(found, some))
        if wrong.size:
            raise no_inverse(self.key, some[wrong[0]], found[wrong[0]])
