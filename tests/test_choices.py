"""What is chosen for which rows, where a wrong choice is a slow one and no wrong answer."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from gpusort.algos import choice
from gpusort.algos.choice import (
    balanced,
    choose_axis_reduction,
    choose_axis_scan,
    choose_pairs,
    choose_scan,
    choose_sort,
    choose_top_k,
)
from gpusort.algos.cut import Columns, shares
from gpusort.algos.layout import Layout
from gpusort.algos.radix import spans_of
from gpusort.algos.rules import PolicyRule, SelectRule, SortRule
from gpusort.algos.select import ArgsortAndTake, SelectByDigits, SelectByParts, SelectBySamples
from gpusort.algos.select_sampled import SampledPolicy, sampled_place
from gpusort.algos.sorts import BitonicRows, Radix
from gpusort.types.dtypes import key_for
from gpusort.types.keys import RankKey
from gpusort.types.params import RadixPolicy, ScanPolicy
from gpusort.types.scalars import U32, U64
from tests.key_cases import OfFloats
from tests.test_policies import MEASURED

CARD = MEASURED["cuda"]


def radix(algorithm: object) -> RadixPolicy:
    assert isinstance(algorithm, Radix)
    return algorithm.policy


def test_the_tiles_of_pairs_go_by_the_bits_of_both() -> None:
    """What an invocation holds of keys and values fills its registers."""
    narrow = radix(choose_pairs(CARD, key_for("u4"), 1, 1 << 24, 4))
    wide = radix(choose_pairs(CARD, key_for("u8"), 1, 1 << 24, 8))
    assert narrow.items > wide.items > 8
    assert radix(choose_pairs(CARD, key_for("u2"), 1, 1 << 24, 4)).items >= narrow.items


@pytest.mark.parametrize("target", ["cuda", "wgsl"])
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("value_bytes", [1, 2, 4, 8])
def test_long_arrays_are_sorted_by_radix_whatever_goes_along(target: str, dtype: str, value_bytes: int) -> None:
    assert isinstance(choose_pairs(MEASURED[target], key_for(dtype), 1, 1 << 20, value_bytes), Radix)


@pytest.mark.parametrize(
    ("length", "tile"), [(22_000, 7_680), (10_752, 10_752), (10_753, 6_144), (16 * 10_752 + 1, 10_752)]
)
def test_tiles_are_such_that_the_last_of_a_row_is_not_empty(length: int, tile: int) -> None:
    """Of rows of many tiles it matters little."""
    whole = Radix(RadixPolicy(8, 384, 28, 32))
    assert balanced(whole, length).policy.tile == tile
    assert balanced(Radix(attrs.evolve(whole.policy, items=8)), length).policy.items == 8
    assert balanced(Radix(attrs.evolve(whole.policy, items=15)), 7 * 384).policy.items == 11  # 7 are too few
    assert balanced(Radix(attrs.evolve(whole.policy, items=16)), 8 * 384).policy.items == 8


def test_two_rows_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one, the last tile's padding is nothing beside the rest."""
    whole = Radix(RadixPolicy(8, 384, 28, 32))
    rule = SortRule("cuda", frozenset(), (32,), range(1 << 20), range(9), whole)
    monkeypatch.setattr(choice, "SORTS", (rule,))
    tiles = [radix(choose_sort(CARD, key_for("u4"), rows, 22_000, with_tuned=False)).tile for rows in (1, 2, 3)]
    assert tiles == [10_752, 7_680, 7_680]


def test_short_rows_are_reduced_by_few_invocations() -> None:
    unknown = attrs.evolve(MEASURED["wgsl"], name="unknown")
    short, longer = (choose_axis_reduction(U64, Layout.rows(1, length), unknown) for length in (256, 257))
    assert short.group_size < longer.group_size


@pytest.mark.parametrize(
    ("rows", "length", "found"),
    [(1, 0, (1, 0)), (1, 30, (1, 1)), (1, 31, (1, 2)), (1, 120, (1, 4)), (1, 121, (2, 3)), (1, 300, (3, 4)),
     (2, 300, (5, 2)), (3, 300, (10, 1)), (9, 300, (10, 1))],
)  # fmt: skip
def test_a_row_is_scanned_in_shares(rows: int, length: int, found: tuple[int, int]) -> None:
    """Of so many tiles each, and no more of them than there are workgroups."""
    assert shares(rows, length, ScanPolicy(group_size=10, items=3, groups=4)) == found


