"""What speaks WebGPU here: wgpu, or the browser itself where Python runs in a page."""

from __future__ import annotations

import sys

if sys.platform == "emscripten":
    from . import browser as wgpu
else:
    import wgpu

__all__ = ["wgpu"]
