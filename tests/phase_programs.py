"""Random kernels of phases: workgroup memory of scalars and structs, barriers, subgroup operations, atomics, registers,
narrow and wide buffers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

_HEAD = """
from __future__ import annotations

from enum import Enum

import attrs

from gpusort.kernel.language import *


class Mode(Enum):
    P = 0
    Q = 3
    R = 9


@attrs.frozen
class Cell:
    flag: Bool
    tiny: U8
    mode: Mode
    half: U16
    wide: U64
    real: F32
    sign: I64

    def mixed(self) -> U32:
        small = U32(self.flag) * 3 + U32(self.tiny) * 5 + U32(self.mode.value) * 7 + U32(self.half) * 11
        return small + U32(self.wide >> 5) * 13 + bitcast(U32, self.real) + U32(bitcast(U64, self.sign) >> 9)

    def __add__(self, o: Cell) -> Cell:
        tiny, half = U8(U32(self.tiny) + U32(o.tiny)), U16(U32(self.half) * 3 + U32(o.half))
        mode = self.mode if self.flag else o.mode
        wide, real, sign = self.wide * 5 + o.wide, self.real + o.real, self.sign - o.sign
        return Cell(self.flag ^ o.flag, tiny, mode, half, wide, real, sign)

    def __neg__(self) -> Cell:
        return Cell(~self.flag, U8(~U32(self.tiny)), self.mode, self.half, ~self.wide, -self.real, -self.sign)


def cell(x: U32) -> Cell:
    mode = Mode.Q if x % 3 == 0 else Mode.R
    wide, real, sign = U64(x) * 0x123456789, F32(x & 0xFFFF) * 0.25, I64(x) * -99999999
    return Cell((x & 1) != 0, U8(x), mode, U16(x * 77), wide, real, sign)


@attrs.frozen
class Params:
    n: U32
    mode: Mode
    scale: F32
    flag: Bool


@kernel
def subject(
    cx: Invocation, bytes_: Storage[U8], words: Storage[U64], out: Storage[U32], cells_out: Storage[Cell],
    tinies: Storage[U8], halves: Storage[U16], flags: Storage[Bool], p: Params,
    tile: Workgroup[U32], cells: Workgroup[Cell], shared: Workgroup[U32],
    signs: Workgroup[Bool], parts: Workgroup[U16], reals: Workgroup[F32], longs: Workgroup[I64],
) -> None:
    me = cx.local_id
    x = U32(bytes_[me]) * 17
    y = U32(words[me] >> 7)
    mine = cell(x ^ y)
    kept: Registers[Cell] = Registers(Cell, 2)
    kept[0] = cell(me)
    kept[1] = cell(y)
    tile[me] = y
    cells[me] = mine
    signs[me], parts[me], reals[me], longs[me] = mine.flag, mine.half, mine.real, mine.sign
    if me < 4:
        shared[me] = me
    cx.barrier()
"""
_TAIL = """
    out[cx.global_id] = x ^ y * 3 ^ mine.mixed() ^ tile[me] ^ kept[0].mixed() ^ shared[me % 4]
    cells_out[cx.global_id] = mine + cells[me] + kept[1]
