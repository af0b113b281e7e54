"""Which WebGPU implementation is used: wgpu-native through wgpu-py, or the browser's under Pyodide."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager, nullcontext

IN_BROWSER = sys.platform == "emscripten"  # Pyodide's word for it
LIBRARY = f"{__package__}.browser" if IN_BROWSER else "wgpu"
NO_ADAPTER = (
    "this browser gives the page no WebGPU"
    if IN_BROWSER
    else "it needs a Vulkan, Metal or Direct3D 12 driver; Mesa's software one will do (on Debian: apt install "
    "mesa-vulkan-drivers)"
)


def one_opening() -> AbstractContextManager[None]:
    """Spans the opening of a device. In a page, concurrent openings share one device."""
    if not IN_BROWSER:
        return nullcontext()
    from .browser import openings

    return openings.one()


def can_wait() -> bool:
    """Whether a synchronous call can wait for the device: always, except in a page that cannot suspend Python."""
    if not IN_BROWSER:
        return True
    from .javascript import can_wait as can_wait_there

    return can_wait_there()


def exclusive_use() -> AbstractContextManager[object]:
    """A lock on the use of a device. Reentrant: a signal handler may run a schedule, in a session of its own."""
    if not IN_BROWSER:
        return threading.RLock()
    from .javascript import Turn

    return Turn()
