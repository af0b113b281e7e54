"""Imports the WebGPU implementation as `wgpu`: wgpu-py, or under Pyodide the browser's."""

from __future__ import annotations

import sys

if sys.platform == "emscripten":
    from . import browser as wgpu
else:
    import wgpu

__all__ = ["wgpu"]
