"""Arguments of the wrong kind, refused by their name before anything is done with them."""

from __future__ import annotations

import operator
from typing import SupportsIndex, TypeVar, cast

import numpy as np

from ..operations.base import index_of
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.indices import SortOrder
from ..types.needs import Policy

P = TypeVar("P", bound=Policy)

ORDERS = tuple(SortOrder)  # by whether they descend: a member of an enumeration is looked up slowly

_OF_MONOIDS = ("element", "state", "identity", "lift", "combine")
_OF_ALGORITHMS = ("placements", "most_rows", "schedule")


def checked_flag(name: str, value: object) -> bool:
    """True or False, or 1 or 0 as NumPy takes them too: what is merely not empty, such as "no", is a mistake."""
    if isinstance(value, bool | np.bool_):
        return bool(cast(object, value))
    if isinstance(value, int | np.integer) and value in (0, 1):
        return bool(value == 1)
    raise UnsupportedTypeError(f"{name}: expected True or False, found {value!r}")


def checked_order(descending: object, key: object) -> SortOrder:
    """The order that a flag says, of elements that compare by a key or by themselves."""
    if key is not None:
        check_key(key)
    return ORDERS[descending is not False and checked_flag("descending", descending)]


def checked_count(k: object) -> int:
    """How many elements are asked for."""
    try:
        count = operator.index(cast(SupportsIndex, k))
    except TypeError as error:  # NumPy's, too, of an array of several
        raise UnsupportedTypeError(f"k: expected an int, found {k!r}") from error
    if count < 0:
        raise InvalidArgumentError(f"k: expected 0 or more, found {count}")
    return count


def axis_or_none(axis: object, expected: str = "an int or None") -> int | None:
    """An axis as a plain int, so that what is equal to one is not taken for it."""
    return None if axis is None else index_of(axis, expected)


def axes_or_none(axis: object) -> int | tuple[int, ...] | None:
    """The same of what may be several."""
    expected = "an int, a tuple of ints or None"
    if not isinstance(axis, tuple):
        return axis_or_none(axis, expected)
    try:
        return tuple([operator.index(number) for number in cast("tuple[SupportsIndex, ...]", axis)])
    except TypeError as error:
        raise UnsupportedTypeError(f"axis: expected {expected}, found {axis!r}") from error


def check_monoid(monoid: object) -> None:
    """Refuses what has not all that a monoid needs."""
    expected = "monoid: expected a monoid, e.g. Sum(number_for(x.dtype)),"
    if isinstance(monoid, type):
        raise UnsupportedTypeError(f"{expected} found the class {monoid.__name__}: make a value of it")
    missing = [name for name in _OF_MONOIDS if not hasattr(monoid, name)]
    if missing:
        raise UnsupportedTypeError(f"{expected} found {monoid!r}, which has no {', '.join(missing)}")


def check_algorithm(algorithm: object) -> None:
    """Refuses what is neither None nor has all that an algorithm needs."""
    expected = "algorithm: expected a value such as Bitonic(), or None,"
    if isinstance(algorithm, type):
        raise UnsupportedTypeError(f"{expected} found the class {algorithm.__name__}: make a value of it")
    if algorithm is None:
        return
    missing = [name for name in _OF_ALGORITHMS if not callable(getattr(algorithm, name, None))]
    if missing:
        raise UnsupportedTypeError(f"{expected} found {algorithm!r}, which has no {', '.join(missing)}")


def check_policy(policy: object, kind: type[P]) -> None:
    """Refuses what is neither None nor a policy of this kind."""
    from ..algos.fit import checked_policy

    if policy is not None:
        checked_policy(policy, kind)


_OF_KEYS = ("element", "word", "to_word", "from_word")


def check_key(key: object) -> None:
    """Refuses what is neither None nor has all that a key needs."""
    if key is None:
        return
    expected = "key: expected a SortableKey, e.g. key_for(x.dtype), or None,"
    if isinstance(key, type):
        raise UnsupportedTypeError(f"{expected} found the class {key.__name__}: make a value of it")
    missing = [name for name in _OF_KEYS if not hasattr(key, name)]
    if missing:
        raise UnsupportedTypeError(f"{expected} found {key!r}, which has no {', '.join(missing)}")
