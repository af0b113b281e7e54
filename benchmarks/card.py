"""A card's clocks, data that lies there, and its libraries at work: what comparisons on a card share."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from importlib import import_module
from typing import Any

import gpusort
from benchmarks.timing import Work

Array = Any  # of a library that need not be here


def is_here() -> bool:
    try:
        gpusort.target("cuda")
    except gpusort.TargetUnavailableError:
        return False
    return True


def require_card(parser: ArgumentParser) -> None:
    if not is_here():
        parser.error("there is no card for CUDA")


def event_clock(work: Work, calls: int) -> float:
    """By the card's clock."""
    cupy: Any = import_module("cupy")
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end)) / 1e3 / calls


def call_clock(work: Work, calls: int) -> float:
    """By the host's clock, with the host's part of every call counted in, until the card is done."""
    cupy: Any = import_module("cupy")
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    cupy.cuda.Device().synchronize()
    return (time.perf_counter() - start) / calls


def uniform(dtype: str, count: int) -> Array:
    cupy: Any = import_module("cupy")
    if dtype == "f4":
        return cupy.random.random(count, dtype=cupy.float32)
    words = cupy.random.randint(0, 2**32, count, dtype=cupy.uint32)
    if dtype == "u8":
        return (words.astype("u8") << 32) | cupy.random.randint(0, 2**32, count, dtype=cupy.uint32)
    return words.astype(dtype)


def cub_sort(keys: Array, sorted_keys: Array, values: Array = None, moved: Array = None) -> Work:
    """CUB's radix sort through cuda.compute, its scratch allocated once."""
    cupy: Any = import_module("cupy")
    compute: Any = import_module("cuda.compute")
    arrays = {"d_in_keys": keys, "d_out_keys": sorted_keys, "d_in_values": values, "d_out_values": moved}
    sorter = compute.make_radix_sort(**arrays, order=compute.SortOrder.ASCENDING)
    scratch = cupy.empty(sorter(temp_storage=None, num_items=keys.size, **arrays), cupy.uint8)
    return lambda: sorter(temp_storage=scratch, num_items=keys.size, **arrays)


def cub_cumsum(x: Array) -> Work:
    """CUB's inclusive sum through cuda.compute, its scratch allocated once."""
    cupy: Any = import_module("cupy")
    compute: Any = import_module("cuda.compute")
    arrays = {"d_in": x, "d_out": cupy.empty_like(x), "op": compute.OpKind.PLUS, "init_value": None}
    scanner = compute.make_inclusive_scan(**arrays)
    scratch = cupy.empty(scanner(temp_storage=None, num_items=x.size, **arrays), cupy.uint8)
    return lambda: scanner(temp_storage=scratch, num_items=x.size, **arrays)


def torch_cumsum(x: Array, dim: int) -> Work:
    torch: Any = import_module("torch")
    tensor = torch.as_tensor(x, device="cuda")
    return lambda: torch.cumsum(tensor, dim)
