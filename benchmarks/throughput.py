"""Elements sorted a second over sizes, into a file that pictures are made from: `python -m benchmarks.throughput`.

On the CPU from array to array; on a card with the data resident, by the card's clock. gpusort's results are compared
with NumPy's once, and all of one size are timed by turns in one process.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import gpusort
from benchmarks.arrays import DISTRIBUTIONS, Array
from benchmarks.card import event_clock, require_card
from benchmarks.peers import ON_CARD, ON_HOST
from benchmarks.timing import host_clock, machine, shown, write_results
from gpusort.algos.choice import choose_sort
from gpusort.targets.wgsl.target import WgslTarget
from gpusort.types.dtypes import key_for
from gpusort.types.errors import CapabilityError
from gpusort.types.indices import Placement, SortOrder

Timer = Callable[[], float]  # seconds of one call
DTYPES = ("u4", "f8")
_LEAST = 10  # of 2
_ROUNDS = 7
_WARMING = 20  # calls before each measurement: a card that was idle has lowered its clock


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    parser.add_argument("--target", choices=("cpu", "card"), default="cpu")
    parser.add_argument("--largest", type=int, help="elements at most (default 2**24, on a card 2**28)")
    parser.add_argument("--distribution", choices=tuple(DISTRIBUTIONS), default="uniform")
    parser.add_argument("--json", type=Path, required=True, help="where to write what was found")
    arguments = parser.parse_args()
    on_card = arguments.target == "card"
    if on_card:
        require_card(parser)
    largest = arguments.largest or (1 << 28 if on_card else 1 << 24)
    if largest < 1 << _LEAST:
        parser.error(f"--largest: expected {1 << _LEAST} elements, the least of all sizes, or more, found {largest}")
    timers = _card_timers if on_card else _host_timers
    series: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for dtype in DTYPES:
        for log in range(_LEAST, largest.bit_length(), 2):
            x = DISTRIBUTIONS[arguments.distribution](dtype, 1 << log)
            for who, seconds in _by_turns(dict(timers(x))).items():
                series.setdefault((who, dtype), []).append((x.size, seconds))
                print(f"{who:16} {dtype} {x.size:>10} {shown(seconds)}", flush=True)
    write_results(
        arguments.json,
        machine(),
        where="device resident" if on_card else "array to array",
        distribution=arguments.distribution,
        series=[{"who": who, "dtype": dtype, "points": points} for (who, dtype), points in series.items()],
    )


def _by_turns(timers: dict[str, Timer]) -> dict[str, float]:
    """Medians of everyone's times, each after a call that brings the array back into the caches."""
    found: dict[str, list[float]] = {who: [] for who in timers}
    for _ in range(_ROUNDS):
        for who, timer in timers.items():
            timer()
            found[who].append(timer())
    return {who: statistics.median(times) for who, times in found.items()}


def _host_timers(x: Array) -> Iterator[tuple[str, Timer]]:
    calls = max(1, (1 << 16) // x.size)
    for sorter in ON_HOST:
        # Not the others: an open software driver for WGSL has threads of its own, which slow down everyone here.
        if sorter.needs in ("wgsl", "cuda") or sorter.name == "np.sort stable":
            continue
        if sorter.missing() is None and x.dtype.kind in sorter.dtypes:
            work = sorter.ready(x)
            if sorter.name == "gpusort cpu":
                np.testing.assert_array_equal(work(), np.sort(x))
            work()
            yield sorter.name, partial(host_clock, work, calls)


def _card_timers(x: Array) -> Iterator[tuple[str, Timer]]:
    warm = _copies()
    for sorter in ON_CARD:
        if sorter.missing() is None and x.dtype.kind in sorter.dtypes:
            work = sorter.ready(x)
            if sorter.name == "gpusort cuda":
                found: Any = work()
                np.testing.assert_array_equal(found.get(), np.sort(x))
            for _ in range(3):
                work()
            yield sorter.name, partial(event_clock, work, 4)
    timer = _wgsl_timer(x)
    if timer is not None:

        def after_warming() -> float:
            warm()
            return timer()

        yield "gpusort wgsl", after_warming


def _copies() -> Callable[[], None]:
    """Something for the card to do, so that its clock is up."""
    cupy: Any = import_module("cupy")
    source = cupy.zeros(1 << 26, cupy.uint8)
    target = cupy.empty_like(source)

    def copy() -> None:
        for _ in range(50 * _WARMING):
            cupy.copyto(target, source)
        cupy.cuda.Device().synchronize()

    return copy


def _wgsl_timer(x: Array) -> Timer | None:
    target = gpusort.target("wgsl")
    assert isinstance(target, WgslTarget)
    key = key_for(x.dtype)
    chosen = choose_sort(target.info, key, 1, x.size)
    placement = chosen.placements(key)[0]
    schedule = chosen.schedule(key, 1, x.size, SortOrder.ASCENDING, placement)
    words = x.view(f"u{x.itemsize}")

    def once() -> float:
        arrays = {"data": words.copy()}
        if placement is Placement.ELSEWHERE:
            arrays["results"] = np.empty_like(words)
        return target.device_seconds(schedule, arrays)

    try:
        once()
    except CapabilityError:
        return None
    return once


if __name__ == "__main__":
    main()
