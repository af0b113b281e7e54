"""The selection tables: the fastest algorithm or policy for each target, element size, length and number of rows, as
measured (docs/performance.md says how)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..machine import Capability
from ..types.params import MergePolicy, RadixPolicy, ReducePolicy, ScanPolicy, Totals
from .batch import PairsAlgorithm
from .host_sort import HostSort
from .rules import PairsRule, PolicyRule, SelectRule, SortRule
from .select import ArgsortAndTake, SelectByDigits, SelectByLanes, SelectByParts, SelectBySamples
from .select_digits import DigitsPolicy
from .select_rows import PartPolicy
from .select_sampled import SampledPolicy
from .sorts import BitonicRows, Radix, RadixRows

_SWEEPS = frozenset({Capability.SUBGROUPS, Capability.FORWARD_PROGRESS})
_SUBGROUPS = frozenset({Capability.SUBGROUPS})
_NONE: frozenset[Capability] = frozenset()
_ANY = range(1 << 63)
_ONE, _SEVERAL = range(1, 2), range(2, 1 << 63)
_NARROW, _WIDE = (8, 16, 32), (64,)
_FROM_18_BITS = range(1 << 18, 1 << 63)


def _sweep(items: int, count_items: int, copies: int, group_size: int = 384) -> Radix:
    return Radix(RadixPolicy(8, group_size, items, 32, True, 4, 1024, count_items, copies, 132, sweeps=True))


def _counted(items: int, group_size: int = 512) -> Radix:
    """Two workgroups of 512 are resident in a multiprocessor's 48 KiB of workgroup memory under a Vulkan driver."""
    return Radix(RadixPolicy(8, group_size, items, 32))


def by_masks(digit_bits: int) -> Radix:
    """For any WebGPU device: few strands in a tile, so that elements fill most of 16 KiB of workgroup memory."""
    return Radix(RadixPolicy(digit_bits, 128, 28, 32, subgroups=False))


# What is kept of a CPU that was tuned: no kernel is as fast there, whatever the rows.
HOST_RULE = SortRule("cpu", frozenset({Capability.HOST_SORT}), _NARROW + _WIDE, _ANY, _ANY, HostSort())

