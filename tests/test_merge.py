"""Merging two sorted arrays, compared with sorting both together: bit for bit, and values exactly."""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusort
from gpusort.algos.merge import merge
from gpusort.algos.merge_path import MergeOrder, of_first_before
from gpusort.algos.sizes import LARGEST_U32
from gpusort.api import plan
from gpusort.api.plan import Plan
from gpusort.kernel.launch import Buffer
from gpusort.operations.merge import has_ties_in_order
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.elements import dtype_of
from gpusort.types.indices import SortOrder
from gpusort.types.keys import RankKey
from gpusort.types.params import MergePolicy
from gpusort.types.scalars import U32, U64, Bool
from tests.covering import InTurn, examples, few_cases
from tests.reference import DTYPES, Array, assert_same_bits, sample

SIZES = [(0, 0), (0, 3), (4, 0), (1, 1), (2, 30), (40, 41), (64, 1), (90, 200)]


def dtypes_for(target: str) -> tuple[str, ...]:
    """Each kernel compiles for seconds on some."""
    match target:
        case "simulator":
            return DTYPES
        case "python":
            return ("i2", "f8")
        case "cpu":
            return ("f4",)
        case _:
            return ("u1", "f4", "i8")


def test_merging_is_sorting_both(target: str, in_turn: InTurn) -> None:
    sizes = SIZES[: 6 if target == "python" else None]
    for (number, dtype), (first, second) in in_turn(enumerate(dtypes_for(target)), sizes):
        descending = (
            number if target == "wgsl" else first + number
        ) % 2 == 0  # there each order is a kernel to compile
        x, y = (gpusort.sort(sample(dtype, n, seed=n), descending=descending) for n in (first, second))
        together = np.concatenate([x, y])
        found = gpusort.merge(x, y, descending=descending, target=target)
        assert_same_bits(found, gpusort.sort(together, descending=descending))
        places = np.arange(first + second, dtype=np.uint32)
        keys, values = gpusort.merge_by_key(x, places[:first], y, places[first:], descending=descending, target=target)
        expected = gpusort.sort_by_key(together, places, descending=descending)
        assert_same_bits(keys, expected[0])
        np.testing.assert_array_equal(values, expected[1])


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8", ">f8", "i8"])
@pytest.mark.parametrize("kind", ["behind", "few", "small", "zeros and NaN"])
def test_long_ones_that_hardly_interleave(kind: str, dtype: str) -> None:
    """These go by NumPy's sort, however long they are."""
    rng = np.random.default_rng(len(kind))
    x = rng.integers(0, 3 if kind == "few" else 100, 30_000).astype(dtype)
    if kind == "zeros and NaN" and x.dtype.kind == "f":
        x[rng.random(x.size) < 0.3] = -0.0
        x[rng.random(x.size) < 0.3] = np.nan
    middle = 29_900 if kind == "small" else 15_000
    y = (x[middle:] + 100).astype(dtype) if kind == "behind" else x[middle:]
    first, second = gpusort.sort(x[:middle]), gpusort.sort(y)
    expected = gpusort.sort(np.concatenate([first, second]).astype(dtype))
    assert_same_bits(gpusort.merge(first, second), expected)
    places = np.arange(x.size)
    keys, values = gpusort.merge_by_key(first, places[:middle], second, places[middle:])
    assert_same_bits(keys, expected)
    both = np.concatenate([first, second]).astype(dtype)
    assert_same_bits(both[values], expected)
    assert np.array_equal(values, gpusort.sort_by_key(both, places)[1])
    if kind == "behind":
        assert_same_bits(gpusort.merge(second[::-1], first[::-1], descending=True), expected[::-1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ">f4"])
