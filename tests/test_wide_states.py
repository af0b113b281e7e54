"""Monoids whose states take many registers: an invocation holds as many as half of these do, on every target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.algos.fit import fitted_reduce, fitted_scan_policy
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.machine import Limits, TargetInfo
from gpusort.types.elements import bytes_held
from gpusort.types.errors import CapabilityError
from gpusort.types.invocation import Invocation
from gpusort.types.memory import MOST_REGISTER_BYTES, Registers, Storage
from gpusort.types.params import ReducePolicy, ScanPolicy
from gpusort.types.scalars import U8, U32, U64
from tests.covering import few_cases


@attrs.frozen
class Six:
    a: U32
    b: U32
    c: U32
    d: U32
    e: U32
    f: U32

    @classmethod
    def of(cls, x: U32) -> Six:
        return cls(x, 2 * x, 3 * x, 4 * x, 5 * x, 6 * x)

    def plus(self, other: Six) -> Six:
        return Six(
            self.a + other.a, self.b + other.b, self.c + other.c, self.d + other.d, self.e + other.e, self.f + other.f
        )


@attrs.frozen
class Many:
    """144 bytes: of 8 there are too many for registers on Mesa's software driver, of 64 for any target."""

    a: Six
    b: Six
    c: Six
    d: Six
    e: Six
    f: Six


@attrs.frozen
class Multiples:
    """Satisfies Monoid[U32, Many]."""

    element: type[U32] = U32
    state: type[Many] = Many

    def identity(self) -> Many:
        return self.lift(U32(0), U32(0))

    def lift(self, element: U32, index: U32) -> Many:
        x, i = element, index
        return Many(Six.of(x), Six.of(2 * x), Six.of(3 * x), Six.of(i), Six.of(2 * i), Six.of(3 * i))

    def combine(self, a: Many, b: Many) -> Many:
        return Many(a.a.plus(b.a), a.b.plus(b.b), a.c.plus(b.c), a.d.plus(b.d), a.e.plus(b.e), a.f.plus(b.f))


_FIELDS = "abcdef"


def require_sums(found: Any, x: npt.NDArray[np.uint32], axis: int, accumulate: Any) -> None:
    index = np.broadcast_to(np.expand_dims(np.arange(x.shape[axis], dtype=np.uint32), 1 - axis), x.shape)
    for number, name in enumerate(_FIELDS):
        wanted = accumulate(x if number < 3 else index, axis=axis, dtype=np.uint32) * np.uint32(number % 3 + 1)
        for factor, field in enumerate(_FIELDS, 1):
            np.testing.assert_array_equal(found[name][field], wanted * np.uint32(factor))


def compiled_once(case: Mapping[str, Any]) -> bool:
    """Each of these kernels takes Mesa's software driver and LLVM seconds."""
    once = {"wgsl": "of columns", "cpu": "of a row"}
    return bool(once.get(case["target"], case["asked"]) == case["asked"])


@few_cases(whole=["simulator", "python"], can=compiled_once)
@pytest.mark.parametrize("asked", ["of a row", "of columns", "by a policy"])
def test_they_are_reduced(target: str, asked: str) -> None:
    x = np.random.default_rng(1).integers(0, 1000, (1, 240), np.uint32)
    given, axis = (x.reshape(2, 120), 0) if asked == "of columns" else (x, 1)
    policy = ReducePolicy(group_size=1, items=64) if asked == "by a policy" else None
    found: Any = gpusort.reduce(given, Multiples(), axis=axis, target=target, policy=policy)
    require_sums(found, given, axis, np.sum)


@few_cases(whole=["cpu", "simulator", "python"], can=lambda case: case["target"] != "wgsl")
@pytest.mark.parametrize("asked", ["of a row", "by a policy"])
def test_they_are_scanned(target: str, asked: str) -> None:
    x = np.random.default_rng(1).integers(0, 1000, (1, 100), np.uint32)
    policy = ScanPolicy(group_size=1, items=64) if asked == "by a policy" else None
    found: Any = gpusort.scan(x, Multiples(), axis=1, target=target, policy=policy)
    require_sums(found, x, 1, np.cumsum)


@pytest.mark.parametrize("register_bytes", [1024, MOST_REGISTER_BYTES])
def test_policies_hold_as_many_as_half_the_registers_do(register_bytes: int) -> None:
    limits = Limits(1024, 1 << 20, 65_535, 1 << 30, 8, 1, 1, register_bytes)
    info = TargetInfo("wgsl", "a device", "none", limits, frozenset())
    fits = register_bytes // (2 * bytes_held(Many))
    for items in (1, fits - 1, fits, fits + 1, 64):
        assert fitted_reduce(ReducePolicy(group_size=1, items=items), Many, info).items == min(items, fits)
        assert fitted_scan_policy(ScanPolicy(group_size=1, items=items), Many, info).items == min(items, fits)
    one = attrs.evolve(info, limits=attrs.evolve(limits, register_bytes=bytes_held(Many)))
    assert fitted_reduce(ReducePolicy(), Many, one).items == 1
    few = attrs.evolve(info, limits=attrs.evolve(limits, register_bytes=bytes_held(Many) - 1))
    with pytest.raises(
        CapabilityError, match="policy: a state takes 144 bytes of registers, of which the target has 143"
    ):
        fitted_reduce(ReducePolicy(), Many, few)


@attrs.frozen
class Mixed:
    wide: U64
    flag: U8


@kernel
def hold_some(cx: Invocation, out: Storage[U32], count: int) -> None:
    held: Registers[Mixed] = Registers(Mixed, count)
    held[U32(0)] = Mixed(U64(7), U8(0))
    out[cx.global_id] = U32(held[U32(0)].wide)


def test_as_many_registers_are_allowed_everywhere(target: str) -> None:
    """A byte takes four, and so does each byte of a struct that has one beside wider numbers."""
    out, array, run = Buffer("out", U32, 1, Role.OUTPUT), np.zeros(1, np.uint32), gpusort.target(target).run
    most = gpusort.target(target).info.limits.register_bytes // (4 * 16)
    run(Schedule((out,), (hold_some.launch(Grid(1, 1), out, most),)), {"out": array})
    assert array[0] == 7
    with pytest.raises((TypeError, ValueError, RuntimeError), match=r"at most \d+ |bytes in an array of registers"):
        run(Schedule((out,), (hold_some.launch(Grid(1, 1), out, most + 1),)), {"out": array})
