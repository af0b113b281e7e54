"""The selection tables of sorts and selections: the fastest algorithm for each target, element size, length and number
of rows, as measured (docs/performance.md says how)."""

from __future__ import annotations

from ..machine import Capability
from ..types.params import RadixPolicy, RowsPolicy
from .batch import PairsAlgorithm
from .host_sort import HostSort
from .rules import ANY, NONE, SUBGROUPS, SWEEPS, PairsRule, SelectRule, SortRule
from .select import ArgsortAndTake, SelectByDigits, SelectByLanes, SelectByParts, SelectBySamples
from .select_digits import DigitsPolicy
from .select_rows import PartPolicy
from .select_sampled import SampledPolicy
from .sorts import BitonicRows, Radix, RadixRows

_ONE, _SEVERAL = range(1, 2), range(2, 1 << 63)
_NARROW, _WIDE = (8, 16, 32), (64,)
_FROM_18_BITS = range(1 << 18, 1 << 63)
_FORTY = range(40, 1 << 63)


def _sweep(items: int, count_items: int, copies: int, group_size: int = 384) -> Radix:
    return Radix(RadixPolicy(8, group_size, items, 32, True, 4, 1024, count_items, copies, 132, sweeps=True))


def _counted(items: int, group_size: int = 512) -> Radix:
    """Two workgroups of 512 are resident in a multiprocessor's 48 KiB of workgroup memory under a Vulkan driver."""
    return Radix(RadixPolicy(8, group_size, items, 32))


_IN_512 = RadixRows(8, most_group=512)  # by less than 8 bits at a time in rows for which memory is short


def by_masks(digit_bits: int) -> Radix:
    """For any WebGPU device: few strands in a tile, so that elements fill most of 16 KiB of workgroup memory."""
    return Radix(RadixPolicy(digit_bits, 128, 28, 32, subgroups=False))


# Bytes of workgroup memory, and the longest rows that it holds beside counters: of 32-bit words, of these with their
# indices, and of 64-bit words with theirs.
_HELD = ((16 << 10, 3072, 1536, 0), (32 << 10, 6144, 3072, 2048), (48 << 10, 8192, 5120, 3413))
_IN_REGISTERS = BitonicRows(group_size=64)  # rows of 256 elements in 8 lanes, 1024 in 32; of 32 without subgroups
_ROWS = ((SUBGROUPS, SWEEPS, RadixRows()), (NONE, SUBGROUPS, RadixRows(subgroups=False)))

# What is kept of a CPU that was tuned: no kernel is as fast there, whatever the rows.
HOST_RULE = SortRule("cpu", frozenset({Capability.HOST_SORT}), _NARROW + _WIDE, ANY, ANY, HostSort())