@pytest.mark.parametrize("descending", [False, True])
def test_long_ones_whose_ends_tie_are_not_joined(dtype: str, descending: bool) -> None:
    """Of zeros the first array ends with, and the second begins with, the one whose bits come first is first."""
    ramp, zeros = np.arange(1, 20_001).astype(dtype), np.array([0.0, -0.0], dtype)
    x, y = np.append(zeros[:1], -ramp)[::-1], np.append(zeros[1:], ramp)
    if descending:
        x, y = np.append(zeros[1:], ramp)[::-1], np.append(zeros[:1], -ramp)
    x, y = x.astype(dtype), y.astype(dtype)  # in that byte order
    expected = gpusort.sort(np.concatenate([x, y], dtype=dtype), descending=descending)
    for _ in range(2):  # the first time by NumPy whatever they are, as lengths are new
        assert_same_bits(gpusort.merge(x, y, descending=descending, target="cpu"), expected)
        places = np.arange(expected.size)
        keys, values = gpusort.merge_by_key(
            x, places[: x.size], y, places[x.size :], descending=descending, target="cpu"
        )
        assert_same_bits(keys, expected)
        assert values[x.size - 1] == x.size


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["f4", "i8", "f2", "M8[s]", ">f4", ">i8"])
@pytest.mark.parametrize(
    "sizes", [(16_383, 1), (16_384, 1), (32_767, 1), (1, 32_768), (20_000, 17_000), (0, 40_000), (40_000, 0)]
)
def test_short_and_long_on_the_host(sizes: tuple[int, int], dtype: str) -> None:
    """Up to 32,768 elements of all arrays go by NumPy's sort, more by kernels, but for the first of such lengths."""
    x, y = (gpusort.sort(sample(dtype, n, seed=n)) for n in sizes)
    together = np.concatenate([x, y], dtype=x.dtype)  # else in the machine's byte order
    places = np.arange(together.size).astype(">i8")
    expected = gpusort.sort_by_key(together, places)
    for _ in range(2):
        assert_same_bits(gpusort.merge(x, y, target="cpu"), expected[0])
        keys, values = gpusort.merge_by_key(x, places[: x.size], y, places[x.size :], target="cpu")
        assert_same_bits(keys, expected[0])
        assert_same_bits(values, expected[1])


@pytest.mark.parametrize("dtype", ["i2", "u4", "i8", "f4", "f8", "f2", "?", "u1", "M8[s]"])
@pytest.mark.parametrize("tie", [None, -0.0, np.nan, -np.nan])
def test_elements_that_alternate(dtype: str, tie: float | None) -> None:
    """What NumPy sorts sooner than it merges; with `tie` in the first or the second array, or in both."""
    rng = np.random.default_rng(7)
    for n, sizes in enumerate([(900, 1000), (1500, 600), (6000, 5000), (9000, 30), (3, 40), (0, 0)]):
        for descending in (False, True):
            parts = [(rng.standard_normal(size) * 100).astype(dtype) for size in sizes]
            if tie is not None and parts[0].dtype.kind == "f":
                for part in parts[n % 2 : 1 + n % 3]:
                    part[::7] = tie
            x, y = (gpusort.sort(part, descending=descending) for part in parts)
            expected = gpusort.sort(np.concatenate([x, y]), descending=descending)
            assert_same_bits(gpusort.merge(x, y, descending=descending, target="cpu"), expected)


def test_lengths_that_are_new_plan_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[object] = []

    def noted(*given: Any, **how: Any) -> Plan:
        planned.append(given)
        return by_kernels(*given, **how)

    by_kernels = plan._by_kernels
    monkeypatch.setattr(plan, "_by_kernels", noted)
    x = np.arange(200_000)
    for first, second in ((x, x[:0]), (x[:0], x)):  # nor where one is empty
        assert np.array_equal(gpusort.merge(first, second, target="cpu"), x)
        keys, values = gpusort.merge_by_key(first, -first, second, -second, target="cpu")
        assert np.array_equal(keys, x)
        assert np.array_equal(values, -x)
    for length in range(20_001, 20_004):
        x = np.arange(length)
        for _ in range(1 + (length == 20_003)):
            assert not planned
            assert np.array_equal(gpusort.merge(x, x, target="cpu"), np.repeat(x, 2))
    assert planned


