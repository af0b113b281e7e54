"""Arrays that cannot be bound where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ...kernel.launch import Buffer, Role
from ...types.errors import CapabilityError, InvalidArgumentError
from .commands import Place
from .memory import padded

if TYPE_CHECKING:
    import wgpu

_COPY_SRC, _COPY_DST = 4, 8  # WebGPU fixes the numbers of these flags
_WRITTEN = (Role.OUTPUT, Role.INOUT)


def staged(given: Sequence[Buffer[Any]], places: Mapping[str, Place], alignment: int) -> Staged | None:
    """What there is to be copied of arrays. None where all can be bound where they lie, as mostly they can."""
    sharers: dict[int, int] = {}
    is_aligned = True
    for place in places.values():
        sharers[id(place.buffer)] = sharers.get(id(place.buffer), 0) + 1
        is_aligned &= not place.offset % alignment
    if is_aligned and len(sharers) == len(places):
        return None
    written = {id(places[buffer.name].buffer) for buffer in given if buffer.role in _WRITTEN}
    names = [
        name
        for name, place in places.items()
        if place.offset % alignment or (id(place.buffer) in written and sharers[id(place.buffer)] > 1)
    ]
    return Staged(given, places, names) if names else None


class Staged:
    """Arrays that WebGPU does not let be bound where they lie: at an odd place, or in a buffer that another has too, of
    which one is written. They are copied to a buffer of their own for the time."""

    def __init__(self, given: Sequence[Buffer[Any]], places: Mapping[str, Place], names: Sequence[str]) -> None:
        self._given = {buffer.name: buffer for buffer in given}
        self._places, self._names = places, names

    def refuse(self) -> NoReturn:
        """Where there is no time of its own: in what is recorded."""
        raise InvalidArgumentError(
            f"arrays[{self._names[0]!r}]: to be recorded, expected a buffer of its own, or one that none is written "
            "in, and an offset that the device binds at"
        )

    def brought(self, encoder: wgpu.GPUCommandEncoder, storage: Any) -> dict[str, Place]:
        """Where everything lies, once what is copied is there."""
        memory = dict(self._places)
        for name in self._names:
            buffer, place = self._given[name], self._places[name]
            size = padded(buffer.nbytes)
            memory[name] = Place(storage(size))
            self._require_copies(name, place, buffer)
            if buffer.nbytes and _is_read(buffer):
                encoder.copy_buffer_to_buffer(place.buffer, place.offset, memory[name].buffer, 0, size)
        return memory

    def put_back(self, encoder: wgpu.GPUCommandEncoder, memory: Mapping[str, Place]) -> None:
        for name in self._names:
            buffer, place = self._given[name], self._places[name]
            if buffer.role in _WRITTEN and buffer.nbytes:
                size = padded(buffer.nbytes)
                encoder.copy_buffer_to_buffer(memory[name].buffer, 0, place.buffer, place.offset, size)

    @staticmethod
    def _require_copies(name: str, place: Place, buffer: Buffer[Any]) -> None:
        wanted = (_COPY_SRC if _is_read(buffer) else 0) | (_COPY_DST if buffer.role in _WRITTEN else 0)
        if place.offset % 4:
            raise CapabilityError(
                f"arrays[{name!r}]: WebGPU copies from places that are a multiple of 4 bytes, found {place.offset}"
            )
        if place.buffer.usage & wanted != wanted:
            raise InvalidArgumentError(
                f"arrays[{name!r}]: at this place of its buffer it must be copied to be worked on; create the buffer "
                "with usage COPY_SRC and COPY_DST"
            )


def _is_read(buffer: Buffer[Any]) -> bool:
    """Whether its bytes matter: those beside it in its last word do too."""
    return buffer.role is not Role.OUTPUT or buffer.nbytes % 4 != 0
