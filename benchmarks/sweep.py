"""Many ordinary calls, each against the best of what its user would call instead: `python -m benchmarks.sweep`.

Functions x dtypes x shapes x layouts x every axis x the array libraries found here; a warm call, with the host's part.
Ours and the peers take turns. Every result is compared with NumPy's first. Ratios above 1 are in our favour.
"""

from __future__ import annotations

import argparse
import math
import re
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import gpusort
from benchmarks.arrays import Array
from benchmarks.sweep_cases import Case, cases, drawn_cases
from benchmarks.sweep_libraries import libraries
from benchmarks.timing import Result, Work, machine, write_results

LOW = 0.8  # times as fast as the best peer: what no case should be under
_DOUBTFUL = 0.95  # such cases are timed once more, for longer
_ROUND = 2e-4  # seconds that one round takes at least
_ROUNDS = 3
_WARM_UP = 5  # calls: what is compiled, recorded or found in a cache comes with the first ones
_BOX = 0.5  # seconds after which fewer will do
# Elements of the arrays that take turns: a small one that is sorted again and again has its branches foreseen, and a
# peer that branches takes a third of the time it takes in a program.
_TURNS, _MOST_TURNS = 1 << 16, 128
_PROGRESS = 0.5  # seconds between two lines of it


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__)
    parser.add_argument(
        "--only",
        default="",
        type=re.compile,
        help="cases whose name fits, e.g. 'numpy sum f4 .* axis 0'",
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--quick", action="store_true", help="a sixth of the cases, always the same ones")
    extent.add_argument("--all", action="store_true", help="all cases: by default those of a sample")
    extent.add_argument("--drawn", type=int, metavar="N", help="so many cases of each library, drawn at random instead")
    parser.add_argument("--seed", type=int, default=0, help="draws other cases (default 0)")
    parser.add_argument("--largest", type=int, default=1 << 22, help="elements at most (default 2**22)")
    parser.add_argument(
        "--seconds", type=float, default=0.02, help="for each case, at least three rounds (default 0.02)"
    )
    parser.add_argument("--worst", type=int, default=25, help="how many cases to print (default 25)")
    parser.add_argument("--json", type=Path, help="where to write all that was found, with the machine named")
    arguments = parser.parse_args()

    share: dict[str, int] | int = {"C": 4, "Fortran": 8, "strided": 8, "cropped": 8}
    if arguments.all:
        share = 1
    elif arguments.quick:
        share = {"C": 24, "Fortran": 48, "strided": 48, "cropped": 48}

    def fits(case: Case) -> bool:
        return arguments.only.search(case.name) is not None

    if arguments.drawn:
        each = partial(drawn_cases, count=arguments.drawn, seed=arguments.seed)
    else:
        each = partial(cases, one_of=share)
    chosen = [case for library in libraries() for case in each(library, fits, arguments.largest)]
    if not chosen:
        parser.error("no case is chosen: --all has those, too, that the sample leaves out")
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` stops it as Ctrl-C does
    try:
        found, wrong, was_stopped = compared(chosen, arguments.seconds)
    finally:
        signal.signal(signal.SIGTERM, before)
    if arguments.json is not None:
        write_results(arguments.json, machine(), results=[timing.as_json() for timing in found], wrong=wrong)
    print_summary(found, arguments.worst)
    print(*(f"WRONG: {line}" for line in wrong), sep="\n")
    if was_stopped:
        print(f"stopped after {len(found) + len(wrong)} of {len(chosen)} cases")
    return 1 if wrong or was_stopped else 0


@attrs.frozen
class Timing:
    """One case, and the best peer's time beside ours."""

    case: Case
    result: Result

    def as_json(self) -> dict[str, object]:
        case = self.case
        return {
            **self.result.as_json(), "library": case.library.name, "function": case.function.label,
            "dtype": case.dtype, "shape": case.shape, "layout": case.layout, "axis": case.axis,
        }  # fmt: skip


def compared(chosen: Sequence[Case], seconds: float) -> tuple[list[Timing], list[str], bool]:
    """The times of all cases, what was wrong, and whether somebody stopped it before the last one."""
    found: list[Timing] = []
    wrong: list[str] = []
    progress = _Progress(len(chosen))
    made: tuple[object, list[Array]] = (None, [])
    was_stopped = False
    for number, case in enumerate(chosen):
        data = (case.function.data, case.dtype, case.shape)
        try:
            if made[0] != data:
                made = (data, hosts_of(case))
            xs = [case.array(host) for host in made[1]]
            with np.errstate(all="ignore"):
                problem = problem_of(case, made[1][0], xs[0])
                if problem:
                    wrong.append(f"{case.name}: {problem}")
                else:
                    found.append(Timing(case, timed(case, xs, seconds)))
        except KeyboardInterrupt:
            was_stopped = True
            break
        except Exception as error:
            wrong.append(f"{case.name}: {type(error).__name__}: {error}")
        progress.tell(number + 1, case)
    progress.end(len(found) + len(wrong))
    return found, wrong, was_stopped


def hosts_of(case: Case) -> list[Array]:
    """One long array, or so many short ones that no processor remembers what comes next."""
    return [case.host(number) for number in range(min(_MOST_TURNS, -(-_TURNS // math.prod(case.shape))))]


def call_of(case: Case, x: Any) -> Work:
    """Ours."""
    if case.function.ours is not None:
        ours = case.function.ours
        return lambda: ours(gpusort, x, case.axis)
    function: Callable[..., object] = getattr(gpusort, case.function.name)
    keywords = case.function.keywords
    return lambda: function(x, axis=case.axis, **keywords)


def problem_of(case: Case, host: Array, x: Any) -> str:
    """What is wrong with our result, if anything."""
    function = case.function
    # float16 as float32: its equals NumPy's AVX-512 code leaves out of order
    is_half = host.dtype == np.float16 and function.name == "sort"
    expected: Any = function.peer_of("numpy")(np, host.astype(np.float32) if is_half else host, case.axis)
    if is_half:
        expected = np.asarray(expected).astype(host.dtype)
    answer: Any = call_of(case, x)()
    answers: list[Any] = [*answer] if function.results > 1 else [answer]
    wanted_ones: list[Any] = [*expected] if function.results > 1 else [expected]
    for ours, numpys in zip(answers[: function.told], wanted_ones[: function.told], strict=True):
        result, wanted = case.library.to_host(ours), np.asarray(numpys)
        if result.shape != wanted.shape:
            return f"shape {result.shape}, expected {wanted.shape}"
        if case.library.name in ("numpy", "cupy") and result.dtype != wanted.dtype:
            return f"dtype {result.dtype}, expected {wanted.dtype}"
        if function.exact or host.dtype.kind != "f":
            same = np.array_equal(result.astype(wanted.dtype, copy=False), wanted, equal_nan=True)
        else:  # as far as sums may be off, of which no element is larger than 6
            # Products beside 1, where floats have few bits left, are all rounded the same way.
            most = 6 if function.name != "prod" else max(1, math.sqrt(host.size) / 512)
            slack = 64 * float(np.finfo(host.dtype).eps) * most * math.sqrt(host.size)
            rtol = 1e-3 if host.dtype == np.float32 else 1e-9
            same = np.allclose(result, wanted, rtol=rtol, atol=slack, equal_nan=True)
        if not same:
            return "another result than NumPy's"
    return ""


def timed(case: Case, xs: Sequence[Any], seconds: float) -> Result:
    """Ours beside the best peer: each one's best round, for so many short ones that on a machine which others use too
    hardly any is undisturbed. What is found to be slow is timed again, four times and twenty times as long."""
    works = {"ours": [call_of(case, x) for x in xs]}
    for x in xs:
        for name, work in case.library.peers(case.function, x, case.axis):
            works.setdefault(name, []).append(work)
    clock = case.library.clock
    counted = {name: _calls(clock, of_one) for name, of_one in works.items()}
    calls = {name: count for name, count in counted.items() if count}
    if len(calls) < 2:
        raise RuntimeError("nobody else does it")
    result: Result | None = None
    for limit in (seconds, 4 * seconds, 20 * seconds):
        times: dict[str, list[float]] = {name: [] for name in calls}
        start = time.perf_counter()
        while (len(times["ours"]) < _ROUNDS and _since(start) < _BOX) or _since(start) < limit:
            for name, count in calls.items():
                times[name].append(clock(works[name], count))
        least = {name: min(of_one) for name, of_one in times.items()}
        mine = least.pop("ours")
        best = min(least, key=lambda name: least[name])
        result = Result(case.name, best, mine, least[best], LOW)
        if result.ratio >= _DOUBTFUL:
            break
    assert result is not None
    return result


def _since(start: float) -> float:
    return time.perf_counter() - start


def _calls(clock: Callable[[Sequence[Work], int], float], works: Sequence[Work]) -> int:
    """How many calls make a round: each array's as often, and as many as take long enough once they are warm. 0, if a
    library lacks the function for a dtype."""
    turns = 1
    try:
        once = clock(works, 1)
    except (TypeError, NotImplementedError, RuntimeError):
        return 0
    for _ in range(_WARM_UP if once < _BOX / _WARM_UP else 0):
        once = min(once, clock(works, len(works)))
    while once * turns * len(works) < _ROUND:
        turns = max(turns + 1, min(10 * turns, math.ceil(_ROUND / max(once, 1e-7) / len(works))))
        once = clock(works, turns * len(works))
    return turns * len(works)


# -- what is printed ----------------------------------------------------------------------------------------


class _Progress:
    """One line that changes, where somebody looks; else a line now and then."""

    def __init__(self, count: int) -> None:
        self._count, self._last, self._start = count, 0.0, time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def tell(self, done: int, case: Case) -> None:
        now = time.monotonic()
        if now - self._last >= _PROGRESS * (1 if self._is_terminal else 40):
            self._last = now
            line = f"{done} of {self._count}, {now - self._start:.0f} s: {case.name}"
            print(f"\r{line:.100s}\x1b[K" if self._is_terminal else line, end="", file=sys.stderr, flush=True)
            if not self._is_terminal:
                print(file=sys.stderr)

    def end(self, done: int) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr)
        print(f"{done} cases in {time.monotonic() - self._start:.0f} s\n")


def print_summary(found: Iterable[Timing], worst: int) -> None:
    """A library's worst cases, and what is typical of each function."""
    by_library: dict[str, list[Timing]] = {}
    for timing in found:
        by_library.setdefault(timing.case.library.name, []).append(timing)
    for library, timings in by_library.items():
        low = [timing for timing in timings if timing.result.ratio < LOW]
        by_ratio = sorted(timings, key=lambda timing: timing.result.ratio)
        print(f"{library}: the worst cases")
        print(*(f"  {timing.result.line()}" for timing in by_ratio[:worst]), sep="\n")
        print(f"\n  {'function':16s} {'cases':>6s} {'mean':>7s} {'worst':>7s} {f'under {LOW}':>10s}")
        by_function: dict[str, list[float]] = {}
        for timing in timings:
            by_function.setdefault(timing.case.function.label, []).append(timing.result.ratio)
        for function, ratios in by_function.items():
            print(_line(function, ratios))
        print(_line("all", [timing.result.ratio for timing in timings]))
        small = [t.result.ours_s - t.result.peer_s for t in timings if math.prod(t.case.shape) <= 1000]
        if small:
            most, typical = max(small) * 1e6, statistics.median(small) * 1e6
            print(f"  up to 1000 elements: {typical:+.2f} us a call, {most:+.2f} at most")
        print(f"  {len(low)} of {len(timings)} under {LOW}\n")


def _line(what: str, ratios: Sequence[float]) -> str:
    low = sum(ratio < LOW for ratio in ratios)
    return f"  {what:16s} {len(ratios):6d} {mean(ratios):6.2f}x {min(ratios):6.2f}x {low:10d}"


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    return statistics.geometric_mean(ratios)


if __name__ == "__main__":
    raise SystemExit(main())