# Cut up so small that there are many tiles: of some invocations, and of one.
POLICIES = [MergePolicy(4, 3), MergePolicy(1, 12), MergePolicy(1, 7)]


@few_cases(pairs=False)
@pytest.mark.parametrize("policy", POLICIES, ids=["four", "one", "one, odd"])
@pytest.mark.parametrize("kind", ["all equal", "apart", "apart the other way", "alternating", "runs"])
def test_adverse_data_over_tiles(target: str, kind: str, policy: MergePolicy) -> None:
    """And one element more and less than fills them."""
    if target == "python":
        pytest.skip("takes too long there")
    key = RankKey(key_for("i4"))
    for size in (policy.tile - 1, policy.tile, policy.tile + 1, 5 * policy.tile + 2):
        x, y = (np.sort(part) for part in halves(kind, size))
        values = np.arange(x.size + y.size, dtype=np.uint64)
        arrays: dict[str, Array] = {
            "first": x, "second": y, "results": np.zeros(x.size + y.size, x.dtype),
            "first_values": values[: x.size], "second_values": values[x.size :], "moved": np.zeros_like(values),
        }  # fmt: skip
        schedule = merge(key, x.size, y.size, SortOrder.ASCENDING, policy, key_for("u8").element)
        given = [buffer for buffer in schedule.buffers if buffer.name in arrays]
        target_of(target).run(schedule, {b.name: arrays[b.name].view(element_of(b)) for b in given})
        together = np.concatenate([x, y])
        order = np.argsort(together, kind="stable")
        np.testing.assert_array_equal(arrays["results"], together[order])
        np.testing.assert_array_equal(arrays["moved"], order)


def element_of(buffer: Buffer[Any]) -> np.dtype[Any]:
    return dtype_of(buffer.element)


def halves(kind: str, size: int) -> tuple[Array, Array]:
    ramp = np.arange(2 * size, dtype=np.int32)
    match kind:
        case "all equal":
            return np.full(size, 7, np.int32), np.full(size, 7, np.int32)
        case "apart":
            return ramp[:size], ramp[size:]
        case "apart the other way":
            return ramp[size:], ramp[:size]
        case "alternating":
            return ramp[::2], ramp[1::2]
        case _:
            return ramp[:size] // 50, ramp[: size // 3 + 1] // 20


@pytest.mark.parametrize("dtype", DTYPES)
def test_stretches_of_all_dtypes(dtype: str) -> None:
    key, policy = key_for(dtype), MergePolicy(1, 6)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    for order in SortOrder:
        descending = order is SortOrder.DESCENDING
        x, y = (gpusort.sort(sample(dtype, n, seed=n), descending=descending) for n in (23, 40))
        arrays = {"first": x.view(bits), "second": y.view(bits), "results": np.zeros(63, bits)}
        schedule = merge(key, x.size, y.size, order, policy)
        given = {b.name: arrays[b.name].view(element_of(b)) for b in schedule.buffers if b.name in arrays}
        target_of("simulator").run(schedule, given)
        expected = gpusort.sort(np.concatenate([x, y]), descending=descending)
        assert_same_bits(arrays["results"].view(dtype), expected)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.integers(-3, 3), max_size=60), st.lists(st.integers(-3, 3), max_size=60), st.booleans()
)  # fmt: skip
def test_any_small_arrays(first: list[int], second: list[int], descending: bool) -> None:
    x, y = (np.array(part, np.int16) for part in (first, second))
    x, y = (gpusort.sort(part, descending=descending) for part in (x, y))
    found = gpusort.merge(x, y, descending=descending, target="simulator")
    assert_same_bits(found, gpusort.sort(np.concatenate([x, y]), descending=descending))


