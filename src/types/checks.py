"""What a field of a policy may hold: said beside the field, checked when the policy is made."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, SupportsIndex, cast

import attrs

from .errors import InvalidArgumentError, UnsupportedTypeError


def whole(value: SupportsIndex) -> int:
    """NumPy's integers as Python's own. What is no integer is left to the check, which knows the field's name."""
    try:
        return value if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return cast(int, value)


@attrs.frozen
class WholeNumber:
    """Checks that a field holds an int within bounds."""

    least: int
    most: int
    is_power: bool = False  # of two

    def __call__(self, instance: object, attribute: attrs.Attribute[int], value: object) -> None:
        name = f"{type(instance).__name__}: {attribute.name}"
        if type(value) is not int:
            raise UnsupportedTypeError(f"{name}: expected an int, found {value!r}")
        if not self.least <= value <= self.most or (self.is_power and value & (value - 1)):
            kind = "a power of two" if self.is_power else "an int"
            raise InvalidArgumentError(f"{name}: expected {kind} from {self.least} to {self.most}, found {value}")


def within(least: int, most: int) -> WholeNumber:
    """An int from one number to another."""
    return WholeNumber(least, most)


def power_within(least: int, most: int) -> WholeNumber:
    """A power of two from one number to another."""
    return WholeNumber(least, most, is_power=True)


def truth(instance: object, attribute: attrs.Attribute[bool], value: object) -> None:
    """True or False, and nothing that counts as one."""
    if type(value) is not bool:
        name = f"{type(instance).__name__}: {attribute.name}"
        raise UnsupportedTypeError(f"{name}: expected True or False, found {value!r}")


def holds(kind: type[object]) -> Callable[[object, attrs.Attribute[Any], object], None]:
    """A value of a class."""

    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not isinstance(value, kind):
            name = f"{type(instance).__name__}: {attribute.name}"
            raise UnsupportedTypeError(f"{name}: expected a {kind.__name__}, found {value!r}")

    return check


def require(holds: bool, policy: object, field: str, expected: str) -> None:
    """For what several fields have to do with each other."""
    if not holds:
        found = getattr(policy, field)
        raise InvalidArgumentError(f"{type(policy).__name__}: {field}: expected {expected}, found {found!r}")
