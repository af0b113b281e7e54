"""How a state crosses from workgroup to workgroup while both run: in atomic words, each with a part of its bits.

Of a state of 64 bits, or of one that takes all values of 32, no single atomic word could also say whether it has been
written. So it goes in pieces of 16 bits, and each word tells for itself.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, cast

import attrs

from .intrinsics import bitcast
from .memory import Registers, Storage
from .scalars import F32, F64, U32, U64, Bool

S = TypeVar("S")

PIECE = 16  # bits
WRITTEN = 1 << PIECE


class Carrier(Protocol[S]):
    """The trait of states that can be sent."""

    @property
    def pieces(self) -> int:
        """Words that a state takes."""
        ...

    def bits(self, state: S, /) -> U64: ...

    def state(self, bits: U64, /) -> S: ...


@attrs.frozen
class CarriesU32:
    pieces: int = 2

    def bits(self, state: U32) -> U64:
        return U64(state)

    def state(self, bits: U64) -> U32:
        return U32(bits)


@attrs.frozen
class CarriesU64:
    pieces: int = 4

    def bits(self, state: U64) -> U64:
        return state

    def state(self, bits: U64) -> U64:
        return bits


@attrs.frozen
class CarriesF32:
    pieces: int = 2

    def bits(self, state: F32) -> U64:
        return U64(bitcast(U32, state))

    def state(self, bits: U64) -> F32:
        return bitcast(F32, U32(bits))


@attrs.frozen
class CarriesF64:
    pieces: int = 4

    def bits(self, state: F64) -> U64:
        return bitcast(U64, state)

    def state(self, bits: U64) -> F64:
        return bitcast(F64, bits)


def carrier_for(state: type[S]) -> Carrier[S] | None:
    """The carrier of a scalar; None for other states."""
    carriers: dict[object, object] = {U32: CarriesU32(), U64: CarriesU64(), F32: CarriesF32(), F64: CarriesF64()}
    return cast("Carrier[S] | None", carriers.get(state))


def send(carrier: Carrier[S], words: Storage[U32], cell: U32, cells: U32, state: S) -> None:
    """Writes a state's pieces, each to its own row of `cells` words. These held 0 before."""
    bits = carrier.bits(state)
    for piece in range(carrier.pieces):
        word = U32(bits >> (piece * PIECE)) & (WRITTEN - 1)
        words.atomic_store(cell + cells * piece, word | WRITTEN)


def receive(carrier: Carrier[S], words: Storage[U32], cell: U32, cells: U32) -> S:
    """Waits for all pieces of a state. They are asked for together, for each takes long to come."""
    found: Registers[U32] = Registers(U32, carrier.pieces)
    done = Bool(False)
    bits = U64(0)
    while not done:
        done = Bool(True)
        for piece in range(carrier.pieces):
            found[piece] = words.atomic_load(cell + cells * piece)
        bits = U64(0)
        for piece in range(carrier.pieces):
            done = done & (found[piece] >= WRITTEN)
            bits |= U64(found[piece] & (WRITTEN - 1)) << (piece * PIECE)
    return carrier.state(bits)
