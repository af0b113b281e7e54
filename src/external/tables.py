"""External sort of a Parquet or Arrow table by columns: sorted runs, exact splitters, buckets.

Runs are Arrow files in short record batches, for random access. The last pass cannot be resumed, as a Parquet file
cannot be appended to. Nulls come last in both orders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import accumulate, pairwise
from math import isqrt
from pathlib import Path
from typing import IO, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from ..types.errors import FileChangedError
from .arrow_values import bytes_of, take_rows
from .columns import ColumnOutput, RowKeys, SortColumn, without_pyarrow
from .cuts import Array, Samples, usual_gap
from .direct import DirectFile
from .disk_space import raising_disk_full, require_disk_space
from .formats import Format
from .order import Engine
from .pipeline import run_pipeline
from .plans import FEW_RUNS, LARGE_RUN, LITTLE_IN_ALL, MIN_RUNS, Plan, data_budget
from .progress import Meter, Report
from .scratch import Scratch, fsync_held
from .sort import Passes
from .table_files import ArrowRun, RowReader
from .table_sinks import PyarrowSink
from .versions import is_at

Batches: TypeAlias = list[pa.RecordBatch]

_BATCH = 1 << 13  # the least rows in a record batch of a run: smaller reads cost more than they save
_SLICE = 16  # batches that a bucket reads of a run, where memory is no matter: few of them in part
_MOST = 1 << 30  # bytes of a piece: offsets in Arrow's string columns have 31 bits


@attrs.define(eq=False, slots=False)
class TableSort:
    """The sort of one table."""

    source: Path
    keys: RowKeys
    engine: Engine
    scratch: Scratch
    report: Report | None

    def run(self, memory: int) -> None:
        """Sorts. The result is renamed to the target when it is complete."""
        extra = self.keys.lexicographic.extra  # raises for columns that cannot be ordered, before anything is written
        work = f"sort by {self.keys.by} {self.keys.order.value}"
        whole = self.source.stat().st_size
        with raising_disk_full(whole, self.scratch.folder.parent, self.scratch.part.parent):
            self.scratch.sort(work, self._plan(without_pyarrow(memory), extra), self._run)

    def _run(self, plan: Plan) -> None:
        spill = self.keys.count * self.bytes_of_a_row if self.keys.count > plan.run else 0
        require_disk_space({self.scratch.folder / "runs": spill, self.scratch.part: self.source.stat().st_size})
        if self.numbers is None:
            _Passes(self, plan).run()
        else:
            self._sort_numbers(self.numbers, plan, spill)

    def _plan(self, memory: int, extra: int) -> Plan:
        if self.numbers is not None:
            return Plan.within(memory * 2 // 3, self.keys.count, self.numbers)  # a third is for what is encoded
        return _plan_within(data_budget(memory), self.keys.count, self.bytes_of_a_row, extra, self.engine.workers)

    @cached_property
    def bytes_of_a_row(self) -> int:
        """Estimated from the first batch, and from the file's bytes, as later rows may be longer."""
        first = next((batch for batch in self.keys.table.batches(None) if batch.num_rows), None)
        if first is None:
            return 1
        return max(-(-bytes_of(first) // first.num_rows), -(-self.keys.table.nbytes // self.keys.table.rows))

    @cached_property
    def numbers(self) -> SortColumn | None:
        """For a table that is one column of numbers without nulls: sorts it like a plain file, without an argsort."""
        dtype, kinds = self.keys.dtype[-1], self.keys.table.schema.types
        if len(kinds) != 1 or self.keys.null_columns or kinds[0].bit_width != 8 * dtype.itemsize:
            return None
        return SortColumn(dtype, self.keys.order, stable=True, engine=self.engine)

    def _sort_numbers(self, work: SortColumn, plan: Plan, spill: int) -> None:
        journal = self.scratch.journal
        journal.done = work.reliable(journal.done)
        self.scratch.require_kept("run ", self.scratch.folder / "runs", spill)
        runs_file = DirectFile(self.scratch.folder / "runs", write=True)
        with self.sink() as sink, runs_file as runs, self.keys.opened() as given:
            runs.reserve(spill)
            made = ColumnOutput(sink, self.keys.table.schema)
            Passes(work, self.keys.count, plan, given, runs, made, journal, self.report).run()

    def sorted(self, batches: Batches, engine: Engine) -> pa.Table:
        """The rows sorted. The batches are used up: of each column there is only one copy at a time."""
        table = pa.Table.from_batches(batches)
        batches.clear()
        return take_rows(table, self.keys.lexicographic.argsort(self._keys_of(table), engine))

    def words(self, table: pa.Table) -> Array:
        """What compares as the rows do."""
        return self.keys.lexicographic.words(self._keys_of(table))

    def _keys_of(self, table: pa.Table) -> list[Array]:
        return self.keys.of([table[name].combine_chunks() for name in self.keys.by])

    def sink(self) -> PyarrowSink:
        if Format.of(self.scratch.target) is Format.ARROW:
            return PyarrowSink.of_arrow(self.scratch.part, self.keys.table.schema)
        return PyarrowSink.of_parquet(self.scratch.part, self.keys.table)


def _plan_within(memory: int, rows: int, row_bytes: int, extra: int, workers: int) -> Plan:
    """One run if everything fits into memory; else as few runs as fit, but enough for the pipeline to overlap."""
    # In memory at once: a piece as batches, sorted, and encoded.
    if rows * (3 * row_bytes + extra) <= memory and rows * row_bytes <= _MOST:
        return Plan(max(1, rows), 1)
    # For each worker a piece as batches and sorted, or sorted and encoded; besides, one that is read, and two written.
    each = (2 * workers + 3) * row_bytes + workers * extra
    enough = max(FEW_RUNS, isqrt(rows // _BATCH))  # with more, most of what buckets read of them is thrown away
    memory = max(memory, min(-(-rows // enough) * each, LITTLE_IN_ALL))
    run = max(1, min(memory // each, _MOST // row_bytes))
    # Longer pieces than that take more memory, and a quarter more time to get it.
    usual = min(rows * row_bytes // LARGE_RUN, isqrt(rows // (_SLICE * _BATCH)))
    runs = max(-(-rows // run), min(max(MIN_RUNS, usual), rows))
    run = -(-rows // runs)
    return Plan(run, max(1, min(usual_gap(rows, runs), run // 4)))


class _Passes:
    """The two passes, to runs and to buckets; one if the table fits into memory."""

    def __init__(self, sort: TableSort, plan: Plan) -> None:
        self._sort, self._scratch, self._gap = sort, sort.scratch, plan.gap
        self._batch = plan.gap * -(-_BATCH // plan.gap)
        self._run, rows = plan.run, sort.keys.count
        self._lengths = [min(plan.run, rows - start) for start in range(0, rows, plan.run)]
        self._engine = sort.engine if len(self._lengths) > 1 else sort.engine.alone
        self._meter = Meter(self._lengths, sort.bytes_of_a_row, sort.report)
        self._rows = RowReader(sort.keys.table.batches(None))
        self._taken: dict[int, Array] = {}
        self._file = self._scratch.folder / "runs"
        self._ends: dict[int, int] = {}  # where runs end in the file, as the journal tells, too

    def run(self) -> None:
        pieces = range(len(self._lengths))
        if len(pieces) < 2:
            self._make_buckets(self._load_rows)
            return
        told = (line.split() for line in self._scratch.journal.done if line.startswith("run "))
        self._ends = {int(run): int(end) for _, run, end in told}
        self._scratch.require_kept("run ", self._file, max(self._ends.values(), default=0))
        with self._file.open("ab") as held:  # to be told from another that is made of its name if it is removed
            held.truncate(max(self._ends.values(), default=0))  # of one that was not written to its end
            left = [run for run in pieces if run not in self._ends]
            self._pass("runs", left, self._load_rows, self._make_run, partial(self._keep_run, held))
            self._require_there(held)
            with pa.OSFile(os.fsencode(self._file)) as file:
                self._merge([ArrowRun(file, self._ends[run], self._batch, self._sort.keys.by) for run in pieces])

    def _merge(self, runs: Sequence[ArrowRun]) -> None:
        """Makes buckets, each of a slice of every run. They are as long as runs, and cut one after another."""

        def words(run: int, start: int, stop: int) -> Array:
            return self._sort.words(pa.Table.from_batches(runs[run].read(start, stop, of_keys=True)))

        samples = Samples.of_runs(self._taken, self._lengths, self._gap, words, self._batch)
        cuts = pairwise(samples.cut(rank, words).tolist() for rank in accumulate(self._lengths, initial=0))

        def load(piece: int, slot: int) -> Batches:
            slices = zip(runs, *next(cuts), strict=True)
            return [batch for run, low, high in slices if low < high for batch in run.read(low, high)]

        self._make_buckets(load)

    def _make_buckets(self, load: Callable[[int, int], Batches]) -> None:
        with self._sort.sink() as sink:
            buckets = range(len(self._lengths))
            self._pass("buckets", buckets, load, self._make_bucket, lambda _, table, slot: sink.write(table))

    def _pass(
        self, name: str, left: Sequence[int], load: Callable[[int, int], Batches],
        make: Callable[[int, Batches, int], pa.Table], keep: Callable[[int, pa.Table, int], object],
    ) -> None:  # fmt: skip
        done = self._meter.begin(name, self._lengths, left)
        run_pipeline(left, load, make, keep, done, min(self._sort.engine.workers, len(left)))

    def _load_rows(self, piece: int, slot: int) -> Batches:
        return list(self._rows.read(piece * self._run, self._lengths[piece]))

    def _make_bucket(self, piece: int, loaded: Batches, slot: int) -> pa.Table:
        return self._sort.sorted(loaded, self._engine)

    def _make_run(self, piece: int, loaded: Batches, slot: int) -> pa.Table:
        table = self._sort.sorted(loaded, self._engine)
        keys = table.select(list(self._sort.keys.by))
        self._taken[piece] = self._sort.words(take_rows(keys, np.arange(0, table.num_rows, self._gap)))
        return table

    def _keep_run(self, held: IO[bytes], piece: int, table: pa.Table, slot: int) -> None:
        with PyarrowSink.of_arrow(self._file, table.schema, self._batch, "ab") as sink:
            sink.write(table.unify_dictionaries())
        self._require_there(held)
        self._ends[piece] = os.fstat(held.fileno()).st_size
        sync = partial(fsync_held, held.fileno(), self._file)  # found to be gone, if it is, when all runs are there
        self._scratch.journal.mark(f"run {piece} {self._ends[piece]}", sync, now=True)

    def _require_there(self, held: IO[bytes]) -> None:
        if not is_at(self._file, held):
            raise FileChangedError(f"target: {self._file} was removed while it was being written: sort anew")