# The first rule that matches is taken; if none does, the bitonic network sorts.
SORTS: tuple[SortRule, ...] = (
    # A single short row occupies one multiprocessor: one subgroup sorts it, or one workgroup.
    SortRule("cuda", _SUBGROUPS, _NARROW, range(1025), _ONE, BitonicRows(items=8, most_items=32, group_size=32)),
    SortRule("cuda", _SUBGROUPS, _NARROW, range(2049), _ONE, RadixRows(items=8)),
    SortRule("cuda", _SUBGROUPS, _NARROW, range(8193), _ONE, RadixRows(items=16)),
    SortRule("cuda", _SUBGROUPS, _NARROW, range(2049), _ANY, BitonicRows(items=8, most_items=64)),
    SortRule("cuda", _SUBGROUPS, _NARROW, range(4097), _ANY, RadixRows(items=8)),
    SortRule("cuda", _SUBGROUPS, _NARROW, range(16385), _SEVERAL, RadixRows(items=16)),
    SortRule("cuda", _SUBGROUPS, _WIDE, range(513), _ONE, BitonicRows(items=8, most_items=32, group_size=32)),
    SortRule("cuda", _SUBGROUPS, _WIDE, range(1025), _SEVERAL, BitonicRows(items=8, most_items=32)),
    SortRule("cuda", _SUBGROUPS, _WIDE, range(8193), _ANY, RadixRows(items=8)),
    # Rows beyond workgroup memory. A sweep takes any number of them, so it goes by the elements in all rows.
    SortRule("cuda", _SWEEPS, _NARROW, _ANY, _ANY, _sweep(8, 8, 32, 256), elements=range(5 << 16)),
    SortRule("cuda", _SWEEPS, _NARROW, _ANY, _ANY, _sweep(12, 8, 32), elements=range(3 << 18)),
    SortRule("cuda", _SWEEPS, _NARROW, _ANY, _ANY, _sweep(22, 8, 32), elements=range(7 << 19)),
    SortRule("cuda", _SWEEPS, _NARROW, range(1 << 32), _ANY, _sweep(28, 16, 32)),
    SortRule("cuda", _SWEEPS, _WIDE, _ANY, _ANY, _sweep(8, 4, 16, 256), elements=range(5 << 16)),
    SortRule("cuda", _SWEEPS, _WIDE, _ANY, _ANY, _sweep(14, 4, 16), elements=range(9 << 20)),
    SortRule("cuda", _SWEEPS, _WIDE, _ANY, _SEVERAL, _sweep(14, 4, 16)),
    SortRule("cuda", _SWEEPS, _WIDE, range(1 << 32), _ANY, _sweep(18, 4, 16)),
    # Measured on the same card through Vulkan: rows in registers, or in workgroup memory; else three launches a pass.
    SortRule("wgsl", _SWEEPS, _NARROW, range(256, 2049), _ONE, RadixRows(4, most_group=512), 32 << 10),
    SortRule("wgsl", _SWEEPS, _NARROW, range(1025), _SEVERAL, BitonicRows(items=8, group_size=64), 20 << 10),
    SortRule("wgsl", _SWEEPS, _NARROW, range(1025, 4097), _ANY, RadixRows(8, most_group=512), 40 << 10),
    SortRule("wgsl", _SWEEPS, _WIDE, range(256, 2049), _ANY, RadixRows(4, most_group=512), 40 << 10),
    SortRule("wgsl", _SWEEPS, _WIDE, range(2049, 4097), _ANY, RadixRows(16, most_group=256), 48 << 10),
    SortRule("wgsl", _SWEEPS, _NARROW, range(4097, 1 << 18), _ONE, _counted(4, 256)),
    SortRule("wgsl", _SWEEPS, _NARROW, range(1 << 18, 1 << 19), _ONE, _counted(8, 256), 20 << 10),
    SortRule("wgsl", _SWEEPS, _NARROW, range(1 << 19, (1 << 20) + 1), _ONE, _counted(8), 24 << 10),
    SortRule("wgsl", _SWEEPS, _NARROW, range(1 << 13, 1 << 32), _ANY, _counted(11), 24 << 10, _FROM_18_BITS),
    SortRule("wgsl", _SWEEPS, _WIDE, range(1 << 14, 1 << 17), _ONE, _counted(4, 256), 20 << 10),
    SortRule("wgsl", _SWEEPS, _WIDE, range(1 << 17, 1 << 32), _ANY, _counted(5), 24 << 10),
    SortRule("wgsl", _SWEEPS, _WIDE, range(1 << 13, 1 << 17), _SEVERAL, _counted(5), 24 << 10, _FROM_18_BITS),
    # Other devices, measured on Mesa's software one. Digits have the fewest bits that give the same number of passes.
    *(
        SortRule("wgsl", needs, (bits,), range(shortest, 1 << 32), rows, algorithm, elements=elements, unless=unless)
        for bits, digit_bits, of_one, of_several in (
            (8, 4, 1 << 14, 1 << 13), (16, 6, 1 << 15, 1 << 13), (32, 7, 1 << 16, 1 << 13), (64, 7, 1 << 17, 1 << 15)
        )
        for rows, shortest, elements in ((_ONE, of_one, _ANY), (_SEVERAL, of_several, _FROM_18_BITS))
        for needs, unless, algorithm in (
            (_SUBGROUPS, _SWEEPS, _counted(14, 256)), (_NONE, _SUBGROUPS, by_masks(digit_bits))
        )
    )
)  # fmt: skip

_PAIR, _WIDE_PAIR = (16, 24, 40, 48, 64), (72, 80, 96, 128)
_PAIRED_ROWS = range(4097, 1 << 32)  # shorter rows waste much of a tile; the network sorts them in two tiles

