"""Prefix scans, over several monoids, around every edge of a tile."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from gpusort.algos.scan import scan_array
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.elements import dtype_of
from gpusort.types.indices import ScanKind
from gpusort.types.monoids import Maximum, Monoid, Sum
from gpusort.types.params import ScanPolicy
from gpusort.types.scalars import U32

POLICY = ScanPolicy(group_size=16, items=2)
TILE = POLICY.group_size * POLICY.items
# The tiles' carries are scanned a tile at a time themselves: the last lengths need one round, two and three.
LENGTHS = [0, 1, 2, 15, 16, TILE - 1, TILE, TILE + 1, 2 * TILE, 1000, TILE**2, TILE**2 + 1, 2 * TILE**2 + TILE + 1]


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


def scanned(name: str, monoid: Monoid[Any, Any], x: np.ndarray[Any, Any], kind: ScanKind) -> np.ndarray[Any, Any]:
    results = np.zeros(len(x), dtype_of(monoid.state))
    target_of(name).run(scan_array(monoid, len(x), kind, POLICY), {"data": x, "results": results})
    return results


@pytest.mark.parametrize("kind", ScanKind)
def test_sums(target: str, kind: ScanKind) -> None:
    for length in LENGTHS[: 8 if target == "python" else None]:
        x = np.random.default_rng(length).integers(0, 1 << 32, length, np.uint32)
        inclusive = np.cumsum(x, dtype=np.uint64)
        expected = inclusive if kind is ScanKind.INCLUSIVE else inclusive - x
        np.testing.assert_array_equal(scanned(target, Sum(number_for("u4")), x, kind), expected)


def test_running_maxima(target: str) -> None:
    x = np.random.default_rng(3).integers(0, 1 << 32, 77, np.uint32)
    np.testing.assert_array_equal(
        scanned(target, Maximum(key_for("u4")), x, ScanKind.INCLUSIVE), np.maximum.accumulate(x)
    )


@pytest.mark.parametrize("kind", ScanKind)
def test_the_order_of_elements_is_kept(target: str, kind: ScanKind) -> None:
    length = TILE + 1 if target == "python" else LENGTHS[-1]
    x = np.random.default_rng(4).integers(0, 1 << 32, length, np.uint32)
    found = scanned(target, Composition(), x, kind)
    expected = np.zeros_like(found)
    factor, offset = 1, 0
    for i in range(length):
        mine = int(x[i]) | 1
        following = factor * mine % 2**32, (offset * mine + i) % 2**32
        expected[i] = following if kind is ScanKind.INCLUSIVE else (factor, offset)
        factor, offset = following
    np.testing.assert_array_equal(found, expected)
