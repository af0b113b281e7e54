"""Validation of what users pass: attrs validators and converters for the fields of policies, and counts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import Any, SupportsIndex, TypeAlias, cast

import attrs
import numpy as np

from .errors import InvalidArgumentError, UnsupportedTypeError, told
from .traced import Traced

Validator: TypeAlias = Callable[[object, "attrs.Attribute[Any]", object], None]  # of an instance's field and its value

_POWER = "a power of two"

# What callers make themselves: the members it has, as far as it is asked for before it is used; how it is called.
KEY_MEMBERS = ("element", "word", "greatest", "to_word", "from_word", "to_rank", "mirrored")
MONOID_MEMBERS = ("element", "state", "identity", "lift", "combine")
_EXPECTED = {
    "monoid": ("a monoid, e.g. Sum(number_for(x.dtype))", MONOID_MEMBERS),
    "algorithm": ("a value such as Bitonic(), or None", ("placements", "most_rows", "schedule")),
    "key": ("a SortableKey, e.g. key_for(x.dtype)", KEY_MEMBERS),
}
_DIGITS = frozenset("0123456789")
LARGEST = (1 << 63) - 1
_MOST_DIGITS = 18  # fewer than the largest has


def number_in(text: str) -> int | None:
    """The number that a text of ASCII digits, and nothing else, stands for, at most LARGEST; None for another text."""
    if not text or not _DIGITS.issuperset(text):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MOST_DIGITS else LARGEST


def numbers_in(texts: Sequence[str]) -> list[int] | None:
    """The numbers that all of these stand for; None if one stands for none."""
    found = [number for text in texts if (number := number_in(text)) is not None]
    return found if len(found) == len(texts) else None


def as_int(value: SupportsIndex) -> int:
    """Converts NumPy integers to int. Other types pass through, for the validator to report with the field's name: also
    NumPy's bools, which are indices before NumPy 2.3."""
    try:
        return cast(int, value) if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        return cast(int, value)


def index_of(name: str, value: object, expected: str = "an int") -> int:
    """What an int is expected for, as a plain int; bools, which NumPy's reductions refuse, too, are none."""
    found = as_int(cast(SupportsIndex, value))
    if type(found) is not int:
        raise UnsupportedTypeError(f"{name}: expected {expected}, found {value!r}")
    return found


def within(least: int, most: int, kind: str = "an int") -> Validator:
    """Validates an int from `least` to `most`, both included."""

    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        name = f"{type(instance).__name__}: {attribute.name}"
        if type(value) is not int:
            raise UnsupportedTypeError(f"{name}: expected an int, found {value!r}")
        if not least <= value <= most or (kind is _POWER and value & (value - 1)):
            raise InvalidArgumentError(f"{name}: expected {kind} from {least} to {most}, found {told(value)}")

    return check


def power_within(least: int, most: int) -> Validator:
    """Validates a power of two from `least` to `most`, both included."""
    return within(least, most, _POWER)


def instance_of(kind: type[object], called: str = "") -> Validator:
    """Validates an instance of a class itself, or of one derived from it."""

    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not isinstance(value, kind):
            name = f"{type(instance).__name__}: {attribute.name}"
            raise UnsupportedTypeError(f"{name}: expected {called or f'a {kind.__name__}'}, found {value!r}")

    return check


is_bool = instance_of(bool, "True or False")


def require(holds: bool, policy: object, field: str, expected: str) -> None:
    """Raises InvalidArgumentError for a field unless a condition holds; for constraints over several fields."""
    if not holds:
        found = getattr(policy, field)
        raise InvalidArgumentError(f"{type(policy).__name__}: {field}: expected {expected}, found {found!r}")


def checked_count(what: str, count: object, least: int) -> int:
    """A count as a Python int, at least `least`. NumPy integers are converted; bools are refused."""
    if type(count) is not int and not isinstance(count, Traced):
        count = index_of(what, count)
    if count < least:
        raise InvalidArgumentError(f"{what}: expected at least {least}, found {told(count)}")
    if type(count) is int and count > LARGEST:
        raise InvalidArgumentError(f"{what}: expected at most {LARGEST}, found {told(count)}")
    return count


def check_like(what: str, value: object, name: str = "") -> None:
    """Raises UnsupportedTypeError for a monoid, an algorithm or a key without the members of one, which it names."""
    expected, members = _EXPECTED[what]
    missing, found = [name for name in members if not hasattr(value, name)], ""
    if isinstance(value, type):
        found = f"the class {value.__name__}: make a value of it"
    elif missing:
        found = f"{value!r}, which has no {', '.join(missing)}"
    elif isinstance(value, tuple):  # to kernels its elements and nothing more
        found = f"a tuple, {type(cast(object, value)).__name__}: make its class one of attrs, frozen"
    elif what != "algorithm":  # by the others compiled code is found again
        try:
            hash(value)
        except TypeError as error:
            found = f"a {type(value).__name__} that has no hash ({error}); make its class and its fields immutable"
    if found:
        raise UnsupportedTypeError(f"{name or what}: expected {expected}, found {found}")


def require_taken(what: str, found: object, takers: Sequence[str], operations: Sequence[str]) -> None:
    """Raises InvalidArgumentError for an option that says something to none of these operations."""
    if not set(takers).intersection(operations):
        taking = " or ".join(map(repr, takers))
        raise InvalidArgumentError(f"{what}: expected none without the operation {taking}, found {found}")


def checked_flag(name: str, value: object) -> bool:
    """A flag as a bool. Accepts 0 and 1, as NumPy does; what is merely truthy, such as "no", is refused."""
    if value is True or value is False:
        return value
    if isinstance(value, int | np.integer | np.bool_) and value in (0, 1):
        return bool(value == 1)
    raise UnsupportedTypeError(f"{name}: expected True or False, found {value!r}")


def checked_path(name: str, path: object) -> str:
    """A path as text."""
    text: object = fspath(cast("PathLike[str]", path)) if isinstance(path, PathLike) else path
    if not isinstance(text, str):
        raise UnsupportedTypeError(f"{name}: expected a path, found {path!r}")
    return text
