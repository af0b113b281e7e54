"""Validation of counts that users pass: elements, invocations, workgroups."""

from __future__ import annotations

import operator
from typing import SupportsIndex, cast

from .errors import InvalidArgumentError, UnsupportedTypeError
from .traced import Traced


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
