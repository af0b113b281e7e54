"""Copy loops between pageable host memory and a card, through pinned staging buffers, compiled without the GIL.

Several threads run one loop each; as compiled code they do not contend for the GIL. The driver's functions are called
through pointers that are arguments: the compiled code can then be cached, and tests can stand in for the driver.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from textwrap import indent
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ...types.errors import TargetUnavailableError
from ..cpu.loops import Kernel, compiled

Numbers = npt.NDArray[np.int64]
Way: TypeAlias = Literal["send", "fetch"]  # to the card, or to the host

_DRIVER = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
_NAMES = ("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize")


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
native(functions[4], to, source, head)
for at in range(head, end, 64):
    copy_line(to + at, source + at)
native(functions[4], to + end, source + end, nbytes - end)
fence()
"""
_SEND = """
    status = i4(0)
    turn = 0
    for number in range(0, mine):
        piece = 3 * (first + number * step)
        source = pieces[piece + 1]
        nbytes = pieces[piece + 2]
        slot = memory + turn * room
        status = native(functions[3], events[turn])
        if status == 0:
            native(functions[4], slot, source, nbytes)
            status = native(functions[0], pieces[piece], slot, nbytes, stream)
        if status == 0:
            status = native(functions[2], events[turn], stream)
        if status != 0:
            break
        turn += 1
        if turn == len(events):
            turn = 0
    said[0] = status
"""
_FETCH = f"""
    status = i4(0)
    slots = len(events)
    place = 0
    for turn in range(0, mine + slots):
        slot = memory + place * room
        status = native(functions[3], events[place])
        if status == 0:
            if turn >= slots:
                if turn - slots < mine:
                    past = 3 * (first + (turn - slots) * step)
                    to = pieces[past + 1]
                    source = slot
                    nbytes = pieces[past + 2]
{indent(COPY, " " * 20)}
            if turn < mine:
                next = 3 * (first + turn * step)
                status = native(functions[1], slot, pieces[next], pieces[next + 2], stream)
                if status == 0:
                    status = native(functions[2], events[place], stream)
        if status != 0:
            break
        place += 1
        if place == slots:
            place = 0
    said[0] = status
"""
_TAKES = (
    "functions: i8[], pieces: i8[], mine: i8, first: i8, step: i8, memory: i8, room: i8, events: i8[], stream: i8, "
    "said: i8[]"
)


@cache
def _loop(way: Way) -> Kernel:
    return compiled(way, _TAKES, {"send": _SEND, "fetch": _FETCH}[way])


def moved(
    way: Way, functions: Numbers, pieces: Numbers, first: int, step: int, memory: int, room: int, events: Numbers,
    stream: int,
) -> int:  # fmt: skip
    """Sends pieces first, first + step, … to the card, or fetches them, through a ring of staging buffers; returns the
    driver's status, 0 if all went well. A piece is a device address, a host address and a number of bytes. Each of the
    staging buffers (slots of `room` bytes in `memory`) has an event, recorded when its copy is queued: the slot is
    reused once that has passed. The last copies to the card are not waited for."""
    said, mine = np.zeros(1, np.int64), len(range(first, len(pieces), step))
    _loop(way).on(functions, pieces, mine, first, step, memory, room, events, stream, said)()
    return int(said[0])
