"""The WebGPU implementation as `wgpu`: wgpu-py, or under Pyodide the browser's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...types.libraries import Library
from .runtime import LIBRARY

__all__ = ["wgpu"]

if TYPE_CHECKING:
    import wgpu
else:
    wgpu = Library(LIBRARY)
