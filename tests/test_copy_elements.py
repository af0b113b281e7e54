"""Copies between arrays that lie in different orders."""

from __future__ import annotations

import numpy as np
import pytest

from gpusort.arrays.host import copy_elements
from tests.covering import few_cases

ORDERS = [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)]


@few_cases(pairs=False)
@pytest.mark.parametrize(
    "shape",
    [(700, 1, 300), (129, 3, 513), (127, 4, 600), (1, 512, 512), (130, 200, 140), (2, 2, 2), (3, 0, 5), (600, 600, 1)],
)
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("dtype", ["u4", ">f8", "?"])
def test_every_element_comes_to_its_place(shape: tuple[int, ...], order: tuple[int, ...], dtype: str) -> None:
    source = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    for given in (source, source[::-1], np.asfortranarray(source)):
        to = np.empty([shape[axis] for axis in order], np.dtype(dtype).newbyteorder("=")).transpose(np.argsort(order))
        copy_elements(given, to)
        np.testing.assert_array_equal(to, given)


def test_what_overlaps_is_copied_as_if_it_did_not() -> None:
    x = np.arange(512 * 512, dtype=np.uint32).reshape(512, 512)
    expected = x.T.copy()
    copy_elements(x.T, x)
    np.testing.assert_array_equal(x, expected)


def test_numbers_and_lines() -> None:
    one, line = np.zeros(()), np.zeros(1 << 17)
    copy_elements(np.array(3.0), one)
    copy_elements(np.arange(1 << 18, dtype=np.float64)[::2], line)
    assert one == 3.0
    np.testing.assert_array_equal(line, np.arange(0, 1 << 18, 2))
