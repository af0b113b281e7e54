"""What the caller can reach may be written to by another of its threads while it is sorted: then the result is
senseless, but nothing else. NumPy's sorts of 8 and 16 bits may go past the end of what changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.algos.host_sort import HostSortPolicy
from gpusort.targets.cpu.host import numpy_sort
from gpusort.targets.cpu.host.numpy_sort import keep_ties, restore_ties
from gpusort.targets.cpu.host.sort_path import SortPath
from gpusort.types.indices import SortOrder
from gpusort.types.specs import Spec


class Reachable(np.ndarray[Any, Any]):
    """Says so when the caller's memory is given to NumPy's sort."""

    whole: npt.NDArray[np.generic] | None = None

    def __array_finalize__(self, made_of: object) -> None:
        self.whole = getattr(made_of, "whole", None)

    def sort(self, axis: SupportsIndex = -1, kind: Any = None, order: object = None, *, stable: object = None) -> None:
        assert self.whole is not None
        assert not np.shares_memory(self, self.whole)
        super().sort(axis, kind)


def reachable(x: npt.NDArray[np.generic]) -> Reachable:
    found = x.view(Reachable)
    found.whole = x
    return found


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["u1", "i2", "?"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((30,), 0), ((600,), 0), ((70_000,), 0), ((300, 1000), 1), ((1000, 300), 0), ((5000, 40), 1)],
)
def test_narrow_elements_are_sorted_apart(
    shape: tuple[int, ...], axis: int, dtype: str, order: SortOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_sort, "radix_sorts_sooner", lambda length=0: True)  # as on most processors
    x = np.random.default_rng(1).integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)
    expected = np.sort(x, axis) if order is SortOrder.ASCENDING else np.flip(np.sort(x, axis), axis)
    path = SortPath(HostSortPolicy(), Spec(shape, x.dtype), axis, order, stable=False)
    for in_place in (False, True):
        own = x.copy()
        source = reachable(own)
        out = source if in_place else reachable(np.empty_like(own))
        if path.into_short is None or not path.into_short(source, out):
            path.into((source,), (out,))
        np.testing.assert_array_equal(np.asarray(out), expected)


@pytest.mark.parametrize("written", [-0.0, np.nan, 1.0])
@pytest.mark.parametrize("put_back", [keep_ties, restore_ties])
def test_zeros_and_nans_that_come_or_go_meanwhile(put_back: Callable[..., None], written: float) -> None:
    """What is put back is then not as many as there were."""
    x = np.array([3, -0.0, np.nan, 0.0, -np.nan, 2], np.float32)
    results = np.sort(x)
    for place in range(x.size):
        x[place] = written
        put_back(x, results.copy(), *([SortOrder.ASCENDING] if put_back is restore_ties else []))
