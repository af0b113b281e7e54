"""Copy loops between pageable host memory and a card, through pinned staging buffers, compiled without the GIL.

Several threads run one loop each; as compiled code they do not contend for the GIL. The driver's functions are called
through pointers that are arguments: the compiled code can then be cached, and tests can stand in for the driver.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from textwrap import indent
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ...types.errors import TargetUnavailableError
from ..cpu.loops import Kernel, compiled, place_of

Numbers = npt.NDArray[np.int64]
Way: TypeAlias = Literal["send", "fetch"]  # to the card, or to the host

_DRIVER = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
_NAMES = ("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuCtxSetCurrent")


@cache
def driver_functions() -> Numbers:
    """Addresses of the driver's functions in the order of _NAMES, then of C's memmove."""
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError as error:
        raise TargetUnavailableError(f"target 'cuda': the driver, {_DRIVER}, cannot be loaded: {error}") from error
    functions = [*(getattr(driver, name) for name in _NAMES), ctypes.memmove]
    return np.array([ctypes.cast(function, ctypes.c_void_p).value for function in functions], np.int64)


# memmove by non-temporal stores. Plain stores read each line before overwriting it (write allocate), a third of the
# memory traffic of a copy.
COPY = """
head = min((0 - to) & 63, nbytes)
end = nbytes - ((nbytes - head) & 63)
native(functions[5], to, source, head)
for at in range(head, end, 64):
    copy_line(to + at, source + at)
native(functions[5], to + end, source + end, nbytes - end)
fence()
"""
_SEND = """
    status = native(functions[4], context)
    place = 0
    while status == 0:
        piece = 3 * fetch_add(claimed, 0, 1)
        if piece >= len(pieces):
            break
        slot = memory + place * room
        status = native(functions[3], events[place])
        if status == 0:
            native(functions[5], slot, pieces[piece + 1], pieces[piece + 2])
            status = native(functions[0], pieces[piece], slot, pieces[piece + 2], stream)
        if status == 0:
            status = native(functions[2], events[place], stream)
        place += 1
        if place == len(events):
            place = 0
    said[number] = status
"""
_FETCH = f"""
    status = native(functions[4], context)
    for place in range(len(events)):
        held[place] = len(pieces)
    place = 0
    idle = 0
    while idle < len(events):
        slot = memory + place * room
        if status == 0:
            status = native(functions[3], events[place])
        if status != 0:
            break
        piece = held[place]
        if piece < len(pieces):
            to = pieces[piece + 1]
            source = slot
            nbytes = pieces[piece + 2]
{indent(COPY, " " * 12)}
        piece = 3 * fetch_add(claimed, 0, 1)
        held[place] = piece
        if piece < len(pieces):
            status = native(functions[1], slot, pieces[piece], pieces[piece + 2], stream)
            if status == 0:
                status = native(functions[2], events[place], stream)
        else:
            idle += 1
        place += 1
        if place == len(events):
            place = 0
    said[number] = status
"""
_TAKES = (
    "said: i8[], claimed: i8[], functions: i8[], pieces: i8[], context: i8, stream: i8, room: i8, number: i8, "
    "memory: i8, events: i8[], held: i8[]"
)


@cache
def _loop(way: Way) -> Kernel:
    return compiled(way, _TAKES, {"send": _SEND, "fetch": _FETCH}[way])


def moving(
    way: Way, said: Numbers, pieces: Numbers, context: int, stream: int, room: int
) -> Callable[[int, int, Numbers, Numbers], None]:
    """A function for as many threads as `said` has room for, each with its number, its staging buffers (slots of `room`
    bytes), an event for each, and room for a number for each. While there are pieces it sends the next to the card,
    or fetches it (work stealing: a thread that comes late moves less); the driver's status is left in `said`, 0 if all
    went well. A piece is a device address, a host address and a number of bytes. A buffer's event is recorded when its
    copy is queued, and the buffer reused once that has passed; the last copies to the card are not waited for. The
    thread is given the driver's context, as a new one has none."""
    claimed = np.zeros(1, np.int64)
    move = _loop(way).on(said, claimed, driver_functions(), pieces, context, stream, room)

    def moved(number: int, memory: int, events: Numbers, held: Numbers) -> None:
        move(number, memory, *place_of(events), *place_of(held))

    return moved
