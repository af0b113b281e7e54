"""The radix sort for processor cores, on every target, compared with NumPy exactly, around every edge of a share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pytest

import gpusort
from gpusort import CapabilityError, InvalidArgumentError, SerialRadix, UnsupportedTypeError
from gpusort.algos.batch import Batch
from gpusort.algos.radix_serial import (
    SerialRadixPolicy,
    serial_radix_sort,
)
from gpusort.kernel.launch import Schedule
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from gpusort.types.keys import RankKey
from gpusort.types.scalars import U16, U32, U64
from tests import key_cases
from tests.covering import few_cases
from tests.reference import assert_same_bits
from tests.test_pairs import stable_order
from tests.test_radix import DTYPES, check, random_bits
from tests.test_radix_batches import check as check_rows
from tests.test_radix_batches import rows_of, sorted_rows, words

UP = SortOrder.ASCENDING
POLICY = SerialRadixPolicy(digit_bits=4, shares=3, least=10)
LENGTHS = (0, 1, 2, 9, 10, 11, 19, 20, 21, 29, 30, 31, 32, 59, 60, 61, 200)


def can(case: Mapping[str, object]) -> bool:
    return case["target"] in ("simulator", "wgsl", "cuda") or case["dtype"] in ("u2", "f4", "i8")


@few_cases(can=can, pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_row_in_shares(target: str, dtype: str, length: int, order: SortOrder) -> None:
    for few in (False, True) if length == LENGTHS[-1] and target != "python" else (False,):
        x = random_bits(dtype, length, few)
        made = serial_radix_sort(Batch(key_for(dtype), 1, length, order), POLICY, range(8 * x.itemsize))
        check(made, target, x, order)


@pytest.mark.parametrize(
    ("rows", "length", "share"),
    [(1, 9, 9), (1, 10, 10), (1, 29, 10), (1, 30, 10), (1, 31, 11), (1, 33, 11), (1, 3000, 1000), (2, 3000, 3000),
     (2, 1, 1)],
)  # fmt: skip
def test_shares_are_few_and_not_too_small(rows: int, length: int, share: int) -> None:
    assert POLICY.share(rows, length) == share
    schedule = serial_radix_sort(Batch(key_for("u2"), rows, length, UP), POLICY, range(16))
    assert {launch.grid.groups for launch in schedule.launches} <= {1, rows * -(-length // share)}
    assert len(schedule.launches) == 3 * 4


@few_cases(can=can, pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "i8"])
def test_rows_are_a_share_each(target: str, dtype: str, order: SortOrder) -> None:
    for rows, length in ((2, 7), (5, 33), (3, 0), (4, 1)):
        x = rows_of(dtype, rows, length)
        made = serial_radix_sort(Batch(key_for(dtype), rows, length, order), POLICY, range(8 * x.itemsize))
        check_rows(sorted_rows(made, target, x), x, order)


@pytest.mark.parametrize("bits", [range(8), range(8, 16), range(4, 32), range(16, 24), range(13, 14)])
def test_by_some_bits_alone(target: str, bits: range) -> None:
    """Digits that hold one of the bits are sorted by; what is alike in them keeps its order."""
    x = random_bits("u4", 200)
    results = np.zeros_like(x)
    schedule = serial_radix_sort(Batch(key_for("u4"), 1, x.size, UP), POLICY, bits)
    target_of(target).run(schedule, {"data": x, "results": results})
    first, end = bits.start // 4 * 4, -(-bits.stop // 4) * 4
    digits = (x >> np.uint32(first)) & np.uint32((1 << (end - first)) - 1)
    np.testing.assert_array_equal(results, x[np.argsort(digits, kind="stable")])


@few_cases(can=can, pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["u2", "f4"])
def test_places_and_values(target: str, dtype: str, order: SortOrder) -> None:
    indices: tuple[Any, Any] = U64, U32
    for rows, length, index in zip((1, 3), (95, 31), indices, strict=True):
        x = rows_of(dtype, rows, length)
        bits, key = range(8 * x.itemsize), RankKey(key_for(dtype))
        values = np.random.default_rng(length).integers(0, 1 << 16, x.shape, np.uint16)
        places, moved = np.zeros(x.shape, index.numpys), np.zeros_like(values)
        argsort = serial_radix_sort(Batch(key, rows, length, order, places=index), POLICY, bits)
        _run(argsort, target, data=words(x), places=places)
        by_words = serial_radix_sort(Batch(key_for(dtype), rows, length, order, value=U16), POLICY, bits)
        found = np.zeros_like(x)
        _run(by_words, target, data=words(x), results=words(found), values=values, moved=moved)
        for row, place in zip(x, places, strict=True):
            np.testing.assert_array_equal(place, stable_order(row, order))
        check_rows(found, x, order)
        for row in range(rows):
            pairs = sorted(zip(words(x)[row].tolist(), values[row].tolist(), strict=True))
            assert sorted(zip(words(found)[row].tolist(), moved[row].tolist(), strict=True)) == pairs


def _run(schedule: Schedule, target: str, **arrays: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
    target_of(target).run(schedule, {name: array.reshape(-1) for name, array in arrays.items()})


def test_sort_takes_it(target: str) -> None:
    for shape in ((300,), (4, 75), (0,), (5, 1)):
        x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        found = gpusort.sort(x, target=target, algorithm=SerialRadix(POLICY), descending=True)
        assert_same_bits(found, np.sort(x)[..., ::-1])


@pytest.mark.parametrize(("held", "bits"), [(8, 1), (15, 1), (16, 2), (1000, 7), (1 << 20, 8)])
def test_a_digit_has_as_many_values_as_workgroup_memory_counts(held: int, bits: int) -> None:
    info = target_of("simulator").info
    few = attrs.evolve(info, limits=attrs.evolve(info.limits, workgroup_bytes=held, groups=5))
    key = key_for("u4")
    assert SerialRadix().fitted(key, 99, few).policy == SerialRadixPolicy(bits, 5)
    with pytest.raises(CapabilityError, match="too little for a radix sort"):
        SerialRadix().fitted(key, 99, attrs.evolve(few, limits=attrs.evolve(few.limits, workgroup_bytes=7)))


def test_it_refuses_what_it_cannot_sort() -> None:
    with pytest.raises(UnsupportedTypeError, match="SerialRadix sorts keys whose elements are unsigned integers"):
        SerialRadix().placements(key_cases.OfFloats())
    with pytest.raises(InvalidArgumentError, match="SerialRadixPolicy: shares: expected"):
        SerialRadixPolicy(shares=0)
