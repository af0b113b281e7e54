"""Two ways of doing a thing, timed side by side in one process."""

from __future__ import annotations

import datetime
import json
import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs

from gpusort.targets.cpu.background import background

background.in_caller = True  # the compiled ways are measured, from the first call on

Work = Callable[[], object]
Clock = Callable[[Work, int], float]  # seconds of one call, from so many calls
Comparison = tuple[str, Callable[[], "Result"]]  # by name


@attrs.frozen
class Result:
    """What one comparison found. A bar is the least ratio aimed at; None where there is none."""

    name: str
    peer: str
    ours_s: float
    peer_s: float
    bar: float | None

    @property
    def ratio(self) -> float:
        """How many times as fast as the peer."""
        return self.peer_s / self.ours_s

    def line(self) -> str:
        times = f"{shown(self.ours_s)}  {self.peer:22s} {shown(self.peer_s)}"
        return f"{self.name:44s} {times}  {self.ratio:6.2f}x{verdict(self.ratio, self.bar)}"

    def as_json(self) -> dict[str, object]:
        return {**attrs.asdict(self), "ratio": self.ratio}


def verdict(ratio: float, bar: float | None) -> str:
    return "" if bar is None else f"  bar {bar:.2f} {'met' if ratio >= bar else 'MISSED'}"


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:9.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:9.3f} ms"


def host_clock(work: Work, calls: int) -> float:
    """By the host's clock, for work that is done when it returns."""
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


def against(
    name: str, peer_name: str, ours: Work, peer: Work, bar: float | None, *, clock: Clock = host_clock,
    rounds: int = 9, calls: int = 1, seconds: float = 0,
) -> Result:  # fmt: skip
    """Medians of rounds by turns, after one call of each to warm up: so many rounds, and for so long at least."""
    ours()
    peer()
    found: tuple[list[float], list[float]] = ([], [])
    start = time.perf_counter()
    while len(found[0]) < rounds or time.perf_counter() - start < seconds:
        for times, work in zip(found, (ours, peer), strict=True):
            times.append(clock(work, calls))
    result = Result(name, peer_name, statistics.median(found[0]), statistics.median(found[1]), bar)
    print(result.line(), flush=True)
    return result


def machine() -> dict[str, object]:
    """Where this ran, and with what."""
    names = ("numpy", "numba", "numba-cuda", "cupy-cuda13x", "wgpu", "torch", "polars", "cuda-cccl")
    return {
        "processor": _processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: found for name in names if (found := _version(name))},
        "targets": [_described(target) for target in _targets()],
    }


def write_results(path: Path, here: dict[str, object], **found: object) -> None:
    """What was found, with the day and the machine, as `machine` tells it."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    path.write_text(json.dumps({"date": date, "machine": here, **found}, indent=1) + "\n")


def _targets() -> list[Any]:
    import gpusort

    found: Any = gpusort.targets
    return [target for target in found() if hasattr(target, "adapter")]


def _described(target: Any) -> dict[str, str]:
    return {"name": target.name, "adapter": target.adapter, "driver": target.driver}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} threads" if names else platform.processor()
