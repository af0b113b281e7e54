"""Copy loops between pageable host memory and a card, through pinned staging buffers, compiled without the GIL.

Several threads run one loop each; as compiled code they do not contend for the GIL. The driver's functions are called
through pointers that are arguments: the compiled code can then be cached, and tests can stand in for the driver.
Importing this loads Numba.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...types.errors import TargetUnavailableError
from .host_jit import njit
from .host_keeping import kept

if TYPE_CHECKING:
    from numba.core.typing import Signature
    from numba.extending import CodegenContext, TypingContext

    _Emit: TypeAlias = Callable[[CodegenContext, ir.IRBuilder, Signature, tuple[ir.Value, ...]], ir.Value]

Numbers = npt.NDArray[np.uint64]

_WORD, _STATUS = ir.IntType(64), ir.IntType(32)
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
    return np.array([ctypes.cast(function, ctypes.c_void_p).value for function in functions], np.uint64)


@intrinsic
def _call(context: TypingContext, function: types.Type, arguments: types.UniTuple) -> tuple[Signature, _Emit]:
    """Calls a C function pointer with 64-bit arguments; returns its 32-bit status."""
    count = arguments.count

    def emit(
        context: CodegenContext, builder: ir.IRBuilder, signature: Signature, args: tuple[ir.Value, ...]
    ) -> ir.Value:
        address, given = args
        kind = ir.FunctionType(_STATUS, [_WORD] * count).as_pointer()
        numbers = [builder.extract_value(given, number) for number in range(count)]
        return builder.call(builder.inttoptr(address, kind), numbers)

    return types.int32(types.uint64, types.UniTuple(types.uint64, count)), emit


_LINE = np.uint64(64)  # bytes of a cache line


@intrinsic
def _copy_line(context: TypingContext, target: types.Type, source: types.Type) -> tuple[Signature, _Emit]:
    """Copies a cache line to an aligned address by a non-temporal store, which does not read the line first."""
    line = ir.VectorType(_WORD, int(_LINE) // 8).as_pointer()

    def emit(
        context: CodegenContext, builder: ir.IRBuilder, signature: Signature, args: tuple[ir.Value, ...]
    ) -> ir.Value:
        to, of = (builder.inttoptr(address, line) for address in args)
        store = builder.store(builder.load(of, align=1), to, align=int(_LINE))
        store.set_metadata("nontemporal", builder.module.add_metadata([_STATUS(1)]))
        return _STATUS(0)

    return types.int32(types.uint64, types.uint64), emit


@intrinsic
def _fence(context: TypingContext) -> tuple[Signature, _Emit]:
    """A memory fence: non-temporal stores become visible to other threads."""

    def emit(
        context: CodegenContext, builder: ir.IRBuilder, signature: Signature, args: tuple[ir.Value, ...]
    ) -> ir.Value:
        builder.fence("seq_cst")
        return _STATUS(0)

    return types.int32(), emit


@njit(nogil=True)
def copy_past_caches(functions: Numbers, target: np.uint64, source: np.uint64, nbytes: np.uint64) -> None:
    """memmove by non-temporal stores. Plain stores read each line before overwriting it (write allocate), a third of
    the memory traffic of a copy."""
    head = min((_LINE - target % _LINE) % _LINE, nbytes)
    end = nbytes - (nbytes - head) % _LINE
    _call(functions[4], (target, source, head))
    for at in range(head, end, _LINE):
        _copy_line(target + at, source + at)
    _call(functions[4], (target + end, source + end, nbytes - end))
    _fence()


@kept
@njit(nogil=True)
def send(
    functions: Numbers, pieces: Numbers, first: int, step: int, memory: int, room: int, events: Numbers, stream: int
) -> int:
    """Uploads pieces first, first + step, … through a ring of staging buffers; returns the driver's status, 0 if all
    went well.

    A piece is a device address, a host address and a number of bytes. Each of the staging buffers (slots of `room`
    bytes in `memory`) has an event, recorded when its copy is queued: the slot is reused once that has passed. Does not
    wait for the last copies.
    """
    turn = 0
    for number in range(first, pieces.shape[0], step):
        card, host, nbytes = pieces[number, 0], pieces[number, 1], pieces[number, 2]
        event, slot = events[turn], np.uint64(memory) + np.uint64(turn) * np.uint64(room)
        status = _call(functions[3], (event,))
        if status == 0:
            _call(functions[4], (slot, host, nbytes))
            status = _call(functions[0], (card, slot, nbytes, np.uint64(stream)))
        if status == 0:
            status = _call(functions[2], (event, np.uint64(stream)))
        if status != 0:
            return int(status)
        turn = (turn + 1) % events.size
    return 0


@kept
@njit(nogil=True)
def fetch(
    functions: Numbers, pieces: Numbers, first: int, step: int, memory: int, room: int, events: Numbers, stream: int
) -> int:
    """The same from the card to the host. Returns when all has arrived."""
    slots = events.size
    count = (pieces.shape[0] - first + step - 1) // step
    for turn in range(count + slots):
        event, slot = events[turn % slots], np.uint64(memory) + np.uint64(turn % slots) * np.uint64(room)
        status = _call(functions[3], (event,))  # until the copy into this slot has arrived
        if status == 0 and turn >= slots and turn - slots < count:
            number = first + (turn - slots) * step
            copy_past_caches(functions, pieces[number, 1], slot, pieces[number, 2])
        if status == 0 and turn < count:
            number = first + turn * step
            status = _call(functions[1], (slot, pieces[number, 0], pieces[number, 2], np.uint64(stream)))
            if status == 0:
                status = _call(functions[2], (event, np.uint64(stream)))
        if status != 0:
            return int(status)
    return 0
