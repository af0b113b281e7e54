"""Validates arguments: each error names the argument, and is raised before any work."""

from __future__ import annotations

from typing import Any, cast

from ..types.bounded import Bounded
from ..types.checks import KEY_MEMBERS, MONOID_MEMBERS, checked_flag, index_of
from ..types.errors import InvalidArgumentError, UnsupportedTypeError, told
from ..types.indices import SortOrder
from ..types.needs import Policy
from .call import forget_plans

ORDERS = tuple(SortOrder)  # by whether they descend: a member of an enumeration is looked up slowly

_says: Bounded[object, tuple[object, ...]] = Bounded(1 << 10)  # by key

# What callers make themselves: how it is called, and the members that it has.
_EXPECTED = {
    "monoid": ("a monoid, e.g. Sum(number_for(x.dtype))", MONOID_MEMBERS),
    "algorithm": ("a value such as Bitonic(), or None", ("placements", "most_rows", "schedule")),
    "key": ("a SortableKey, e.g. key_for(x.dtype), or None", KEY_MEMBERS),
}


def checked_order(descending: object, key: object) -> SortOrder:
    """The sort order of a `descending` flag; checks the key too."""
    if key is not None:
        check_like("key", key)
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


def check_like(parameter: str, value: object) -> None:
    """Raises UnsupportedTypeError for a monoid, an algorithm or a key without the members of one, which it names."""
    expected, members = _EXPECTED[parameter]
    missing, found = [name for name in members if not hasattr(value, name)], ""
    if isinstance(value, type):
        found = f"the class {value.__name__}: make a value of it"
    elif missing:
        found = f"{value!r}, which has no {', '.join(missing)}"
    elif isinstance(value, tuple):  # to kernels its elements and nothing more
        found = f"a tuple, {type(cast(object, value)).__name__}: make its class one of attrs, frozen"
    elif parameter != "algorithm":  # by the others compiled code is found again
        try:
            hash(value)
        except TypeError as error:
            found = f"a {type(value).__name__} that has no hash ({error}); make its class and its fields immutable"
    if found:
        raise UnsupportedTypeError(f"{parameter}: expected {expected}, found {found}")
    if parameter == "key":
        _forget_changed(value)


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
