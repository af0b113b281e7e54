"""Where WebGPU comes from: wgpu, or the browser itself if Python runs in a page."""

from __future__ import annotations

import sys
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
    """While a device is opened. In a page calls may wait side by side: of those that open one at a time, each gets the
    same."""
    if not IN_BROWSER:
        return nullcontext()
    from .browser import openings

    return openings.one()


def can_wait() -> bool:
    """Whether a call can wait for the device. In a page it may be that it must be awaited."""
    if not IN_BROWSER:
        return True
    from .javascript import can_wait as can_wait_there

    return can_wait_there()
