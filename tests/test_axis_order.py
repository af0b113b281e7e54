"""Arrays whose axes lie in another order than they are told in: read as they lie, and so are their results."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.types.specs import order_of_axes
from tests.covering import InTurn

Array = Any
_RNG = np.random.default_rng(11)
_FUNCTIONS: dict[str, Callable[[Array, int], Array]] = {
    "sort": np.sort, "argsort": np.argsort, "sum": np.sum, "min": np.min, "argmax": np.argmax, "any": np.any,
    "cumsum": np.cumsum,
}  # fmt: skip


def _views() -> list[Array]:
    base = _RNG.permutation(2 * 3 * 4 * 5).astype(np.int32).reshape(2, 3, 4, 5)
    turned = [base.transpose(order) for order in itertools.permutations(range(4))]
    return [*turned[1::5], base[:, ::2].T, base[:, :, :1].T, np.broadcast_to(base[0].T, (3, 5, 4, 3))]


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_every_function_along_every_axis(name: str, target: str, in_turn: InTurn) -> None:
    for x, axis in in_turn(_views()[:: 4 if target in ("python", "wgsl") else 1], range(4)):
        is_arg, options = name == "argsort", {"stable": True} if name == "argsort" else {}
        wanted = np.argsort(x, axis=axis, kind="stable") if is_arg else _FUNCTIONS[name](x, axis)
        found = getattr(gpusort, name)(x, axis=axis, target=target, **options)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
        if target != "cpu" and 0 not in x.strides:
            kept = [a for a in range(x.ndim) if found.ndim == x.ndim or a != axis]
            lies = tuple(x.strides[a] if x.shape[a] > 1 else 0 for a in kept)
            assert order_of_axes(found.shape, found.strides) == order_of_axes(found.shape, lies)


@pytest.mark.parametrize("order", ["C", "F"])
def test_results_into_arrays_of_any_order(order: Any, target: str) -> None:
    x = _views()[2][:, :3]
    for axis in range(x.ndim):
        wanted = np.sort(x, axis=axis)
        out = np.zeros(wanted.shape, wanted.dtype, order)
        assert gpusort.sort(x, axis=axis, out=out, target=target) is out
        np.testing.assert_array_equal(out, wanted)
        mine = x.copy(order)
        gpusort.sort_inplace(mine, axis=axis, target=target)
        np.testing.assert_array_equal(mine, wanted)