"""
# The same for all invocations of a workgroup.
_UNIFORM = ("p.flag", "p.n > 50", "p.mode is Mode.Q", "cx.group_id == 0", "cx.load_uniform(tile, 0) % 2 == 0")
_NUMBERS = (
    "me", "x", "y", "p.n", "cx.group_id", "cx.lane", "cx.group_size", "U32(0)", "U32(7)", "U32(65535)",
    "U32(4294967295)",
)  # fmt: skip


class PhaseWriter:
    """Writes one module. Whatever invocations share is read and written in phases that barriers part."""

    def __init__(self, random: Random, lanes: int) -> None:
        """For subgroups of so many lanes."""
        self._random, self._lanes = random, lanes

    def module(self) -> str:
        phases = self._block(2)
        if self._random.random() < 0.3:  # the others go on
            ending = [*_TAIL.strip("\n").split("\n"), "    return"]
            phases += [f"if {self._random.choice(_UNIFORM)}:", *ending, *self._block(0)]
        return _HEAD + "\n".join(f"    {line}" for line in phases) + _TAIL

    def _block(self, depth: int) -> list[str]:
        """Phases, some in branches and loops into which all invocations of a workgroup go together."""
        nests = [depth > 0 and self._random.random() < 0.4 for _ in range(self._random.randrange(1, 4))]
        return [line for one in nests for line in (self._nest(depth) if one else self._phase())]

    def _nest(self, depth: int) -> list[str]:
        condition, turn = self._random.choice(_UNIFORM), f"turn_{depth}"
        one, other = ([f"    {line}" for line in self._block(depth - 1)] for _ in range(2))
        leaving = [f"    if {condition}:", f"        {self._random.choice(['break', 'continue'])}"]
        return self._random.choice(
            [
                [f"if {condition}:", *one, "else:", *other], [f"if {condition}:", *one],
                [f"for {turn} in dynamic_range(U32(0), p.n % 3):", *one, *leaving, *other],
                [f"{turn} = U32(0)", f"while {turn} < 2:", f"    {turn} += 1", *leaving, *one],
                ["match p.mode:", "    case Mode.P:", *(f"    {line}" for line in one),
                 "    case Mode.Q | Mode.R:", *(f"    {line}" for line in other)],
            ]
        )  # fmt: skip

    def _one(self, *choices: Callable[[], str]) -> str:
        return self._random.choice(choices)()

    def _number(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.2:
            return self._random.choice(_NUMBERS)
        less = depth - 1
        return self._one(
            lambda: f"({self._number(less)} {self._random.choice('+-*&|^')} {self._number(less)})",
            lambda: f"({self._number(less)} {self._random.choice(['>>', '<<'])} {self._number(less)})",
            lambda: f"({self._number(less)} % ({self._number(less)} | 1))",
            lambda: f"({self._number(less)} if {self._condition(less)} else {self._number(less)})",
            lambda: f"minimum({self._number(less)}, {self._number(less)})",
            lambda: f"count_ones({self._number(less)})",
            lambda: f"U32({self._condition(less)})",
            lambda: f"tile[{self._index(less)}]",
            lambda: f"cells[{self._index(less)}].mixed()",
            lambda: f"({self._cell(less)}).mixed()",
            lambda: f"U32(bytes_[{self._index(less)}])",
            lambda: f"U32(words[{self._index(less)}] >> {self._random.randrange(64)})",
            lambda: "U32(tinies[cx.global_id])",
            lambda: "U32(halves[cx.global_id])",
            lambda: f"({self._number(less)} + p.mode.value)",
        )

    def _condition(self, depth: int) -> str:
        return self._one(
            lambda: f"({self._number(depth)} {self._random.choice(['<', '<=', '==', '!='])} {self._number(depth)})",
            lambda: f"({self._number(depth)} > 9 and {self._number(depth)} != 4)",
            lambda: f"({self._cell(depth - 1)}).flag",
            lambda: f"({self._cell(depth - 1)}.real < {self._random.choice(['1.5', 'p.scale', '-2.0'])})",
            lambda: f"(p.mode is Mode.{self._random.choice('PQR')})",
            lambda: "p.flag",
            lambda: "flags[cx.global_id]",
        )

    def _cell(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.3:
            return self._random.choice(["mine", "cell(x)", "cell(me)"])
        less = depth - 1
        return self._one(
            lambda: f"({self._cell(less)} + {self._cell(less)})",
            lambda: f"(-{self._cell(less)})",
            lambda: f"({self._cell(less)} if {self._condition(less)} else {self._cell(less)})",
            lambda: f"cells[{self._index(less)}]",
            lambda: f"kept[{self._random.randrange(2)}]",
            lambda: f"kept[{self._number(less)} % 2]",
            lambda: f"cell({self._number(less)})",
        )

    def _index(self, depth: int) -> str:
        return f"({self._number(max(0, depth))} % cx.group_size)" if self._random.random() < 0.7 else "me"

    def _phase(self) -> list[str]:
        random, lane = self._random, f"U32({self._random.randrange(self._lanes)})"
        subgroup = random.choice(
            [
                f"cx.shuffle_xor(v, {lane})", f"cx.shuffle(v, (cx.lane + {lane}) % cx.subgroup_size)",
                f"cx.shuffle_up(v, {self._number(1)})", f"cx.shuffle_down(v, {lane})",
                f"U32(cx.shuffle_down(words[me] * U64(v), {self._number(1)}) >> 31)",
                f"U32(cx.shuffle_up(v % 3 == 1, {lane}))", "cx.subgroup_add(v)", "cx.exclusive_add(v)",
                "U32(cx.ballot(v > 9))",
                f"U32(cx.match(v % {random.randrange(1, 5)}))",
            ]
        )  # fmt: skip
        atomic = f"shared.atomic_{random.choice(['add', 'xor', 'or', 'max', 'min'])}"
        return random.choice(
            [
                [
                    f"v = {self._number(3)}", "cx.barrier()", "tile[me] = v", "cx.barrier()",
                    "x = tile[(me + 1) % cx.group_size]",
                ],
                [f"w = {self._cell(3)}", "cx.barrier()", "cells[cx.group_size - 1 - me] = w", "cx.barrier()"],
                [
                    f"w = {self._cell(2)}", "cx.barrier()", "signs[me] = w.flag", "parts[me] = w.half",
                    "reals[cx.group_size - 1 - me] = w.real", "longs[me] = w.sign", "cx.barrier()",
                    f"x = x ^ U32(signs[{self._index(1)}]) ^ U32(parts[{self._index(1)}]) * 5",
                    f"y = y + U32(bitcast(U64, longs[{self._index(1)}]) >> 7) ^ U32(reals[{self._index(1)}] > 2.5)",
                ],
                [f"v = {self._number(2)}", f"y = {subgroup}"],
                [f"w = {self._cell(2)}", f"mine = cx.shuffle_xor(w, {lane})"],
                [
                    f"{atomic}({self._number(1)} % 4, {self._number(2)})", "cx.barrier()", "y = y ^ shared[x % 4]",
                    "cx.barrier()",
                ],
                [
                    f"if {self._condition(2)}:", f"    x = {self._number(2)}", f"    mine = {self._cell(2)}", "else:",
                    f"    y = {self._number(2)}",
                ],
                [
                    f"for i in dynamic_range(U32(0), {self._number(1)} % 5):", f"    x = x * 3 + i + {self._number(1)}",
                    "    if x % 7 == 0:", f"        {random.choice(['break', 'continue'])}",
                    "    mine = mine + cell(i)",
                ],
                [f"mine += {self._cell(2)}", f"kept[{random.randrange(2)}] += {self._cell(1)}"],
                [f"kept[{self._number(1)} % 2] = {self._cell(1)}", f"tinies[cx.global_id] = U8({self._number(2)})"],
                [
                    f"halves[cx.global_id] = U16({self._number(2)})", f"flags[cx.global_id] = {self._condition(2)}",
                    f"if {self._condition(1)}:", f"    tinies[cx.global_id] = U8({self._number(1)})",
                ],
                [
                    f"n = cx.load_uniform(tile, {random.randrange(self._lanes)})",
                    "for j in dynamic_range(U32(0), n % 3):", "    cx.barrier()", "    tile[me] = x + j",
                    "    cx.barrier()",
                ],
                [
                    "match mine.mode:", "    case Mode.P | Mode.R:", f"        y = {self._number(2)}",
                    "    case Mode.Q:", f"        x = {self._number(2)}",
                ],
            ]
        )  # fmt: skip
