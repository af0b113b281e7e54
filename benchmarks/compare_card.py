"""The CUDA and WGSL targets on a card against its libraries, on data that lies there."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, cast

import numpy as np

import gpusort
from benchmarks.card import call_clock, cub_cumsum, cub_sort, event_clock, torch_cumsum, uniform
from benchmarks.timing import Comparison, Result, Work, against
from gpusort.algos.batch import Batch
from gpusort.algos.choice import choose_axis_reduction, choose_pairs, choose_sort
from gpusort.algos.layout import Layout
from gpusort.algos.reduce_axis import reduce_rows
from gpusort.kernel.launch import Schedule
from gpusort.targets.base import DeviceTimer
from gpusort.targets.cuda.target import CudaTarget
from gpusort.targets.wgsl.target import WgslTarget
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.indices import Placement, SortOrder
from gpusort.types.keys import RankKey
from gpusort.types.monoids import Minimum, Sum
from gpusort.types.scalars import U64
from gpusort.types.searches import ArgMin

_PEER_READS = "a copy's bytes"


def _keys(dtype: str, count: int, bar: float | None, with_host: bool) -> Result:
    cupy: Any = import_module("cupy")
    x = uniform(dtype, count)
    ours, theirs = cupy.empty_like(x), cupy.empty_like(x)
    peer = cub_sort(x, theirs)
    gpusort.sort(x, out=ours)
    peer()
    assert bool((ours == theirs).all())
    clock, calls = (call_clock, 200) if with_host else (event_clock, 1)
    name = f"cuda sort {dtype} {count}{', host included' if with_host else ''}"
    return against(name, "CUB", lambda: gpusort.sort(x, out=ours), peer, bar, clock=clock, calls=calls)


def _pairs(count: int, bar: float | None) -> Result:
    cupy: Any = import_module("cupy")
    x, values = uniform("u4", count), cupy.arange(count, dtype=cupy.uint32)
    theirs, moved = cupy.empty_like(x), cupy.empty_like(values)
    peer = cub_sort(x, theirs, values, moved)
    found = cast(Any, gpusort.sort_by_key(x, values))
    peer()
    assert bool((found[0] == theirs).all())
    assert bool((found[1] == moved).all())
    del found
    return against(
        f"cuda pairs u4+u4 {count}", "CUB", lambda: gpusort.sort_by_key(x, values), peer, bar, clock=event_clock
    )


def _rows(rows: int, length: int, bar: float) -> Result:
    cupy, torch = cast(Any, import_module("cupy")), cast(Any, import_module("torch"))
    x = cupy.random.random((rows, length), dtype=cupy.float32)
    tensor, out = torch.as_tensor(x, device="cuda"), cupy.empty_like(x)
    gpusort.sort(x, out=out)
    assert bool((cupy.asarray(torch.sort(tensor)[0]) == out).all())
    return against(
        f"cuda rows f4 {rows}x{length}", "torch.sort", lambda: gpusort.sort(x, out=out), lambda: torch.sort(tensor),
        bar, clock=event_clock,
    )  # fmt: skip


def _reduce(function: str, count: int) -> Result:
    """The launches alone, against the rate at which a device copy moves bytes, reading and writing."""
    cupy: Any = import_module("cupy")
    x = uniform("f4", count)
    monoids: dict[str, Any] = {
        "sum": Sum(number_for("f4")), "min": Minimum(key_for("f4")), "argmin": ArgMin(key_for("f4")),
    }  # fmt: skip
    monoid = monoids[function]
    target = gpusort.target("cuda")
    assert isinstance(target, CudaTarget)
    policy = choose_axis_reduction(monoid.state, Layout.rows(1, count), target.info)
    schedule = reduce_rows(monoid, 1, count, policy)
    plan, results = target.plan_for(schedule, 0), cupy.empty(64, cupy.uint8)
    addresses = {"data": x.data.ptr, "results": results.data.ptr}
    given = [addresses[buffer.name] for buffer in schedule.buffers if buffer.name in addresses]
    half = x[: count // 2]
    copy = cupy.empty_like(half)
    assert int(gpusort.argmin(x)) == int(x.argmin())
    return against(
        f"cuda {function} f4 {count}", _PEER_READS, lambda: plan.run(given), lambda: cupy.copyto(copy, half), 0.9,
        clock=event_clock,
    )  # fmt: skip


def _cumsum(dtype: str, count: int, peer_name: str, with_host: bool = False) -> Result:
    """Integers grow to 64 bits, as with cupy; CUB and torch are asked for what they give in the elements' own dtype."""
    cupy: Any = import_module("cupy")
    x = uniform(dtype, count)
    peers: dict[str, Callable[[], Work]] = {
        "CUB": lambda: cub_cumsum(x), "torch.cumsum": lambda: torch_cumsum(x, 0),
        "cupy.cumsum": lambda: lambda: cupy.cumsum(x),
    }  # fmt: skip
    found, expected = cast(Any, gpusort.cumsum(x)), cupy.cumsum(x)
    assert bool(cupy.allclose(found, expected, rtol=1e-3) if x.dtype.kind == "f" else (found == expected).all())
    del found, expected
    clock, calls = (call_clock, 200) if with_host else (event_clock, 1)
    name = f"cuda cumsum {dtype} {count}{', host included' if with_host else ''}"
    return against(name, peer_name, lambda: gpusort.cumsum(x), peers[peer_name](), None, clock=clock, calls=calls)


