"""The one file that knows all targets: what each is called, how it is opened, and what it can be asked for unopened.

A target is opened when it is first needed and kept. One that cannot be opened here says why, every time it is asked.
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
    if find_spec("numba") is None:
        raise TargetUnavailableError("target 'cpu' compiles loops with Numba, which is not here: pip install numba")
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
    """How a target is opened, and which memories' arrays it takes."""

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
# In a page the kernels of "cpu" have no compiler; there a GPU is waited for without holding up the page.
_FOR_HOST = "wgsl" if sys.platform == "emscripten" else "cpu"
_AUTO: dict[Memory, str] = {Memory.HOST: _FOR_HOST, Memory.CUDA: "cuda", Memory.WEBGPU: "wgsl"}

_lock = OwnLock()
_opened: dict[str, Target] = {}


def target(name: str) -> Target:
    """The target of this name, opened if it is not yet. Raises TargetUnavailableError where it cannot run here."""
    entry = _ENTRIES.get(name) if isinstance(cast(object, name), str) else None
    if entry is None:
        raise InvalidArgumentError(f"target: expected {_names()}, found {name!r}")
    found = _opened.get(name)
    if found is None:
        with _lock.held:
            found = _opened.get(name)
            if found is None:  # in a page, another call may come here while this one waits: the first is kept
                found = _opened.setdefault(name, entry.open())
    return found


def is_opened(found: Target) -> bool:
    """Whether it is the one that its name leads to."""
    return any(found is one for one in _opened.values())


def targets() -> list[TargetInfo | Unavailable]:
    """Every target there is: who runs the kernels and how far it goes, or why it is not here."""
    return [_state(name) for name in _ENTRIES]


def _state(name: str) -> TargetInfo | Unavailable:
    try:
        return target(name).info
    except TargetUnavailableError as error:
        return Unavailable(name, str(error))


def target_on_device(device: Any) -> Target:
    """The target "wgsl" on a device of wgpu that the caller has opened."""
    from .wgsl.target import target_on

    return target_on(device)


async def opened_device() -> wgpu.GPUDevice:
    """A device of wgpu for the target "wgsl", or of the browser that this is a page of."""
    from .wgsl.awaited import opened

    return await opened()


async def read_from_device(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, first: int, size: int) -> memoryview:
    """So many bytes of a buffer on a device of wgpu, from one on, once all that was submitted is done."""
    from .wgsl.awaited import read

    return await read(device, buffer, first, size)


def choose(wanted: str | Target, memory: Memory, device: object | None = None) -> Target:
    """The target for an array that lies there: by its name, by "auto", or itself where it is one already. On the
    caller's own device, if the array lies on such."""
    if not isinstance(wanted, str):
        if not isinstance(wanted, type) and callable(getattr(wanted, "run", None)) and hasattr(wanted, "info"):
            return wanted
        raise InvalidArgumentError(f"target: expected {_choices()}, or a Target, found {wanted!r}")
    name = _AUTO[memory] if wanted == "auto" else wanted
    entry = _ENTRIES.get(name)
    if entry is None:
        raise InvalidArgumentError(f"target: expected {_choices()}, found {name!r}")
    if memory not in entry.takes:
        fitting = " or ".join(repr(other) for other in _ENTRIES if memory in _ENTRIES[other].takes)
        raise InvalidArgumentError(
            f"target: {name!r} works in host memory, and the array lies on {memory.value}; use {fitting}, or copy it"
        )
    return target(name) if device is None else target_on_device(device)


def _choices() -> str:
    return f"'auto', {_names()}"


def _names() -> str:
    return ", ".join(map(repr, _ENTRIES))


# -- generated text, which needs no device ----------------------------------------------------------------


def _cpu_text(step: Step) -> str:
    from .cpu.text import module_text

    return module_text(step.program)


def _wgsl_text(step: Step) -> str:
    from .wgsl.kernel import written

    return written(step.program)[1].text


def _cuda_text(step: Step) -> str:
    from .cuda.compile import text_of

    return text_of(step.program).source


def _ptx_text(step: Step) -> str:
    try:
        from .cuda.compile import compile_ptx

        return compile_ptx(step.program)
    except ImportError as error:
        raise TargetUnavailableError(
            f"PTX is compiled by numba-cuda: pip install 'numba-cuda[cu13]' ({error})"
        ) from error


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
