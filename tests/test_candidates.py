"""What kernels do with the bits of words, against Python's whole numbers: candidates of top-k and their digits, packed
counts, the masks of lanes, and the plans of a radix sort's passes."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from gpusort.algos.candidates import DIGITS, NarrowCandidate, WideCandidate, digits_of, first_of
from gpusort.algos.partition import BUCKETS, MOST_ITEMS, BucketCounts, CountBuckets, bucket_of
from gpusort.algos.radix_layout import DigitPlace, Lanes
from gpusort.algos.select_sampled import SampleParams, select_anew
from gpusort.algos.sweep_state import INTO_WORDS, IS_LAST, READS_DATA, RUNS, PassPlan, passes_that_run
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.targets.registry import target
from gpusort.types.dtypes import key_for
from gpusort.types.elements import encode
from gpusort.types.indices import SortOrder
from gpusort.types.memory import Registers, Workgroup
from gpusort.types.scalars import U32, U64

WORDS = {NarrowCandidate: 32, WideCandidate: 64}  # the bits of a candidate's word


def number_of(candidate: NarrowCandidate | WideCandidate) -> int:
    """A candidate as one number: its word, then its place."""
    if isinstance(candidate, NarrowCandidate):
        return int(candidate.bits)
    return int(candidate.word) << 32 | int(candidate.place)


def drawn(rng: random.Random, bits: int) -> int:
    """Of all lengths, with runs of equal bits."""
    return rng.choice((0, (1 << bits) - 1, rng.getrandbits(bits), rng.getrandbits(bits) >> rng.randrange(bits)))


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: kind.__name__)
def test_candidates_are_numbers_of_hexadecimal_digits(kind: Any) -> None:
    rng, bits = random.Random(kind.__name__), WORDS[kind]
    digits = digits_of(kind)
    assert 4 * digits == bits + 32
    word_class = U32 if bits == 32 else U64
    last, last_element = number_of(kind.last()), number_of(kind.last_element())
    assert (last, last_element) == ((1 << 4 * digits) - 1, (1 << 4 * digits) - 2)
    for _ in range(12):
        (word, place), (other_word, other_place) = ((drawn(rng, bits), drawn(rng, 32)) for _ in range(2))
        if rng.random() < 0.4:
            other_word = word
        one = kind.of(word_class(word), U32(place))
        other = kind.of(word_class(other_word), U32(other_place))
        number, behind = number_of(one), number_of(other)
        assert number == word << 32 | place
        assert int(one.place) == place
        assert bool((one < other).item()) is (number < behind)
        assert not (one < one).item()
        written = f"{number:0{digits}x}"
        assert [int(one.digit(U32(at))) for at in range(digits)] == [int(digit, 16) for digit in written]
        for at in range(digits):
            digit, shift = rng.randrange(DIGITS), 4 * (digits - 1 - at)
            changed = number_of(one.with_digit(U32(at), U32(digit)))
            assert changed == number & ~(15 << shift) | digit << shift
        for at, bit in product(range(digits), range(4)):  # the digits before it are the same, and it is not
            near = one.with_digit(U32(at), one.digit(U32(at)) ^ (1 << bit))
            assert one.begins_as(near, U32(at)).item()
            assert at + 1 == digits or not one.begins_as(near, U32(at + 1)).item()
        same = [number >> 4 * (digits - at) == behind >> 4 * (digits - at) for at in range(digits)]
        assert [one.begins_as(other, U32(at)).item() for at in range(digits)] == same


@pytest.mark.parametrize(("dtype", "kind"), [("u2", NarrowCandidate), ("f4", NarrowCandidate), ("i8", WideCandidate)])
def test_the_first_of_candidates_is_the_least_word_at_the_least_place(dtype: str, kind: Any) -> None:
    monoid: Any = first_of(key_for(dtype), SortOrder.DESCENDING)
    assert monoid.state is kind
    elements = [monoid.element(value) for value in (7, 3, 9, 9, 1)]
    states = [monoid.lift(element, U32(at)) for at, element in enumerate(elements)]
    total = monoid.identity()
    for state in reversed(states):
        total = monoid.combine(total, state)
    assert total == states[2]
    assert monoid.combine(states[3], states[2]) == states[2]


# -- counts of buckets --------------------------------------------------------------------------------------------


def unpacked(counts: BucketCounts) -> list[int]:
    return [int(counts.count(U32(bucket))) for bucket in range(BUCKETS)]


def test_counts_of_eight_buckets_are_packed_in_words() -> None:
    rng = random.Random("buckets")
    total, expected = CountBuckets().identity(), [0] * BUCKETS
    for _ in range(80):
        found = [rng.randrange(MOST_ITEMS + 1) for _ in range(BUCKETS)]
        packed = BucketCounts.of(U32(sum(count << 4 * bucket for bucket, count in enumerate(found))))
        assert unpacked(packed) == found
        total = CountBuckets().combine(total, CountBuckets().lift(packed, U32(3)))
        expected = [a + b for a, b in zip(expected, found, strict=True)]
        assert unpacked(total) == expected
        assert unpacked(total.minus(packed)) == [a - b for a, b in zip(expected, found, strict=True)]
        assert unpacked(total.starts()) == [sum(expected[:bucket]) for bucket in range(BUCKETS)]


def test_a_word_s_bucket_is_told_by_the_splitters() -> None:
    """An equal one is beyond it; splitters may be equal."""
    rng = random.Random("edges")
    for _ in range(40):
        splitters = sorted(rng.randrange(12) for _ in range(BUCKETS - 1))
        words: Registers[U32] = Registers(U32, BUCKETS - 1)
        for at, splitter in enumerate(splitters):
            words[at] = U32(splitter)
        for word in range(13):
            assert int(bucket_of(U32(word), words)) == sum(splitter <= word for splitter in splitters)


# -- digits and lanes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [U32, U64])
def test_lanes_of_a_mask_are_ranked(word: Any) -> None:
    rng = random.Random("lanes")
    for _ in range(100):
        mask = rng.getrandbits(word.type.bits) | 1 << rng.randrange(word.type.bits)
        among = [lane for lane in range(word.type.bits) if mask >> lane & 1]
        for rank, lane in enumerate(among):
            lanes = Lanes(word(mask), U32(lane), word)
            assert (int(lanes.before_me()), int(lanes.count()), int(lanes.leader())) == (rank, len(among), among[-1])
            assert lanes.is_led_by_me().item() is (lane == among[-1])


def test_digits_of_a_word_are_counted_from_the_least() -> None:
    for bits, word in product((1, 4, 7, 8), (0x0123456789ABCDEF, (1 << 64) - 1)):
        for number in range(-(-64 // bits)):
            place = DigitPlace(U32(number), bits)
            assert int(place.digit_of(U64(word))) == word >> number * bits & (1 << bits) - 1
            assert place.radix == 1 << bits


# -- which passes of a radix sort run -----------------------------------------------------------------------------


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("passes", range(1, 7))
def test_elements_end_in_the_results_whichever_passes_run(passes: int, in_place: bool) -> None:
    """Those that have something to do, and at most one besides. In place, the caller's buffer is that of results."""
    for idle in range(1 << passes):
        if in_place and passes % 2 == 1:
            break
        running = int(passes_that_run(U32(idle), passes, in_place))
        needed = ~idle & (1 << passes) - 1
        assert running & needed == needed
        assert (running & ~needed).bit_count() <= 1
        assert running < 1 << passes
        assert running.bit_count() % 2 == 0 if in_place else running != 0
        if (needed.bit_count() % 2 == 0) if in_place else needed:
            assert running == needed
        place = "results" if in_place else "data"
        ran = list[int]()
        for number in range(passes):
            plan = PassPlan.of(U32(number), U32(running))
            runs = bool(running >> number & 1)
            assert plan.has(RUNS).item() is runs
            if not runs:
                continue
            assert plan.has(READS_DATA).item() is (not ran)
            assert plan.has(IS_LAST).item() is (running >> number == 1)
            assert int(plan.phase_bit()) == (1 << 31 if len(ran) % 2 == 1 else 0)
            target = "words" if plan.has(INTO_WORDS).item() else "results"
            assert target != place, "a pass does not write what it reads"
            place = target
            ran.append(number)
        assert place == "results"


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("dtype", ["u4", "u8"])
def test_the_first_are_found_by_their_digits_where_samples_mislead(dtype: str, level: int) -> None:
    """Exactly these, where the next ones are equal; of rows in which too few or too many candidates are counted."""
    key, k, length, capacity, rows = key_for(dtype), 5, 40, 9, 5
    source: Any = first_of(key, SortOrder.ASCENDING)
    x = np.random.default_rng(1).integers(0, 3, (rows, length)).astype(dtype)
    x[1] = 7
    data = Buffer("data", key.element, x.size, Role.INPUT)
    candidates: Buffer[Any] = Buffer("candidates", source.state, rows * capacity, Role.INOUT)
    counts = Buffer("counts", U32, 2 * rows, Role.INOUT)
    params = SampleParams(U32(length), U32(k), U32(0), U32(1), U32(capacity))
    launch = select_anew.launch(
        Grid(rows, 8), source, data, candidates, counts, Workgroup(U32, DIGITS), Workgroup(U32, 1), params, U32(20),
        level, digits_of(source.state),
    )  # fmt: skip
    counted = np.full((rows, 2), 7, np.uint32)
    counted[:, level] = k - 1, capacity + 1, k, capacity, 7
    if level:
        counted[4, 0] = 21
    after, found = counted.copy(), np.zeros((rows, capacity), candidates.dtype)
    arrays = {"data": x.reshape(-1), "candidates": found.reshape(-1), "counts": after.reshape(-1)}
    target("simulator").run(Schedule((data, candidates, counts), (launch,)), arrays)
    for row in range(rows):
        is_misled = row < 2 or (level == 1 and row == 4)
        assert after[row, level] == (k if is_misled else counted[row, level])
        assert after[row, 1 - level] == counted[row, 1 - level]
        expected = np.zeros(capacity, candidates.dtype)
        if is_misled:
            first = sorted((word, place) for place, word in enumerate(x[row].tolist()))[:k]
            expected[-k:] = [encode(source.state.of(key.word(word), U32(place))) for word, place in first]
        np.testing.assert_array_equal(np.sort(found[row]), expected)