# The first rule that matches is taken; if none does, the bitonic network sorts.
SORTS: tuple[SortRule, ...] = (
    # A single short row occupies one multiprocessor: one subgroup sorts it, or one workgroup.
    SortRule("cuda", SUBGROUPS, _NARROW, range(1025), _ONE, BitonicRows(items=8, most_items=32, group_size=32)),
    SortRule("cuda", SUBGROUPS, _NARROW, range(8193), _ONE, RadixRows(items=16)),
    SortRule("cuda", SUBGROUPS, _NARROW, range(1025, 2049), range(512), RadixRows()),
    SortRule("cuda", SUBGROUPS, _NARROW, range(2049), ANY, BitonicRows(items=8, most_items=64)),
    SortRule("cuda", SUBGROUPS, _NARROW, range(16385), _SEVERAL, RadixRows()),
    SortRule("cuda", SUBGROUPS, _NARROW, range(32769), _FORTY, RadixRows(), 160 << 10),
    SortRule("cuda", SUBGROUPS, _WIDE, range(513), _ONE, BitonicRows(items=8, most_items=32, group_size=32)),
    SortRule("cuda", SUBGROUPS, _WIDE, range(1025), _SEVERAL, BitonicRows(items=8, most_items=32)),
    SortRule("cuda", SUBGROUPS, _WIDE, range(8193), ANY, RadixRows()),
    SortRule("cuda", SUBGROUPS, _WIDE, range(16385), _FORTY, RadixRows(), 144 << 10),
    SortRule("cuda", SUBGROUPS, _WIDE, range(20481), _FORTY, RadixRows(items=20), 192 << 10),
    # Rows beyond workgroup memory. A sweep takes any number of them, so it goes by the elements in all rows.
    SortRule("cuda", SWEEPS, _NARROW, ANY, ANY, _sweep(8, 8, 32, 256), elements=range(5 << 16)),
    SortRule("cuda", SWEEPS, _NARROW, ANY, ANY, _sweep(12, 8, 32), elements=range(3 << 18)),
    SortRule("cuda", SWEEPS, _NARROW, ANY, ANY, _sweep(22, 8, 32), elements=range(7 << 19)),
    SortRule("cuda", SWEEPS, _NARROW, range(1 << 32), ANY, _sweep(28, 16, 32)),
    SortRule("cuda", SWEEPS, _WIDE, ANY, ANY, _sweep(8, 4, 16, 256), elements=range(5 << 16)),
    SortRule("cuda", SWEEPS, _WIDE, ANY, ANY, _sweep(14, 4, 16), elements=range(9 << 20)),
    SortRule("cuda", SWEEPS, _WIDE, ANY, _SEVERAL, _sweep(14, 4, 16)),
    SortRule("cuda", SWEEPS, _WIDE, range(1 << 32), ANY, _sweep(18, 4, 16)),
    # Measured on the same card through Vulkan, where larger workgroups hide the latency of few rows.
    SortRule("wgsl", SWEEPS, _NARROW, range(256, 2049), range(33), RadixRows(4, most_group=512), 32 << 10),
    SortRule("wgsl", SWEEPS, _NARROW, range(256, 1025), range(512), RadixRows(8), 32 << 10),
    SortRule("wgsl", SWEEPS, _NARROW, range(1025), _SEVERAL, _IN_REGISTERS, 20 << 10),
    SortRule("wgsl", SWEEPS, _NARROW, range(1025, 4097), range(100), _IN_512, 40 << 10),
    SortRule("wgsl", SWEEPS, _NARROW, range(1025, 6145), _SEVERAL, RadixRows(12, most_group=512), 40 << 10),
    SortRule("wgsl", SWEEPS, (32,), range(8193), _SEVERAL, RadixRows(16, most_group=512), 48 << 10),
    SortRule("wgsl", SWEEPS, _NARROW, range(8193), _SEVERAL, RadixRows(most_group=256), 48 << 10),
    SortRule("wgsl", SWEEPS, _WIDE, range(513), range(512, 1 << 63), _IN_REGISTERS, 20 << 10),
    SortRule("wgsl", SWEEPS, _WIDE, range(256, 4097), ANY, _IN_512, 48 << 10),
    SortRule("wgsl", SWEEPS, _NARROW, range(4097, 1 << 18), _ONE, _counted(4, 256)),
    SortRule("wgsl", SWEEPS, _NARROW, range(1 << 18, 1 << 19), _ONE, _counted(8, 256), 20 << 10),
    SortRule("wgsl", SWEEPS, _NARROW, range(1 << 19, (1 << 20) + 1), _ONE, _counted(8), 24 << 10),
    SortRule("wgsl", SWEEPS, _NARROW, range(1 << 13, 1 << 32), ANY, _counted(11), 24 << 10, _FROM_18_BITS),
    SortRule("wgsl", SWEEPS, _WIDE, range(1 << 14, 1 << 17), _ONE, _counted(4, 256), 20 << 10),
    SortRule("wgsl", SWEEPS, _WIDE, range(1 << 17, 1 << 32), ANY, _counted(5), 24 << 10),
    SortRule("wgsl", SWEEPS, _WIDE, range(1 << 13, 1 << 17), _SEVERAL, _counted(5), 24 << 10, _FROM_18_BITS),
    # Other devices, measured on Mesa's software one, which has 8 lanes; in registers of more lanes as above. Digits are
    # of the fewest bits that give the same number of passes.
    SortRule("wgsl", SUBGROUPS, _NARROW, range(1025), _SEVERAL, _IN_REGISTERS, unless=SWEEPS),
    SortRule("wgsl", SUBGROUPS, _WIDE, range(513), _SEVERAL, _IN_REGISTERS, unless=SWEEPS),
    SortRule("wgsl", NONE, _NARROW + _WIDE, range(33), _SEVERAL, _IN_REGISTERS, unless=SUBGROUPS),
    *(
        SortRule("wgsl", needs, _NARROW, range(1025, most + 1), ANY, algorithm, nbytes, unless=unless)
        for nbytes, most, _, _ in _HELD
        for needs, unless, algorithm in _ROWS
    ),
    *(
        SortRule("wgsl", needs, (bits,), range(shortest, 1 << 32), rows, algorithm, elements=elements, unless=unless)
        for bits, digit_bits, of_one, of_several in (
            (8, 4, 1 << 14, 1 << 13), (16, 6, 1 << 15, 1 << 13), (32, 7, 1 << 16, 1 << 13), (64, 7, 1 << 17, 1 << 15)
        )
        for rows, shortest, elements in ((_ONE, of_one, ANY), (_SEVERAL, of_several, _FROM_18_BITS))
        for needs, unless, algorithm in (
            (SUBGROUPS, SWEEPS, _counted(14, 256)), (NONE, SUBGROUPS, by_masks(digit_bits))
        )
    )
)  # fmt: skip

