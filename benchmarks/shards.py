"""A process for each GPU of a host, which exchange by NCCL: through cupy's communicator and through torch.distributed.

    python -m benchmarks.shards --log2 28

First every collective call is checked with keys that few ranks like: of other lengths on each rank, none on one, all
equal, NaN of both signs, sorted the other way, and sizes of all three kinds. The ranks' results are written to files,
and compared with NumPy's sort of all keys by the process that started them. Then medians of the wall's time of 2^log2
uniform u32 a rank; the slowest rank's counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias  # Any: of libraries that need not be here

import attrs
import numpy as np

from benchmarks.card import require_card
from gpusort import multi
from gpusort.external.order import words_of
from gpusort.types.indices import SortOrder

Keys: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]

_ROUNDS = 5
_LIBRARIES = ("cupy", "torch")


@attrs.frozen
class Case:
    name: str
    parts: list[Keys]
    sizes: Any = "kept"


def cases(ranks: int) -> list[Case]:
    """For each one array a rank."""
    rng = np.random.default_rng(ranks)
    length = 300_000

    def each(make: Callable[[int], Keys]) -> list[Keys]:
        return [make(rank) for rank in range(ranks)]

    def floats(rank: int) -> Keys:
        x = rng.standard_normal(length + 1000 * rank).astype("f4")
        x[::97], x[1::97], x[2::97], x[3::97] = np.nan, -np.nan, 0.0, -0.0
        return x

    uniform = each(lambda rank: rng.integers(0, 1 << 32, length + rank, dtype="u4"))
    total = sum(map(len, uniform))
    uneven = [1] * (ranks - 1) + [total - ranks + 1]
    return [
        Case("uniform", uniform),
        Case("balanced", each(lambda rank: rng.integers(0, 1 << 16, 1 + rank * length, dtype="u2")), "balanced"),
        Case("uneven", uniform, uneven),
        Case("one rank has none", each(lambda rank: np.arange(length if rank else 0, dtype="i8")[::-1].copy())),
        Case("all equal", each(lambda rank: np.full(length, 7, "i4"))),
        Case("NaN and zeros of both signs", each(floats)),
        Case("reversed", each(lambda rank: np.arange(length * (ranks - rank), 0, -1, dtype="f8")), "balanced"),
        Case("large", each(lambda rank: rng.integers(0, 1 << 32, (1 << 25) + 3 * rank, dtype="u4"))),
    ]


def communicator(library: str, rank: int, ranks: int, port: int) -> object:
    """This process's communicator. cupy's gives its id to the others through a store of torch's, as any would do."""
    torch: Any = import_module("torch")
    torch.cuda.set_device(rank)
    store = torch.distributed.TCPStore("localhost", port, ranks, rank == 0)
    if library == "torch":
        torch.distributed.init_process_group("nccl", store=store, rank=rank, world_size=ranks)
        return torch.distributed.group.WORLD
    cupy: Any = import_module("cupy")
    nccl: Any = import_module("cupy.cuda.nccl")
    cupy.cuda.Device(rank).use()
    if rank == 0:
        store.set("id", repr(nccl.get_unique_id()))
    found: Any = nccl.NcclCommunicator(ranks, eval(store.get("id").decode()), rank)
    return found


