"""Kernels ready to be called: compiled, or found compiled by an earlier process."""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import attrs

from ....compile_log import told
from ....forks import compiling
from ....kept.seal import read_sealed, write_sealed
from ...apart import import_apart
from .numbers import Kind
from .translate import llvm_text, signature_of

_KIND = "cpu"

# What the kernel's arguments are: numbers, and of each array where it lies and how many elements it has.
Function: TypeAlias = Callable[..., object]


@attrs.frozen(eq=False)
class Kernel:
    """A kernel in this process's memory."""

    call: Function
    was_kept: bool  # by an earlier process


@attrs.define
class _Loaded:
    """The kernels of this process, by names that tell all that they depend on."""

    kernels: dict[str, Kernel] = attrs.field(factory=dict[str, Kernel])


_loaded = _Loaded()


def load_kernel(name: str, text: str) -> Kernel:
    """The kernel of a text. Whatever thread asks first compiles it."""
    import_apart("llvmlite.binding")
    with compiling():
        symbol = f"gpusort_{re.sub(r'[^A-Za-z0-9_]', '_', name)[:40]}_{_digest(text)}"
        kernel = _loaded.kernels.get(symbol)
        if kernel is None:
            with told("cpu", f"kernel {name!r}"):
                kernel = _loaded.kernels[symbol] = _made(symbol, text)
        return kernel


def _made(symbol: str, text: str) -> Kernel:
    from .machine import machine

    here = machine()
    code = read_sealed(_KIND, symbol)
    was_kept = code is not None
    if code is None:
        code = here.code(llvm_text(text, symbol))
        write_sealed(_KIND, symbol, code)
    types: list[object] = []
    for taken in signature_of(text):
        types += [ctypes.c_void_p, ctypes.c_int64] if taken.is_array else [_c_type(taken.kind)]
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(here.load(code, symbol))
    function.errcheck = _checked
    return Kernel(function, was_kept)


def _checked(result: int, function: object, arguments: object) -> None:
    if result:
        raise MemoryError("no memory for a kernel's arrays")


def _c_type(kind: Kind) -> object:
    if kind.is_bool:
        return ctypes.c_uint8
    if kind.is_float:
        return ctypes.c_float if kind.bits == 32 else ctypes.c_double
    return getattr(ctypes, f"c_{'' if kind.is_signed else 'u'}int{kind.bits}")


def _digest(text: str) -> str:
    from .machine import machine

    return hashlib.sha256("\0".join((text, machine().about, stamp())).encode()).hexdigest()[:32]


@lru_cache(maxsize=1)
def stamp() -> str:
    """This compiler's own sources."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()
