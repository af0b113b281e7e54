"""Radix sort in both forms, compared with NumPy exactly, around every edge of a tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.algos import radix as radix_module
from gpusort.algos.batch import Batch
from gpusort.algos.radix_sorts import radix_sort
from gpusort.kernel.launch import Schedule
from gpusort.kernel.specialise import specialise
from gpusort.machine import Capability
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.indices import SortOrder
from gpusort.types.params import RadixPolicy
from tests.covering import Can, few_cases

Array = npt.NDArray[Any]
GROUP, ITEMS = 64, 2
TILE = GROUP * ITEMS
LENGTHS = [0, 1, 2, 15, 16, 17, TILE - 1, TILE, TILE + 1, 2 * TILE, 1000, 5 * TILE + 3]
DTYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "M8[s]"]


def able(*compiled: str, downwards: bool = True) -> Can:
    """Which cases are run. Plain Python takes minutes for any. On the CPU a kernel takes seconds to compile, so there
    are few dtypes, perhaps in one order. A single sweep needs forward progress, of which the simulator has enough: its
    workgroups advance together."""

    def can(case: Mapping[str, object]) -> bool:
        sweeps = case.get("sweeps") == "sweeps"
        match case["target"]:
            case "python":
                return False
            case "cpu":
                in_order = downwards or case["order"] is SortOrder.ASCENDING
                return not sweeps and in_order and case["dtype"] in compiled
            case target:
                return not sweeps or target == "simulator"

    return can


def sweeps_there(case: Mapping[str, object]) -> bool:
    """Where workgroups promise each other progress; on `cuda` all cases are run anyway."""
    return case["target"] == "simulator"


def policy_for(name: str, subgroups: bool = True, sweeps: bool = False) -> RadixPolicy:
    strand = target_of(name).info.limits.subgroup_size if subgroups else 16
    return RadixPolicy(
        4, GROUP, ITEMS, strand, subgroups, lookback=2, count_group=GROUP, count_items=2, copies=2, sweeps=sweeps
    )


def hard_words(dtype: str) -> Array:
    """The ends of the order and of its halves; for floats both zeros and infinities, and NaNs of both signs."""
    size = np.dtype(dtype).itemsize
    half = 1 << (8 * size - 1)
    found = [0, 1, half - 1, half, half + 1, 2 * half - 1]
    if np.dtype(dtype).kind == "f":
        infinity = int(np.array(np.inf, dtype).view(f"u{size}"))
        found += [sign + infinity + change for sign in (0, half) for change in (-1, 0, 1)]
    return np.array(found, f"u{size}").view(dtype)


def random_bits(dtype: str, length: int, few: bool = False) -> Array:
    """Any bits at all, and a quarter of them hard ones; or a few different elements, many times."""
    rng = np.random.default_rng(length + few)
    hard = hard_words(dtype)
    if few:
        return hard[rng.integers(0, len(hard), length)]
    x = rng.integers(0, 256, length * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
    return np.where(rng.random(length) < 0.25, hard[rng.integers(0, len(hard), length)], x)


def unordered(x: Array) -> int:
    """How many elements are NaN or NaT."""
    return int(np.isnan(x).sum() if x.dtype.kind == "f" else np.isnat(x).sum() if x.dtype.kind == "M" else 0)


def in_order(x: Array, order: SortOrder) -> Array:
    """NumPy's answer, -0.0 before 0.0; descending mirrors what is not NaN or NaT."""
    ascending = x[np.lexsort((~np.signbit(x), x))] if x.dtype.kind == "f" else np.sort(x)
    if order is SortOrder.ASCENDING:
        return ascending
    ordered = len(x) - unordered(x)
    return np.concatenate([ascending[:ordered][::-1], ascending[ordered:]])


