"""Dask arrays on a cluster of processes: gpusort.dask beside what dask.dataframe makes of the same keys.

    python -m benchmarks.dask --count 40000000 --chunks 16 --processes 2 --rounds 3 --json results.json

Keys are uniform float32 that lie in the workers' memory, in chunks of one length, and other ones in each round, since
dask does nothing twice. What counts is the wall's time until every chunk of the result lies there too. An argsort is
held against a sort of two columns, keys and their places. Every worker has one thread of dask's; a sort may take more.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait

import gpusort.dask
from gpusort.external.cuts import Array

Loaded = da.Array | dd.DataFrame


def keys_of(seed: int, count: int, chunks: int) -> da.Array:
    return da.random.default_rng(seed).random(count, dtype="f4", chunks=-(-count // chunks))


def _rows(number: int, seed: int, length: int, names: tuple[str, ...]) -> pd.DataFrame:
    numbers = np.random.default_rng((seed, number))
    columns = {"key": numbers.random(length, dtype=np.float32), "place": np.arange(length) + number * length}
    return pd.DataFrame({name: columns[name] for name in names})


def rows_of(seed: int, count: int, chunks: int, *names: str) -> dd.DataFrame:
    return dd.from_map(_rows, range(chunks), seed=seed, length=count // chunks, names=names)


def one_column(seed: int, count: int, chunks: int) -> dd.DataFrame:
    return rows_of(seed, count, chunks, "key")


def two_columns(seed: int, count: int, chunks: int) -> dd.DataFrame:
    return rows_of(seed, count, chunks, "key", "place")


def by_dask(frame: dd.DataFrame) -> dd.DataFrame:
    return frame.sort_values("key")


def by_gpusort(frame: dd.DataFrame) -> dd.DataFrame:
    return gpusort.dask.sort_values(frame, "key")


def by_p2p(keys: da.Array) -> da.Array:
    return gpusort.dask.sort(keys, exchange="p2p")


Contender = tuple[Callable[[int, int, int], Loaded], Callable[..., Loaded]]
CONTENDERS: dict[str, Contender] = {
    "sort: gpusort.dask.sort": (keys_of, gpusort.dask.sort),
    "sort: the same by p2p": (keys_of, by_p2p),
    "sort: gpusort.dask.sort_values": (one_column, by_gpusort),
    "sort: dask.dataframe.sort_values": (one_column, by_dask),
    "argsort: gpusort.dask.argsort": (keys_of, gpusort.dask.argsort),
    "argsort: gpusort.dask.sort_values, two columns": (two_columns, by_gpusort),
    "argsort: dask.dataframe.sort_values, two columns": (two_columns, by_dask),
}


def seconds(contender: Contender, seed: int, count: int, chunks: int) -> float:
    make, sort = contender
    given = make(seed, count, chunks).persist()
    wait(given)
    began = time.perf_counter()
    found = sort(given).persist()
    wait(found)
    taken = time.perf_counter() - began
    if isinstance(given, da.Array) and isinstance(found, da.Array) and found.dtype == given.dtype:
        require_sorted(given, found)
    return taken


def _summed(chunk: Array) -> Array:
    """Of a chunk: its ends, whether it is in order, and the sum of its bits."""
    is_sorted = bool((chunk[1:] >= chunk[:-1]).all())
    return np.array([[chunk[0], chunk[-1], is_sorted, int(chunk.view("u4").sum(dtype=np.uint64))]], object)


def require_sorted(given: da.Array, found: da.Array) -> None:
    """As many keys, in order, with the sum of the bits that the given ones have."""
    assert given.chunks == found.chunks
    before, behind = (
        x.map_blocks(_summed, new_axis=1, chunks=((1,) * x.numblocks[0], (4,)), meta=np.empty((0, 0), object)).compute()
        for x in (given, found)
    )
    assert all(behind[:, 2])
    assert all(last <= first for last, first in pairwise(behind[:, :2].ravel().tolist()))
    assert sum(before[:, 3].tolist()) == sum(behind[:, 3].tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description="gpusort.dask beside dask.dataframe")
    parser.add_argument("--count", type=int, default=40_000_000)
    parser.add_argument("--chunks", type=int, default=16)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the contenders' names")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = [name for name in CONTENDERS if options.only in name]
    if not names:
        parser.error("no contender is chosen")
    found: dict[str, list[float]] = {name: [] for name in names}
    with (
        LocalCluster(options.processes, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster),
    ):
        for name in names:  # imports, and kernels for chunks that are not small
            seconds(CONTENDERS[name], 0, options.count // 8, options.chunks)
        for number in range(1, options.rounds + 1):
            for name in names:
                found[name].append(seconds(CONTENDERS[name], number, options.count, options.chunks))
                print(f"{name:50} {found[name][-1]:7.2f} s", flush=True)
    for name in names:
        print(f"{name:50} median {median(found[name]):7.2f} s")
    if options.json:
        told = {"count": options.count, "chunks": options.chunks, "processes": options.processes}
        versions = {
            "numpy": np.__version__,
            "dask": dask.__version__,
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
        }
        options.json.write_text(json.dumps({**told, **versions, "seconds": found}, indent=1))


if __name__ == "__main__":
    main()
