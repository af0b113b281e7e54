"""Sorts over several GPUs of a host, merging on one, and arrays of the host that travel to a card and back.

    python -m benchmarks.devices                     # all that the machine has devices for
    python -m benchmarks.devices --only host --log2 29

Medians of the wall's time, in one process, the result checked. Over devices: 2^log2 u32 keys on each, beside one device
that sorts the keys of all, by gpusort and by cupy. Of the host: 2^log2 u32 keys there and back, into new memory, into
memory that is there, and with a limit on cupy's pool, so that they go in pieces. Rates count the array's bytes once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

import gpusort
from benchmarks.card import require_card
from gpusort import multi

if TYPE_CHECKING:
    import cupy

_ROUNDS = 5


def timed(work: Callable[[], object]) -> float:
    """Seconds, of the median round behind the first; what came out is let go before the next one."""
    import cupy

    runtime = cupy.cuda.runtime

    def wait() -> None:
        for device in range(runtime.getDeviceCount()):
            with cupy.cuda.Device(device):
                runtime.deviceSynchronize()

    found: list[float] = []
    for _ in range(_ROUNDS):
        wait()
        start = time.perf_counter()
        made = work()
        wait()
        found.append(time.perf_counter() - start)
        del made
    return statistics.median(found[1:])


def keys_on(device: int, count: int) -> cupy.ndarray:
    import cupy

    with cupy.cuda.Device(device):
        return cupy.asarray(np.random.default_rng(device).integers(0, 1 << 32, count, dtype=np.uint32))


def assert_in_order(found: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
    keys = found.view(np.uint32)
    assert (keys[1:] >= keys[:-1]).all()


def over_devices(count: int) -> None:
    import cupy

    devices = cupy.cuda.runtime.getDeviceCount()
    parts = [keys_on(device, count) for device in range(devices)]
    own = timed(lambda: gpusort.sort(parts[0]))
    runs = [gpusort.sort(parts[0]), gpusort.sort(parts[0])]
    merged = timed(lambda: gpusort.merge(runs[0], runs[1]))
    runs.clear()
    print(f"one device's own {count}: sort {own * 1e3:.2f} ms; merge of two such {merged * 1e3:.2f} ms", flush=True)
    assert_in_order(np.concatenate([part.get() for part in multi.sort(parts)]))
    together = timed(lambda: multi.sort(parts))
    whole = cupy.asarray(np.concatenate([part.get() for part in parts]))
    out = cupy.empty_like(whole)

    alone = timed(lambda: gpusort.sort(whole, out=out)), timed(lambda: cupy.sort(whole))
    print(
        f"{devices} devices: {together * 1e3:.2f} ms; one with the keys of all: gpusort {alone[0] * 1e3:.2f}, "
        f"cupy {alone[1] * 1e3:.2f}: {min(alone) / together:.2f}x",
        flush=True,
    )


def of_the_host(count: int) -> None:
    import cupy

    x = np.random.default_rng(0).integers(0, 1 << 32, count, dtype=np.uint32)
    out = np.zeros_like(x)
    rate = x.nbytes / 1e9
    print(f"into new memory: {rate / timed(lambda: gpusort.sort(x, target='cuda')):.1f} GB/s", flush=True)
    print(f"into an array that is there: {rate / timed(lambda: gpusort.sort(x, target='cuda', out=out)):.1f} GB/s")
    assert_in_order(out)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(3 * x.nbytes // 4)
    try:
        seconds = timed(lambda: gpusort.sort(x, target="cuda", out=out))
        print(f"in pieces, {pool.get_limit() >> 20} MiB allowed: {rate / seconds:.1f} GB/s", flush=True)
        assert_in_order(out)
    finally:
        pool.set_limit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("devices", "host"))
    parser.add_argument("--log2", type=int, default=30, help="keys of each device, or of the host")
    asked = parser.parse_args()
    require_card(parser)
    if asked.only != "host":
        over_devices(1 << asked.log2)
    if asked.only != "devices":
        of_the_host(1 << asked.log2)


if __name__ == "__main__":
    main()
