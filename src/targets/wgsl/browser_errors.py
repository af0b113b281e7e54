"""Errors of a browser's WebGPU, which come as events: collected, and raised by the next call that waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import js


class GPUError(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class GPUValidationError(GPUError): ...


class GPUOutOfMemoryError(GPUError, MemoryError): ...


class GPUInternalError(GPUError): ...


_KINDS: Mapping[str, type[GPUError]] = {
    kind.__name__: kind for kind in (GPUValidationError, GPUOutOfMemoryError, GPUInternalError)
}


class Errors:
    """The uncaptured errors and the loss of one device. Error scopes that the page pushes itself are not disturbed."""

    def __init__(self, device: js.GPUDevice) -> None:
        from pyodide.ffi import create_once_callable, create_proxy

        lost: list[str] = []
        refused: list[GPUError] = []

        # The device keeps its callbacks alive, so they refer to these lists only.
        def is_lost(info: js.GPUDeviceLostInfo) -> None:
            lost.append(info.message or info.reason)

        def is_refused(event: js.GPUUncapturedErrorEvent) -> None:
            refused.append(_KINDS.get(event.error.constructor.name, GPUError)(event.error.message))

        device.lost.then(create_once_callable(is_lost))
        device.addEventListener("uncapturederror", create_proxy(is_refused))
        self._lost, self._refused = lost, refused

    def forget(self) -> None:
        self._refused.clear()

    def require_none(self) -> None:
        """Raises the first error since the last call."""
        first, gone = [*self._refused[:1]], [*self._lost]
        self.forget()
        if gone:
            raise GPUValidationError(f"Parent device is lost: {gone[0]}")
        for error in first:
            raise error