# Key-value pairs; argsort counts as values of four bytes.
PAIRS: tuple[PairsRule, ...] = (
    # In workgroup memory, as long as an invocation's words, indices and ranks do not spill registers.
    PairsRule("cuda", _SUBGROUPS, _PAIR + _WIDE_PAIR, range(513), _SEVERAL, BitonicRows(items=8, most_items=16)),
    PairsRule("cuda", _SUBGROUPS, _PAIR + _WIDE_PAIR, range(513, 1025), _SEVERAL, RadixRows(items=4)),
    PairsRule("cuda", _SUBGROUPS, _PAIR, range(8193), _ANY, RadixRows(items=8)),
    PairsRule("cuda", _SUBGROUPS, _WIDE_PAIR, range(4097), _ANY, RadixRows(items=8)),
    PairsRule("cuda", _SWEEPS, _PAIR, _PAIRED_ROWS, _ANY, _sweep(8, 8, 32, 256), elements=range(5 << 16)),
    PairsRule("cuda", _SWEEPS, _PAIR, _PAIRED_ROWS, _ANY, _sweep(12, 8, 32), elements=range(5 << 18)),
    PairsRule("cuda", _SWEEPS, _PAIR, _PAIRED_ROWS, _ANY, _sweep(26, 8, 32)),
    PairsRule("cuda", _SWEEPS, _WIDE_PAIR, _PAIRED_ROWS, _ANY, _sweep(8, 4, 16, 256), elements=range(5 << 16)),
    PairsRule("cuda", _SWEEPS, _WIDE_PAIR, _PAIRED_ROWS, _ANY, _sweep(14, 4, 16), elements=range(13 << 17)),
    PairsRule("cuda", _SWEEPS, _WIDE_PAIR, _PAIRED_ROWS, _ANY, _sweep(20, 4, 16)),
    PairsRule(
        "wgsl", _SWEEPS, _PAIR, range(513), _SEVERAL, BitonicRows(items=8, most_items=16, group_size=64), 20 << 10
    ),
    PairsRule("wgsl", _SWEEPS, _PAIR, range(1 << 12, 1 << 19), _ONE, _counted(8, 256)),
    PairsRule("wgsl", _SWEEPS, _PAIR, _PAIRED_ROWS, _ANY, _counted(11), elements=_FROM_18_BITS),
    PairsRule("wgsl", _SWEEPS, _WIDE_PAIR, range(1 << 13, 1 << 17), _ONE, _counted(4, 256)),
    PairsRule("wgsl", _SWEEPS, _WIDE_PAIR, range(1 << 17, 1 << 32), _ANY, _counted(5)),
    PairsRule("wgsl", _SWEEPS, _WIDE_PAIR, _PAIRED_ROWS, _SEVERAL, _counted(5), elements=_FROM_18_BITS),
    *(
        PairsRule("wgsl", needs, bits, range(shortest, 1 << 32), rows, algorithm, elements=elements, unless=unless)
        for bits, of_one, of_several in ((_PAIR, 1 << 15, 1 << 12), (_WIDE_PAIR, 1 << 17, 1 << 13))
        for rows, shortest, elements in ((_ONE, of_one, _ANY), (_SEVERAL, of_several, _FROM_18_BITS))
        for needs, unless, algorithm in (
            (_SUBGROUPS, _SWEEPS, _counted(14, 256)), (_NONE, _SUBGROUPS, by_masks(7))
        )
    )
)  # fmt: skip

_FEW_ROWS, _MANY_ROWS = range(1, 5), range(5, 1 << 63)
_RESIDENT = range(1 << 15, 1 << 63)  # rows that occupy a card with four lanes each


def _parts(group_size: int, items: int, sets: int, kept: int = 512) -> SelectByParts:
    return SelectByParts(PartPolicy(group_size, items, sets, kept))