_PAIR, _WIDE_PAIR = (16, 24, 32, 40, 48, 64), (72, 80, 96, 128)
_PAIRED_ROWS = range(4097, 1 << 32)  # shorter rows waste much of a tile; the network sorts them in two tiles

# Key-value pairs; argsort counts as values of four bytes.
PAIRS: tuple[PairsRule, ...] = (
    # In workgroup memory, as long as an invocation's words, indices and ranks do not spill registers.
    PairsRule("cuda", SUBGROUPS, _PAIR + _WIDE_PAIR, range(513), _SEVERAL, BitonicRows(items=8, most_items=16)),
    PairsRule("cuda", SUBGROUPS, _PAIR + _WIDE_PAIR, range(4097), ANY, RadixRows()),
    PairsRule("cuda", SUBGROUPS, _PAIR, range(8193), ANY, RadixRows()),
    PairsRule("cuda", SUBGROUPS, _WIDE_PAIR, range(8193), ANY, RadixRows(), 104 << 10),
    PairsRule("cuda", SUBGROUPS, _PAIR, range(16385), _SEVERAL, RadixRows(), 144 << 10),
    PairsRule("cuda", SUBGROUPS, _PAIR, range(24577), _FORTY, RadixRows(items=24), 224 << 10),
    PairsRule("cuda", SUBGROUPS, _WIDE_PAIR, range(16385), _FORTY, RadixRows(), 208 << 10),
    PairsRule("cuda", SWEEPS, _PAIR, _PAIRED_ROWS, ANY, _sweep(8, 8, 32, 256), elements=range(5 << 16)),
    PairsRule("cuda", SWEEPS, _PAIR, _PAIRED_ROWS, ANY, _sweep(12, 8, 32), elements=range(5 << 18)),
    PairsRule("cuda", SWEEPS, _PAIR, _PAIRED_ROWS, ANY, _sweep(26, 8, 32)),
    PairsRule("cuda", SWEEPS, _WIDE_PAIR, _PAIRED_ROWS, ANY, _sweep(8, 4, 16, 256), elements=range(5 << 16)),
    PairsRule("cuda", SWEEPS, _WIDE_PAIR, _PAIRED_ROWS, ANY, _sweep(14, 4, 16), elements=range(13 << 17)),
    PairsRule("cuda", SWEEPS, _WIDE_PAIR, _PAIRED_ROWS, ANY, _sweep(20, 4, 16)),
    PairsRule("wgsl", SWEEPS, _PAIR + _WIDE_PAIR, range(256, 513), range(1024), _IN_512, 20 << 10),
    PairsRule(
        "wgsl", SWEEPS, _PAIR + _WIDE_PAIR, range(513), _SEVERAL,
        BitonicRows(items=8, most_items=16, group_size=64), 20 << 10,
    ),
    PairsRule("wgsl", SWEEPS, _PAIR, range(513, 4096), ANY, _IN_512, 48 << 10),
    PairsRule("wgsl", SWEEPS, _PAIR, range(4096, 5121), _SEVERAL, RadixRows(10, most_group=512), 48 << 10),
    PairsRule("wgsl", SWEEPS, _WIDE_PAIR, range(513, 3073), ANY, _IN_512, 48 << 10),
    PairsRule("wgsl", SWEEPS, _PAIR, range(1 << 12, 1 << 19), _ONE, _counted(8, 256)),
    PairsRule("wgsl", SWEEPS, _PAIR, _PAIRED_ROWS, ANY, _counted(11), elements=_FROM_18_BITS),
    PairsRule("wgsl", SWEEPS, _WIDE_PAIR, range(1 << 13, 1 << 17), _ONE, _counted(4, 256)),
    PairsRule("wgsl", SWEEPS, _WIDE_PAIR, range(1 << 17, 1 << 32), ANY, _counted(5)),
    PairsRule("wgsl", SWEEPS, _WIDE_PAIR, _PAIRED_ROWS, _SEVERAL, _counted(5), elements=_FROM_18_BITS),
    PairsRule("wgsl", SUBGROUPS, _PAIR + _WIDE_PAIR, range(513), _SEVERAL, _IN_REGISTERS, unless=SWEEPS),
    PairsRule("wgsl", NONE, _PAIR + _WIDE_PAIR, range(33), _SEVERAL, _IN_REGISTERS, unless=SUBGROUPS),
    *(
        PairsRule("wgsl", needs, bits, range(600, most + 1), ANY, algorithm, nbytes, unless=unless)
        for nbytes, _, narrow, wide in _HELD
        for bits, most in ((_PAIR, narrow), (_WIDE_PAIR, wide))
        for needs, unless, algorithm in _ROWS
    ),
    *(
        PairsRule("wgsl", needs, bits, range(shortest, 1 << 32), rows, algorithm, elements=elements, unless=unless)
        for bits, of_one, of_several in ((_PAIR, 1 << 15, 1 << 12), (_WIDE_PAIR, 1 << 17, 1 << 13))
        for rows, shortest, elements in ((_ONE, of_one, ANY), (_SEVERAL, of_several, _FROM_18_BITS))
        for needs, unless, algorithm in (
            (SUBGROUPS, SWEEPS, _counted(14, 256)), (NONE, SUBGROUPS, by_masks(7))
        )
    )
)  # fmt: skip

