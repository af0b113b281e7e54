"""One side-by-side run against what people use today: `python -m benchmarks.compare`.

The CPU target is compared with NumPy; where there is a card, the CUDA and WGSL targets with CUB, torch and a device
copy. Everything is checked before it is timed. Ratios above 1 are in our favour.
"""

from __future__ import annotations

import argparse
import re
import statistics
import traceback
from pathlib import Path

import attrs

from benchmarks import card, compare_calls, compare_card, compare_cpu
from benchmarks.timing import Result, machine, verdict, write_results


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--only", default="", type=re.compile, help="comparisons whose name fits this expression")
    parser.add_argument("--largest", type=int, default=1 << 28, help="elements at most (default 2**28)")
    parser.add_argument(
        "--runs", type=int, default=1, help="how often to compare all; then medians of ratios are shown"
    )
    parser.add_argument("--json", type=Path, help="where to write all that was found, with the machine named")
    arguments = parser.parse_args()

    found: list[Result] = []
    failed = 0
    there = list(compare_cpu.comparisons(arguments.largest))
    if card.is_here():
        there += compare_card.comparisons(arguments.largest)
        there += compare_calls.comparisons(arguments.largest)
    chosen = [(name, compare) for name, compare in there if arguments.only.search(name)]
    if not chosen:
        parser.error("no comparison is chosen: without --only, all are")
    here = machine() if arguments.json is not None else {}
    for _ in range(arguments.runs):
        for name, compare in chosen:
            try:
                found.append(compare())
            except Exception:
                failed += 1
                print(f"{name}: FAILED")
                traceback.print_exc()
            if arguments.json is not None:  # after each: a long run that is ended has told what it knew
                write_results(arguments.json, here, results=[result.as_json() for result in found])
    summaries = summarised(found)
    if arguments.runs > 1:
        print(*(summary.line() for summary in summaries), sep="\n")
    missed = [summary for summary in summaries if summary.bar is not None and summary.ratio < summary.bar]
    print(f"\n{len(summaries)} compared, {len(missed)} below their bar, {failed} failed")
    return 1 if failed else 0


@attrs.frozen
class Summary:
    """One comparison's ratios in all runs."""

    name: str
    peer: str
    ratios: list[float]
    bar: float | None

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def line(self) -> str:
        spread = f"({min(self.ratios):.2f} to {max(self.ratios):.2f})"
        return f"{self.name:44s} {self.peer:22s} {self.ratio:6.2f}x {spread}{verdict(self.ratio, self.bar)}"


def summarised(found: list[Result]) -> list[Summary]:
    ratios: dict[tuple[str, str, float | None], list[float]] = {}
    for result in found:
        ratios.setdefault((result.name, result.peer, result.bar), []).append(result.ratio)
    return [Summary(name, peer, of_one, bar) for (name, peer, bar), of_one in ratios.items()]


if __name__ == "__main__":
    raise SystemExit(main())