# With many rows, more samples would cost more than reading the rows; with long ones, fewer would let too many pass.
_FEWER_SAMPLES = SelectBySamples(SampledPolicy(samples=1024, ranked=256, few=1024, groups=1056, sorted_from=1025))

_THOUSAND = range(1000, 1 << 63)
# Lengths and numbers of rows by which a radix select of each is chosen, and the size of its workgroup: shorter rows are
# sorted as soon, and each longer one is better read by many workgroups.
_BY_DIGITS = (
    (range(4097, 1 << 17), range(256, 1 << 63), 256), (range(8193, 1 << 17), range(64, 256), 512),
    (range(8193, 1 << 16), range(5, 64), 512),
)  # fmt: skip
# More than workgroup memory sorts, of too many rows to sort all: a workgroup is as large as it is long at work.
_MANY_BY_DIGITS = ((range(4097, 1 << 17), 512), (range(1 << 17, 1 << 32), 1024))
_FORTY = range(40, 1 << 63)
# Numbers of rows, how many elements these have, and how many of a row are wanted at least, for all to be argsorted.
_ALL_SORTED = (
    (_MANY_ROWS, range(1 << 19), 129), (_ANY, range(1 << 17), 500), (_ANY, range(1 << 19), 2000),
    (_ANY, range((1 << 20) + 1), 4000),
)  # fmt: skip


def _digits(sort: PairsAlgorithm, group_size: int = 256) -> SelectByDigits:
    return SelectByDigits(ArgsortAndTake(sort), DigitsPolicy(group_size, subgroups=True))


