"""Thrift's compact protocol, which a Parquet file's footer is written in: a struct read to plain values, and written.

Of a struct all fields are kept, whatever they mean, so that what is read can be written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import attrs

from ..types.errors import InvalidArgumentError

TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _STRUCT = 1, 2, 3, 7, 8, 9, 12  # kinds of fields
_NUMBERS = (4, 5, 6)  # kinds of integers: 16, 32 and 64 bits
_WIDTHS = {TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}  # bytes of what is kept as it is
_LONG = 15  # elements from which on a list's count is written behind its kind


@attrs.frozen
class Items:
    """A list, of elements of one kind. A struct may stand there as the bytes that it is written as."""

    kind: int
    values: Sequence[Value]

    @classmethod
    def of_structs(cls, values: Sequence[Value]) -> Items:
        return cls(_STRUCT, values)


@attrs.define
class Struct:
    """A struct's fields by their numbers, each with its kind. Bools have no value but their kind."""

    fields: dict[int, tuple[int, Value]]

    def number(self, field: int) -> int:
        return _expected(int, self.fields[field][1])

    def struct(self, field: int) -> Struct:
        return _expected(Struct, self.fields[field][1])

    def structs(self, field: int) -> list[Struct]:
        return [_expected(Struct, value) for value in _expected(Items, self.fields[field][1]).values]

    def texts(self, field: int) -> list[str]:
        return [value.decode() for value in _expected(Items, self.fields[field][1]).values if isinstance(value, bytes)]

    def replace(self, field: int, value: Value) -> None:
        """Replaces the value of a field that is there."""
        self.fields[field] = self.fields[field][0], value

    def add(self, field: int, count: int) -> None:
        """Adds to a number, if it is there and is not 0: so absent positions are written."""
        if field in self.fields and self.number(field):
            self.replace(field, self.number(field) + count)


Value: TypeAlias = int | bytes | Items | Struct


T = TypeVar("T", int, Items, Struct)


def _expected(kind: type[T], value: Value) -> T:
    if not isinstance(value, kind):
        raise InvalidArgumentError(f"thrift: expected {kind.__name__}, found {type(value).__name__}")
    return value


def read_struct(data: bytes) -> Struct:
    return _Reader(data).struct()


def write_struct(struct: Struct) -> bytes:
    made = bytearray()
    _write_struct(struct, made)
    return bytes(made)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> Struct:
        fields: dict[int, tuple[int, Value]] = {}
        field = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            field = field + step if step else self._signed()
            fields[field] = kind, (b"" if kind in (TRUE, _FALSE) else self._value(kind))
        return Struct(fields)

    def _value(self, kind: int) -> Value:
        if kind in _NUMBERS:
            return self._signed()
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind == _STRUCT:
            return self.struct()
        if kind == _LIST:
            head = self._byte()
            count, of = head >> 4, head & 15
            return Items(of, [self._value(of) for _ in range(self._unsigned() if count == _LONG else count)])
        if kind not in _WIDTHS:
            raise InvalidArgumentError(f"thrift: expected a kind of field that Parquet has, found {kind}")
        return self._bytes(_WIDTHS[kind])

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _unsigned(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def _signed(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)


def _write_struct(struct: Struct, out: bytearray) -> None:
    before = 0
    for field, (kind, value) in sorted(struct.fields.items()):
        if 0 < field - before < 16:
            out.append(field - before << 4 | kind)
        else:
            out.append(kind)
            _write_signed(field, out)
        _write_value(kind, value, out)
        before = field
    out.append(0)


def _write_value(kind: int, value: Value, out: bytearray) -> None:
    match value:
        case int():
            _write_signed(value, out)
        case bytes():
            if kind == _BINARY:
                _write_unsigned(len(value), out)
            out += value
        case Items():
            count = len(value.values)
            out.append(min(count, _LONG) << 4 | value.kind)
            if count >= _LONG:
                _write_unsigned(count, out)
            for item in value.values:
                _write_value(value.kind, item, out)
        case Struct():
            _write_struct(value, out)


def _write_unsigned(number: int, out: bytearray) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _write_signed(number: int, out: bytearray) -> None:
    _write_unsigned(number << 1 if number >= 0 else (-number << 1) - 1, out)
