"""Which WebGPU implementation is used, as `wgpu`: wgpu-native through wgpu-py, or the browser's under Pyodide."""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ...types.libraries import Library

__all__ = ["IN_BROWSER", "LIBRARY", "NO_ADAPTER", "can_wait", "exclusive_use", "one_opening", "wgpu"]

IN_BROWSER = sys.platform == "emscripten"  # Pyodide's word for it
LIBRARY = f"{__package__}.browser" if IN_BROWSER else "wgpu"
if TYPE_CHECKING:
    import wgpu
else:
    wgpu = Library(LIBRARY)
NO_ADAPTER = (
    "this browser gives the page no WebGPU"
    if IN_BROWSER
    else "it needs a Vulkan, Metal or Direct3D 12 driver; Mesa's software one will do (on Debian: apt install "
    "mesa-vulkan-drivers)"
)

# `one_opening` spans the opening of a device: in a page, concurrent openings share one. `exclusive_use` is a lock on
# the use of a device, reentrant: a signal handler may run a schedule, in a session of its own. `can_wait` says whether
# a synchronous call can wait for the device: always, except in a page that cannot suspend Python.
if sys.platform == "emscripten":
    from .browser import openings
    from .javascript import Turn as exclusive_use
    from .javascript import can_wait

    one_opening = openings.one
else:
    one_opening, exclusive_use = nullcontext[None], threading.RLock

    def can_wait() -> bool:
        return True