def _selections_on_card(bits: tuple[int, ...], few: int, short_rows: BitonicRows) -> tuple[SelectRule, ...]:
    """For more than 32 elements of rows beyond 1024. The more are wanted, the more elements are sorted as soon as
    sampled."""
    sorts = ((short_rows, 512), (RadixRows(items=4), 1024), (RadixRows(items=8), 8192 // few))
    long, sweep = range(8193 // few, 1 << 63), _sweep(12, 8, 32)
    return (
        SelectRule("cuda", _NONE, bits, range(4097, 8193), _ANY, _parts(512, 16 // few, 128), most_k=64),
        SelectRule("cuda", _NONE, bits, range(1 << 19), _ANY, _parts(256, 16 // few, 128), most_k=64),
        SelectRule("cuda", _SWEEPS, bits, range(1025, 1 << 17), _THOUSAND, _digits(short_rows), most_k=512),
        SelectRule("cuda", _NONE, bits, range(4097, 1 << 18), _ANY, _parts(512, 16 // few, 256, 1024), most_k=128),
        *(
            SelectRule("cuda", _SWEEPS, bits, long, rows, None, elements=elements, least_k=least_k)
            for rows, elements, least_k in _ALL_SORTED
        ),
        *(
            SelectRule("cuda", _SWEEPS, bits, lengths, rows, _digits(sort, group_size), most_k=most_k)
            for sort, most_k in sorts
            for lengths, rows, group_size in _BY_DIGITS
        ),
        *(
            SelectRule("cuda", _SWEEPS, bits, lengths, _FORTY, _digits(sweep, size), ratios=range(2, 64), least_k=1024)
            for lengths, size in _MANY_BY_DIGITS
        ),
        SelectRule("cuda", _SWEEPS, bits, long, _ANY, None, elements=range(1 << 22), least_k=8000),
        SelectRule("cuda", _NONE, bits, range(1025), _ANY, ArgsortAndTake(RadixRows(items=4)), most_k=1024),
        SelectRule("cuda", _NONE, bits, range(8193 // few), _ANY, ArgsortAndTake(RadixRows(items=8)), most_k=8192),
        SelectRule("cuda", _SWEEPS, bits, long, _ANY, None, ratios=range(32), least_k=257),
    )


def _selections_through_vulkan(short_rows: BitonicRows) -> tuple[SelectRule, ...]:
    """For more than 64 elements of up to 32 bits, on the same card."""
    many = range(64, 1 << 63)
    return (
        SelectRule("wgsl", _SWEEPS, _NARROW, range(513, 1 << 17), many, _digits(short_rows), most_k=512),
        SelectRule("wgsl", _SWEEPS, _NARROW, _ANY, _ANY, None, elements=range(1 << 22), least_k=500),
    )


# Top-k; if no rule matches, a full argsort. With fewer sets than twice k, candidates would be many more than k.
# Workgroups are as small as hold a part in registers: one ranks its candidates while others load. For the shortest rows
# a sort in a subgroup's registers is faster than ranking by a workgroup; where very many are enough for all lanes, each
# of few goes through much of a row.
SELECTIONS: tuple[SelectRule, ...] = tuple(
    rule
    for target, short_rows in (
        ("cuda", BitonicRows(items=8, most_items=16)),
        ("wgsl", BitonicRows(items=8, most_items=16, group_size=64)),
    )
    for bits, few in ((_NARROW, 1), (_WIDE, 2))  # 64-bit elements take twice the registers
    for rule in (
        SelectRule(target, _SUBGROUPS, bits, range(17, 129), _RESIDENT, SelectByLanes(), most_k=8),
        SelectRule(target, _NONE, bits, range(129), _SEVERAL, ArgsortAndTake(short_rows), most_k=128),
        SelectRule(target, _NONE, bits, range(1025), _ANY, _parts(64, 16 // few, 32), most_k=16),
        SelectRule(target, _NONE, bits, range(1025), _ANY, _parts(128, 8 // few, 64), most_k=32),
        SelectRule(target, _NONE, bits, range(513), _SEVERAL, ArgsortAndTake(short_rows), most_k=512),
        SelectRule(target, _NONE, bits, range(1 << 14), _ANY, _parts(256, 16 // few, 64), most_k=32),
        SelectRule(target, _NONE, bits, _ANY, _ANY, _parts(512, 16 // few, 64), most_k=32),
        *(_selections_on_card(bits, few, short_rows) if target == "cuda" else ()),
        SelectRule(target, _NONE, bits, range(1 << 14), _ANY, _parts(256, 16 // few, 128), most_k=64),
        *(_selections_through_vulkan(short_rows) if target == "wgsl" and few == 1 else ()),
        SelectRule(target, _NONE, bits, range(1 << 14), _ANY, _parts(256, 16 // few, 256), most_k=128),
        SelectRule(target, _NONE, bits, range(4097), _ANY, _parts(256, 16 // few, 256), most_k=256),
        SelectRule(target, _NONE, bits, range(1 << 14, 1 << 32), _FEW_ROWS, SelectBySamples()),
        SelectRule(target, _NONE, bits, range(1 << 14, 1 << 22), _MANY_ROWS, _FEWER_SAMPLES),
        SelectRule(target, _NONE, bits, range(1 << 22, 1 << 32), _MANY_ROWS, SelectBySamples()),
        SelectRule(target, _NONE, bits, range(1 << 15), _ANY, _parts(512, 16 // few, 512, 1024), most_k=256),
    )
)

_LONG_ON_CARD = ReducePolicy(256, 8, 1056, subgroups=True, totals=Totals.ONE)
_VERY_LONG_ON_CARD = ReducePolicy(512, 16, 528, subgroups=True, totals=Totals.ONE)
_LONG, _VERY_LONG = range(1 << 18, 1 << 26), range(1 << 26, 1 << 63)

# Loads in flight hide memory latency: 2 workgroups of 512 with 16 loads each, or 8 of 256 with 8, are 64 KiB in flight
# on a multiprocessor, twice what Little's law requires for an H200's bandwidth; 264 workgroups are all that it has
# resident at a time. Totals of more than 128 bytes of registers an invocation reduce occupancy too far.
_ROWS_ON_CARD = ReducePolicy(256, 8, 4224, subgroups=True, short=2049, strand=32, totals=Totals.ONE)


def _rows_by(strand: int) -> ReducePolicy:
    return attrs.evolve(_ROWS_ON_CARD, strand=strand)


# With enough rows to occupy the card (65,536 lanes), fewer lanes for each row save steps of the reduction, and of short
# rows no lane is without a load.
_MORE_ROWS_ON_CARD = _rows_by(16)
_MANY_ROWS_ON_CARD = _rows_by(8)
_ROWS_ALONE_ON_CARD = attrs.evolve(_MANY_ROWS_ON_CARD, items=32, alone=True)
_COLUMNS_ON_CARD = ReducePolicy(512, 16, 264, subgroups=True, strand=32, totals=Totals.ONE)
_SHORT_COLUMNS_ON_CARD = ReducePolicy(128, 8, 2112, subgroups=True, strand=32, totals=Totals.ONE)
_IN_SIMULATOR = ReducePolicy(64, 2, 16, subgroups=True, line=64, strand=8, totals=Totals.ONE)
_ROWS_BY_SUBGROUPS = ReducePolicy(256, 8, 1056, subgroups=True, short=2049, strand=32)
_ROWS_BY_WGSL = ReducePolicy(256, 8, 1056, short=257)
# By an axis of up to so many elements, with many columns, these are loaded by an invocation each; of rows, up to so
# many bytes, as far apart as lanes may read.
_SHORT_AXES = ((range(1, 3), 2), (range(3, 5), 4), (range(5, 9), 8), (range(9, 17), 16))
_MANY_COLUMNS = range(1 << 16, 1 << 63)
AXIS_REDUCTIONS: tuple[PolicyRule[ReducePolicy], ...] = (
    *(
        PolicyRule(
            target, needs, in_rows, lengths, _MANY_COLUMNS, attrs.evolve(policy, items=items, alone=True), nbytes,
            totals_bytes=256,
        )
        for target, needs, policy in (("cuda", _SUBGROUPS, _MANY_ROWS_ON_CARD), ("wgsl", _NONE, _ROWS_BY_WGSL))
        for lengths, items in _SHORT_AXES
        for in_rows, nbytes in ((True, 64 if items <= 8 else 32), (False, 1 << 62))
    ),
    PolicyRule("cuda", _SUBGROUPS, True, range(17, 32), _MANY_COLUMNS, _ROWS_ALONE_ON_CARD, 128, totals_bytes=512),
    PolicyRule("cuda", _SUBGROUPS, True, range(32, 64), _MANY_COLUMNS, _rows_by(2), 255, totals_bytes=128),
    PolicyRule("cuda", _SUBGROUPS, True, range(64, 128), _MANY_COLUMNS, _rows_by(4), 512, totals_bytes=128),
    PolicyRule("cuda", _SUBGROUPS, True, _LONG, range(33), _LONG_ON_CARD),
    PolicyRule("cuda", _SUBGROUPS, True, _VERY_LONG, range(33), _VERY_LONG_ON_CARD),
    PolicyRule("cuda", _SUBGROUPS, True, range(513), range(8000, 1 << 63), _MANY_ROWS_ON_CARD, totals_bytes=128),
    PolicyRule("cuda", _SUBGROUPS, True, range(513), range(4000, 1 << 63), _MORE_ROWS_ON_CARD, totals_bytes=128),
    PolicyRule("cuda", _SUBGROUPS, True, _ANY, _ANY, _ROWS_ON_CARD, totals_bytes=128),
    # Short columns: a workgroup loads one block and ends, so occupancy is by many small workgroups.
    PolicyRule("cuda", _SUBGROUPS, False, range(33), _ANY, _SHORT_COLUMNS_ON_CARD, totals_bytes=64),
    PolicyRule("cuda", _SUBGROUPS, False, _ANY, _ANY, _COLUMNS_ON_CARD, totals_bytes=128),
    PolicyRule("wgsl", _SUBGROUPS, True, _ANY, _ANY, _ROWS_BY_SUBGROUPS, totals_bytes=64),
    PolicyRule("wgsl", _NONE, True, _ANY, _ANY, _ROWS_BY_WGSL),
    PolicyRule("wgsl", _NONE, False, _ANY, _ANY, ReducePolicy(256, 8, 528)),
    # On a CPU a thread runs a workgroup. In rows, one invocation's totals are SIMD vectors; in columns, SIMD is over
    # neighbouring columns, with totals in L1.
    PolicyRule("cpu", _NONE, True, range(129), _ANY, ReducePolicy(1, 8, 64)),
    PolicyRule("cpu", _NONE, True, range(1 << 16), _ANY, ReducePolicy(1, 64, 1)),  # one thread for each row
    PolicyRule("cpu", _NONE, True, _ANY, _ANY, ReducePolicy(1, 64, 64)),
    PolicyRule("cpu", _NONE, False, _ANY, _ANY, ReducePolicy(512, 8, 64, side_by_side=True)),
    # Small sizes where an invocation is a Python thread, or is interpreted.
    PolicyRule("python", _NONE, False, _ANY, _ANY, ReducePolicy(8, 2, 4, line=16)),
    PolicyRule("simulator", _NONE, False, _ANY, _ANY, _IN_SIMULATOR),
)  # fmt: skip

# By target, where a default does not do. Small sizes where an invocation is a Python thread, or is interpreted.
SCANS: Mapping[str, ScanPolicy] = {
    "cpu": ScanPolicy(1, 15, 64),  # 16 invocations: two to three times slower
    "python": ScanPolicy(16, 7), "simulator": ScanPolicy(32, 7),
}  # fmt: skip
SCAN_BY_SUBGROUPS = ScanPolicy(256, 15, 4096, subgroups=True)

MERGES: Mapping[str, MergePolicy] = {
    "cpu": MergePolicy(1, 1 << 14),  # 8 x 127: four times slower
    "python": MergePolicy(4, 3), "simulator": MergePolicy(32, 5),
}  # fmt: skip

# Of rows that lanes of a subgroup share, where workgroups would be idle and loads not coalesced; of columns that an
# invocation loads whole.
SHORT_SCANS: tuple[PolicyRule[ScanPolicy], ...] = (
    *(
        PolicyRule(
            target, _SUBGROUPS, True, lengths, range(1 << 11, 1 << 63),
            ScanPolicy(256, items, subgroups=True, strand=strand),
        )
        for target in ("cuda", "wgsl")
        for lengths, strand, items in (
            (range(5, 11), 2, 4), (range(11, 21), 4, 4), (range(21, 33), 8 if target == "cuda" else 4, 4),
            (range(33, 161), 8, 8),
        )
    ),
    *(
        PolicyRule(target, _NONE, None, lengths, _MANY_COLUMNS, ScanPolicy(256, items, alone=True))
        for target in ("cuda", "wgsl")
        for lengths, items in _SHORT_AXES
    ),
    *(  # rows of one tile, of which two of the usual size would be padding for the most part
        PolicyRule("cuda", _SUBGROUPS, True, lengths, range(32, 1 << 63), ScanPolicy(size, items, 4096, True))
        for lengths, size, items in (
            (range(3841, 4353), 256, 17), (range(4353, 5633), 512, 11), (range(5633, 6657), 512, 13),
            (range(6657, 7681), 512, 15), (range(7681, 9217), 1024, 9),
        )
    ),
)  # fmt: skip
# Down columns. On a CPU the running states of a row of columns are in L1; on a card two workgroups of 512 with 16 loads
# in flight each are resident on a multiprocessor, and of twice as many none waits for the last.
AXIS_SCANS: Mapping[str, ScanPolicy] = {
    "cuda": ScanPolicy(512, 16, 1056), "wgsl": ScanPolicy(256, 8, 2112),
    "cpu": ScanPolicy(512, 1, 256, side_by_side=True),
    "python": ScanPolicy(8, 2, 16, line=16), "simulator": ScanPolicy(64, 4, 64, line=64),
}  # fmt: skip
