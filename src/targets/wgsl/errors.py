"""wgpu's errors as gpusort's, also those that wgpu can only log."""

from __future__ import annotations

import logging
from functools import cache

from ...types.errors import CapabilityError, DeviceLostError, DeviceMemoryError, GpusortError, InvalidArgumentError
from .runtime import IN_BROWSER, wgpu

COMPUTE = 4  # ShaderStage.COMPUTE
# What wgpu says in validation errors of a buffer.
_NO_MEMORY, _TOO_LONG = "Not enough memory left", "greater than the maximum buffer size"


class _ErrorLog(logging.Handler):
    """Collects asynchronous errors, which wgpu can only log, for all that are to be told of them. One for the process,
    and without a lock: an interrupt while a handler is made, added or called leaks logging's own locks, and every other
    thread that logs would hang."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: dict[int, list[str]] = {}  # by the identity of who is told; a change is one call into C

    def handle(self, record: logging.LogRecord) -> bool:
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        for messages in list(self.messages.values()):
            messages.append(record.getMessage())


class translated_errors:
    """A context manager that translates wgpu's errors, also those only logged, to gpusort's. A class: entering it takes
    less time than a generator."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        _listening().messages[id(self)] = []

    def __exit__(self, _class: object, error: BaseException | None, _traceback: object) -> None:
        messages = _listening().messages.pop(id(self), [])
        if error is None and messages:
            _raise_ours(self._what, wgpu.GPUError("; ".join(messages)))
        elif isinstance(error, Exception):
            _raise_ours(self._what, error)


def _listening() -> _ErrorLog:
    """The log of errors, added to wgpu's logger where that does not have it (again: configuring logging removes it)."""
    logger, errors = _log()
    if errors not in logger.handlers:
        logger.addHandler(errors)
    return errors


@cache
def _log() -> tuple[logging.Logger, _ErrorLog]:
    """First called as a device is opened, which nothing interrupts, and once wgpu has made its logger."""
    return logging.getLogger("wgpu"), _ErrorLog()


def _raise_ours(what: str, error: Exception) -> None:
    """Raises gpusort's error for one of wgpu's; returns for others."""
    if isinstance(error, GpusortError):
        return
    said = innermost(error)
    if isinstance(error, wgpu.GPUOutOfMemoryError) or (isinstance(error, wgpu.GPUError) and _NO_MEMORY in said):
        raise DeviceMemoryError(f"{what}: the device has too little free memory ({said})") from error
    if isinstance(error, wgpu.GPUError | RuntimeError) and is_loss(error):
        raise DeviceLostError(f"{what}: the device was lost ({said})") from error
    if isinstance(error, wgpu.GPUError):
        refused = CapabilityError if _TOO_LONG in said else GpusortError
        raise refused(f"{what}: wgpu refuses: {said}") from error


def require_unmapped(name: str, buffer: wgpu.GPUBuffer) -> None:
    """wgpu-native ends the process if a mapped buffer is submitted. A page's own buffer has no such attribute."""
    if getattr(buffer, "map_state", None) == "mapped":
        raise InvalidArgumentError(f"{name}: expected a buffer that is not mapped; call buffer.unmap() first")


def require_whole(name: str, buffer: wgpu.GPUBuffer, device: wgpu.GPUDevice) -> None:
    """The same for one that was destroyed, of which only a bind group is refused with an error."""
    require_unmapped(name, buffer)
    if not IN_BROWSER and buffer.size:
        layout = device.create_bind_group_layout(
            entries=[{"binding": 0, "visibility": COMPUTE, "buffer": {"type": "read-only-storage"}}]
        )
        device.create_bind_group(
            layout=layout, entries=[{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": 4}}]
        )


def is_loss(error: BaseException) -> bool:
    """Whether wgpu reports that the device is lost."""
    text = str(error).lower()
    return "lost" in text or "device is invalid" in text or ("destroyed" in text and "buffer" not in text)


def innermost(error: BaseException) -> str:
    """What is wrong: wgpu's causes lie in each other, and Chromium says behind it in which calls ("- While ...")."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith("- ")]
    return told[-1] if told else type(error).__name__
