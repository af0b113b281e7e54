"""Kernels ready to be called: compiled, or found compiled by an earlier process."""

from __future__ import annotations

import ctypes
import hashlib
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ....compile_log import log_slow
from ....disk_cache.cache import read_sealed, write_sealed
from ....forks import compiling
from ....types.errors import TargetUnavailableError
from ...llvm.translate import signature_of
from ...package_stamp import stamp_of_package
from ...uninterrupted import import_uninterrupted
from ..loops import Kernel
from .function import llvm_text

if TYPE_CHECKING:
    from .machine import Machine

_KIND = "cpu"
# Of serial loops LLVM makes better code at level 3, and takes hardly longer. Where a workgroup's lanes are loops, each
# with a copy for either side of its branches, the code grows tenfold and gains nothing.
_SERIAL, _LANES = 3, 2

_C_TYPES: Mapping[str, type[Any]] = {
    "b1": ctypes.c_uint8, "u1": ctypes.c_uint8, "u2": ctypes.c_uint16, "u4": ctypes.c_uint32, "u8": ctypes.c_uint64,
    "i4": ctypes.c_int32, "i8": ctypes.c_int64, "f4": ctypes.c_float, "f8": ctypes.c_double,
}  # fmt: skip


loaded: dict[str, Kernel] = {}  # the kernels of this process, by names that tell all that they depend on


def load_kernel(name: str, text: str, *, is_serial: bool) -> Kernel:
    """The kernel of a text. Whichever thread asks first compiles it."""
    _load_compiler()
    with compiling():
        from .machine import machine

        here = machine()
        digest = hashlib.sha256("\0".join((text, here.about, stamp())).encode()).hexdigest()[:32]
        symbol = f"gpusort_{re.sub(r'[^A-Za-z0-9_]', '_', name)[:40]}_{digest}"
        kernel = loaded.get(symbol)
        if kernel is None:
            with log_slow("cpu", f"kernel {name!r}"):
                kernel = loaded[symbol] = _made(here, symbol, text, _SERIAL if is_serial else _LANES)
        return kernel


def _load_compiler() -> None:
    handled = sys.exception()  # by a caller, whose it is
    try:
        import_uninterrupted("llvmlite.binding")
    except (ImportError, OSError, MemoryError) as error:
        cause: BaseException = error  # what llvmlite says of it is only that it fails
        while cause.__context__ not in (None, handled):
            cause = cause.__context__
        raise TargetUnavailableError(
            f"target 'cpu': LLVM, which compiles what this call needs, does not load: {str(cause) or 'out of memory'}. "
            "Under a limit of memory (ulimit -v), leave it 400 MiB"
        ) from error


def _made(here: Machine, symbol: str, text: str, speed: int) -> Kernel:
    code = read_sealed(_KIND, symbol)
    was_kept = code is not None
    if code is None:
        code = here.code(llvm_text(text, symbol, is_opaque=here.is_opaque, compresses=here.compresses), speed)
        write_sealed(_KIND, symbol, code)
    types: list[type[Any]] = []
    for taken in signature_of(text):
        types += [ctypes.c_void_p, ctypes.c_int64] if taken.has_length else [_C_TYPES[taken.kind.name]]
    address = here.load(code, symbol)
    return Kernel(ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address), address, was_kept, here)


@lru_cache(maxsize=1)
def stamp() -> str:
    """This compiler's own sources."""
    return stamp_of_package(__name__.rpartition(".")[0], __file__)
