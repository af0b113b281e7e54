"""Prefix scans, over several monoids, around every edge of a tile."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, cast

import attrs
import numpy as np
import pytest

from gpusort.algos.scan import scan_array
from gpusort.targets.base import Capability
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.elements import dtype_of
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.indices import ScanKind
from gpusort.types.monoids import Maximum, Monoid, Sum
from gpusort.types.params import ScanPolicy
from gpusort.types.scalars import U32, U64

POLICIES = (ScanPolicy(16, 3, 20), ScanPolicy(64, 2, 6, subgroups=True), ScanPolicy(8, 1, 9, subgroups=True),
    ScanPolicy(8, 3, sweeps=True), ScanPolicy(32, 2, subgroups=True, sweeps=True),
)  # fmt: skip
# From one tile to shares of several, more of these than a workgroup has invocations, and a last one that is shorter.
LENGTHS = [0, 1, 2, 15, 16, 47, 48, 49, 96, 127, 128, 129, 500, 20 * 48, 20 * 48 + 1, 2345]


# The simulator steps through all workgroups by turns, but promises it to no one.
PROGRESSES = defaultdict(frozenset[Capability], simulator=frozenset({Capability.FORWARD_PROGRESS}))


@attrs.frozen
class Affine:
    """The map x -> factor * x + offset, modulo 2**32."""

    factor: U32
    offset: U32


@attrs.frozen
class Composition:
    """Maps one after another: associative, and the order matters."""

    element: type[U32] = U32
    state: type[Affine] = Affine

    def identity(self) -> Affine:
        return Affine(U32(1), U32(0))

    def lift(self, element: U32, index: U32) -> Affine:
        return Affine(element | 1, index)

    def combine(self, a: Affine, b: Affine) -> Affine:
        return Affine(a.factor * b.factor, a.offset * b.factor + b.offset)


@pytest.fixture(params=POLICIES, ids=str)
def policy(request: pytest.FixtureRequest, target: str) -> ScanPolicy:
    chosen = cast(ScanPolicy, request.param)
    if chosen.sweeps and Capability.FORWARD_PROGRESS not in target_of(target).info.capabilities | PROGRESSES[target]:
        pytest.skip("has no forward progress")
    if chosen.subgroups and Capability.SUBGROUPS not in target_of(target).info.capabilities:
        pytest.skip("has no subgroups")
    return chosen


def scanned(
    name: str, monoid: Monoid[Any, Any], x: np.ndarray[Any, Any], kind: ScanKind, policy: ScanPolicy
) -> np.ndarray[Any, Any]:
    results = np.zeros(len(x), dtype_of(monoid.state))
    target_of(name).run(scan_array(monoid, len(x), kind, policy), {"data": x, "results": results})
    return results


@pytest.mark.parametrize("kind", ScanKind)
def test_sums(target: str, policy: ScanPolicy, kind: ScanKind) -> None:
    for length in LENGTHS[: 12 if target == "python" else None]:
        x = np.random.default_rng(length).integers(0, 1 << 32, length, np.uint32)
        inclusive = np.cumsum(x, dtype=np.uint64)
        expected = inclusive if kind is ScanKind.INCLUSIVE else inclusive - x
        np.testing.assert_array_equal(scanned(target, Sum(number_for("u4")), x, kind, policy), expected)


def test_running_maxima(target: str, policy: ScanPolicy) -> None:
    x = np.random.default_rng(3).integers(0, 1 << 32, 77, np.uint32)
    np.testing.assert_array_equal(
        scanned(target, Maximum(key_for("u4")), x, ScanKind.INCLUSIVE, policy), np.maximum.accumulate(x)
    )


@attrs.frozen
class PackedComposition:
    """The same in one number: the factor's 32 bits above the offset's."""

    element: type[U32] = U32
    state: type[U64] = U64

    def identity(self) -> U64:
        return U64(1 << 32)

    def lift(self, element: U32, index: U32) -> U64:
        return (U64(element | 1) << 32) | U64(index)

    def combine(self, a: U64, b: U64) -> U64:
        factor, offset = U32(b >> 32), U32(b)
        return (U64(U32(a >> 32) * factor) << 32) | U64(U32(a) * factor + offset)


@pytest.mark.parametrize("monoid", [Composition(), PackedComposition()], ids=["struct", "packed"])
@pytest.mark.parametrize("kind", ScanKind)
def test_the_order_of_elements_is_kept(
    target: str, policy: ScanPolicy, kind: ScanKind, monoid: Composition | PackedComposition
) -> None:
    length = 150 if target == "python" else LENGTHS[-1]
    x = np.random.default_rng(4).integers(0, 1 << 32, length, np.uint32)
    if policy.sweeps and isinstance(monoid, Composition):
        with pytest.raises(InvalidArgumentError, match="policy: a sweep takes states that are scalars, found Affine"):
            scanned(target, monoid, x, kind, policy)
        return
    found = scanned(target, monoid, x, kind, policy)
    if isinstance(monoid, PackedComposition):
        found = np.stack([found, found >> 32], axis=1).astype("u4").view([("offset", "u4"), ("factor", "u4")])[:, 0]
    expected = np.zeros_like(found)
    factor, offset = 1, 0
    for i in range(length):
        mine = int(x[i]) | 1
        following = factor * mine % 2**32, (offset * mine + i) % 2**32
        state = following if kind is ScanKind.INCLUSIVE else (factor, offset)
        expected["factor"][i], expected["offset"][i] = state
        factor, offset = following
    np.testing.assert_array_equal(found, expected)
