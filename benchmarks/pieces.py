"""Host arrays beyond a card's memory: what goes there in pieces, beside the same where there is memory for all of it.

    python -m benchmarks.pieces --gib 4 --allowed 1 --json results.json

Each operation's answer in pieces is compared with its answer all at once. Its rate counts what it takes and what it
leaves, once each; a row that is sorted travels twice, and so cannot come to more than half of what PCIe does both ways.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import numpy as np

import gpusort
from benchmarks.card import require_card
from gpusort.api.plan import as_tuple
from gpusort.targets.cuda.transfers import Transfers

Array: TypeAlias = Any  # NumPy's of any dtype, and cupy's
Floats: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
Work: TypeAlias = Callable[[], object]


@attrs.frozen
class Case:
    name: str
    journeys: int  # that an element makes there and back
    call: Callable[[Array, Array], object]  # of floats and of an array like it, for results


CASES = (
    Case("sort(out=)", 2, lambda x, out: gpusort.sort(x, out=out, target="cuda")),
    Case("sort", 2, lambda x, out: gpusort.sort(x, target="cuda")),
    Case("sort_inplace, descending", 2, lambda x, out: gpusort.sort_inplace(x, descending=True, target="cuda")),
    Case("sort, stable", 2, lambda x, out: gpusort.sort(x, stable=True, out=out, target="cuda")),
    Case("argsort", 2, lambda x, out: gpusort.argsort(x, target="cuda")),
    Case("sort_by_key", 2, lambda x, out: gpusort.sort_by_key(x, x.view(np.uint32), target="cuda")),
    Case("merge of two halves", 1, lambda x, out: gpusort.merge(*_sorted_halves(x), target="cuda")),
    Case("sort of 4096 rows", 1, lambda x, out: gpusort.sort(_rows(x), axis=1, out=_rows(out), target="cuda")),
    Case("argsort of 4096 rows", 1, lambda x, out: gpusort.argsort(_rows(x), axis=1, target="cuda")),
    Case("sum", 1, lambda x, out: gpusort.sum(x, target="cuda")),
    Case("max", 1, lambda x, out: gpusort.max(x, target="cuda")),
    Case("argmin", 1, lambda x, out: gpusort.argmin(x, target="cuda")),
    Case("cumsum", 1, lambda x, out: gpusort.cumsum(x, target="cuda")),
    Case("top_k of 256", 1, lambda x, out: gpusort.top_k(x, 256, target="cuda")),
    Case("sum of 4096 rows", 1, lambda x, out: gpusort.sum(_rows(x), axis=1, target="cuda")),
)


_halves: dict[int, list[Floats]] = {}  # by address: sorted before they are timed


def _sorted_halves(x: Floats) -> list[Floats]:
    if x.ctypes.data not in _halves:
        _halves[x.ctypes.data] = [gpusort.sort(half, target="cuda") for half in np.split(x, 2)]
    return _halves[x.ctypes.data]


def _rows(x: Array) -> Floats:
    found: Floats = x.reshape(4096, -1)
    return found


@contextmanager
def allowed(nbytes: int) -> Generator[None]:
    """As much of the card, by the limit of cupy's pool; 0 for all of it."""
    pool: Any = import_module("cupy").get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + nbytes if nbytes else 0)
    yield
    pool.set_limit(size=0)
    pool.free_all_blocks()


def median_s(work: Work, rounds: int) -> float:
    work()
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def both(one: Work, other: Work) -> Work:
    def run() -> None:
        thread = threading.Thread(target=one)
        thread.start()
        other()
        thread.join()

    return run


def rates(rounds: int) -> dict[str, float]:
    """Gigabytes a second each way, both at once: of PCIe between pinned memory, and of what gpusort stages."""
    cupy: Any = import_module("cupy")
    nbytes, transfers = 1 << 31, Transfers()
    host, back = (np.ones(nbytes, np.uint8) for _ in range(2))
    up, down = (cupy.ones(nbytes, np.uint8) for _ in range(2))
    pinned = [cupy.cuda.alloc_pinned_memory(nbytes) for _ in range(2)]
    there, here = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    copy = cupy.cuda.runtime.memcpyAsync

    def staged_up() -> None:
        transfers.upload([(up.data.ptr, host)], there)
        there.synchronize()

    def staged_down() -> None:
        transfers.download([(down.data.ptr, back)], here)
        here.synchronize()

    def pinned_up() -> None:
        copy(up.data.ptr, pinned[0].ptr, nbytes, 1, there.ptr)
        there.synchronize()

    def pinned_down() -> None:
        copy(pinned[1].ptr, down.data.ptr, nbytes, 2, here.ptr)
        here.synchronize()

    works = {
        "PCIe, both": both(pinned_up, pinned_down), "staged, up": staged_up, "staged, down": staged_down,
        "staged, both": both(staged_up, staged_down),
    }  # fmt: skip
    found = {name: nbytes / median_s(work, 2 * rounds + 1) / 1e9 for name, work in works.items()}
    pinned.clear()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
    return found


def same(one: object, other: object, *, nearly: bool) -> bool:
    """There are no NaNs. Sums of floats are nearly the same, for they are added up in another order."""
    pairs = zip(as_tuple(one), as_tuple(other), strict=True)
    return all(np.allclose(a, b, rtol=1e-3) if nearly else np.array_equal(a, b) for a, b in pairs)


def measured(case: Case, given: Array, out: Array, allowed_bytes: int, rounds: int) -> tuple[float, list[Array]]:
    """Seconds of a call, and its answer."""
    x = given.copy() if "inplace" in case.name else given

    def call() -> object:
        return case.call(x, out)

    with allowed(allowed_bytes):
        seconds, found = median_s(call, rounds), call()
    return seconds, [x] if found is None else [np.array(one) for one in as_tuple(found)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=4, help="of float32, in pageable memory")
    parser.add_argument("--allowed", type=float, default=1, help="GiB of the card's memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="a part of the names of what is to be measured")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    require_card(parser)
    report: dict[str, dict[str, Any]] = {"GB/s each way": rates(asked.rounds)}
    for name, rate in report["GB/s each way"].items():
        print(f"{name:28s} {rate:6.1f} GB/s each way", flush=True)
    pcie = report["GB/s each way"]["PCIe, both"]
    count = int(asked.gib * (1 << 28)) // 4096 * 4096
    given = np.random.default_rng(1).random(count, np.float32)
    out = np.zeros_like(given)
    print(f"{'seconds':28s} {'at once':>8s} {'in pieces':>9s}; share of PCIe's rate both ways")
    for case in CASES:
        if asked.only not in case.name:
            continue
        at_once, expected = measured(case, given, out, 0, asked.rounds)
        in_pieces, found = measured(case, given, out, int(asked.allowed * (1 << 30)), asked.rounds)
        busier = case.journeys * max(given.nbytes, sum(answer.nbytes for answer in found))
        share, right = busier / in_pieces / 1e9 / pcie, same(found, expected, nearly="sum" in case.name)
        print(f"{case.name:28s} {at_once:8.3f} {in_pieces:9.3f}  {share:5.2f}{'' if right else '  WRONG'}", flush=True)
        report[case.name] = {"at once": at_once, "in pieces": in_pieces, "share": share, "right": right}
    if asked.json:
        asked.json.write_text(json.dumps(report, indent=1))
    return 0 if all(found.get("right", True) for found in report.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