def check(schedule: Schedule, name: str, x: Array, order: SortOrder) -> None:
    words, ordered = f"u{x.dtype.itemsize}", len(x) - unordered(x)
    given, found, expected = x.copy(), np.zeros_like(x), in_order(x, order)
    target_of(name).run(schedule, {"data": given.view(words), "results": found.view(words)})
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found[:ordered].view(words), expected[:ordered].view(words))  # the zeros' signs too
    np.testing.assert_array_equal(np.sort(found.view(words)), np.sort(x.view(words)))  # every bit came back
    np.testing.assert_array_equal(given.view(words), x.view(words))  # what is sorted is not written to


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_the_floats_sorted_hold_the_hard_ones(dtype: str) -> None:
    x = random_bits(dtype, 1000)
    sign = np.signbit(x)
    for kind in (np.isnan(x), np.isinf(x), x == 0):
        assert (kind & sign).any()
        assert (kind & ~sign).any()


@pytest.fixture
def quick_target(target: str) -> str:
    if target == "python":
        pytest.skip("plain Python takes minutes for these")
    return target


@pytest.fixture
def sweeping_target(quick_target: str) -> str:
    """In the simulator all workgroups of these lengths advance together, which is progress enough."""
    has_progress = Capability.FORWARD_PROGRESS in target_of(quick_target).info.capabilities
    if not has_progress and quick_target != "simulator":
        pytest.skip(f"{quick_target} does not promise forward progress between workgroups")
    return quick_target


