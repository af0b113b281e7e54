"""Prefix scans, over several monoids, around every edge of a tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import attrs
import numpy as np
import pytest

from gpusort.algos.scan import scan_in_turn, scan_rows
from gpusort.machine import Capability
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.elements import dtype_of
from gpusort.types.finishes import AsItIs
from gpusort.types.indices import ScanKind
from gpusort.types.monoids import Maximum, Monoid, Sum
from gpusort.types.params import ScanPolicy
from gpusort.types.scalars import U32, U64
from tests.covering import few_cases

Array: TypeAlias = np.ndarray[Any, Any]
POLICIES = (
    ScanPolicy(16, 3, 20),
    ScanPolicy(64, 2, 6, subgroups=True),
    ScanPolicy(8, 1, 9, subgroups=True),
)
# From one tile to shares of several, more of these than a workgroup has invocations, and a last one that is shorter.
LENGTHS = [0, 1, 2, 15, 16, 47, 48, 49, 96, 127, 128, 129, 500, 20 * 48, 20 * 48 + 1, 2345]


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
    if chosen.subgroups and Capability.SUBGROUPS not in target_of(target).info.capabilities:
        pytest.skip("has no subgroups")
    return chosen


def scanned(
    name: str, monoid: Monoid[Any, Any], x: np.ndarray[Any, Any], kind: ScanKind, policy: ScanPolicy
) -> np.ndarray[Any, Any]:
    """The scans of every row; an array of one dimension is one."""
    results = np.zeros(x.shape, dtype_of(monoid.state))
    rows, length = x.size // x.shape[-1] if x.size else 1, x.shape[-1]
    schedule = scan_rows(monoid, rows, length, kind, policy)
    target_of(name).run(schedule, {"data": x.reshape(-1), "results": results.reshape(-1)})
    return results


def is_quick(case: Mapping[str, object]) -> bool:
    """Plain Python takes a thread for each invocation."""
    return case["target"] != "python" or cast(int, case.get("length", 0)) < 500


@few_cases(can=is_quick, pairs=False)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", ScanKind)
def test_sums(target: str, policy: ScanPolicy, kind: ScanKind, length: int) -> None:
    x = np.random.default_rng(length).integers(0, 1 << 32, length, np.uint32)
    inclusive = np.cumsum(x, dtype=np.uint64)
    expected = inclusive if kind is ScanKind.INCLUSIVE else inclusive - x
    np.testing.assert_array_equal(scanned(target, Sum(number_for("u4")), x, kind, policy), expected)


@few_cases(can=is_quick, pairs=False)
@pytest.mark.parametrize("shape", [(1, 700), (3, 1), (7, 49), (40, 130), (2, 1000)], ids=str)
def test_rows(target: str, policy: ScanPolicy, shape: tuple[int, int]) -> None:
    if target == "python":
        shape = min(shape[0], 3), min(shape[1], 49)
    x = np.random.default_rng(5).integers(0, 1 << 32, shape, np.uint32)
    found = scanned(target, Sum(number_for("u4")), x, ScanKind.INCLUSIVE, policy)
    np.testing.assert_array_equal(found, np.cumsum(x, axis=1, dtype=np.uint64))


@attrs.frozen
class IndexSum:
    """Adds up where elements stand."""

    element: type[U32] = U32
    state: type[U32] = U32

    def identity(self) -> U32:
        return U32(0)

    def lift(self, element: U32, index: U32) -> U32:
        return index

    def combine(self, a: U32, b: U32) -> U32:
        return a + b


def indices_so_far(x: Array) -> Array:
    return np.broadcast_to(np.cumsum(range(x.shape[1]), dtype=np.uint32), x.shape)


def maxima_so_far(x: Array) -> Array:
    return np.maximum.accumulate(x, axis=1)


@few_cases(can=is_quick, pairs=False)
@pytest.mark.parametrize(
    ("monoid", "numpys"),
    [(IndexSum(), indices_so_far), (Maximum(key_for("u4")), maxima_so_far)],
    ids=["index", "maxima"],
)
def test_an_index_counts_within_its_row_and_maxima_run(
    target: str,
    policy: ScanPolicy,
    monoid: Monoid[Any, Any],
    numpys: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]],
) -> None:
    x = np.random.default_rng(3).integers(0, 1 << 32, (2, 40) if target == "python" else (5, 333), np.uint32)
    np.testing.assert_array_equal(scanned(target, monoid, x, ScanKind.INCLUSIVE, policy), numpys(x))


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


@few_cases(can=is_quick, pairs=False)
@pytest.mark.parametrize("monoid", [Composition(), PackedComposition()], ids=["struct", "packed"])
@pytest.mark.parametrize("kind", ScanKind)
def test_the_order_of_elements_is_kept(
    target: str, policy: ScanPolicy, kind: ScanKind, monoid: Composition | PackedComposition
) -> None:
    length = 150 if target == "python" else LENGTHS[-1]
    x = np.random.default_rng(4).integers(0, 1 << 32, length, np.uint32)
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


@pytest.mark.parametrize("kind", ScanKind)
@pytest.mark.parametrize("monoid", [Sum(number_for("u4")), IndexSum()], ids=["sum", "indices"])
@pytest.mark.parametrize(
    "policy", [ScanPolicy(16, 3, 1), ScanPolicy(16, 3, 2), ScanPolicy(16, 3, 12), ScanPolicy(1, 9)]
)
def test_a_row_is_scanned_piece_by_piece(monoid: Monoid[Any, Any], kind: ScanKind, policy: ScanPolicy) -> None:
    """Each from the carry of the one before, in shares of one tile or of several, by invocations together or alone."""
    x = np.random.default_rng(8).integers(0, 1 << 32, 900, np.uint32)
    found, carried = np.zeros(x.size, dtype_of(monoid.state)), np.zeros(3, dtype_of(monoid.state))
    for first, end in ((0, 1), (1, 500), (500, 548), (548, 900)):
        schedule = scan_in_turn(monoid, first, end - first, 2, kind, policy, AsItIs(monoid.state))
        arrays = {"data": x[first:end], "results": found[first:end], "carried": carried}
        target_of("simulator").run(schedule, arrays)
        carried[0] = carried[2]
    lifted: Array = np.arange(x.size, dtype=found.dtype) if isinstance(monoid, IndexSum) else x
    inclusive: Array = np.cumsum(lifted, dtype=found.dtype)
    np.testing.assert_array_equal(found, inclusive if kind is ScanKind.INCLUSIVE else inclusive - lifted)


def test_totals_are_left_where_several_shares_need_them() -> None:
    """By a launch more."""
    total, policy = Sum(number_for("u4")), ScanPolicy(16, 3, 2)
    for length, launches in ((48, 1), (49, 2)):
        schedule = scan_in_turn(total, 5, length, 1, ScanKind.INCLUSIVE, policy, AsItIs(total.state))
        assert (
            len(schedule.launches) == len(scan_rows(total, 1, length, ScanKind.INCLUSIVE, policy).launches) == launches
        )
