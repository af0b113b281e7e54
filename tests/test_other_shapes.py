"""A call whose plan was made for another shape: what does not fit is refused all the same, by our own errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gpusort
from gpusort.types.errors import InvalidArgumentError

Call = Callable[..., object]
TABLE = np.arange(20, dtype=np.float32).reshape(4, 5)
ROW = TABLE[0]


def _top(x: np.ndarray[tuple[int, ...], np.dtype[np.float32]], *, target: str) -> object:
    return gpusort.top_k(x, 3, target=target)


REFUSED: dict[str, tuple[Call, tuple[object, ...], tuple[object, ...], str]] = {
    "more values than keys": (gpusort.sort_by_key, (ROW, ROW), (ROW, np.zeros(7)), "one for each key"),
    "fewer values than keys": (gpusort.sort_by_key, (ROW, ROW), (ROW, np.zeros(3)), "one for each key"),
    "values of no keys": (gpusort.sort_by_key, (ROW, ROW), (ROW[:0], np.zeros(3)), "one for each key"),
    "fewer than k": (_top, (ROW,), (ROW[:2],), "expected 0 to the 2 elements"),
    "rows shorter than k": (_top, (TABLE,), (TABLE[:, :2],), "expected 0 to the 2 elements"),
    "nothing for k": (_top, (ROW,), (ROW[:0],), "expected 0 to the 0 elements"),
    "the least of nothing": (gpusort.min, (ROW,), (ROW[:0],), "^x: zero-size array"),
    "where the least of nothing is": (gpusort.argmin, (ROW,), (ROW[:0],), "^x: .* empty sequence"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_after_what_does(name: str, target: str) -> None:
    function, fitting, others, message = REFUSED[name]
    for _ in range(2):
        function(*fitting, target=target)
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match=message):
            function(*others, target=target)
    function(*fitting, target=target)


@pytest.mark.parametrize("shape", [(0, 5), (4, 0), (4, 5)])
def test_any_shape_after_another_gives_what_numpy_gives(shape: tuple[int, int], target: str) -> None:
    x = np.zeros(shape, np.float32)
    for axis in (0, 1, None):
        for name in ("sort", "argsort", "sum", "any", "cumsum"):
            ours, numpys = getattr(gpusort, name), getattr(np, name)
            ours(TABLE, axis=axis, target=target)
            found, expected = ours(x, axis=axis, target=target), numpys(x, axis=axis)
            assert type(found) is type(expected), name
            assert (np.shape(found), found.dtype) == (np.shape(expected), expected.dtype), name
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", [(16,), (700,), (40, 20), (3, 300)])
def test_short_floats_keep_the_signs_of_their_zeros(shape: tuple[int, ...], descending: bool) -> None:
    """NumPy's SIMD sort may make one zero another: they are looked for before it."""
    rng = np.random.default_rng(2)
    for few in (1, 2, 5):
        x = rng.integers(-2, 3, shape).astype(np.float32)
        x.reshape(-1)[rng.choice(x.size, few, replace=False)] = -0.0
        found = gpusort.sort(x, descending=descending)
        expected = gpusort.sort(x, descending=descending, target="simulator")
        assert found.tobytes() == expected.tobytes()
