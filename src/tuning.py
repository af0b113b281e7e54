"""Autotuning: `gpusort.tune()` measures which sorts are fastest here, to override the built-in tables in all
processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeAlias

import numpy as np

from .algos import tuned
from .algos.choice import choose_bitonic, choose_sort
from .algos.rules import SortRule
from .algos.sorts import Bitonic, Radix, SortAlgorithm
from .api.call import forget_plans
from .machine import Capability, TargetInfo
from .targets.base import DeviceTimer, HostTarget, Target
from .targets.registry import choose
from .targets.registry import target as target_of
from .targets.registry import targets as all_targets
from .types.checks import index_of
from .types.dtypes import key_for
from .types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError
from .types.indices import Placement, SortOrder
from .types.params import RadixPolicy
from .types.specs import Memory

Report: TypeAlias = Callable[[str], object]

_TUNED = ("cpu", "wgsl", "cuda")
_KINDS = (("u4", (8, 16, 32)), ("u8", (64,)))  # dtypes measured, and the element sizes in bits that they stand for
_ROUNDS = 5
_WORTH = 0.97  # a rule is stored for candidates that take less than this part of the default's time
_SHAPES = ((256, 8), (256, 12), (256, 16), (384, 14), (384, 16), (384, 24), (384, 28), (512, 5), (512, 7), (512, 11))
_SHAPES_OF_MASKS = ((128, 14), (128, 28), (256, 14))  # without subgroups, with digits of seven bits


def tune(target: str | Target | None = None, *, largest: int = 1 << 22, report: Report | None = print) -> None:
    """Measures and stores which sorts are fastest here: on one `target`, or on all but software adapters.

    Takes some minutes on a card, mostly to compile. `largest` is the length of the longest array to try; `report` gets
    a line for each measurement.
    """
    largest = index_of("largest", largest)
    if report is not None and not callable(report):
        raise UnsupportedTypeError(f"report: expected a function or None, found {report!r}")
    if largest < 1 << 12:
        raise InvalidArgumentError(f"largest: expected a length of at least {1 << 12}, found {largest}")
    tell: Report = report or (lambda line: None)
    for found in _targets(target):
        info = found.info
        if target is None and info.is_software:
            tell(f"{info.name}: left out, for {info.adapter} is software; name the target to measure it")
            continue
        if isinstance(found, HostTarget):
            lines = list(found.tune(largest, tell))
        elif isinstance(found, DeviceTimer):
            lines = _tuned_sorts(found, info, largest, tell)
        else:
            raise CapabilityError(f"target {info.name!r} has no clock to tune by, and nothing to tune")
        path = tuned.keep_sorts(info, lines)
        forget_plans()
        place = f"in {path}" if path else "for this process alone: there is no cache directory to use"
        tell(f"{info.name}: kept {place}")


def forget_tuning(target: str | Target | None = None) -> None:
    """Removes stored rules of one `target`, or of all: back to the built-in tables."""
    for found in _targets(target):
        tuned.forget(found.info.name, found.info.adapter)
        if isinstance(found, HostTarget):
            found.read_tuning()
    forget_plans()


def _targets(target: str | Target | None) -> list[Target]:
    if target is not None:
        return [choose(target, Memory.HOST)]
    here = [state.name for state in all_targets() if isinstance(state, TargetInfo)]
    return [target_of(name) for name in _TUNED if name in here]


def _tuned_sorts(target: DeviceTimer, info: TargetInfo, largest: int, tell: Report) -> list[SortRule]:
    lines: list[SortRule] = []
    lengths = [1 << log for log in range(12, largest.bit_length(), 2)]
    for dtype, bits in _KINDS:
        for length in lengths:
            best = _best(target, info, dtype, length, tell)
            if best is not None:
                lengths_alike = range(length // 2, 1 << 32 if length == lengths[-1] else 2 * length)
                lines.append(SortRule(info.name, frozenset(), bits, lengths_alike, range(1, 2), best))
    return lines


def _best(target: DeviceTimer, info: TargetInfo, dtype: str, length: int, tell: Report) -> Radix | Bitonic | None:
    """The fastest algorithm for a length, if it beats the built-in table's choice by enough; else None."""
    key = key_for(dtype)
    usual = choose_sort(info, key, 1, length, with_tuned=False)
    least = usual_time = _seconds(target, usual, dtype, length)
    tell(f"{info.name} {dtype} {length}: {_named(usual)}, the table's choice, {_shown(usual_time)}")
    best: Radix | Bitonic | None = None
    for candidate in _candidates(info, dtype):
        if candidate == usual or not candidate.most_rows(length, info.limits.groups):
            continue
        found = _seconds(target, candidate, dtype, length)
        if found is not None:
            tell(f"{info.name} {dtype} {length}: {_named(candidate)} {_shown(found)}")
            if least is None or found < least * (1 if best else _WORTH):
                best, least = candidate, found
    return best


def _candidates(info: TargetInfo, dtype: str) -> Iterator[Radix | Bitonic]:
    yield choose_bitonic(key_for(dtype).word, info.limits)
    if Capability.SUBGROUPS not in info.capabilities:
        for group_size, items in _SHAPES_OF_MASKS:
            with suppress(CapabilityError):
                yield Radix(RadixPolicy(7, group_size, items, 32, subgroups=False)).fitted(key_for(dtype), 0, info)
        return
    strand = info.limits.subgroup_size
    for group_size, items in _SHAPES:
        if group_size <= info.limits.group_size:
            yield Radix(RadixPolicy(8, group_size, items, strand))
            if Capability.FORWARD_PROGRESS in info.capabilities:
                copies = 32 if dtype == "u4" and info.limits.workgroup_bytes >= 1 << 17 else 4
                counting = min(1024, info.limits.group_size)
                yield Radix(RadixPolicy(8, group_size, items, strand, True, 4, counting, 8, copies, 132, sweeps=True))


def _seconds(target: DeviceTimer, algorithm: SortAlgorithm, dtype: str, length: int) -> float | None:
    """The least device time of a sort; None if the target cannot run it, or the result is wrong."""
    key, drawn = key_for(dtype), np.random.default_rng(length)
    x = drawn.integers(0, 256, length * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    placement = algorithm.placements(key)[0]
    schedule = algorithm.schedule(key, 1, length, SortOrder.ASCENDING, placement)
    expected, times = np.sort(x), list[float]()
    for _ in range(_ROUNDS):
        data, results = x.copy(), np.empty_like(x)
        arrays = {"data": data} if placement is Placement.IN_PLACE else {"data": data, "results": results}
        try:
            times.append(target.device_seconds(schedule, arrays))
        except CapabilityError:
            return None
        if not np.array_equal(data if placement is Placement.IN_PLACE else results, expected):
            return None
    return min(times)


def _named(algorithm: SortAlgorithm) -> str:
    """A short description of an algorithm."""
    if not isinstance(algorithm, Radix):
        return type(algorithm).__name__.lower()
    policy = algorithm.policy
    return f"radix{' sweep' if policy.sweeps else ''} of {policy.group_size} x {policy.items}"


def _shown(seconds: float | None) -> str:
    return "failed" if seconds is None else f"takes {seconds * 1e6:.1f} us"