def of_one_rank(rank: int, ranks: int, library: str, port: int, log2: int, folder: Path) -> None:
    group = communicator(library, rank, ranks, port)
    cupy: Any = import_module("cupy")
    cupy.cuda.Device(rank).use()
    for number, case in enumerate(cases(ranks)):
        x = cupy.asarray(case.parts[rank])
        found = {
            "sort": multi.sort_shard(x, group, sizes=case.sizes),
            "stable": multi.sort_shard(x, group, stable=True, descending=True, sizes=case.sizes),
            "argsort": multi.argsort_shard(x, group, sizes=case.sizes),
        }
        places = cupy.arange(len(x)) + sum(map(len, case.parts[:rank]))
        found["keys"], found["values"] = multi.sort_by_key_shard(x, places, group, sizes=case.sizes)
        np.savez(folder / f"{number}-{rank}.npz", **{name: array.get() for name, array in found.items()})

    keys = cupy.asarray(np.random.default_rng(rank).integers(0, 1 << 32, 1 << log2, dtype=np.uint32))
    places = cupy.arange(1 << log2)
    calls: dict[str, Callable[[], object]] = {
        "sort": lambda: multi.sort_shard(keys, group),
        "argsort": lambda: multi.argsort_shard(keys, group),
        "sort_by_key": lambda: multi.sort_by_key_shard(keys, places, group),
    }
    for name, call in calls.items():
        seconds: list[float] = []
        for _ in range(_ROUNDS + 1):
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            made = call()
            cupy.cuda.Device().synchronize()
            seconds.append(time.perf_counter() - start)
            del made
        (folder / f"{name}-{rank}.txt").write_text(str(statistics.median(seconds[1:])))
    if library == "torch":
        import_module("torch").distributed.destroy_process_group()


def bits(x: Keys) -> Keys:
    return x.view(f"u{x.itemsize}")


def require_right(case: Case, found: list[dict[str, Keys]]) -> None:
    """Raises AssertionError unless the ranks' results are NumPy's, of the sizes that were asked for."""
    x = np.concatenate(case.parts)
    lengths = [len(part) for part in case.parts]
    if case.sizes == "balanced":
        lengths = [len(x) // len(lengths) + (rank < len(x) % len(lengths)) for rank in range(len(lengths))]
    elif case.sizes != "kept":
        lengths = case.sizes
    for name in ("sort", "stable", "argsort", "keys", "values"):
        assert [len(rank[name]) for rank in found] == lengths, (case.name, name, "sizes")
    whole = {name: np.concatenate([rank[name] for rank in found]) for name in found[0]}
    order = np.argsort(x, kind="stable")
    assert (whole["argsort"] == order).all(), (case.name, "argsort")
    words = words_of(x, SortOrder.ASCENDING, ranks=False)  # the order of pairs' keys
    by_bits = np.argsort(words, kind="stable")
    assert (whole["values"] == by_bits).all(), (case.name, "values")
    assert (bits(whole["keys"]) == bits(x[by_bits])).all(), (case.name, "keys")
    np.testing.assert_array_equal(whole["sort"], x[order], case.name)
    assert (np.sort(bits(whole["sort"])) == np.sort(bits(x))).all(), (case.name, "multiset")
    assert (np.sort(bits(whole["stable"])) == np.sort(bits(x))).all(), (case.name, "multiset, descending")
    down = whole["stable"][~np.isnan(whole["stable"])] if x.dtype.kind == "f" else whole["stable"]
    assert (down[:-1] >= down[1:]).all(), (case.name, "descending")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log2", type=int, default=28, help="keys of each rank")
    parser.add_argument("--port", type=int, default=29_511)
    asked = parser.parse_args()
    require_card(parser)
    runtime = import_module("cupy.cuda.runtime")
    ranks: int = runtime.getDeviceCount()
    for number, library in enumerate(_LIBRARIES):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            spawn = multiprocessing.get_context("spawn")
            every = (ranks, library, asked.port + number, asked.log2, folder)
            processes = [spawn.Process(target=of_one_rank, args=(rank, *every)) for rank in range(ranks)]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
                assert process.exitcode == 0, f"{library}: a rank failed"
            checked = cases(ranks)
            for index, case in enumerate(checked):
                files = [np.load(folder / f"{index}-{rank}.npz") for rank in range(ranks)]
                require_right(case, [dict(file) for file in files])
            print(f"{library}: {len(checked)} cases of four calls right on {ranks} ranks")
            for call in ("sort", "argsort", "sort_by_key"):
                slowest = max(float((folder / f"{call}-{rank}.txt").read_text()) for rank in range(ranks))
                print(f"{library}: {call} of 2^{asked.log2} u32 a rank: {slowest * 1e3:.2f} ms", flush=True)


if __name__ == "__main__":
    main()
