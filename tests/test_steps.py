"""How many statements kernels take, in lockstep and in all invocations together, where all that could be seen otherwise
is that they are slower: a full tile is loaded with bounds checks, a search takes more rounds, a pass over digits that
are all the same moves elements. Lengths are such that the last tile is full, or nearly empty. And how many elements of
memories lie behind the last that any kernel comes to: mostly none, or there is more memory than it takes.

tests/steps.txt has the numbers; `--update-golden` writes it anew, for kernels that are meant to take more or fewer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from gpusort.algos.argsort import bitonic_argsort
from gpusort.algos.batch import Batch
from gpusort.algos.bitonic import bitonic_sort
from gpusort.algos.copy import Strided, copy_whole
from gpusort.algos.layout import Layout
from gpusort.algos.merge import merge
from gpusort.algos.partition import partition
from gpusort.algos.radix_serial import SerialRadix, SerialRadixPolicy
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.reduce_axis import reduce_axis, reduce_rows
from gpusort.algos.scan import scan_axis, scan_in_turn, scan_rows
from gpusort.algos.select import (
    ArgsortAndTake,
    SelectByDigits,
    SelectByLanes,
    SelectByParts,
    SelectBySamples,
    top_k,
)
from gpusort.algos.select_digits import DigitsPolicy
from gpusort.algos.select_rows import PartPolicy
from gpusort.algos.select_sampled import SampledPolicy
from gpusort.algos.sort_parts import argsort_parts, sort_parts
from gpusort.algos.sorts import Bitonic, BitonicRows, Radix, RadixRows
from gpusort.algos.ties import restore_ties
from gpusort.kernel import ir
from gpusort.kernel.launch import Buffer, Role, Schedule
from gpusort.targets.interpreters import Lanes
from gpusort.targets.simulator.lockstep import Lockstep
from gpusort.targets.simulator.memory import Region
from gpusort.targets.simulator.races import Indices
from gpusort.targets.simulator.target import Simulator
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.finishes import AsItIs
from gpusort.types.indices import Placement, ScanKind, SortOrder
from gpusort.types.keys import RankKey
from gpusort.types.monoids import Sum
from gpusort.types.params import BitonicPolicy, MergePolicy, RadixPolicy, ReducePolicy, RowsPolicy, ScanPolicy, Totals
from gpusort.types.scalars import U32, U64
from gpusort.types.searches import ArgMin
from tests.plain_launches import chosen_indices, copy_strided, numbered, take_rows, widened

NOTED = Path(__file__).with_name("steps.txt")
STEPS = dict(re.findall(r"^(.+): (\d+, \d+, \d+)$", NOTED.read_text(), re.MULTILINE))
UP, KEY, WIDE, TOTAL = SortOrder.ASCENDING, key_for("u4"), key_for("u8"), Sum(number_for("u4"))
FLOATS: Any = key_for("f4")
MASKED = RadixPolicy(4, 64, 2, 16, subgroups=False, count_group=64, count_items=2, copies=2)
LANES = RadixPolicy(4, 64, 2, 16, lookback=2, count_group=64, count_items=2, copies=2)
SWEEPS = RadixPolicy(4, 64, 2, 16, lookback=2, count_group=64, count_items=2, copies=2, sweeps=True)
SMALL = RadixPolicy(2, 4, 1, 4, subgroups=False)
SCAN, LANES_SCAN = ScanPolicy(32, 3, 4), ScanPolicy(32, 3, 4, subgroups=True)
NETWORK = ArgsortAndTake(network=BitonicPolicy(64, 16, 2))
SAMPLED = SampledPolicy(
    samples=64, group_size=64, ranked=16, filter_group=32, items=4, groups=6, staged=64, few=64, sorted_from=30,
    network=BitonicPolicy(64, 16, 2),
)  # fmt: skip
ONE = ScanPolicy(1, 3, 4)  # of invocations
BETWEEN = Buffer("source", U32, 700, Role.INPUT), Buffer("target", U32, 700, Role.OUTPUT)
ROW, TIED = 30, np.array([0, 1 << 31, 0x7FC00000, 0x7FC00001, 0x3F800000], np.uint32)
CASES: dict[str, Callable[[], Schedule]] = {
    "bitonic": lambda: bitonic_sort(KEY, 2, 700, UP, BitonicPolicy(64, 16, 2)),
    "bitonic argsort": lambda: bitonic_argsort(RankKey(KEY), 2, 300, UP, BitonicPolicy(64, 16, 2)),
    "bitonic rows": lambda: BitonicRows(8, 2, 16, 32).schedule(KEY, 9, 50, UP, Placement.ELSEWHERE),
    "bitonic rows, places": lambda: BitonicRows(8, 2, 16, 32).sort(Batch(RankKey(KEY), 9, 50, UP, places=U64)),
    "parts": lambda: sort_parts(KEY, (256, 256, 100), UP, Bitonic(BitonicPolicy(64, 16, 2)), BitonicPolicy(64, 16, 2)),
    "parts, places": lambda: argsort_parts(
        RankKey(KEY), (256, 100), UP, BitonicPolicy(64, 16, 2), (Radix(LANES), None)
    ),
    "radix by counts": lambda: radix_sort(Batch(KEY, 1, 1024, UP), LANES, 32),
    "radix by counts, masks": lambda: radix_sort(Batch(KEY, 1, 512, UP), MASKED, 16),
    "radix by counts, rows": lambda: radix_sort(Batch(KEY, 3, 256, UP), LANES, 32),
    "radix by counts, places": lambda: radix_sort(Batch(RankKey(KEY), 2, 300, UP, places=U64), LANES, 32),
    "radix by sweeps": lambda: radix_sort(Batch(KEY, 1, 1024, UP), SWEEPS, 32),
    "radix by sweeps, rows": lambda: radix_sort(Batch(KEY, 3, 300, UP), SWEEPS, 32),
    "radix by sweeps, values": lambda: radix_sort(Batch(KEY, 1, 700, UP, value=U64), SWEEPS, 32),
    "radix rows": lambda: RadixRows(4, 32, 64, 16, 4).schedule(KEY, 3, 200, UP, Placement.ELSEWHERE),
    "serial radix": lambda: SerialRadix(SerialRadixPolicy(4, 4, 50)).schedule(KEY, 1, 300, UP, Placement.ELSEWHERE),
    "merge": lambda: merge(KEY, 300, 300, UP, MergePolicy(16, 5), U64),
    "merge of floats": lambda: merge(FLOATS, 300, 300, UP, MergePolicy(16, 5)),
    "merge, serial": lambda: merge(FLOATS, 200, 200, UP, MergePolicy(1, 31)),
    "partition": lambda: partition(KEY, 500, 500, UP, SCAN),
    "partition by lanes": lambda: partition(KEY, 480, 480, UP, LANES_SCAN),
    "ties of rows": lambda: restore_ties(FLOATS, 20, ROW, UP, SCAN),
    "ties of a long row": lambda: restore_ties(FLOATS, 1, 900, UP, SCAN),
    "sum": lambda: reduce_rows(TOTAL, 2, 2048, ReducePolicy(32, 4, 4)),
    "sum by lanes": lambda: reduce_rows(TOTAL, 2, 2000, ReducePolicy(32, 4, 4, subgroups=True)),
    "sum, one total": lambda: reduce_rows(TOTAL, 1, 2001, ReducePolicy(32, 4, 4, totals=Totals.ONE)),
    "place of the least": lambda: reduce_rows(ArgMin(KEY), 1, 2001, ReducePolicy(32, 4, 4, totals=Totals.ONE)),
    "sum of columns": lambda: reduce_axis(TOTAL, Layout(1, 300, 20, 0, 20, 1), ReducePolicy(32, 4, 4)),
    "sum of columns, apart": lambda: reduce_axis(
        TOTAL, Layout(2, 100, 40, 4000, 40, 1), ReducePolicy(32, 4, 4, side_by_side=True)
    ),
    "sum of short columns": lambda: reduce_axis(TOTAL, Layout(1, 3, 100, 0, 100, 1), ReducePolicy(32, 4, alone=True)),
    "scan": lambda: scan_rows(TOTAL, 2, 900, ScanKind.INCLUSIVE, SCAN),
    "scan by lanes": lambda: scan_rows(TOTAL, 2, 960, ScanKind.EXCLUSIVE, LANES_SCAN),
    "scan of a piece": lambda: scan_in_turn(TOTAL, 7, 900, 1, ScanKind.INCLUSIVE, SCAN, AsItIs(TOTAL.state)),
    "scan of columns": lambda: scan_axis(TOTAL, Layout(1, 300, 9, 0, 9, 1), ScanKind.INCLUSIVE, SCAN),
    "scan of eight columns": lambda: scan_axis(TOTAL, Layout(1, 300, 8, 0, 8, 1), ScanKind.INCLUSIVE, SCAN),
    "scan of columns, apart": lambda: scan_axis(
        TOTAL, Layout(2, 60, 40, 2400, 40, 1), ScanKind.INCLUSIVE, ScanPolicy(32, 3, 8, side_by_side=True)
    ),
    "scan of short columns": lambda: scan_axis(
        TOTAL, Layout(1, 3, 100, 0, 100, 1), ScanKind.INCLUSIVE, ScanPolicy(32, 4, alone=True)
    ),
    "scan of rows by strands": lambda: scan_rows(
        TOTAL, 9, 90, ScanKind.EXCLUSIVE, ScanPolicy(32, 4, subgroups=True, strand=8)
    ),
    "top_k by parts": lambda: top_k(KEY, 2, 896, 8, UP, SelectByParts(PartPolicy(32, 4, 16, 40), 5)),
    "top_k by samples": lambda: top_k(KEY, 2, 1536, 20, UP, SelectBySamples(SAMPLED)),
    "top_k by samples, sorted": lambda: top_k(WIDE, 1, 2000, 60, UP, SelectBySamples(SAMPLED)),
    "top_k by digits": lambda: top_k(KEY, 2, 500, 90, UP, SelectByDigits(NETWORK, DigitsPolicy(32, 3, digit_bits=5))),
    "top_k by argsort": lambda: top_k(KEY, 2, 200, 90, UP, NETWORK),
    "top_k by bitonic rows": lambda: top_k(FLOATS, 9, 50, 7, UP, ArgsortAndTake(BitonicRows(8, 2, 16, 32))),
    "top_k by lanes": lambda: top_k(FLOATS, 9, 50, 7, UP, SelectByLanes(RowsPolicy(4, 8, 16))),
    "top_k by radix rows": lambda: top_k(FLOATS, 3, 200, 70, UP, ArgsortAndTake(RadixRows(4, 32, 64, 16, 4))),
    "copy": lambda: copy_strided(U32, (30, 40), Strided(0, (40, 1), 1200), Strided(0, (80, 2), 2400)),
    "transposition": lambda: copy_strided(U32, (30, 40), Strided(0, (1, 30), 1200), Strided(0, (40, 1), 1200)),
    "gather": lambda: take_rows(12, 3, 100, 40),
    "gather within a row": lambda: take_rows(8, 1, 70, 90, 30),
    "copy of a line": lambda: copy_strided(U32, (700,), Strided(3, (2,), 1402), Strided(0, (1,), 700)),
    "copy of three axes": lambda: copy_strided(
        U32, (9, 8, 7), Strided(0, (112, 14, 2), 1007), Strided(4, (64, 8, 1), 579)
    ),
    "copy of five axes": lambda: copy_strided(
        U32, (2, 3, 4, 5, 6), Strided(0, (1440, 480, 120, 24, 2), 2880), Strided(719, (-360, -120, -30, -6, -1), 720)
    ),
    "copy of a whole": lambda: Schedule(BETWEEN, (copy_whole(*BETWEEN),)),
    "chosen": lambda: chosen_indices(3, 20, 64, 32, 1000),
    "wide places": lambda: widened(700),
    "numbers": lambda: numbered(700, U32),
    "partition by many lanes": lambda: partition(KEY, 950, 512, UP, ScanPolicy(160, 3, 4, subgroups=True)),
    "radix by counts, spans": lambda: radix_sort(Batch(KEY, 1, 398, UP), SMALL, 4),
    "radix by counts, many tiles": lambda: radix_sort(Batch(KEY, 1, 1400, UP), SMALL, 4),
    "radix by counts, values": lambda: radix_sort(Batch(KEY, 1, 700, UP, value=U64), MASKED, 32),
    "radix by sweeps, masks": lambda: radix_sort(Batch(KEY, 1, 1024, UP), attrs.evolve(MASKED, sweeps=True), 16),
    "radix by sweeps, in place": lambda: radix_sort(Batch(KEY, 2, 384, UP, in_place=True), SWEEPS, 32),
    "radix by sweeps, portions": lambda: radix_sort(Batch(KEY, 1, 900, UP), attrs.evolve(SWEEPS, portion=256), 16),
    "radix rows, masks": lambda: RadixRows(4, 32, 64, 16, 4, subgroups=False).sort(Batch(WIDE, 2, 256, UP, value=U32)),
    "sum of columns by lanes": lambda: reduce_axis(
        TOTAL, Layout(70, 40, 1, 80, 2, 1), ReducePolicy(32, 4, 4, subgroups=True, strand=8)
    ),
    "sum of columns, shared": lambda: reduce_axis(
        TOTAL, Layout(1, 900, 70, 0, 70, 1), ReducePolicy(32, 4, 9, side_by_side=True)
    ),
    "scan of columns, shared": lambda: scan_axis(
        TOTAL, Layout(1, 200, 40, 0, 40, 1), ScanKind.EXCLUSIVE, ScanPolicy(32, 3, 20, side_by_side=True)
    ),
    "sum, one by one": lambda: reduce_rows(TOTAL, 2, 90, ReducePolicy(1, 4, 6)),
    "scan, one by one": lambda: scan_rows(TOTAL, 2, 90, ScanKind.INCLUSIVE, ONE),
    "scan of a piece, one by one": lambda: scan_in_turn(TOTAL, 0, 90, 1, ScanKind.EXCLUSIVE, ONE, AsItIs(TOTAL.state)),
    "scan of columns, one by one": lambda: scan_axis(TOTAL, Layout(1, 30, 3, 0, 3, 1), ScanKind.INCLUSIVE, ONE),
    "ties of rows, one by one": lambda: restore_ties(FLOATS, 8, ROW, UP, attrs.evolve(ONE, items=ROW)),
    "ties of a long row, one by one": lambda: restore_ties(FLOATS, 1, 90, UP, ONE),
    "partition, one by one": lambda: partition(KEY, 45, 512, UP, ONE),
    "top_k by parts, one by one": lambda: top_k(KEY, 2, 40, 1, UP, SelectByParts(PartPolicy(1, 6, 1, 1), 3)),
    "top_k by samples, one by one": lambda: top_k(
        KEY, 1, 500, 1, UP,
        SelectBySamples(attrs.evolve(SAMPLED, group_size=1, ranked=1, filter_group=1, staged=2, sorted_from=9)),
    ),
}  # fmt: skip


def given(schedule: Schedule) -> dict[str, np.ndarray[Any, Any]]:
    """What the schedules above take: random elements without a highest digit, sorted ones to merge, indices; floats
    that are zeros and NaNs, and their rows sorted by words."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    has_ties = {launch.kernel.name for launch in schedule.launches} & {"restore_short", "count_ties"}
    for buffer in schedule.buffers:
        rng = np.random.default_rng(len(buffer.name))
        made: np.ndarray[Any, Any] = rng.integers(0, 1 << 28, buffer.count).astype(buffer.dtype)
        match buffer.name:
            case "data" | "results" if has_ties:
                made = np.random.default_rng(1).choice(TIED, buffer.count)
                if buffer.name == "results":
                    rows = made.reshape(-1, ROW if "restore_short" in has_ties else buffer.count)
                    rows[:] = np.take_along_axis(rows, np.argsort(rows + np.uint32(1 << 31), axis=1), axis=1)
            case "first" | "second" | "between":
                made.sort()
            case "indices":
                made %= 100
            case "chosen":
                made %= 64
            case "rooms":
                made[:] = np.repeat(np.arange(9) * buffer.count * 4, 2)[1:-1]
            case "taken" | "carried":
                made[:] = 0
            case _:
                pass
        arrays[buffer.name] = made
    return {buffer.name: arrays[buffer.name] for buffer in schedule.buffers if buffer.role.value != "scratch"}