def _cumsum_of_rows(rows: int, length: int) -> Result:
    x = uniform("f4", rows * length).reshape(rows, length)
    name, peer = f"cuda cumsum f4 {rows}x{length}", torch_cumsum(x, 1)
    return against(name, "torch.cumsum", lambda: gpusort.cumsum(x, axis=1), peer, None, clock=event_clock)


def _argsort(count: int) -> Result:
    cupy: Any = import_module("cupy")
    x = uniform("u4", count)
    assert bool((cast(Any, gpusort.argsort(x)) == cupy.argsort(x)).all())  # each is stable
    return against(
        f"cuda argsort u4 {count}", "cupy.argsort", lambda: gpusort.argsort(x), lambda: cupy.argsort(x), None,
        clock=event_clock,
    )  # fmt: skip


def _from_host(count: int) -> Result:
    """From an array of the host's to one, there and back."""
    cupy: Any = import_module("cupy")
    x = np.random.default_rng(1).integers(0, 1 << 32, count, np.uint32)

    def ours() -> object:
        return gpusort.sort(x, target="cuda")

    def peer() -> object:
        return cupy.asnumpy(cupy.sort(cupy.asarray(x)))

    np.testing.assert_array_equal(cast(Any, ours()), cast(Any, peer()))
    return against(f"cuda sort u4 {count} of the host's", "cupy, there and back", ours, peer, None, rounds=5)


def _wgsl(count: int, bar: float | None) -> Result:
    cupy: Any = import_module("cupy")
    target, key = gpusort.target("wgsl"), key_for("u4")
    chosen = choose_sort(target.info, key, 1, count)
    placement = chosen.placements(key)[0]
    schedule = chosen.schedule(key, 1, count, SortOrder.ASCENDING, placement)
    host = np.random.default_rng(1).integers(0, 1 << 32, count, np.uint32)
    x = cupy.asarray(host)
    arrays = {"data": host.copy()} if placement is Placement.IN_PLACE else {"data": host, "results": host.copy()}
    peer = cub_sort(x, cupy.empty_like(x))
    result = _through_vulkan(f"wgsl sort u4 {count}", "CUB", schedule, arrays, peer, bar)
    np.testing.assert_array_equal(arrays.get("results", arrays["data"]), np.sort(host))
    return result


def _wgsl_argsort(count: int) -> Result:
    cupy: Any = import_module("cupy")
    target, key = gpusort.target("wgsl"), key_for("u4")
    chosen = choose_pairs(target.info, key, 1, count, 4)
    assert chosen is not None, "a Vulkan driver for this card has subgroups"
    schedule = chosen.sort(Batch(RankKey(key), 1, count, SortOrder.ASCENDING, places=U64))
    host, places = np.random.default_rng(1).integers(0, 1 << 32, count, np.uint32), np.zeros(count, np.uint64)
    x = cupy.asarray(host)
    result = _through_vulkan(
        f"wgsl argsort u4 {count}", "cupy.argsort", schedule, {"data": host, "places": places},
        lambda: cupy.argsort(x), None,
    )  # fmt: skip
    np.testing.assert_array_equal(places, np.argsort(host, kind="stable"))
    return result


