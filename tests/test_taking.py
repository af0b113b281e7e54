"""Elements that are taken by their places, few by NumPy and many by a loop of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusort.targets.cpu.host.taking import taken_in_rows, taken_with_places


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "M8[s]", "c16"])
@pytest.mark.parametrize(
    ("rows", "length", "count"), [(1, 9000, 5000), (3, 7, 2), (1300, 7, 7), (1301, 9, 5), (2, 3, 3000)]
)
def test_elements_of_rows_are_taken(dtype: str, rows: int, length: int, count: int) -> None:
    rng = np.random.default_rng(rows)
    elements: Any = rng.integers(0, 100, (rows, length)).astype("i4").astype(dtype)
    places = rng.integers(0, length, (rows, count + 3))[:, :count]
    wanted = np.take_along_axis(elements, places, 1)
    for found in (taken_in_rows(elements, places.copy()), taken_with_places(elements, places.copy())[0]):
        assert found.dtype == elements.dtype
        np.testing.assert_array_equal(found, wanted)
    found, kept = taken_with_places(elements, places)
    assert kept.flags.c_contiguous
    np.testing.assert_array_equal(kept, places)
    np.testing.assert_array_equal(found, wanted)


def test_places_that_are_packed_are_not_copied() -> None:
    places = np.zeros((1300, 7), np.intp)
    assert taken_with_places(np.ones((1300, 9)), places)[1] is places
    assert taken_with_places(np.ones((1300, 9))[::-1], places[:, :4])[0].shape == (1300, 4)  # which no loop takes
