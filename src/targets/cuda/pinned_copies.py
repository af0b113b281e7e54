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
_BEGIN = """
    status = native(functions[4], context)
    slots = len(events)
"""
_SEND = """
    turn = 0
    for number in range(first, first + mine * step, step):
        piece = 3 * number
        if status == 0:
            status = native(functions[3], events[turn])
        if status != 0:
            break
        slot = memory + turn * room
        native(functions[5], slot, pieces[piece + 1], pieces[piece + 2])
        status = native(functions[0], pieces[piece], slot, pieces[piece + 2], stream)
        if status == 0:
            status = native(functions[2], events[turn], stream)
        turn += 1
        if turn == slots:
            turn = 0
    said[first] = status
"""
_FETCH = f"""
    place = 0
    for turn in range(0, mine + slots):
        slot = memory + place * room
        if status == 0:
            status = native(functions[3], events[place])
        if status != 0:
            break
        if turn >= slots:
            if turn - slots < mine:
                past = 3 * (first + (turn - slots) * step)
                to = pieces[past + 1]
                source = slot
                nbytes = pieces[past + 2]
{indent(COPY, " " * 16)}
        if turn < mine:
            next = 3 * (first + turn * step)
            status = native(functions[1], slot, pieces[next], pieces[next + 2], stream)
            if status == 0:
                status = native(functions[2], events[place], stream)
        place += 1
        if place == slots:
            place = 0
    said[first] = status
"""
_TAKES = (
    "said: i8[], functions: i8[], pieces: i8[], step: i8, context: i8, stream: i8, room: i8, first: i8, mine: i8, "
    "memory: i8, events: i8[]"
)


@cache
def _loop(way: Way) -> Kernel:
    return compiled(way, _TAKES, _BEGIN + {"send": _SEND, "fetch": _FETCH}[way])


def moving(
    way: Way, said: Numbers, pieces: Numbers, context: int, stream: int, room: int
) -> Callable[[int, int, Numbers], None]:
    """A function for as many threads as `said` has room for, each with its number, staging memory, and events: it sends
    pieces number, number + threads, … to the card, or fetches them, and leaves the driver's status in `said`, 0 if
    all went well. A piece is a device address, a host address and a number of bytes. Each of the staging buffers (slots
    of `room` bytes) has an event, recorded when its copy is queued: the slot is reused once that has passed. The last
    copies to the card are not waited for. The thread is given the driver's context, which a new one has none of."""
    move = _loop(way).on(said, driver_functions(), pieces, len(said), context, stream, room)

    def moved(number: int, memory: int, events: Numbers) -> None:
        move(number, len(range(number, len(pieces), len(said))), memory, *place_of(events))

    return moved
