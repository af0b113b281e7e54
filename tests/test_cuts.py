"""Exact cuts of sorted runs, against a sort of all elements with their runs and positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, combinations_with_replacement, pairwise, product
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusort
from gpusort.external import cuts
from gpusort.external.cuts import Indices, Samples, cut_between, usual_gap
from gpusort.external.order import KeyColumn, KeyOrder, words_of
from gpusort.types.indices import SortOrder
from tests.covering import examples, is_whole
from tests.reference import DTYPES, SWAPPED, Array, assert_same_bits, sample, sorted_by_numpy


class Run:
    """A sorted array as a run of an external sort, which counts the elements that are read of it."""

    def __init__(self, elements: Array) -> None:
        self.elements, self.num_read = elements, 0

    def __len__(self) -> int:
        return self.elements.size

    def read(self, start: int, stop: int) -> Array:
        self.num_read += stop - start
        return self.elements[start:stop]


def exact_cuts(
    runs: Sequence[Run], sizes: Sequence[int], words: Callable[[Array], Array], *, gap: int | None = None
) -> Indices:
    """Where buckets of these sizes start in every run, as the passes of an external sort find it."""
    lengths = [len(run) for run in runs]
    if gap is None:
        gap = usual_gap(sum(lengths), len(runs))
    taken = [
        words(np.concatenate([run.read(0, 0), *(run.read(at, at + 1) for at in range(0, len(run), gap))]))
        for run in runs
    ]
    samples = Samples.of(np.concatenate(taken) if taken else np.empty(0), np.array(lengths, np.int64), gap)
    ranks = accumulate(sizes, initial=0)
    found = [samples.cut(rank, lambda run, start, stop: words(runs[run].read(start, stop))) for rank in ranks]
    return np.array(found, np.int64).reshape(len(sizes) + 1, len(runs))


def by_sorting(runs: list[Array], sizes: list[int]) -> list[list[int]]:
    """The same, from the order of all elements."""
    order = sorted((word, run, at) for run, words in enumerate(runs) for at, word in enumerate(words.tolist()))
    bounds = np.cumsum([0, *sizes])
    return [[sum(run == of for _, of, _ in order[:bound]) for run in range(len(runs))] for bound in bounds]


def cuts_of(runs: list[Array], sizes: list[int], gap: int | None) -> list[list[int]]:
    found: list[list[int]] = exact_cuts([Run(run) for run in runs], sizes, lambda words: words, gap=gap).tolist()
    return found


def test_all_small_runs() -> None:
    """Up to three runs of up to three elements of two values, cut at every rank, with every gap, or one where three."""
    small = [np.array(run, np.uint32) for n in range(4) for run in combinations_with_replacement((1, 2), n)]
    seen = 0
    for count in range(4):
        for runs in product(small, repeat=count):
            total = sum(run.size for run in runs)
            for gap in range(1, 5) if count < 3 or is_whole() else [1 + seen % 4]:
                assert cuts_of(list(runs), [1] * total, gap) == by_sorting(list(runs), [1] * total)
                seen += 1
    assert seen > 1400


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_runs_of_any_lengths(data: st.DataObject) -> None:
    values = st.integers(0, data.draw(st.sampled_from((0, 1, 5, 1000))))
    runs = [
        np.sort(np.array(data.draw(st.lists(values, max_size=60)), np.uint64))
        for _ in range(data.draw(st.integers(1, 7)))
    ]
    total = sum(run.size for run in runs)
    ends = sorted(data.draw(st.lists(st.integers(0, total), max_size=6)))
    sizes = np.diff([0, *ends, total]).tolist()
    gap = data.draw(st.none() | st.integers(1, 20))
    assert cuts_of(runs, sizes, gap) == by_sorting(runs, sizes)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, *SWAPPED])
def test_buckets_sorted_one_by_one_are_the_whole_sorted(dtype: str, descending: bool, stable: bool) -> None:
    """The cuts are those of gpusort's own order: zeros of both signs, and NaNs of any bits, fall on the right side."""
    x = sample(dtype, 700, seed=3)
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    parts = np.split(x, [0, 1, 150, 400, 400])
    runs = [gpusort.sort(part, descending=descending, stable=stable) for part in parts]
    sizes = [100, 0, 1, 299, 300]
    bounds = exact_cuts([Run(run) for run in runs], sizes, lambda keys: words_of(keys, order, ranks=stable))
    assert np.diff(bounds, axis=0).sum(axis=1).tolist() == sizes
    pieces = [
        np.concatenate([run[start:stop] for run, start, stop in zip(runs, low, high, strict=True)])
        for low, high in pairwise(bounds)
    ]
    found = np.concatenate([gpusort.sort(piece, descending=descending, stable=stable) for piece in pieces]).astype(
        x.dtype
    )
    if stable:
        assert_same_bits(found, sorted_by_numpy(x, descending=descending))
    else:
        whole = gpusort.sort(x, descending=descending)
        np.testing.assert_array_equal(found, whole)
        if x.dtype.kind == "f":
            numbers = whole == whole
            np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(whole[numbers]))


