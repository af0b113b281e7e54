"""Where arrays lie."""

from __future__ import annotations

from ..base import HostArray


def address_of(array: HostArray) -> int:
    """Of its first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def place_of(array: HostArray) -> tuple[int, int]:
    """Where packed elements are, and how many: as our compiler's kernels take an array."""
    return address_of(array), array.size
