"""An exported module's sort of u32 in node, beside the target "wgsl" on the same driver: python -m benchmarks.exported

Both run on the device alone, nothing is read back: the module by its own clock, from encoding to the device's word that
it has finished; the target by the device's clock, which is the shorter way.

Mesa's software driver gets one thread (`LP_NUM_THREADS`) for both: node looks for what has ended without a pause, which
keeps a core busy that the driver would have otherwise.
"""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import gpusort
from gpusort.algos.choice import choose_sort
from gpusort.algos.table import by_masks
from gpusort.targets.registry import target as target_named
from gpusort.targets.wgsl.target import WgslTarget
from gpusort.types.indices import Placement
from tests.exported import Cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=5, help="of one after the other (default: %(default)s)")
    parser.add_argument("--times", type=int, default=3, help="of each in a round (default: %(default)s)")
    options = parser.parse_args()
    os.environ.setdefault("LP_NUM_THREADS", "1")  # before the driver is loaded
    length: int = options.length
    keys = np.random.default_rng(0).integers(0, 1 << 32, length, dtype=np.uint32)
    target = target_named("wgsl")
    assert isinstance(target, WgslTarget)
    module_times: list[float] = []
    target_times: list[float] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        module, _ = gpusort.export("sort", folder, keys=("u32",))
        (folder / "package.json").write_text('{"type": "module"}', "utf-8")
        cases = Cases(module, folder)
        cases.add("time", "time", {"input": keys}, type="u32", n=len(keys), times=options.times + 1)
        for _ in range(options.rounds):
            cases.run()
            module_times += np.frombuffer(cases.found("time"))[1:].tolist()
            target_times += [1e3 * seconds_of(target, keys) for _ in range(options.times)]
        same_times = [1e3 * seconds_of(target, keys, _SAME) for _ in range(options.rounds)]
    ours, theirs, same = map(statistics.median, (module_times, target_times, same_times))
    print(f"{target.info.adapter}, {target.info.driver}; 2^{np.log2(len(keys)):.3g} u32, medians")
    print(f"module in node  {ours:8.1f} ms")
    print(f"target wgsl     {theirs:8.1f} ms by the sort that it chooses, {same:.1f} ms by the module's")
    print(f"module / target {ours / theirs:8.2f} and {ours / same:.2f}")


_SAME = by_masks(7)


def seconds_of(
    target: WgslTarget, keys: np.ndarray[tuple[int], np.dtype[np.uint32]], wished: gpusort.SortAlgorithm | None = None
) -> float:
    """The launches of a sort, by itself of the one that the target chooses."""
    key = gpusort.key_for(keys.dtype)
    sort = wished or choose_sort(target.info, key, 1, len(keys))
    placement = sort.placements(key)[0]
    schedule = sort.schedule(key, 1, len(keys), gpusort.SortOrder.ASCENDING, placement)
    data = keys.copy()
    arrays = {"data": data} if placement is Placement.IN_PLACE else {"data": data, "results": np.empty_like(keys)}
    return target.device_seconds(schedule, arrays)


if __name__ == "__main__":
    main()
