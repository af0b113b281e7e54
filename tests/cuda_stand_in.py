"""Stands in for a card: what the text of a CUDA kernel calls, in plain Python. cuda_launches.py runs it.

Functions here take the place of the compiler's, device memory is the host's. Where invocations meet, each waits as a
generator does: they take turns in one thread, which is many times as fast as a thread for each. What this cannot show
is the compiler's own code: tests look at the PTX for that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeAlias

import attrs
import numpy as np

from gpusort.types import ops

WARP = 32
Scalar: TypeAlias = Any  # a NumPy scalar: one class of arithmetic for each of the kernel's types
Exchanging: TypeAlias = Generator[None, None, list[Any]]  # waits for others, and has what all have handed in
Meets: TypeAlias = Generator[None, None, Scalar]  # what a function gives for which others are waited for


class Kind:
    """A type of a text's: it casts, and says what memory holds."""

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self._class = self.dtype.type
        self._literals: dict[int, Scalar] = {}

    def __call__(self, value: Scalar) -> Scalar:
        """Nearly always of the type already, or an integer of the text's, for which NumPy's casts take long."""
        if type(value) is self._class:
            return value
        if type(value) is int:
            if value not in self._literals:
                self._literals[value] = self._cast(value)
            return self._literals[value]
        return self._cast(value)

    def _cast(self, value: Scalar) -> Scalar:
        return np.asarray(value).astype(self.dtype)[()]


KINDS = {name: Kind(name) for name in ("u1", "u2", "u4", "u8", "i4", "i8", "f4", "f8")} | {"b1": Kind("?")}
u4, u8 = KINDS["u4"], KINDS["u8"]


@attrs.frozen
class Pointer:
    kind: Kind


class Memory:
    """Elements at an address, unchecked, as a kernel sees them."""

    def __init__(self, address: int, kind: Kind, keeps: object = None) -> None:
        self.address = address
        self._class = kind.dtype.type
        self._keeps = keeps
        self._elements = np.frombuffer(memoryview((ctypes.c_uint8 * _ALL).from_address(address)), kind.dtype)

    def __getitem__(self, index: Scalar) -> Scalar:
        assert type(index) in _UNSIGNED or index >= 0
        return self._elements[index]

    def __setitem__(self, index: Scalar, value: Scalar) -> None:
        assert type(value) is self._class, "a store has the memory's type"
        assert type(index) in _UNSIGNED or index >= 0
        self._elements[index] = value


_ALL = 1 << 46  # bytes: as far as anybody's addresses go
_UNSIGNED = frozenset({np.uint32, np.uint64})  # which need not be compared with zero, in NumPy's slow way for scalars


@attrs.define
class _Round:
    """What the members of a meeting hand in, once each."""

    values: list[Any]
    missing: int


class Meeting:
    """Invocations that exchange values: each hands one in and sees all."""

    def __init__(self, members: int) -> None:
        self._members = members
        self._round = self._anew()

    def _anew(self) -> _Round:
        return _Round([None] * self._members, self._members)

    def exchange(self, place: int, value: Any) -> Exchanging:
        mine = self._round
        mine.values[place] = value
        mine.missing -= 1
        if mine.missing == 0:
            self._round = self._anew()
        while mine.missing:
            yield
        return mine.values


@attrs.define
class Group:
    """One workgroup under way."""

    size: int
    dynamic: ctypes.Array[ctypes.c_char]
    everyone: Meeting
    warps: list[Meeting]
    shared: dict[int, Memory] = attrs.field(factory=dict[int, Memory])


_MATH = SimpleNamespace(sqrt=np.sqrt, exp=np.exp, log=np.log)


# What functions of one, two and three scalars mean. Operators are NumPy's, whose integers wrap.
_UNARY: dict[str, Callable[[Scalar], Scalar]] = {
    "count_ones": lambda a: ops.apply(ops.COUNT_ONES, a)[()],
    "leading_zeros": lambda a: ops.apply(ops.LEADING_ZEROS, a)[()],
    "trailing_zeros": lambda a: ops.apply(ops.TRAILING_ZEROS, a)[()],
    "bits_u4": lambda a: a.view(np.uint32),
    "bits_i4": lambda a: a.view(np.int32),
    "bits_f4": lambda a: a.view(np.float32),
    "bits_u8": lambda a: a.view(np.uint64),
    "bits_i8": lambda a: a.view(np.int64),
    "bits_f8": lambda a: a.view(np.float64),
    "half_to_float": lambda a: a.astype(np.uint16).view(np.float16).astype(np.float32),
    "float_to_half": lambda a: _half_of(a).view(np.uint16),
}
_BINARY: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "multiply_rounded": lambda a, b: a * b,
}


