"""`gpusort demo`: sorts on every available target, and compares each result with NumPy's bit for bit."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator

import attrs
import numpy as np
import numpy.typing as npt

from . import __version__
from .api.sorting import sort
from .targets.registry import NAMES, target
from .terminal import Terminal, Tone
from .types.errors import TargetUnavailableError
from .types.specs import HostArray

_SHOWN = 10
_LABEL = 8  # columns


@attrs.frozen
class Case:
    title: str
    values: HostArray
    descending: bool = False


def cases() -> Iterator[Case]:
    numbers = np.random.default_rng(2025)
    u32 = numbers.integers(0, 1 << 32, 1000, np.uint32)
    yield Case("1000 random u32", u32)
    greatest = (1 << 32) - 1
    yield Case("special u32", np.array([greatest, 0, 1 << 31, 1, greatest, (1 << 31) - 1, 0, greatest - 1], np.uint32))
    least = -(1 << 31)
    yield Case("special i32", np.array([0, least, -1, (1 << 31) - 1, 1, least, least + 1, 0], np.int32))
    yield Case("special f32", _special_floats())
    yield Case("1000 random u32, descending", u32, descending=True)
    yield Case("special f32, descending", _special_floats(), descending=True)


def _special_floats() -> npt.NDArray[np.float32]:
    """NaNs of both signs and several payloads, infinities, zeros of both signs, subnormals, the extremes."""
    bits = [
        0x7FC00000, 0x3F800000, 0xFFC00001, 0x80000000, 0x7F800000, 0x00000001, 0xFF800000, 0x00000000,
        0xBF800000, 0x807FFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x7FA00005, 0x80000000, 0x42280000, 0x00000000,
    ]  # fmt: skip
    return np.array(bits, np.uint32).view(np.float32)


def sorted_by_numpy(case: Case) -> HostArray:
    """The expected result: NumPy's stable sort, with NaN last in both directions."""
    if not case.descending:
        return np.sort(case.values, kind="stable")
    backwards = np.sort(case.values[::-1], kind="stable")[::-1]
    nans = int(np.count_nonzero(backwards != backwards))
    return np.concatenate([backwards[nans:], backwards[:nans]])


def run_demo(terminal: Terminal) -> bool:
    """Runs every case on every available target; returns whether all passed."""
    terminal.line(terminal.toned(f"gpusort {__version__}: one kernel, every target", Tone.TITLE))
    python = f"{platform.python_implementation()} {platform.python_version()}, NumPy {np.__version__}"
    terminal.line(f"{'host':{_LABEL}}{platform.node()}: {platform.system()} {platform.machine()}, {python}")
    passed: dict[str, bool] = {}
    for name in NAMES:
        terminal.line()
        terminal.note(f"opening {name} …")
        try:
            info = target(name).info
        except TargetUnavailableError as error:
            terminal.forget_note()
            reason = str(error).removeprefix(f"target {name!r}: ")
            terminal.line(f"{terminal.toned(name, Tone.TITLE)}: not available: {reason}")
            continue
        terminal.forget_note()
        terminal.line(terminal.toned(name, Tone.TITLE))
        terminal.line(f"  {'adapter':{_LABEL}}{info.adapter}")
        terminal.line(f"  {'driver':{_LABEL}}{info.driver}")
        results = [_run_case(terminal, case, name) for case in cases()]
        passed[name] = all(results)
    terminal.line()
    for well in (True, False):
        names = [name for name in passed if passed[name] is well]
        if names:
            terminal.line(f"{_verdict(terminal, well)} on {', '.join(names)}")
    return all(passed.values())


def _run_case(terminal: Terminal, case: Case, name: str) -> bool:
    terminal.note(f"  {case.title}: compiling for {name} …")
    results, times = list[HostArray](), list[float]()
    try:
        for _ in range(2):
            started = time.perf_counter()
            results.append(sort(case.values, descending=case.descending, stable=True, target=name))
            times.append(time.perf_counter() - started)
    except Exception as error:  # report any failure, and go on with the other targets
        terminal.forget_note()
        terminal.line(f"  {_verdict(terminal, False)} {case.title}: {type(error).__name__}: {error}")
        return False
    terminal.forget_note()
    found, expected = results[0], sorted_by_numpy(case).tobytes()
    passed = all(result.tobytes() == expected for result in results)
    took = terminal.toned(f"{_seconds(times[1])} (first call {_seconds(times[0])})", Tone.QUIET)
    terminal.line(f"  {_verdict(terminal, passed)} {case.title}: {took}")
    is_long = len(found) > 2 * _SHOWN
    for label, part in (("first", found[:_SHOWN]), ("last", found[-_SHOWN:])) if is_long else (("all", found),):
        terminal.line(f"    {label:{_LABEL}}{' '.join(map(str, part))}")
    return passed


def _verdict(terminal: Terminal, passed: bool) -> str:
    return terminal.toned("PASSED", Tone.GOOD) if passed else terminal.toned("FAILED", Tone.BAD)


def _seconds(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.0f} us"