@pytest.mark.parametrize("most", [0, 320], ids=["prefix sums", "sums of spans"])
@pytest.mark.parametrize("length", [16 * TILE, 16 * TILE + 1, 2 * 16 * 8 * TILE + 3])
def test_how_tiles_learn_where_their_digits_begin(
    quick_target: str, length: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of a span of tiles, behind it, and with as many spans as are loaded at a time and more."""
    monkeypatch.setattr(radix_module, "MOST_SUMMED", most)
    x = random_bits("u1", length)
    for order in SortOrder:
        schedule = radix_sort(Batch(key_for("u1"), 1, length, order), policy_for(quick_target), 8)
        check(schedule, quick_target, x, order)


@pytest.mark.parametrize("passes", [1, 3])
def test_with_few_tiles_there_are_no_prefix_sums(passes: int) -> None:
    policy = RadixPolicy(4, GROUP, ITEMS)
    for rows, tiles, is_summed in ((1, 320, True), (1, 321, False), (2, 2, False)):
        batch = Batch(key_for("u4"), rows, tiles * TILE, SortOrder.ASCENDING)
        names = [launch.kernel.name for launch in radix_sort(batch, policy, 4 * passes).launches]
        each = ["radix_count", "radix_scatter"] if is_summed else ["radix_count", "radix_add_up", "radix_scatter"]
        assert names == ["sweep_clear"] * is_summed + each * passes


@few_cases(can=able("f2", "u4", "M8[s]"), pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_portable_form(quick_target: str, dtype: str, length: int, order: SortOrder) -> None:
    x = random_bits(dtype, length)
    schedule = radix_sort(Batch(key_for(dtype), 1, length, order), policy_for(quick_target), 8 * x.itemsize)
    check(schedule, quick_target, x, order)


@few_cases(can=able("u4"))
@pytest.mark.parametrize("dtype", ["u4", "f4"])
def test_the_portable_form_without_subgroups(quick_target: str, dtype: str) -> None:
    policy = policy_for(quick_target, subgroups=False)
    for length in (1, TILE - 1, TILE + 1, 1000):
        x = random_bits(dtype, length)
        schedule = radix_sort(Batch(key_for(dtype), 1, length, SortOrder.ASCENDING), policy, 8 * x.itemsize)
        check(schedule, quick_target, x, SortOrder.ASCENDING)


@few_cases(can=able("f4"))
@pytest.mark.parametrize("dtype", ["u1", "i4", "f4"])
def test_counting_passes_that_share_their_kernels(quick_target: str, dtype: str) -> None:
    """In either order, as those of an exported module do."""
    programs: set[int] = set()
    for length, order in product((1, TILE + 1, 1000), SortOrder):
        x, batch = random_bits(dtype, length), Batch(key_for(dtype), 1, length, order)
        schedule = radix_sort(batch, policy_for(quick_target), 8 * x.itemsize, shares=True)
        check(schedule, quick_target, x, order)
        programs |= {id(specialise(launch).program) for launch in schedule.launches}
    assert len(programs) == 3


@few_cases(can=sweeps_there, pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_single_sweep(sweeping_target: str, dtype: str, length: int, order: SortOrder) -> None:
    x = random_bits(dtype, length)
    policy = policy_for(sweeping_target, sweeps=True)
    check(radix_sort(Batch(key_for(dtype), 1, length, order), policy, 8 * x.itemsize), sweeping_target, x, order)


def arrangements() -> Iterator[Array]:
    n = 5 * TILE + 3
    ramp = np.sort(random_bits("u4", n))
    yield from (ramp, ramp[::-1].copy(), np.full(n, 5, np.uint32), random_bits("u4", n, few=True))


@pytest.mark.parametrize("order", SortOrder)
def test_arrangements_in_the_portable_form(quick_target: str, order: SortOrder) -> None:
    if quick_target == "cpu" and order is SortOrder.DESCENDING:
        pytest.skip("each kernel compiles for seconds there")
    policy = policy_for(quick_target)
    for x in arrangements():
        check(radix_sort(Batch(key_for("u4"), 1, len(x), order), policy, 32), quick_target, x, order)


@pytest.mark.parametrize("order", SortOrder)
def test_arrangements_in_a_single_sweep(sweeping_target: str, order: SortOrder) -> None:
    policy = policy_for(sweeping_target, sweeps=True)
    for x in arrangements():
        check(radix_sort(Batch(key_for("u4"), 1, len(x), order), policy, 32), sweeping_target, x, order)


def check_skipping(name: str, dtype: str, in_place: bool, policy: RadixPolicy) -> None:
    """Masks leave some digits constant: of four bits, so of none, one, an odd number, all but one."""
    size, n = np.dtype(dtype).itemsize, 3 * TILE + 5
    for mask in (0, 0xF, 0xF0, 0xFF00, 0xF0F0F0, 0x7FFF_FFF0, 0xFFFF_FFFF):
        x = (np.random.default_rng(mask).integers(0, 1 << 32, n, np.uint32) & np.uint32(mask)).astype(f"u{size}")
        x = x.view(dtype)
        schedule = radix_sort(Batch(key_for(dtype), 1, n, SortOrder.ASCENDING, in_place=in_place), policy, 8 * size)
        if in_place:
            found = x.copy()
            target_of(name).run(schedule, {"data": found.view(f"u{size}")})
            np.testing.assert_array_equal(found, in_order(x, SortOrder.ASCENDING))
        else:
            check(schedule, name, x, SortOrder.ASCENDING)


@few_cases(can=able("u4"), pairs=False)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", ["u4", "i8", "f4"])
def test_digits_that_are_all_the_same_are_skipped(quick_target: str, dtype: str, in_place: bool) -> None:
    check_skipping(quick_target, dtype, in_place, policy_for(quick_target))


@few_cases(can=sweeps_there, pairs=False)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", ["u4", "i8", "f4"])
def test_sweeps_of_such_digits_are_skipped(sweeping_target: str, dtype: str, in_place: bool) -> None:
    check_skipping(sweeping_target, dtype, in_place, policy_for(sweeping_target, sweeps=True))


def test_a_sort_in_place_takes_an_even_number_of_passes() -> None:
    with pytest.raises(InvalidArgumentError, match="an even number of passes, not 1"):
        radix_sort(Batch(key_for("u1"), 1, 9, SortOrder.ASCENDING, in_place=True), RadixPolicy(), 8)