def _half_of(number: Scalar) -> Scalar:
    """Rounded; of a NaN, a quiet one of its sign."""
    return np.copysign(np.float16(np.nan if np.isnan(number) else number), number.astype(np.float16))


def _permuted(word: Scalar, place: Scalar, form: int) -> Scalar:
    """A byte permute of a word and zeros: four bits choose each byte; the highest of them asks for its sign alone."""
    found, chosen = 0, int(place) | (0x4440, 0x5550)[form]
    for at in range(4):
        byte = int(word) >> 8 * (chosen >> 4 * at & 7) & 255 if chosen >> 4 * at & 7 < 4 else 0
        sign = 255 * (byte >> 7)
        found |= (sign if chosen >> 4 * at & 8 else byte) << 8 * at
    return u4(found)


_TERNARY: dict[str, Callable[[Scalar, Scalar, Any], Scalar]] = {
    "byte": _permuted,
    "select": lambda condition, a, b: a if condition else b,
}
_SCALARS = {**_UNARY, **_BINARY, **_TERNARY, **KINDS, "math": _MATH, "nan": np.nan, "inf": np.inf}


@cache
def ours(used: frozenset[str]) -> Sequence[tuple[str, Scalar | None]]:
    """Of the names that a text uses those that are here, with what they mean; None is an invocation's own."""
    of_invocations = (name for name in used if name not in _SCALARS and (_is_public(name) or name == "cuda"))
    return [*((name, _SCALARS[name]) for name in used if name in _SCALARS), *((name, None) for name in of_invocations)]


def _is_public(name: str) -> bool:
    return name[0] != "_" and hasattr(Invocation, name)