def test_what_is_read_is_little() -> None:
    """Two samples' distance of each run or so for a cut, however long the runs are."""

    numbers = np.random.default_rng(1)
    runs = [Run(np.sort(numbers.integers(0, 1 << 40, 20_000))) for _ in range(8)]
    gap = usual_gap(160_000, 8)
    exact_cuts(runs, [20_000] * 8, lambda words: words, gap=gap)
    samples = 8 * -(-20_000 // gap)
    assert sum(run.num_read for run in runs) < samples + 7 * 8 * 3 * gap


def test_several_keys_compare_as_tuples_do() -> None:
    numbers = np.random.default_rng(2)
    first, second, third = (numbers.integers(-2, 2, 500).astype(dtype) for dtype in ("f4", ">i8", "?"))
    by = KeyOrder([KeyColumn(key.dtype, SortOrder.ASCENDING) for key in (first, second, third)])
    words = by.words((first, second, third))
    expected = np.lexsort((third, second, first))
    np.testing.assert_array_equal(np.argsort(words, kind="stable"), expected)


RUNS_AT_RANDOM: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "many values": lambda numbers, length, run: numbers.integers(0, 1 << 32, length, np.uint32),
    "few values": lambda numbers, length, run: numbers.integers(0, 3, length, np.uint32),
    "one value": lambda numbers, length, run: np.zeros(length, np.uint32),
    "one after another": lambda numbers, length, run: np.arange(length, dtype=np.uint32) + 10_000 * run,
}  # fmt: skip


@pytest.mark.parametrize("kind", RUNS_AT_RANDOM)
@pytest.mark.parametrize("count", [1, 2, 17, 60])
def test_wide_brackets_are_cut_where_sorting_them_would(kind: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sampled in turn, and so little of them is sorted."""
    monkeypatch.setattr(cuts, "_ENOUGH", 64)
    monkeypatch.setattr(cuts, "_ENOUGH_OF_A_RUN", 8)
    numbers = np.random.default_rng(count)
    low = numbers.integers(0, 50, count)
    high = low + numbers.integers(0, 2, count) * 3000
    high[0] = low[0] + 3000
    lengths = (high - low).tolist()
    pieces = [np.sort(RUNS_AT_RANDOM[kind](numbers, length, run)) for run, length in enumerate(lengths) if length]
    order = np.argsort(np.concatenate(pieces), kind="stable")
    whose = np.repeat(np.arange(count), high - low)[order]
    sorted_at_once: list[int] = []
    argsort = np.argsort

    def counting(words: Array, kind: Literal["stable"]) -> Indices:
        sorted_at_once.append(words.size)
        return argsort(words, kind=kind)

    monkeypatch.setattr(np, "argsort", counting)
    for end in (0, 1, whose.size // 3, whose.size - 1, whose.size):
        found = cut_between(end + int(low.sum()), low, pieces, high)
        np.testing.assert_array_equal(found, low + np.bincount(whose[:end], minlength=count))
    assert max(sorted_at_once) < whose.size // 8


@pytest.mark.parametrize("kind", RUNS_AT_RANDOM)
@pytest.mark.parametrize("count", [1, 2, 17, 60])
def test_rounds_find_the_same_cuts(kind: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs that are too long to be read at once, some of them empty: what lies before a cut are the first of all."""
    monkeypatch.setattr(cuts, "_ENOUGH", 64)
    monkeypatch.setattr(cuts, "_ENOUGH_OF_A_RUN", 8)
    numbers = np.random.default_rng(count)
    lengths = numbers.integers(0, 3000, count)
    lengths[0] = 3000
    runs = [np.sort(RUNS_AT_RANDOM[kind](numbers, length, run)) for run, length in enumerate(lengths.tolist())]
    order = np.argsort(np.concatenate(runs), kind="stable")
    whose = np.repeat(np.arange(count), lengths)[order]
    ends = np.sort(numbers.integers(0, whose.size + 1, 12))
    sizes = np.diff([0, *ends, whose.size])
    found = [*cuts.held_cuts(runs, sizes.tolist(), lambda words: words)]
    expected = [np.bincount(whose[:end], minlength=count) for end in (0, *ends, whose.size)]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("left", [100, 4096, 4097, 6000, 8192, 8193, 30_000])
@pytest.mark.parametrize("apart", [False, True])
def test_a_bracket_is_narrowed_to_the_cut(left: int, apart: bool) -> None:
    """Between what is sorted as it is, what is gathered whole, and what is sampled again; of runs of any overlap."""
    rng = np.random.default_rng(left)
    drawn = rng.integers(0, 1 << 16, left).astype(np.uint64)
    parts = np.array_split(np.sort(drawn)[::-1] if apart else drawn, np.sort(rng.integers(0, left, 24)))
    runs = [np.sort(part) for part in parts]
    lengths = [run.size for run in runs]
    for rank in (1, left // 5, left // 2, left - 1):
        bracket = cuts.Bracket.whole(lengths, rank)
        while bracket.left:
            words = [run[bracket.positions(number)] for number, run in enumerate(runs)]
            (bracket,) = bracket.narrowed(np.concatenate(words))
        whose = np.repeat(np.arange(len(runs)), lengths)[np.argsort(np.concatenate(runs), kind="stable")[:rank]]
        np.testing.assert_array_equal(bracket.low, np.bincount(whose, minlength=len(runs)))