@pytest.mark.parametrize("policy", [MergePolicy(1, 6), MergePolicy(4, 3)], ids=["one", "four"])
def test_what_is_not_sorted_is_not_lost_in_other_memory(target: str, policy: MergePolicy) -> None:
    """What comes out is any, but only elements of both: the simulator would report reads beyond them."""
    if target == "python":
        pytest.skip("takes too long there")
    for seed in range(25 if target == "simulator" else 5):
        x, y = (np.random.default_rng(seed + n).integers(1, 9, 30 + n * seed) for n in (3, 7))
        assert gpusort.merge(x, y, target=target).size == x.size + y.size
        schedule = merge(key_for("i8"), x.size, y.size, SortOrder.ASCENDING, policy, U64)
        names, x, y = ("first", "second", "results"), x.view("u8"), y.view("u8")
        keys = dict(zip(names, (x, y, np.zeros(x.size + y.size, np.uint64)), strict=True))
        values = dict(zip(("first_values", "second_values", "moved"), map(np.copy, keys.values()), strict=True))
        target_of(target).run(schedule, keys | values)
        assert_same_bits(keys["results"], values["moved"])


def test_wrong_uses() -> None:
    pyarrow, x = pytest.importorskip("pyarrow"), np.arange(3)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"y: expected dtype int64, as x has, found float64"):
        gpusort.merge(x, x.astype(np.float64))
    with pytest.raises(
        gpusort.InvalidArgumentError, match=r"x: expected an array of one dimension, found shape \(1, 3\)"
    ):
        gpusort.merge(x.reshape(1, 3), x)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^values: expected one for each key"):
        gpusort.merge_by_key(x, x[:2], x, x)
    for target in ("auto", "simulator"):
        with pytest.raises(gpusort.InvalidArgumentError, match=r"^other_values: expected one for each key"):
            gpusort.merge_by_key(x, x, x, x[:2], target=target)
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^y: expected an array of the same kind as x, ndarray,"):
        gpusort.merge(x, pyarrow.array(x))
    with pytest.raises(gpusort.InvalidArgumentError, match=r"other_values: expected dtype int64"):
        gpusort.merge_by_key(x, x, x, x.astype(np.int8))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"values: expected elements of 1, 2, 4, 8 .* indices"):
        gpusort.merge_by_key(x, x.astype(np.complex128), x, x.astype(np.complex128))
    with pytest.raises(gpusort.InvalidArgumentError, match="no more than 4294967295 elements"):
        merge(key_for("u4"), LARGEST_U32, 1, SortOrder.ASCENDING, MergePolicy())
    assert merge(key_for("u4"), LARGEST_U32 - 1, 1, SortOrder.ASCENDING, MergePolicy()).launches


@few_cases(
    can=lambda case: case["target"] != "python" or (case["dtype"], case["descending"]) == ("f4", False), pairs=False
)
@pytest.mark.parametrize("dtype", ["f4", ">f8", "f2"])
@pytest.mark.parametrize("descending", [False, True])
def test_ties_of_floats_may_lie_in_any_order(target: str, dtype: str, descending: bool, in_turn: InTurn) -> None:
    """As stable sorts and `np.sort` leave zeros of both signs and NaNs: elements were lost, and others came twice."""
    if target == "python" and (dtype, descending) != ("f4", False):
        pytest.skip("takes too long there")
    sizes = {30, {"python": 30, "cpu": 9000}.get(target, 300)}  # on the CPU by NumPy's sort, and by kernels
    values, random = np.array([0.0, -0.0, 1.0, -1.0, np.nan, -np.nan], dtype), np.random.default_rng(3)
    for odd, number in in_turn(([0, 1, 2, 3], [2, 4, 5], [0, 1, 2, 3, 4, 5]), sizes):
        x, y = (
            gpusort.sort(values[random.choice(odd, size)], stable=True, descending=descending)
            for size in (number, number + 3)
        )
        expected = gpusort.sort(np.concatenate([x, y]).astype(dtype), stable=True, descending=descending)
        assert_same_bits(gpusort.merge(x, y, target=target, descending=descending), expected)
        prepared = gpusort.plan(gpusort.merge, np.zeros_like(x), np.zeros_like(y), target=target, descending=descending)
        assert_same_bits(prepared(x, y), expected)
        places = np.arange(expected.size)
        keys, moved = gpusort.merge_by_key(
            x, places[:number], y, places[number:], target=target, descending=descending
        )  # fmt: skip
        assert_same_bits(keys, expected)
        np.testing.assert_array_equal(moved, gpusort.argsort(np.concatenate([x, y]), descending=descending))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("ties", [(0.0, -0.0), (np.nan, -np.nan), (-np.nan, np.nan), (-0.0, 0.0)])