def _through_vulkan(
    name: str, peer_name: str, schedule: Schedule, arrays: Mapping[str, object], peer: Work, bar: float | None
) -> Result:
    """By the card's clock on both sides: the launches alone, with the data resident."""
    target = gpusort.target("wgsl")
    assert isinstance(target, WgslTarget)
    target.run(schedule, arrays)
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(9):
        for _ in range(20):
            peer()  # a card that waits for the host's copies lowers its clock
        found[1].append(event_clock(peer, 1))
        found[0].append(target.device_seconds(schedule, arrays))
    ours, theirs = map(statistics.median, found)
    result = Result(name, peer_name, ours, theirs, bar)
    print(result.line(), flush=True)
    return result


def _wgsl_sum(count: int) -> Result:
    """The same source on the same card, by the card's clock on both sides."""
    cupy: Any = import_module("cupy")
    x = np.random.default_rng(1).random(count, dtype=np.float32)
    monoid, sums = Sum(number_for("f4")), np.zeros((2, 1), np.float32)
    busy = cupy.zeros(1 << 28, cupy.uint8)
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        for number, name in enumerate(("wgsl", "cuda")):
            target = gpusort.target(name)
            assert isinstance(target, DeviceTimer)
            schedule = reduce_rows(
                monoid, 1, count, choose_axis_reduction(monoid.state, Layout.rows(1, count), target.info)
            )
            for _ in range(200):
                busy += 1  # a card that waits for the host's copies lowers its clock
            found[number].append(target.device_seconds(schedule, {"data": x, "results": sums[number]}))
    np.testing.assert_allclose(sums, x.sum(dtype=np.float64), rtol=1e-5)
    result = Result(f"wgsl sum f4 {count}", "gpusort on cuda", min(found[0]), min(found[1]), 0.9)
    print(result.line(), flush=True)
    return result


def comparisons(largest: int) -> Iterator[Comparison]:
    """All of them, of at most so many elements, by name."""
    for dtype, log, bar in (
        ("u4", 24, 1.35), ("f4", 24, 1.35), ("u4", 28, 1.35), ("f4", 28, 1.35), ("u8", 28, 1.3),
    ):  # fmt: skip
        if 1 << log <= largest:
            yield f"cuda sort {dtype} {1 << log}", partial(_keys, dtype, 1 << log, bar, False)
    for log, bar in ((16, 1.1), (20, 1.4)):
        if 1 << log <= largest:
            yield f"cuda sort u4 {1 << log}, host included", partial(_keys, "u4", 1 << log, bar, True)
    for log, pair_bar in ((28, 1.1), (24, None)):
        if 1 << log <= largest:
            yield f"cuda pairs {1 << log}", partial(_pairs, 1 << log, pair_bar)
    yield "cuda rows", partial(_rows, min(largest // 1024, 65536), 1024, 4.0)
    for function in ("sum", "min", "argmin"):
        yield f"cuda {function}", partial(_reduce, function, min(largest, 1 << 28))
    for dtype, peer in (("f4", "CUB"), ("f4", "torch.cumsum"), ("u4", "cupy.cumsum")):
        yield f"cuda cumsum {dtype}, {peer}", partial(_cumsum, dtype, min(largest, 1 << 28), peer)
    yield "cuda cumsum f4 short, CUB", partial(_cumsum, "f4", min(largest, 1 << 20), "CUB", True)
    yield "cuda cumsum of rows", partial(_cumsum_of_rows, min(largest // 1024, 65536), 1024)
    yield "cuda argsort", partial(_argsort, min(largest, 1 << 28))
    yield "cuda sort of the host's", partial(_from_host, min(largest, 1 << 26))
    yield "wgsl sort u4", partial(_wgsl, min(largest, 1 << 24), 0.5)
    yield "wgsl sort u4 short", partial(_wgsl, min(largest, 1 << 16), None)
    yield "wgsl argsort", partial(_wgsl_argsort, min(largest, 1 << 24))
    yield "wgsl sum", partial(_wgsl_sum, min(largest, 1 << 28))
