"""Files larger than the memory that a sort is given: gpusort's sort_file beside the disk, beside itself with np.sort as
its engine, and beside what polars and DuckDB make of the same keys in Parquet.

    python -m benchmarks.files --gib 1 --memory 600M --rounds 3 --json results.json

Each run is a process of its own, one after another by turns. What counts is the wall's time from call to return, the
result written; the processor's time is steadier where others use the machine; peak is what was resident at most. dd
reads the file and writes another, past the cache and both at once: no sort that passes twice can take less than twice
that. A contender that is not installed is skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any  # of libraries that need not be here

import attrs
import numpy as np

import gpusort
from gpusort.external.cuts import Array, Indices
from gpusort.external.formats import layout_of
from gpusort.external.plans import bytes_of
from gpusort.external.scratch import Scratch
from gpusort.external.sort import sort_elements
from gpusort.external.work import SortElements
from gpusort.types.indices import SortOrder

KEYS, TABLE, OUT = "keys.npy", "keys.parquet", "out"
_CHUNK = 1 << 22


@attrs.frozen
class NumpyEngine:
    """np.sort where gpusort's own stands."""

    workers: int = 1

    @property
    def alone(self) -> NumpyEngine:
        return self

    def sort(self, x: Array, out: Array, order: SortOrder, *, stable: bool) -> None:
        np.copyto(out, x)
        out.sort(kind="stable" if stable else None)

    def argsort(self, x: Array, order: SortOrder) -> Indices:
        return np.argsort(x, kind="stable")

    def partition_for(self, dtype: np.dtype[Any]) -> None:
        """None: pieces are sorted."""

    def foresee_sorts(self, dtype: np.dtype[Any], order: SortOrder, length: int) -> None:
        """There is nothing to load."""


def by_gpusort(folder: Path, memory: str) -> None:
    gpusort.sort_file(folder / KEYS, folder / f"{OUT}.npy", memory=memory)


def by_numpy(folder: Path, memory: str, workers: int = 1) -> None:
    source, target = folder / KEYS, folder / f"{OUT}.npy"
    layout = layout_of(source, None)
    work = SortElements(layout.dtype, SortOrder.ASCENDING, False, NumpyEngine(workers))
    scratch = Scratch(target, None, keep=False, source=source)
    sort_elements(layout, work, scratch, None, bytes_of(memory))


def by_two_of_numpy(folder: Path, memory: str) -> None:
    by_numpy(folder, memory, workers=2)


def argsort_by_gpusort(folder: Path, memory: str) -> None:
    gpusort.argsort_file(folder / KEYS, folder / f"{OUT}.npy", memory=memory)


def table_by_gpusort(folder: Path, memory: str) -> None:
    gpusort.sort_file(folder / TABLE, folder / f"{OUT}.parquet", by="x", memory=memory)


def table_by_polars(folder: Path, memory: str) -> None:
    polars: Any = import_module("polars")
    table = polars.scan_parquet(folder / TABLE).sort("x")
    table.sink_parquet(folder / f"{OUT}.parquet", compression="snappy", engine="streaming")


def table_by_duckdb(folder: Path, memory: str) -> None:
    database: Any = import_module("duckdb").connect()
    database.execute(f"set memory_limit='{bytes_of(memory) >> 20}MiB'; set temp_directory='{folder}/duckdb'")
    database.execute(
        f"copy (select * from '{folder / TABLE}' order by x) to '{folder / OUT}.parquet' "
        "(format parquet, compression snappy)"
    )


def by_dd(folder: Path, memory: str) -> None:
    count = (folder / KEYS).stat().st_size >> 26
    read = ["dd", f"if={folder / KEYS}", "of=/dev/null", "bs=64M", "iflag=direct"]
    write = ["dd", "if=/dev/zero", f"of={folder / OUT}.dd", "bs=64M", f"count={count}", "oflag=direct"]
    both = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in (read, write)]
    assert [process.wait() for process in both] == [0, 0]


