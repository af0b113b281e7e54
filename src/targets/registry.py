"""The registry of targets: names, lazy opening, choice for an array's memory, and code generation without a device. A
target is opened when first needed, and cached. If that fails, each attempt raises TargetUnavailableError again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec, resolve_name
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs

from ..forks import OwnLock
from ..machine import TargetInfo
from ..types.errors import InvalidArgumentError, TargetUnavailableError
from ..types.specs import Memory
from .base import Target
from .uninterrupted import import_uninterrupted

if TYPE_CHECKING:
    from ..kernel.launch import Step

Reduced: TypeAlias = tuple[Callable[..., Target], tuple[object, ...]]  # the result of __reduce__


@attrs.frozen
class Unavailable:
    """A target that cannot be opened here."""

    name: str
    reason: str


TargetState: TypeAlias = TargetInfo | Unavailable


@attrs.frozen
class _Entry:
    """A target's class, in a module of this package, and the memories of arrays that it takes."""

    module: str
    name: str
    takes: frozenset[Memory] = frozenset({Memory.HOST})
    needs: str = ""  # a package

    def open(self) -> Target:
        if self.needs and find_spec(self.needs) is None:
            name = self.module.partition(".")[0]
            advice = ", which no page has" if sys.platform == "emscripten" else f": pip install {self.needs}"
            raise TargetUnavailableError(f"target {name!r} needs {self.needs}{advice}")
        opened: Target = _loaded(self.module, self.name)()
        return opened


def _loaded(module: str, name: str) -> Callable[..., Any]:
    """What a module of this package has by a name: imported no earlier than it is needed, and in a helper thread, so
    that a signal handler finds none or all of it."""
    home = import_uninterrupted(resolve_name(f".{module}", __package__))
    found: Callable[..., Any] = getattr(home, name)
    return found


_ENTRIES: dict[str, _Entry] = {
    "cpu": _Entry("cpu.target", "CpuTarget", needs="llvmlite"),
    "wgsl": _Entry("wgsl.target", "WgslTarget", frozenset({Memory.HOST, Memory.WEBGPU})),
    "cuda": _Entry("cuda.target", "CudaTarget", frozenset({Memory.HOST, Memory.CUDA})),
    "simulator": _Entry("simulator.target", "Simulator"),
    "python": _Entry("python.target", "PlainPython"),
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


def reduce_to_name(name: str) -> Reduced:
    """Pickles a target by its name: it is opened again where it is unpickled; in this process it is the same object."""
    return target, (name,)


def reduce_to_settings(one: Target, *settings: object) -> Reduced:
    """By its name if it is the registered target of that, else as a new one with these settings."""
    is_registered = any(one is found for found in _opened.values())
    return reduce_to_name(one.info.name) if is_registered else (type(one), settings)


def targets() -> list[TargetState]:
    """All targets: what runs their kernels, with which limits; or why one is not available."""
    found: list[TargetState] = []
    for name in _ENTRIES:
        try:
            found.append(target(name).info)
        except TargetUnavailableError as error:
            found.append(Unavailable(name, str(error)))
    return found


def usual_info(name: str) -> TargetInfo:
    """What kernels of the target "cpu" or "wgsl" have on any machine: nothing is opened."""
    return cast(TargetInfo, _loaded({"cpu": "cpu.limits", "wgsl": "wgsl.defaults"}[name], "USUAL"))


def choose(wanted: str | Target, memory: Memory, device: object | None = None, parameter: str = "target") -> Target:
    """The target for an array in some memory: by name, by "auto", or `wanted` itself if it is a target. On `device` if
    the array is on a wgpu device of the caller's. Raises InvalidArgumentError, which names the parameter."""
    if not isinstance(wanted, str):
        if not isinstance(wanted, type) and callable(getattr(wanted, "run", None)) and hasattr(wanted, "info"):
            return wanted
        raise InvalidArgumentError(f"{parameter}: expected {_choices()}, or a Target, found {wanted!r}")
    require_name(wanted, parameter)
    name = _AUTO[memory] if wanted == "auto" else wanted
    entry = _ENTRIES[name]
    if memory not in entry.takes:
        fitting = " or ".join(repr(other) for other in _ENTRIES if memory in _ENTRIES[other].takes)
        raise InvalidArgumentError(
            f"{parameter}: {name!r} works in host memory, and the array is on {memory.value}; use {fitting}, or copy it"
        )
    return target(name) if device is None else _loaded("webgpu", "target_on_device")(device)


def require_name(wanted: str, parameter: str = "target") -> None:
    """Raises InvalidArgumentError, which names the parameter, for what is neither "auto" nor a target's name."""
    if wanted != "auto" and wanted not in _ENTRIES:
        raise InvalidArgumentError(f"{parameter}: expected {_choices()}, found {wanted!r}")


def _choices() -> str:
    return f"'auto', {_names()}"


def _names() -> str:
    return ", ".join(map(repr, _ENTRIES))


# Code generation, which needs no device.
FORMS: dict[str, Callable[[Step], str]] = {
    "ir": lambda step: _loaded(".kernel.listing", "listing")(step.program),
    "cpu": lambda step: _loaded("cpu.text", "module_text")(step.program),
    "wgsl": lambda step: _loaded("wgsl.kernel", "lower_to_wgsl")(step.program)[1].text,
    "cuda": lambda step: _loaded("cuda.compile", "text_of")(step.program).source,
    "ptx": lambda step: _loaded("cuda.compile", "compile_ptx")(step.program),
}