_FEW_ROWS, _MANY_ROWS = range(1, 5), range(5, 1 << 63)
_RESIDENT = range(1 << 15, 1 << 63)  # rows enough for two lanes of each to hide the latency of loads


def _parts(group_size: int, items: int, sets: int, kept: int = 512) -> SelectByParts:
    return SelectByParts(PartPolicy(group_size, items, sets, kept))


# With many rows, more samples would cost more than reading the rows; with long ones, fewer would let too many pass.
_FEWER_SAMPLES = SelectBySamples(SampledPolicy(samples=1024, ranked=256, few=1024, groups=1056, sorted_from=513))

_THOUSAND = range(1000, 1 << 63)
# Lengths and numbers of rows by which a radix select of each is chosen, and the size of its workgroup: shorter rows are
# sorted as soon, and each longer one is better read by many workgroups.
_BY_DIGITS = (
    (range(4097, 1 << 17), range(256, 1 << 63), 256), (range(8193, 1 << 17), range(64, 256), 512),
    (range(8193, 1 << 16), range(5, 64), 512),
)  # fmt: skip
# More than workgroup memory sorts, of too many rows to sort all: a workgroup is as large as it is long at work.
_MANY_BY_DIGITS = ((range(4097, 1 << 17), 512), (range(1 << 17, 1 << 32), 1024))
# Numbers of rows, how many elements these have, and how many of a row are wanted at least, for all to be argsorted.
_ALL_SORTED = (
    (_MANY_ROWS, range(1 << 19), 129), (ANY, range(1 << 17), 500), (ANY, range(1 << 19), 2000),
    (ANY, range((1 << 20) + 1), 4000),
)  # fmt: skip


def _digits(sort: PairsAlgorithm, group_size: int = 256) -> SelectByDigits:
    return SelectByDigits(ArgsortAndTake(sort), DigitsPolicy(group_size, subgroups=True))


