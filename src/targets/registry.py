"""The registry of targets: names, lazy opening, choice for an array's memory, and code generation without a device.

A target is opened when first needed, and cached. If that fails, each attempt raises TargetUnavailableError again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs

from ..forks import OwnLock
from ..machine import TargetInfo
from ..types.errors import InvalidArgumentError, TargetUnavailableError
from ..types.specs import Memory
from .base import Target

if TYPE_CHECKING:
    import wgpu

    from ..kernel.launch import Step


@attrs.frozen
class Unavailable:
    """A target that cannot be opened here."""

    name: str
    reason: str


def _cpu() -> Target:
    if find_spec("llvmlite") is None:
        raise TargetUnavailableError("target 'cpu' needs llvmlite, which is not installed, or not to be had in a page")
    from .cpu.target import CpuTarget

    return CpuTarget()


def _wgsl() -> Target:
    from .wgsl.target import WgslTarget

    return WgslTarget()


def _cuda() -> Target:
    from .cuda.target import CudaTarget

    return CudaTarget()


def _simulator() -> Target:
    from .simulator.target import Simulator

    return Simulator()


def _python() -> Target:
    from .python.target import PlainPython

    return PlainPython()


@attrs.frozen
class _Entry:
    """How to open a target, and the memories of arrays that it takes."""

    open: Callable[[], Target]
    takes: frozenset[Memory] = frozenset({Memory.HOST})


_ENTRIES: dict[str, _Entry] = {
    "cpu": _Entry(_cpu),
    "wgsl": _Entry(_wgsl, frozenset({Memory.HOST, Memory.WEBGPU})),
    "cuda": _Entry(_cuda, frozenset({Memory.HOST, Memory.CUDA})),
    "simulator": _Entry(_simulator),
    "python": _Entry(_python),
}
NAMES: tuple[str, ...] = tuple(_ENTRIES)
# Under Pyodide there is no compiler for the target "cpu".
_FOR_HOST = "wgsl" if sys.platform == "emscripten" else "cpu"
_AUTO: dict[Memory, str] = {Memory.HOST: _FOR_HOST, Memory.CUDA: "cuda", Memory.WEBGPU: "wgsl"}

_lock = OwnLock()
_opened: dict[str, Target] = {}


def target(name: str) -> Target:
    """The target of this name, opened at the first call. Raises TargetUnavailableError if it cannot run here."""
    entry = _ENTRIES.get(name) if isinstance(cast(object, name), str) else None
    if entry is None:
        raise InvalidArgumentError(f"target: expected {_names()}, found {name!r}")
    found = _opened.get(name)
    if found is None:
        with _lock.held:
            found = _opened.get(name)
            if found is None:  # setdefault: in a page, another call may open one while this one is suspended
                found = _opened.setdefault(name, entry.open())
    return found


def is_opened(found: Target) -> bool:
    """Whether this object is the registered target of its name."""
    return any(found is one for one in _opened.values())


def targets() -> list[TargetInfo | Unavailable]:
    """All targets: what runs their kernels, with which limits; or why one is not available."""
    return [_state(name) for name in _ENTRIES]


def _state(name: str) -> TargetInfo | Unavailable:
    try:
        return target(name).info
    except TargetUnavailableError as error:
        return Unavailable(name, str(error))


def target_on_device(device: Any) -> Target:
    """The target "wgsl" on a wgpu device of the caller's."""
    from .wgsl.target import target_on

    return target_on(device)


async def opened_device() -> wgpu.GPUDevice:
    """Opens a wgpu device as the target "wgsl" would; in a page, the browser's."""
    from .wgsl.awaited import opened

    return await opened()


async def read_from_device(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, first: int, size: int) -> memoryview:
    """Reads `size` bytes from byte `first` of a buffer on a wgpu device, after all submitted work."""
    from .wgsl.awaited import read

    return await read(device, buffer, first, size)


def choose(wanted: str | Target, memory: Memory, device: object | None = None, parameter: str = "target") -> Target:
    """The target for an array in some memory: by name, by "auto", or `wanted` itself if it is a target. On `device` if
    the array is on a wgpu device of the caller's. Raises InvalidArgumentError, which names the parameter."""
    if not isinstance(wanted, str):
        if not isinstance(wanted, type) and callable(getattr(wanted, "run", None)) and hasattr(wanted, "info"):
            return wanted
        raise InvalidArgumentError(f"{parameter}: expected {_choices()}, or a Target, found {wanted!r}")
    name = _AUTO[memory] if wanted == "auto" else wanted
    entry = _ENTRIES.get(name)
    if entry is None:
        raise InvalidArgumentError(f"{parameter}: expected {_choices()}, found {name!r}")
    if memory not in entry.takes:
        fitting = " or ".join(repr(other) for other in _ENTRIES if memory in _ENTRIES[other].takes)
        raise InvalidArgumentError(
            f"{parameter}: {name!r} works in host memory, and the array is on {memory.value}; use {fitting}, or copy it"
        )
    return target(name) if device is None else target_on_device(device)


def _choices() -> str:
    return f"'auto', {_names()}"


def _names() -> str:
    return ", ".join(map(repr, _ENTRIES))


# -- code generation, which needs no device ---------------------------------------------------------------


def _cpu_text(step: Step) -> str:
    from .cpu.text import module_text

    return module_text(step.program)


def _wgsl_text(step: Step) -> str:
    from .wgsl.kernel import lower_to_wgsl

    return lower_to_wgsl(step.program)[1].text


def _cuda_text(step: Step) -> str:
    from .cuda.compile import text_of

    return text_of(step.program).source


def _ptx_text(step: Step) -> str:
    from .cuda.compile import compile_ptx

    return compile_ptx(step.program)


def _ir_text(step: Step) -> str:
    from ..kernel.listing import listing

    return listing(step.program)


FORMS: dict[str, Callable[[Step], str]] = {
    "ir": _ir_text,
    "cpu": _cpu_text,
    "wgsl": _wgsl_text,
    "cuda": _cuda_text,
    "ptx": _ptx_text,
}

TargetState: TypeAlias = TargetInfo | Unavailable