@pytest.mark.parametrize("length", [1, 31, 33, 100, 479, 481, 1000, 3840, 3841, 100_000])
@pytest.mark.parametrize("states", [2, 3, 5, 31, 64, 65, 100, 257, 520, 1000, 4096, 5000])
def test_a_scan_takes_the_room_that_it_needs_and_no_more(states: int, length: int) -> None:
    """In workgroup memory: of invocations first, then of elements in each, one less than a power of two."""
    least, most, most_items = 32, 256, 15
    unknown = attrs.evolve(MEASURED["wgsl"], name="unknown")
    info = attrs.evolve(unknown, limits=attrs.evolve(unknown.limits, workgroup_bytes=4 * states))
    policy = choose_scan(U32, length, info)
    size, items = policy.group_size, policy.items
    assert size * (items + 1) <= states
    assert size <= least or size // 2 * most_items < length, "half the invocations would do"
    assert size == most or 4 * size > states or (size >= least and size * most_items >= length)
    assert (items + 1) & items == 0
    assert items == 1 or size * ((items - 1) // 2) < length, "half the elements would do"
    assert items == most_items or size * (2 * items + 2) > states or policy.tile >= length


@pytest.mark.parametrize("count", [5000, 1 << 24, (1 << 32) - 1])
def test_samples_are_taken_anywhere_in_their_stretches(count: int) -> None:
    """As many in each tenth of them, give or take, so that no period of the data is met."""
    policy = SampledPolicy()
    number = policy.samples
    places = [int(sampled_place(U32(i), U32(count), policy)) for i in range(number)]
    stretches = [(count * i // number, count * (i + 1) // number) for i in range(number)]
    assert all(low <= place < end for place, (low, end) in zip(places, stretches, strict=True))
    tenths = [10 * (place - low) // (end - low) for place, (low, end) in zip(places, stretches, strict=True)]
    if count > 1 << 20:
        assert all(0.06 * number < tenths.count(tenth) < 0.14 * number for tenth in range(10))


def test_the_same_samples_are_taken_ever_after() -> None:
    """So that a row that takes long does so again, on every machine."""
    places = [int(sampled_place(U32(i), U32(1 << 30), SampledPolicy())) for i in (0, 1, 2, 3, 1000, 4095)]
    assert places == [0, 357454, 742376, 801751, 262345369, 1073658172]


@pytest.mark.parametrize(
    ("layout", "along"),
    [(Layout.rows(30, 9), True), (Layout(1, 5000, 3, 0, 3, 1), False), (Layout(1, 5000, 1, 0, 3, 1), True),
     (Layout(3, 1, 4, 4, 4, 1), False), (Layout(5, 7, 1, 1, 5, 1), False), (Layout(1, 1, 4, 0, 1, 8), False)],
)  # fmt: skip
def test_neighbouring_invocations_read_what_lies_close(layout: Layout, along: bool) -> None:
    assert Columns.of(layout).ranks_are_neighbours is along


@attrs.frozen
class Four:
    a: U64
    b: U64
    c: U64
    d: U64


@attrs.frozen
class Twenty:
    a: Four
    b: Four
    c: Four
    d: Four
    e: Four


def test_a_state_that_fills_the_registers_is_reduced_one_element_at_a_time() -> None:
    items = [choose_axis_reduction(state, Layout.rows(2000, 5000), CARD).items for state in (U32, Four, Twenty)]
    assert items[0] > items[1] > items[2] == 1


@pytest.mark.parametrize(
    ("rows", "tiles", "spans"), [(1, 1, 1), (1, 16, 1), (1, 17, 2), (1, 319, 20), (1, 320, 20), (1, 321, 0), (2, 4, 0)]
)
def test_few_tiles_of_one_row_are_summed_by_spans(rows: int, tiles: int, spans: int) -> None:
    assert spans_of(rows, tiles) == spans


@attrs.frozen
class Takes:
    """An algorithm for so many rows, once it is fitted."""

    rows: int
    is_fitted: bool = False

    def fitted(self, *given: object) -> Takes:
        return attrs.evolve(self, is_fitted=True)

    def most_rows(self, *given: object) -> int:
        return self.rows if self.is_fitted else 1


@pytest.mark.parametrize(("rows", "is_taken"), [(0, False), (1, True), (2, True)])
def test_what_takes_no_row_once_it_is_fitted_is_passed_over(
    rows: int, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithm, fitted = cast("Any", Takes(rows)), cast("Any", Takes(rows, True))
    monkeypatch.setattr(choice, "SORTS", (SortRule("cuda", frozenset(), (32,), range(99), range(9), algorithm),))
    assert (choose_sort(CARD, key_for("u4"), 3, 50, with_tuned=False) == fitted) is is_taken
    monkeypatch.setattr(
        choice, "SELECTIONS", (SelectRule("cuda", frozenset(), (32,), range(99), range(9), algorithm, most_k=7),)
    )
    assert (choose_top_k(CARD, key_for("u4"), 3, 50, 5) == fitted) is is_taken


def test_many_rows_are_selected_from_by_digits_and_long_ones_by_samples() -> None:
    """Unless k is so small that parts of rows are selected from in registers, or rows so short that they are sorted."""
    wanted = {
        (1, 20_000, 257): SelectBySamples, (1, 20_000, 500): ArgsortAndTake, (1, 1_000_000, 5000): ArgsortAndTake,
        (3, 50_000, 5000): ArgsortAndTake, (8, 50_000, 20): SelectByParts, (8, 50_000, 100): SelectByParts,
        (8, 50_000, 200): ArgsortAndTake, (8, 100_000, 200): SelectBySamples, (20, 50_000, 200): SelectByDigits,
        (64, 100_000, 5000): SelectByDigits, (64, 100_000, 20_000): SelectByDigits, (8, 100_000, 9000): ArgsortAndTake,
        (300, 300_000, 20_000): SelectByDigits, (64, 100_000, 60_000): ArgsortAndTake,
        (3, 10_000_000, 50_000): SelectBySamples, (64, 5000, 200): ArgsortAndTake, (256, 5000, 200): SelectByDigits,
        (256, 2000, 200): ArgsortAndTake, (1000, 2000, 200): SelectByDigits, (1000, 2000, 600): ArgsortAndTake,
        (1000, 2000, 50): SelectByParts, (1000, 1000, 100): ArgsortAndTake, (1000, 20_000, 100): SelectByDigits,
        (1000, 300_000, 300): SelectBySamples,
    }  # fmt: skip
    found = {case: type(choose_top_k(CARD, key_for("f4"), *case)) for case in wanted}
    assert found == wanted


def test_a_key_of_few_bits_is_selected_by_as_one_of_all_of_its_words() -> None:
    few: Any = attrs.evolve(cast("Any", key_for("u4")), bits=20)
    for case in ((1, 1 << 20, 5), (64, 100_000, 5000)):
        assert type(choose_top_k(CARD, few, *case)) is type(choose_top_k(CARD, key_for("u4"), *case))


def test_what_nothing_selects_is_argsorted_with_places_of_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "SELECTIONS", ())
    key = key_for("u4")
    found = choose_top_k(CARD, key, 1, 1 << 20, 5)
    assert isinstance(found, ArgsortAndTake)
    pairs = choose_pairs(CARD, RankKey(key), 1, 1 << 20, 4)
    assert pairs is not None
    assert found.sort == pairs.fitted(RankKey(key), 1 << 20, CARD, 4)


@pytest.mark.parametrize(
    ("layout", "is_of_rows"),
    [(Layout.rows(5, 100), True), (Layout.rows(5, 1), True), (Layout(1, 100, 7, 0, 7, 1), False),
     (Layout(2, 100, 1, 300, 2, 1), False), (Layout(1, 100, 3, 0, 1, 200), False), (Layout(1, 100, 2, 0, 2, 1), False)],
)  # fmt: skip
def test_scans_of_rows_have_policies_of_their_own(
    layout: Layout, is_of_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for short ones, whose rules come first for all that they match."""
    anywhere, short = ScanPolicy(8, 5), PolicyRule("cuda", frozenset(), None, range(9999), range(99), ScanPolicy(8, 6))
    elsewhere = attrs.evolve(short, target="wgsl")
    monkeypatch.setattr(choice, "AXIS_SCANS", {"cuda": anywhere})
    monkeypatch.setattr(choice, "SHORT_SCANS", (elsewhere,))
    wanted = choose_scan(U32, layout.length, CARD) if is_of_rows else anywhere
    assert choose_axis_scan(U32, layout, CARD) == wanted
    monkeypatch.setattr(choice, "SHORT_SCANS", (elsewhere, short))
    assert choose_axis_scan(U32, layout, CARD) == short.policy


@pytest.mark.parametrize(
    ("rows", "length", "strand", "tile"),
    [(5000, 4, 1, 32), (5000, 5, 2, 1024), (5000, 16, 4, 1024), (5000, 21, 8, 1024), (5000, 100, 8, 2048),
     (5000, 161, 1, 224), (100, 100, 1, 224), (100, 4000, 1, 4352), (100, 5000, 1, 5632), (100, 9000, 1, 9216),
     (3, 4000, 1, 3840), (100, 10_000, 1, 3840)],
)  # fmt: skip
def test_rows_share_subgroups_or_have_one_tile_on_a_card(rows: int, length: int, strand: int, tile: int) -> None:
    found = choose_axis_scan(U32, Layout.rows(rows, length), CARD)
    assert (found.strand, found.tile) == (strand, tile)


def test_rows_too_long_for_one_invocation_s_states_share_a_workgroup() -> None:
    """Sixteen states of 64 bits are more than half of 128 bytes of registers."""
    layout = Layout.rows(1 << 17, 16)
    plain = attrs.evolve(CARD, capabilities=frozenset())
    assert choose_axis_scan(U64, layout, plain).alone
    short = attrs.evolve(plain, limits=attrs.evolve(plain.limits, register_bytes=128))
    assert choose_axis_scan(U64, layout, short) == choose_scan(U64, 16, short)


def test_words_that_are_no_elements_are_sorted_in_registers_and_not_with_values() -> None:
    """Floats as they are: a pair's words take the place of its elements."""
    key = OfFloats()
    assert choose_pairs(CARD, key, 1000, 20, 4) is None
    assert isinstance(choose_sort(CARD, key, 1000, 20, with_tuned=False), BitonicRows)
