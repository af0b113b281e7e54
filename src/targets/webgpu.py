"""What the front asks of the target "wgsl" alone, for arrays in buffers on a device of the caller's."""

from __future__ import annotations

from .wgsl.device import opened as opened_device
from .wgsl.device import read as read_from_device
from .wgsl.errors import require_whole
from .wgsl.errors import translated_errors as wgpu_errors
from .wgsl.target import target_on as target_on_device

__all__ = ["opened_device", "read_from_device", "require_whole", "target_on_device", "wgpu_errors"]
