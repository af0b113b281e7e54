"""Validates arguments: each error names the argument, and is raised before any work."""

from __future__ import annotations

from typing import Any, cast

from ..types.bounded import Bounded
from ..types.checks import check_like, checked_flag, index_of
from ..types.errors import InvalidArgumentError, UnsupportedTypeError, told
from ..types.indices import SortOrder
from ..types.needs import Policy
from .call import forget_plans

ORDERS = tuple(SortOrder)  # by whether they descend: a member of an enumeration is looked up slowly

_says: Bounded[object, tuple[object, ...]] = Bounded(1 << 10)  # by key


def checked_order(descending: object, key: object) -> SortOrder:
    """The sort order of a `descending` flag; checks the key too."""
    if key is not None:
        check_key(key)
    return ORDERS[descending is not False and checked_flag("descending", descending)]


def checked_count(k: object) -> int:
    """`k` as an int."""
    count = index_of("k", k)
    if count < 0:
        raise InvalidArgumentError(f"k: expected 0 or more, found {told(count)}")
    return count


def axis_or_none(axis: object, expected: str = "an int or None") -> int | None:
    return None if axis is None else index_of("axis", axis, expected)


def axes_or_none(axis: object) -> int | tuple[int, ...] | None:
    """The same for an axis that may be a tuple."""
    expected = "an int, a tuple of ints or None"
    if not isinstance(axis, tuple):
        return axis_or_none(axis, expected)
    return tuple([index_of("axis", number, expected) for number in cast("tuple[object, ...]", axis)])


def check_key(key: object) -> None:
    """Raises UnsupportedTypeError for what is no key."""
    check_like("key", key)
    _forget_changed(key)


def _forget_changed(key: Any) -> None:
    """Plans were made by what a key says of its words. That may change with its class, for keys that are equal."""
    says = key.element, key.word, getattr(key, "is_lossy", None), getattr(key, "bits", None)
    if (said := _says.get(key)) != says:
        _says[key] = says
        if said is not None:
            forget_plans()


def check_policy(policy: object, kind: type[Policy]) -> None:
    """Raises UnsupportedTypeError for anything but None or a policy of this class."""
    if policy is not None and not isinstance(policy, kind):
        raise UnsupportedTypeError(f"policy: expected a {kind.__name__} or None, found {policy!r}")