@pytest.mark.parametrize("name", CASES)
def test_kernels_take_as_many_steps_as_noted(
    name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    steps, work, run, locate = 0, 0, vars(Lockstep)["_run"], vars(Lockstep)["_locate"]
    behind: dict[object, int] = {}

    def counting(lockstep: Lockstep, one: ir.Statement, lanes: Lanes) -> Lanes:
        nonlocal steps, work
        steps, work = steps + 1, work + len(lanes)
        found: Lanes = run[type(one)](lockstep, one, lanes)
        return found

    def locating(lockstep: Lockstep, one: ir.Access, lanes: Lanes) -> tuple[Region, Indices]:
        found: tuple[Region, Indices] = locate(lockstep, one, lanes)
        region, places = found
        is_storage = one.memory.space is ir.Space.STORAGE  # which launches share
        key = region.items.__array_interface__["data"] if is_storage else (one.memory, one.span.file)
        rest = region.length - 1 - int((places % region.length).max(initial=0))
        behind[key] = min(behind.get(key, region.length), rest)
        return found

    schedule = CASES[name]()
    monkeypatch.setattr(Lockstep, "_run", dict.fromkeys(run, counting))
    monkeypatch.setattr(Lockstep, "_locate", locating)
    Simulator(16).run(schedule, given(schedule))
    noted = f"{steps}, {work}, {sum(behind.values())}"
    if request.config.getoption("--update-golden"):
        STEPS[name] = noted
        NOTED.write_text("".join(f"{case}: {STEPS.get(case, 0)}\n" for case in CASES))
    assert noted == STEPS.get(name), "more is slower; for fewer, see `pytest --update-golden`"