CONTENDERS: dict[str, tuple[Callable[[Path, str], None], str]] = {
    "dd, read and write at once": (by_dd, "numpy"),
    "npy: gpusort": (by_gpusort, "numpy"),
    "npy: np.sort as the engine": (by_numpy, "numpy"),
    "npy: np.sort as the engine, two pieces at once": (by_two_of_numpy, "numpy"),
    "npy: gpusort, argsort_file": (argsort_by_gpusort, "numpy"),
    "parquet: gpusort": (table_by_gpusort, "pyarrow"),
    "parquet: polars, streaming": (table_by_polars, "polars"),
    "parquet: DuckDB": (table_by_duckdb, "duckdb"),
}


def make_data(folder: Path, count: int) -> None:
    """The same normal floats as .npy and, if pyarrow is here, as Parquet."""
    numbers = np.random.default_rng(0)
    keys = np.lib.format.open_memmap(folder / KEYS, "w+", "f4", (count,))
    for start in range(0, count, _CHUNK):
        keys[start : start + _CHUNK] = numbers.standard_normal(min(_CHUNK, count - start), np.float32)
    keys.flush()
    if find_spec("pyarrow") is None:
        return
    import pyarrow as pa
    from pyarrow import parquet

    first = pa.table({"x": keys[:1]})
    with parquet.ParquetWriter(folder / TABLE, first.schema, compression="snappy", use_dictionary=False) as writer:
        for start in range(0, count, _CHUNK):
            writer.write_table(pa.table({"x": keys[start : start + _CHUNK]}), 1 << 20)


def require_sorted(folder: Path, count: int) -> None:
    """Of what gpusort wrote: as many keys, in order, with the sum of the bits that the source has."""
    found, keys = (np.load(folder / name, mmap_mode="r") for name in (f"{OUT}.npy", KEYS))
    assert found.shape == keys.shape == (count,)
    sums = [0, 0]
    for start in range(0, count, _CHUNK):
        assert bool((np.diff(found[max(0, start - 1) : start + _CHUNK]) >= 0).all())
        for i, array in enumerate((found, keys)):
            sums[i] += int(array[start : start + _CHUNK].view("u4").sum(dtype=np.uint64))
    assert sums[0] == sums[1]


def one_run(name: str, folder: Path, memory: str) -> dict[str, object]:
    """In a process of its own."""
    os.sync()
    command = [sys.executable, "-m", "benchmarks.files", "--run", name, "--folder", str(folder), "--memory", memory]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, processor, peak = done.stdout.split()
    return {"who": name, "seconds": float(seconds), "processor": float(processor), "peak_mib": int(peak)}


def run_here(name: str, folder: Path, memory: str) -> None:
    began, worked = time.perf_counter(), time.process_time()
    CONTENDERS[name][0](folder, memory)
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))
    print(f"{seconds:.3f} {processor:.3f} {peak}")


def main() -> None:
    parser = argparse.ArgumentParser(description="sort_file beside its peers")
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--memory", default="600M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("build/files"))
    parser.add_argument("--only", default="", help="part of the contenders' names")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder: Path = options.folder
    if options.run:
        run_here(options.run, folder, options.memory)
        return
    folder.mkdir(parents=True, exist_ok=True)
    count = int(options.gib * (1 << 28))
    if not (folder / KEYS).exists() or layout_of(folder / KEYS, None).count != count:
        make_data(folder, count)
    here = [name for name, (_, needs) in CONTENDERS.items() if options.only in name and find_spec(needs)]
    if not here:
        parser.error("no contender is chosen, or none is installed")
    found: list[dict[str, object]] = []
    for _ in range(options.rounds):
        for name in here:
            found.append({**one_run(name, folder, options.memory), "load": os.getloadavg()[0]})
            run = found[-1]
            times = f"{run['seconds']:8.2f} s  {run['processor']:8.2f} s of processors"
            print(f"{name:48} {times}  {run['peak_mib']:6} MiB", flush=True)
            if name == "npy: gpusort":
                require_sorted(folder, count)
            for path in folder.glob(f"{OUT}.*"):
                path.unlink()
    if options.json:
        told = {"gib": options.gib, "memory": options.memory, "numpy": np.__version__, "cores": os.cpu_count()}
        options.json.write_text(json.dumps({**told, "runs": found}, indent=1))


if __name__ == "__main__":
    main()