class Invocation:
    """The names a kernel's source uses, for one invocation."""

    def __init__(self, group: Group, local: int, group_id: int, groups: int) -> None:
        self._group = group
        self._local = local
        self._lane = local % WARP
        self._warp = group.warps[local // WARP]
        self._lanes = min(WARP, group.size - local // WARP * WARP)
        self._shared_seen = 0
        self.cuda = SimpleNamespace(
            threadIdx=SimpleNamespace(x=local),
            blockIdx=SimpleNamespace(x=group_id),
            gridDim=SimpleNamespace(x=groups),
            shared=SimpleNamespace(array=self._shared_array),
            local=SimpleNamespace(array=self._local_array),
            syncthreads=lambda: self._group.everyone.exchange(self._local, None),
        )

    def names(self, used: frozenset[str]) -> dict[str, Any]:
        """Those that a text uses: there are many, and an invocation of each launch asks for its own."""
        return {name: getattr(self, name) if found is None else found for name, found in ours(used)}

    # -- memory -------------------------------------------------------------------------------------------

    def _local_array(self, length: int, kind: Kind) -> Memory:
        storage = ctypes.create_string_buffer(b"\xcd" * (length * kind.dtype.itemsize))
        return Memory(ctypes.addressof(storage), kind, storage)

    def _shared_array(self, length: int, kind: Kind) -> Memory:
        if length == 0:
            return Memory(ctypes.addressof(self._group.dynamic), kind, self._group.dynamic)
        place, self._shared_seen = self._shared_seen, self._shared_seen + 1
        if place not in self._group.shared:
            self._group.shared[place] = self._local_array(length, kind)
        return self._group.shared[place]

    def load_workgroup(self, memory: Memory, start: Scalar, index: Scalar) -> Scalar:
        return memory[u4(start + index)]

    def store_workgroup(self, memory: Memory, start: Scalar, index: Scalar, value: Scalar) -> None:
        memory[u4(start + index)] = value

    def _update(self, memory: Memory, place: Scalar, change: Callable[[Scalar], Scalar]) -> Scalar:
        old = memory[u4(place)]
        memory[u4(place)] = u4(change(old))
        return old

    def atomic_add(self, memory: Memory, start: Scalar, index: Scalar, value: Scalar) -> Scalar:
        return self._update(memory, start + index, lambda old: old + value)

    def atomic_min(self, memory: Memory, start: Scalar, index: Scalar, value: Scalar) -> Scalar:
        return self._update(memory, start + index, lambda old: min(old, value))

    def atomic_max(self, memory: Memory, start: Scalar, index: Scalar, value: Scalar) -> Scalar:
        return self._update(memory, start + index, lambda old: max(old, value))

    def atomic_and(self, memory: Memory, start: Scalar, index: Scalar, value: Scalar) -> Scalar:
        return self._update(memory, start + index, lambda old: old & value)

    def atomic_or(self, memory: Memory, start: Scalar, index: Scalar, value: Scalar) -> Scalar:
        return self._update(memory, start + index, lambda old: old | value)

    def atomic_xor(self, memory: Memory, start: Scalar, index: Scalar, value: Scalar) -> Scalar:
        return self._update(memory, start + index, lambda old: old ^ value)

    def atomic_exchange(self, memory: Memory, start: Scalar, index: Scalar, value: Scalar) -> Scalar:
        return self._update(memory, start + index, lambda _: value)

    def atomic_load(self, memory: Memory, start: Scalar, index: Scalar) -> Scalar:
        return self._update(memory, start + index, lambda old: old)

    def atomic_store(self, memory: Memory, start: Scalar, index: Scalar, value: Scalar) -> None:
        self._update(memory, start + index, lambda _: value)

    # -- lanes --------------------------------------------------------------------------------------------

    def _seen(self, mask: Scalar, value: Scalar) -> Exchanging:
        assert int(mask) == (1 << self._lanes) - 1, "a mask names the lanes there are"
        return (yield from self._warp.exchange(self._lane, value))

    def _lanes_where(self, votes: Sequence[bool]) -> Scalar:
        return u8(sum(1 << lane for lane, vote in enumerate(votes) if vote))

    def ballot(self, mask: Scalar, predicate: Scalar) -> Meets:
        return self._lanes_where([bool(vote) for vote in (yield from self._seen(mask, predicate))])

    def match(self, mask: Scalar, value: Scalar) -> Meets:
        return self._lanes_where([bool(other == value) for other in (yield from self._seen(mask, value))])

    def match_low_bits(self, mask: Scalar, value: Scalar, bits: int) -> Meets:
        assert int(value) < 1 << bits, "the value fits the bits it was promised to"
        return (yield from self.match(mask, value))

    def match_and_rank(self, mask: Scalar, counters: Memory, first: Scalar, digit: Scalar, bits: int) -> Meets:
        mine = int(digit)  # Python's integers are found in a list many times as fast as NumPy's
        assert mine < 1 << bits, "the digit fits the bits it was promised to"
        seen = yield from self._seen(mask, mine)
        before = self.load_workgroup(counters, first, digit)
        yield from self._seen(mask, mine)
        if mine not in seen[self._lane + 1 :]:
            self.store_workgroup(counters, first, digit, u4(before + u4(seen.count(mine))))
        yield from self._seen(mask, mine)
        return u4(before + u4(seen[: self._lane].count(mine)))

    def _from(self, mask: Scalar, value: Scalar, lane: int) -> Meets:
        seen = yield from self._seen(mask, value)
        return seen[lane] if 0 <= lane < self._lanes else value

    def shuffle(self, mask: Scalar, value: Scalar, lane: Scalar) -> Meets:
        return (yield from self._from(mask, value, int(lane) % WARP))

    def shuffle_xor(self, mask: Scalar, value: Scalar, bits: Scalar) -> Meets:
        return (yield from self._from(mask, value, self._lane ^ int(bits)))

    def shuffle_up(self, mask: Scalar, value: Scalar, distance: Scalar) -> Meets:
        return (yield from self._from(mask, value, self._lane - int(distance)))

    def shuffle_down(self, mask: Scalar, value: Scalar, distance: Scalar) -> Meets:
        return (yield from self._from(mask, value, self._lane + int(distance)))

    def lanes_add(self, mask: Scalar, value: Scalar) -> Meets:
        return u4(sum(map(int, (yield from self._seen(mask, value)))) & 0xFFFFFFFF)

    def lanes_exclusive_add(self, mask: Scalar, value: Scalar) -> Meets:
        return u4(sum(map(int, (yield from self._seen(mask, value))[: self._lane])) & 0xFFFFFFFF)
