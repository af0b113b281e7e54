"""External sort of a Parquet or Arrow table by columns: sorted runs, exact splitters, buckets.

Runs are Arrow files in short record batches, for random access. The last pass cannot be resumed, as a Parquet file
cannot be appended to. Nulls come last in both orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from math import isqrt
from pathlib import Path
from typing import TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.indices import SortOrder
from .arrow_values import bytes_of, indices_array, key_dtypes, key_values, naming_pyarrow, take_rows, values_of
from .columns import ColumnInput, ColumnOutput, SortColumn
from .cuts import Array, Samples, usual_gap
from .direct import DirectFile
from .disk_space import raising_disk_full, require_disk_space
from .formats import Format
from .order import Engine, KeyColumn, KeyOrder
from .pipeline import run_pipeline
from .plans import FEW_RUNS, LITTLE_IN_ALL, MIN_RUNS, Plan, data_budget
from .progress import Meter, Report
from .scratch import Scratch, fsync_path
from .sort import Endpoints, Passes
from .table_files import ArrowRun, RowReader, TableFile
from .table_sinks import ROW_INDEX, IndicesSink, PyarrowSink, Sink, closing

Batches: TypeAlias = list[pa.RecordBatch]

_BATCH = 1 << 13  # the least rows in a record batch of a run: smaller reads cost more than they save
_PYARROW = 3 << 25  # bytes of pyarrow's own overhead
_MOST = 1 << 30  # bytes of a piece: offsets in Arrow's string columns have 31 bits


@attrs.define(eq=False, slots=False)
class TableSort:
    """The sort of one table, or with `argsort` its argsort."""

    source: Path
    table: TableFile
    target: Path
    by: tuple[str, ...]
    order: SortOrder
    engine: Engine
    scratch: Scratch
    report: Report | None
    argsort: bool

    def run(self, memory: int) -> None:
        """Sorts. The result is renamed to the target when it is complete."""
        extra = self.keys.extra  # raises for columns that cannot be ordered, before anything is written
        whole = 8 * self.table.rows if self.argsort else self.source.stat().st_size
        room = raising_disk_full(whole, self.scratch.folder.parent, self.target.parent)
        with naming_pyarrow(self.source), room, self.scratch as scratch, scratch:
            scratch.lock()
            if scratch.keep and scratch.is_published():
                return
            work = f"{'argsort' if self.argsort else 'sort'} by {self.by} {self.order.value}"
            plan = scratch.resumed_plan(work, self._plan(memory, extra))
            spill = self.table.rows * self.bytes_of_a_row if self.table.rows > plan.run else 0
            require_disk_space({scratch.folder / "runs": spill, scratch.part: whole})
            if self.numbers is None:
                _Passes(self, plan).run()
            else:
                self._sort_numbers(self.numbers, plan, spill)
            scratch.publish()

    def _plan(self, memory: int, extra: int) -> Plan:
        memory -= min(memory // 2, _PYARROW)
        if self.numbers is not None:
            return Plan.within(memory * 2 // 3, self.table.rows, self.numbers)  # a third is for what is encoded
        return _plan_within(data_budget(memory), self.table.rows, self.bytes_of_a_row, extra, self.engine.workers)

    @property
    def columns(self) -> list[str] | None:
        """The columns to read: the keys for an argsort; None for all."""
        return list(self.by) if self.argsort else None

    @cached_property
    def bytes_of_a_row(self) -> int:
        """Estimated from the first batch."""
        first = next((batch for batch in self.table.batches(self.columns) if batch.num_rows), None)
        return 1 if first is None else -(-bytes_of(first) // first.num_rows) + (8 if self.argsort else 0)

    @cached_property
    def null_columns(self) -> frozenset[str]:
        """The key columns that may have nulls."""
        return frozenset(name for name in self.by if self.table.may_be_null(name))

    @cached_property
    def keys(self) -> KeyOrder:
        """The order of the rows. A key column that may have nulls is preceded by one that says which are. Raises
        InvalidArgumentError for unknown columns, UnsupportedTypeError for types that have no order."""
        names = self.table.schema.names
        kinds = dict(zip(names, self.table.schema.types, strict=True))
        found = ", ".join(self.by) or "nothing"
        if not self.by or not set(self.by) <= set(kinds):
            raise InvalidArgumentError(f"by: expected one or more of {', '.join(kinds)}, found {found}")
        if any(names.count(name) > 1 for name in self.by):
            raise InvalidArgumentError(f"by: expected names of one column each, found {found} of {', '.join(names)}")
        columns: list[KeyColumn] = []
        for name in self.by:
            if name in self.null_columns:
                columns.append(KeyColumn(np.dtype(np.bool_), SortOrder.ASCENDING))
            dtypes = key_dtypes(kinds[name])
            if not dtypes:
                raise UnsupportedTypeError(
                    f"by: cannot order the column {name!r} of {kinds[name]}; columns of bools, integers, floats, "
                    "decimals, dates, times, timestamps and durations can be: cast it to one, e.g. text to numbers"
                )
            columns += [KeyColumn(dtype, self.order) for dtype in dtypes]
        return KeyOrder(columns)

    def keys_of(self, table: pa.Table) -> list[Array]:
        """The arrays that `keys` orders."""
        found: list[Array] = []
        for name in self.by:
            column = table[name].combine_chunks()
            numbers = key_values(column)
            if name in self.null_columns:
                is_null = values_of(column.is_null())
                if column.null_count:
                    numbers = [np.where(is_null, np.zeros(1, values.dtype), values) for values in numbers]
                found.append(is_null)
            found += numbers
        return found

    @cached_property
    def numbers(self) -> SortColumn | None:
        """For a table that is one column of numbers without nulls: sorts it like a plain file, without an argsort."""
        dtype, kinds = self.keys.columns[-1].dtype, self.table.schema.types
        if self.argsort or len(kinds) != 1 or self.null_columns or kinds[0].bit_width != 8 * dtype.itemsize:
            return None
        return SortColumn(dtype, self.order, stable=True, engine=self.engine)

    def _sort_numbers(self, work: SortColumn, plan: Plan, spill: int) -> None:
        self.scratch.done = work.reliable(self.scratch.done)
        self.scratch.require_kept("run ", self.scratch.folder / "runs", spill)
        with closing(self.sink()) as sink, DirectFile(self.scratch.folder / "runs", write=True) as runs:
            runs.reserve(spill)
            given, made = ColumnInput(self.table, work.source), ColumnOutput(sink, self.table.schema)
            Passes(work, self.table.rows, plan, Endpoints(given, runs, made), self.scratch, self.report).run()

    def sorted(self, batches: Batches, engine: Engine) -> pa.Table:
        """The rows sorted. The batches are used up: of each column there is only one copy at a time."""
        table = pa.Table.from_batches(batches)
        batches.clear()
        return take_rows(table, self.keys.argsort(self.keys_of(table), engine))

    def sink(self) -> Sink:
        if self.argsort:
            return IndicesSink(self.scratch.part, self.target, self.table.rows)
        if Format.of(self.target) is Format.ARROW:
            return PyarrowSink.of_arrow(self.scratch.part, self.table.schema)
        return PyarrowSink.of_parquet(self.scratch.part, self.table)


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
    runs = max(-(-rows // run), min(MIN_RUNS, rows))
    run = -(-rows // runs)
    return Plan(run, max(1, min(usual_gap(rows, runs), run // 4)))


class _Passes:
    """The two passes, to runs and to buckets; one if the table fits into memory."""

    def __init__(self, sort: TableSort, plan: Plan) -> None:
        self._sort, self._scratch, self._gap = sort, sort.scratch, plan.gap
        self._batch = plan.gap * -(-_BATCH // plan.gap)
        self._run, rows = plan.run, sort.table.rows
        self._lengths = [min(plan.run, rows - start) for start in range(0, rows, plan.run)]
        self._engine = sort.engine if len(self._lengths) > 1 else sort.engine.alone
        self._meter = Meter(rows * sort.bytes_of_a_row * min(2, len(self._lengths)), sort.report)
        self._rows = RowReader(sort.table.batches(sort.columns))
        self._cut = lru_cache(maxsize=2)(self._find_cut)  # a bucket's end is the next one's start
        self._taken: dict[int, Array] = {}
        self._samples = Samples.of([], [], 1)
        self._file = self._scratch.folder / "runs"
        self._ends: dict[int, int] = {}  # where runs end in the file, as the journal tells, too
        self._runs: list[ArrowRun] = []

    def run(self) -> None:
        pieces = range(len(self._lengths))
        if len(pieces) == 1:
            self._make_buckets(self._load_rows)
            return
        told = (line.split() for line in self._scratch.done if line.startswith("run "))
        self._ends = {int(run): int(end) for _, run, end in told}
        self._scratch.require_kept("run ", self._file, max(self._ends.values(), default=0))
        with self._file.open("ab") as file:
            file.truncate(max(self._ends.values(), default=0))  # of one that was not written to its end
        left = [run for run in pieces if run not in self._ends]
        self._meter.skip(sum(self._bytes_of(run) for run in pieces if run not in left))
        self._pass(left, self._load_rows, self._make_run, self._keep_run, "runs")
        with pa.OSFile(str(self._file)) as file:
            self._runs = [ArrowRun(file, self._ends[run], self._batch, self._sort.by) for run in pieces]
            self._samples = Samples.of_runs(self._taken, self._lengths, self._gap, self._words_between, self._batch)
            self._make_buckets(self._load_slices)

    def _make_buckets(self, load: Callable[[int, int], Batches]) -> None:
        with closing(self._sort.sink()) as sink:
            pieces = range(len(self._lengths))
            self._pass(pieces, load, self._make_bucket, lambda _, table, slot: sink.write(table), "buckets")

    def _pass(
        self, pieces: Sequence[int], load: Callable[[int, int], Batches], make: Callable[[int, Batches, int], pa.Table],
        keep: Callable[[int, pa.Table, int], object], step: str,
    ) -> None:  # fmt: skip
        workers = min(self._sort.engine.workers, len(pieces))
        run_pipeline(pieces, load, make, keep, lambda piece: self._meter.add(self._bytes_of(piece), step), workers)

    def _bytes_of(self, piece: int) -> int:
        return self._lengths[piece] * self._sort.bytes_of_a_row

    def _load_rows(self, piece: int, slot: int) -> Batches:
        start, count = piece * self._run, self._lengths[piece]
        batches = list(self._rows.read(start, count))
        return self._numbered(batches, start) if self._sort.argsort else batches

    def _numbered(self, batches: Batches, start: int) -> Batches:
        """With the indices of their rows, from `start` on."""
        table = pa.Table.from_batches(batches)
        indices = indices_array(np.arange(start, start + table.num_rows))
        return table.append_column(ROW_INDEX, indices).to_batches()

    def _load_slices(self, piece: int, slot: int) -> Batches:
        """A bucket's slices of all runs."""
        batches: Batches = []
        for run, low, high in zip(self._runs, self._cut(piece), self._cut(piece + 1), strict=True):
            if low < high:
                batches += run.read(low, high)
        return batches

    def _make_bucket(self, piece: int, loaded: Batches, slot: int) -> pa.Table:
        return self._sort.sorted(loaded, self._engine)

    def _make_run(self, piece: int, loaded: Batches, slot: int) -> pa.Table:
        table = self._sort.sorted(loaded, self._engine)
        keys = table.select(list(self._sort.by))
        self._taken[piece] = self._words(take_rows(keys, np.arange(0, table.num_rows, self._gap)))
        return table

    def _keep_run(self, piece: int, table: pa.Table, slot: int) -> None:
        with closing(PyarrowSink.of_arrow(self._file, table.schema, self._batch, "ab")) as sink:
            sink.write(table.unify_dictionaries())
        self._ends[piece] = self._file.stat().st_size
        self._scratch.mark(f"run {piece} {self._ends[piece]}", lambda: fsync_path(self._file), now=True)

    def _find_cut(self, bucket: int) -> list[int]:
        """The position in each run at which a bucket starts."""
        rank = min(bucket * self._run, self._sort.table.rows)
        cut: list[int] = self._samples.cut(rank, self._words_between).tolist()
        return cut

    def _words_between(self, run: int, start: int, stop: int) -> Array:
        return self._words(pa.Table.from_batches(self._runs[run].read(start, stop, of_keys=True)))

    def _words(self, table: pa.Table) -> Array:
        return self._sort.keys.words(self._sort.keys_of(table))