def test_ties_of_one_array_at_one_place_are_seen(target: str, ties: tuple[float, float], descending: bool) -> None:
    mixed = gpusort.sort(np.array([1, 2, -1, *ties], "f4"), stable=True, descending=descending)
    plain = gpusort.sort(np.array([-3, 4, 5, *ties], "f4"), descending=descending)  # by their bits
    for x, y in ((mixed, plain), (plain, mixed)):
        both, order = np.concatenate([x, y]), SortOrder.DESCENDING if descending else SortOrder.ASCENDING
        expected = gpusort.sort(both, stable=not has_ties_in_order(mixed, order), descending=descending)
        assert_same_bits(gpusort.merge(x, y, target=target, descending=descending), expected)


@pytest.mark.parametrize("order", [SortOrder.ASCENDING, SortOrder.DESCENDING])
def test_which_ties_are_in_order(order: SortOrder) -> None:
    values, random = np.array([0.0, -0.0, 1.0, -1.0, np.nan, -np.nan], "f4"), np.random.default_rng(1)
    down, seen = order is SortOrder.DESCENDING, set[bool]()
    for size in range(200):
        x = values[random.integers(0, 6, size % 8)]
        stable, by_bits = (gpusort.sort(x, stable=is_stable, descending=down) for is_stable in (True, False))
        assert has_ties_in_order(by_bits, order)
        assert has_ties_in_order(stable, order) is (stable.tobytes() == by_bits.tobytes())
        seen.add(has_ties_in_order(stable, order))
    assert seen == {True, False}


@pytest.mark.parametrize("size", [3, 3000])
def test_the_byte_order_stays(size: int) -> None:
    """Of short arrays it was the machine's, and that of a prepared call the given one."""
    x, values = np.arange(size).astype(">i4"), np.arange(size).astype(">u2")
    for found in (gpusort.merge(x, x), *gpusort.merge_by_key(x, values, x, values)):
        assert found.dtype == (values if found.itemsize == 2 else x).dtype
        np.testing.assert_array_equal(found, np.repeat(np.arange(size), 2))


@attrs.frozen
class Constant:
    """An array that has one value everywhere, and takes no memory for it."""

    value: U32

    def __getitem__(self, index: U32) -> U32:
        return self.value


@pytest.mark.parametrize("length", [1, 2, 3, 1000, 1 << 31, LARGEST_U32])
@pytest.mark.parametrize("first_is_less", [False, True])
def test_a_diagonal_of_any_length_is_searched_to_its_end(length: int, first_is_less: bool) -> None:
    """All of one array before all of the other; no search takes more halvings than an index has bits."""
    first, second = (cast(Any, Constant(U32(value))) for value in ((1, 2) if first_is_less else (2, 1)))
    by = MergeOrder(key_for("u4"), SortOrder.ASCENDING, False, Bool(False))
    found = of_first_before(by, first, second, U32(0), U32(length), U32(length), U32(length))
    assert found == (length if first_is_less else 0)