def _selections_on_card(bits: tuple[int, ...], few: int, short_rows: BitonicRows) -> tuple[SelectRule, ...]:
    """For more than 32 elements of rows beyond 1024. The more are wanted, the more elements are sorted as soon as
    sampled."""
    sorts = ((short_rows, 512), (RadixRows(), 8192 // few))
    long, sweep = range(8193 // few, 1 << 63), _sweep(12, 8, 32)
    return (
        SelectRule("cuda", NONE, bits, range(4097, 8193), ANY, _parts(512, 16 // few, 128), most_k=64),
        SelectRule("cuda", NONE, bits, range(1 << 19), ANY, _parts(256, 16 // few, 128), most_k=64),
        SelectRule("cuda", SWEEPS, bits, range(1025, 1 << 17), _THOUSAND, _digits(short_rows), most_k=512),
        SelectRule("cuda", NONE, bits, range(4097, 1 << 18), ANY, _parts(512, 16 // few, 256, 1024), most_k=128),
        *(
            SelectRule("cuda", SWEEPS, bits, long, rows, None, elements=elements, least_k=least_k)
            for rows, elements, least_k in _ALL_SORTED
        ),
        *(
            SelectRule("cuda", SWEEPS, bits, lengths, rows, _digits(sort, group_size), most_k=most_k)
            for sort, most_k in sorts
            for lengths, rows, group_size in _BY_DIGITS
        ),
        *(
            SelectRule("cuda", SWEEPS, bits, lengths, _FORTY, _digits(sweep, size), ratios=range(2, 64), least_k=1024)
            for lengths, size in _MANY_BY_DIGITS
        ),
        SelectRule("cuda", SWEEPS, bits, long, ANY, None, elements=range(1 << 22), least_k=8000),
        SelectRule("cuda", NONE, bits, range(8193 // few), ANY, ArgsortAndTake(RadixRows()), most_k=8192),
        SelectRule("cuda", SWEEPS, bits, long, ANY, None, ratios=range(32), least_k=257),
    )


def _selections_through_vulkan(bits: tuple[int, ...], few: int, short_rows: BitonicRows) -> tuple[SelectRule, ...]:
    """For more than 64 elements, on the same card."""
    lengths, many = range(513, 1 << 17 if few == 1 else 8193), range(64, 1 << 63)
    return (
        SelectRule("wgsl", SWEEPS, bits, lengths, many, _digits(short_rows), most_k=512),
        SelectRule("wgsl", SWEEPS, bits, ANY, ANY, None, elements=range(1 << 22), least_k=500),
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
        *(
            SelectRule(
                target, SUBGROUPS, bits, range(17, 513), _RESIDENT, SelectByLanes(RowsPolicy(2, k, 256)), most_k=k
            )
            for k in (4, 8, 16)
        ),
        SelectRule(target, NONE, bits, range(129), _SEVERAL, ArgsortAndTake(short_rows), most_k=128),
        SelectRule(target, NONE, bits, range(1025), ANY, _parts(64, 16 // few, 32), most_k=16),
        SelectRule(target, NONE, bits, range(1025), ANY, _parts(128, 8 // few, 64), most_k=32),
        SelectRule(target, NONE, bits, range(513), _SEVERAL, ArgsortAndTake(short_rows), most_k=512),
        SelectRule(target, NONE, bits, range(1 << 14), ANY, _parts(256, 16 // few, 64), most_k=32),
        SelectRule(target, NONE, bits, ANY, ANY, _parts(512, 16 // few, 64), most_k=32),
        *(_selections_on_card(bits, few, short_rows) if target == "cuda" else ()),
        SelectRule(target, NONE, bits, range(1 << 14), ANY, _parts(256, 16 // few, 128), most_k=64),
        *(_selections_through_vulkan(bits, few, short_rows) if target == "wgsl" else ()),
        SelectRule(target, NONE, bits, range(1 << 14), ANY, _parts(256, 16 // few, 256), most_k=128),
        SelectRule(target, NONE, bits, range(4097), ANY, _parts(256, 16 // few, 256), most_k=256),
        SelectRule(target, NONE, bits, range(1 << 14, 1 << 32), _FEW_ROWS, SelectBySamples()),
        SelectRule(target, NONE, bits, range(1 << 14, 1 << 22), _MANY_ROWS, _FEWER_SAMPLES),
        SelectRule(target, NONE, bits, range(1 << 22, 1 << 32), _MANY_ROWS, SelectBySamples()),
        SelectRule(target, NONE, bits, range(1 << 15), ANY, _parts(512, 16 // few, 512, 1024), most_k=256),
    )
)
