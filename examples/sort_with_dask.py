"""A dask array sorted on two processes, one of which is killed in the middle: the result is the same."""

from __future__ import annotations

import os
import signal
import tempfile
from functools import partial
from pathlib import Path

import dask.array as da
import numpy as np
import numpy.typing as npt
from distributed import Client, LocalCluster

import gpusort

COUNT, CHUNKS = 200_000, 20


def killed_once(chunk: npt.NDArray[np.int64], marker: Path) -> npt.NDArray[np.int64]:
    """A chunk; but the first who asks for one loses the process that it runs in."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return chunk
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("not reached")


def main() -> None:
    keys = np.random.default_rng(0).zipf(1.5, COUNT).astype(np.float32)  # most of them equal
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster),
    ):
        marker = Path(folder) / "killed"
        order = gpusort.argsort(da.from_array(keys, chunks=COUNT // CHUNKS))
        order = order.map_blocks(partial(killed_once, marker=marker), dtype=np.int64, meta=np.empty(0, np.int64))
        found = order.compute()
        was_killed = marker.exists()
    assert np.array_equal(found, np.argsort(keys, kind="stable"))
    print(f"{COUNT:,} keys in {CHUNKS} chunks; a process was {'killed' if was_killed else 'spared'}, and no key lost")


if __name__ == "__main__":
    main()
