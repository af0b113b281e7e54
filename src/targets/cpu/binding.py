"""Binds arrays to the buffers of a schedule: views of the dtypes that kernels load, and new scratch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs
import numpy as np

from ...kernel.launch import Role
from ..binding import HostArray, Work

Array: TypeAlias = HostArray


@attrs.frozen
class Binding:
    """Arrays by buffer name: the caller's own, but for one that lies unaligned: its copy is handed back."""

    arrays: Mapping[str, Array]
    copies: tuple[tuple[Array, Array], ...]  # the caller's array, ours

    @classmethod
    def of(cls, work: Work, given: Mapping[str, HostArray]) -> Binding:
        arrays: dict[str, Array] = {}
        copies: list[tuple[Array, Array]] = []
        for buffer in work.buffers:
            array = given.get(buffer.name)
            if array is None:
                array = np.empty(buffer.count, buffer.dtype)
            if not array.flags.aligned:
                copy = array.copy()
                if buffer.role is not Role.INPUT:
                    copies.append((array, copy))
                array = copy
            arrays[buffer.name] = array
        return cls(arrays, tuple(copies))

    def hand_back(self) -> None:
        for array, copy in self.copies:
            array[...] = copy
