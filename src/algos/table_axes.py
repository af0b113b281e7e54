"""The selection tables of reductions, scans and merges: which policy is chosen where, as it was measured."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..types.params import MergePolicy, ReducePolicy, ScanPolicy, Totals
from .rules import ANY, NONE, SUBGROUPS, PolicyRule

_LONG_ON_CARD = ReducePolicy(256, 8, 1056, subgroups=True, totals=Totals.ONE)
_VERY_LONG_ON_CARD = ReducePolicy(512, 16, 528, subgroups=True, totals=Totals.ONE)
_LONG, _VERY_LONG = range(1 << 18, 1 << 26), range(1 << 26, 1 << 63)

# Loads in flight hide memory latency: 2 workgroups of 512 with 16 loads each, or 8 of 256 with 8, are 64 KiB in flight
# on a multiprocessor, twice what Little's law requires for an H200's bandwidth; 264 workgroups are all that it has
# resident at a time. Totals of more than 128 bytes of registers an invocation reduce occupancy too far.
_ROWS_ON_CARD = ReducePolicy(256, 8, 4224, subgroups=True, short=2049, strand=32, totals=Totals.ONE)


def _rows_by(strand: int) -> ReducePolicy:
    return attrs.evolve(_ROWS_ON_CARD, strand=strand)


# Rows that one workgroup reads in the time of a second launch, 2 us of the card's and 4 of the host's: by its length,
# and how many rows there are, so that the card is occupied all the same.
def _at_once(lengths: range, rows: range, group_size: int, items: int, states: int) -> PolicyRule[ReducePolicy]:
    policy = attrs.evolve(_ROWS_ON_CARD, group_size=group_size, items=items, groups=1)
    return PolicyRule("cuda", SUBGROUPS, True, lengths, rows, policy, totals_bytes=128, row_states=states)


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
        for target, needs, policy in (("cuda", SUBGROUPS, _MANY_ROWS_ON_CARD), ("wgsl", NONE, _ROWS_BY_WGSL))
        for lengths, items in _SHORT_AXES
        for in_rows, nbytes in ((True, 64 if items <= 8 else 32), (False, 1 << 62))
    ),
    PolicyRule("cuda", SUBGROUPS, True, range(17, 32), _MANY_COLUMNS, _ROWS_ALONE_ON_CARD, 128, totals_bytes=512),
    PolicyRule("cuda", SUBGROUPS, True, range(32, 64), _MANY_COLUMNS, _rows_by(2), 255, totals_bytes=128),
    PolicyRule("cuda", SUBGROUPS, True, range(64, 128), _MANY_COLUMNS, _rows_by(4), 512, totals_bytes=128),
    _at_once(range(16_385, 32_769), range(2000), 512, 8, 1 << 18),
    _at_once(range(32_769, 131_073), range(133), 1024, 16, 1 << 19),
    _at_once(range(32_769, 131_073), range(133, 300), 512, 4, 1 << 18),
    PolicyRule("cuda", SUBGROUPS, True, _LONG, range(33), _LONG_ON_CARD),
    PolicyRule("cuda", SUBGROUPS, True, _VERY_LONG, range(33), _VERY_LONG_ON_CARD),
    PolicyRule("cuda", SUBGROUPS, True, range(513), range(8000, 1 << 63), _MANY_ROWS_ON_CARD, totals_bytes=128),
    PolicyRule("cuda", SUBGROUPS, True, range(513), range(4000, 1 << 63), _MORE_ROWS_ON_CARD, totals_bytes=128),
    PolicyRule("cuda", SUBGROUPS, True, ANY, ANY, _ROWS_ON_CARD, totals_bytes=128),
    # Short columns: a workgroup loads one block and ends, so occupancy is by many small workgroups.
    PolicyRule("cuda", SUBGROUPS, False, range(33), ANY, _SHORT_COLUMNS_ON_CARD, totals_bytes=64),
    PolicyRule("cuda", SUBGROUPS, False, ANY, ANY, _COLUMNS_ON_CARD, totals_bytes=128),
    PolicyRule("wgsl", SUBGROUPS, True, ANY, ANY, _ROWS_BY_SUBGROUPS, totals_bytes=64),
    PolicyRule("wgsl", NONE, True, ANY, ANY, _ROWS_BY_WGSL),
    PolicyRule("wgsl", NONE, False, ANY, ANY, ReducePolicy(256, 8, 528)),
    # On a CPU a thread runs a workgroup. In rows, one invocation's totals are SIMD vectors; in columns, SIMD is over
    # neighbouring columns, with totals in L1.
    PolicyRule("cpu", NONE, True, range(129), ANY, ReducePolicy(1, 8, 64)),
    PolicyRule("cpu", NONE, True, range(1 << 16), ANY, ReducePolicy(1, 64, 1)),  # one thread for each row
    PolicyRule("cpu", NONE, True, ANY, ANY, ReducePolicy(1, 64, 64)),
    PolicyRule("cpu", NONE, False, ANY, ANY, ReducePolicy(512, 8, 64, side_by_side=True)),
    # Small sizes where an invocation is a Python thread, or is interpreted.
    PolicyRule("python", NONE, False, ANY, ANY, ReducePolicy(8, 2, 4, line=16)),
    PolicyRule("simulator", NONE, False, ANY, ANY, _IN_SIMULATOR),
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
            target, SUBGROUPS, True, lengths, range(1 << 11, 1 << 63),
            ScanPolicy(256, items, subgroups=True, strand=strand),
        )
        for target in ("cuda", "wgsl")
        for lengths, strand, items in (
            (range(5, 11), 2, 4), (range(11, 21), 4, 4), (range(21, 33), 8 if target == "cuda" else 4, 4),
            (range(33, 161), 8, 8),
        )
    ),
    *(
        PolicyRule(target, NONE, None, lengths, _MANY_COLUMNS, ScanPolicy(256, items, alone=True))
        for target in ("cuda", "wgsl")
        for lengths, items in _SHORT_AXES
    ),
    *(  # rows of one tile, of which two of the usual size would be padding for the most part
        PolicyRule("cuda", SUBGROUPS, True, lengths, range(32, 1 << 63), ScanPolicy(size, items, 4096, True))
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
