"""The statistics of sampled selection, where a wrong number is a slow call and no wrong answer: how seldom a threshold
fails, and that no more candidates are expected than that takes."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest

from gpusort.algos.select_long import Plan
from gpusort.algos.select_sampled import SampledPolicy, rank_among
from gpusort.algos.sizes import LARGEST_U32
from gpusort.types.scalars import U32

POLICY = SampledPolicy()
LENGTHS = (1 << 14, 50_000, 1 << 20, 1 << 24, 1 << 30, LARGEST_U32)
KS = (1, 3, 8, 50, 256, 1000, 2000, 10_000, 100_000, 1_000_000)


def poisson(mean: float, count: int) -> float:
    """The probability that a Poisson variable is `count`."""
    return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))


def below(mean: float, count: int) -> float:
    return sum(poisson(mean, number) for number in range(count))


def above(mean: float, count: int) -> float:
    return sum(poisson(mean, number) for number in range(count + 1, count + 200 + int(mean)))


def planned() -> list[tuple[int, int, Plan]]:
    plans = [(length, k, Plan.of(length, k, POLICY)) for length, k in product(LENGTHS, KS)]
    return [(length, k, plan) for length, k, plan in plans if plan is not None]


def test_a_threshold_is_passed_by_k_but_once_in_1e10() -> None:
    """And by no more than that takes: the rank before would do less often. Long means have an approximation."""
    for length, k, plan in planned():
        mean = k * POLICY.samples / length
        assert above(mean, plan.rank) <= 1e-10
        assert above(mean, plan.rank - 1) > (1e-10 if mean <= 100 else 5e-12), (length, k)


def test_what_passes_fits_but_once_in_1e10() -> None:
    for length, k, plan in planned():
        assert 4e-11 < below(plan.capacity * POLICY.samples / length, plan.rank + 1) < 1.4e-10, (length, k)


def test_second_candidates_fit_however_many_first_there_are() -> None:
    """Of as many as the capacity fewest by far must be left, or else sampling them once more does not pay."""
    seen = set[str]()
    for length, k, plan in planned():
        expected = length / POLICY.samples * (plan.rank + 1)
        if expected <= POLICY.few:
            assert plan.again == 0
            seen.add("few")
            continue
        counts = (POLICY.few + 1, int(expected), plan.capacity)
        ranks = [int(rank_among(U32(k), U32(count), POLICY)) for count in counts]
        if plan.again:
            assert POLICY.few <= plan.again <= plan.capacity / 2
            chances = [
                below(plan.again * POLICY.samples / count, rank + 1) for count, rank in zip(counts, ranks, strict=True)
            ]
            assert max(chances) < 1e-10
            assert max(chances) > 1e-17 or plan.again == POLICY.few, (length, k)
            seen.add("again")
        else:  # half as many would not be enough by far
            assert below(plan.capacity / 2 * POLICY.samples / plan.capacity, ranks[-1] + 1) > 1e-14, (length, k)
            seen.add("not again")
    assert seen == {"few", "again", "not again"}


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_are_sampled_where_few_of_the_samples_pass(length: int) -> None:
    """Less than half of them."""
    found = [Plan.of(length, k, POLICY) for k in KS]
    for plan, after in pairwise(found):
        assert plan is not None or after is None
        assert plan is None or 0 < plan.rank < POLICY.samples // 2
        assert plan is None or after is None or plan.capacity <= after.capacity
    for k, plan in zip(KS, found, strict=True):
        mean = k * POLICY.samples / length
        assert (plan is None) == (mean + 6.4 * math.sqrt(mean) + 12 >= POLICY.samples / 2)


def test_rows_too_short_and_k_too_large_are_not_sampled() -> None:
    """A product of k and the samples is computed in 32 bits."""
    samples = POLICY.samples
    assert Plan.of(4 * samples - 1, 1, POLICY) is None
    assert Plan.of(4 * samples, 1, POLICY) is not None
    most = (1 << 32) // samples
    assert Plan.of(LARGEST_U32, most, POLICY) is None
    assert Plan.of(LARGEST_U32, most - 1, POLICY) is not None


@pytest.mark.parametrize("count", [4097, 5000, 1 << 16, 1 << 20, LARGEST_U32])
def test_a_threshold_has_a_margin_of_six_standard_deviations(count: int) -> None:
    """And not many more of them: those that pass it besides are sorted for nothing."""
    for k in (1, 2, 3, 10, 50, 100, 1000, 4097, 50_000, 1 << 19):
        expected = min(k, count) * POLICY.samples / count
        margin = int(rank_among(U32(min(k, count)), U32(count), POLICY)) - expected - 6 * math.sqrt(expected)
        assert 12 <= margin <= 26
    assert int(rank_among(U32(9), U32(POLICY.few + 1), POLICY)) < POLICY.few
    assert int(rank_among(U32(9), U32(POLICY.few), POLICY)) == LARGEST_U32, "all of so few pass"
