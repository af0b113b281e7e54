"""Validation of what users pass: attrs validators and converters for the fields of policies, and counts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, SupportsIndex, cast

import attrs

from .errors import InvalidArgumentError, UnsupportedTypeError
from .traced import Traced


def as_int(value: SupportsIndex) -> int:
    """Converts NumPy integers to int. Other types pass through, for the validator to report with the field's name."""
    try:
        return value if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return cast(int, value)


@attrs.frozen
class IntRange:
    """Validates an int from `least` to `most`, both included."""

    least: int
    most: int
    is_power: bool = False  # whether it must be a power of two

    def __call__(self, instance: object, attribute: attrs.Attribute[int], value: object) -> None:
        name = f"{type(instance).__name__}: {attribute.name}"
        if type(value) is not int:
            raise UnsupportedTypeError(f"{name}: expected an int, found {value!r}")
        if not self.least <= value <= self.most or (self.is_power and value & (value - 1)):
            kind = "a power of two" if self.is_power else "an int"
            raise InvalidArgumentError(f"{name}: expected {kind} from {self.least} to {self.most}, found {value}")


def within(least: int, most: int) -> IntRange:
    """Validates an int from `least` to `most`, both included."""
    return IntRange(least, most)


def power_within(least: int, most: int) -> IntRange:
    """Validates a power of two from `least` to `most`, both included."""
    return IntRange(least, most, is_power=True)


def is_bool(instance: object, attribute: attrs.Attribute[bool], value: object) -> None:
    """Validates a bool; other truthy or falsy values raise UnsupportedTypeError."""
    if type(value) is not bool:
        name = f"{type(instance).__name__}: {attribute.name}"
        raise UnsupportedTypeError(f"{name}: expected True or False, found {value!r}")


def instance_of(kind: type[object]) -> Callable[[object, attrs.Attribute[Any], object], None]:
    """Validates an instance of a class."""

    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not isinstance(value, kind):
            name = f"{type(instance).__name__}: {attribute.name}"
            raise UnsupportedTypeError(f"{name}: expected a {kind.__name__}, found {value!r}")

    return check


def require(holds: bool, policy: object, field: str, expected: str) -> None:
    """Raises InvalidArgumentError for a field unless a condition holds; for constraints over several fields."""
    if not holds:
        found = getattr(policy, field)
        raise InvalidArgumentError(f"{type(policy).__name__}: {field}: expected {expected}, found {found!r}")


def checked_count(what: str, count: object, least: int) -> int:
    """A count as a Python int, at least `least`. NumPy integers are converted.

    Raises UnsupportedTypeError for other types, bool among them, and InvalidArgumentError for a lesser count.
    """
    if type(count) is not int and not isinstance(count, Traced):
        if isinstance(count, bool) or not hasattr(count, "__index__"):
            raise UnsupportedTypeError(f"{what}: expected an int, found {count!r}")
        try:
            count = operator.index(cast(SupportsIndex, count))
        except TypeError as error:
            raise UnsupportedTypeError(f"{what}: expected an int, found {count!r}") from error
    if count < least:
        raise InvalidArgumentError(f"{what}: expected at least {least}, found {count}")
    return count
