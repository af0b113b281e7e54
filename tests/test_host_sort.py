"""The host's own sort as a value: what it is asked by, who refuses it, and what its policy changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort import (
    CapabilityError,
    HostSort,
    HostSortPolicy,
    InvalidArgumentError,
    RadixPolicy,
    SortOrder,
    UnsupportedTypeError,
)
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.pool import Pool
from gpusort.types.dtypes import key_for
from gpusort.types.indices import Placement
from tests.key_cases import DateKey
from tests.reference import DTYPES, assert_same_bits, sample
from tests.test_words import elements_for, sorted_one_by_one


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_sorts_host_arrays_as_no_algorithm_does(dtype: str) -> None:
    x = sample(dtype, 3000).reshape(30, 100)
    for axis in (0, 1):
        found = gpusort.sort(x, axis=axis, algorithm=HostSort())
        assert_same_bits(found, gpusort.sort(x, axis=axis))
        if x.dtype.kind in "biu":
            assert_same_bits(found, np.sort(x, axis=axis))
    row = x.reshape(-1).copy()
    gpusort.sort_inplace(row, descending=True, stable=True, algorithm=HostSort())
    assert_same_bits(row, gpusort.sort(x.reshape(-1), descending=True, stable=True))


def test_it_sorts_by_a_users_key() -> None:
    x = elements_for(DateKey(), 500)
    found = gpusort.sort(x, key=DateKey(), algorithm=HostSort())
    assert_same_bits(found, x[sorted_one_by_one(DateKey(), x.reshape(1, -1), SortOrder.ASCENDING)[0]])


@pytest.mark.parametrize("name", ["wgsl", "simulator", "python"])
def test_other_targets_refuse_it(name: str) -> None:
    with pytest.raises(CapabilityError, match=f"HostSort is a sort of the host's own, which target '{name}' has not"):
        gpusort.sort(np.arange(9), target=name, algorithm=HostSort())


def test_it_is_what_sorts_on_a_cpu_and_nowhere_else() -> None:
    for shape in ((10,), (1 << 20,), (1000, 64)):
        x = np.ones(shape, np.float32)
        assert gpusort.plan(gpusort.sort, x, target="cpu").cost.launches == 0
    assert gpusort.plan(gpusort.sort, np.ones(10, np.float32), target="simulator").cost.launches > 0


def test_it_launches_nothing() -> None:
    x = np.arange(1000)[::-1].copy()
    assert gpusort.plan(gpusort.sort, x, algorithm=HostSort()).cost.launches == 0
    with pytest.raises(CapabilityError, match="HostSort runs no kernels"):
        HostSort().schedule(key_for("f4"), 1, 9, SortOrder.ASCENDING, Placement.IN_PLACE)


def test_its_policy_says_from_where_on_threads_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", "2")
    counts: list[int] = []
    run = Pool.run

    def counted(pool: Pool, work: Callable[[int], None], count: int) -> None:
        counts.append(count)
        run(pool, work, count)

    monkeypatch.setattr(Pool, "run", counted)
    x = np.random.default_rng(5).permutation(5000).astype(np.uint32)
    with background.off():
        assert_same_bits(gpusort.sort(x, algorithm=HostSort()), np.sort(x))
        assert not counts
        threads = HostSort(HostSortPolicy(serial_below=1000, part_bytes_from=4000))
        assert_same_bits(gpusort.sort(x, algorithm=threads), np.sort(x))
        assert counts


def test_what_is_no_policy_is_refused() -> None:
    wrong: Any = RadixPolicy()
    with pytest.raises(UnsupportedTypeError, match="HostSort: policy: expected"):
        HostSort(wrong)


def test_its_thresholds_are_met_to_the_element() -> None:
    """And those of bytes by what an element has."""
    policy = HostSortPolicy(
        pack_from=100, thread_bytes=1000, most_threads=9, count_bytes_from=50, count_pairs_from=70, part_bytes_from=2400
    )
    one, two, four, eight = (np.dtype(f"u{size}") for size in (1, 2, 4, 8))
    assert not policy.packs(10**6, 10**6, two)
    for dtype, elements in ((four, 3200), (eight, 6400)):
        assert policy.packs(100, elements // 100, dtype)
        assert not policy.packs(100, elements // 100 - 1, dtype)
        assert not policy.packs(99, elements, dtype)
        assert policy.packs(elements, 1, dtype)
    assert [policy.threads_for(nbytes) for nbytes in (0, 4999, 5000, 8999, 9000, 10**9)] == [4, 4, 5, 8, 9, 9]
    for threads, most in ((2, 2400), (3, 2400), (4, 800), (16, 800)):
        found = [policy.part_from(dtype, threads) for dtype in (one, two, four, eight)]
        assert found == [50, 70, most // 4, most // 8]


@pytest.mark.parametrize(("name", "least", "most"), [("serial_below", 0, 1 << 62), ("block", 1, 1 << 30)])
def test_thresholds_and_counts_have_limits(name: str, least: int, most: int) -> None:
    policy: Any = HostSortPolicy
    for value in (least, most):
        assert getattr(policy(**{name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(InvalidArgumentError, match=f"{name}: expected an int from {least} to {most}"):
            policy(**{name: value})
