"""Compiles a program to PTX (NVVM) and to machine code (nvJitLink's assembler). No card is needed.

PTX and cubin are cached on disk under a digest of their inputs: a later process does not load NVVM.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from ...disk_cache.cache import read_sealed, write_sealed
from ...kernel import ir
from ...types.errors import TargetUnavailableError
from ...types.libraries import cupy, nvjitlink, nvvm
from ..package_stamp import stamp_of_package
from ..render import plain_name
from .shipped import SHIPPED_FOR, digest, shipped_ptx
from .text import WARP, KernelText, kernel_text

ComputeCapability: TypeAlias = tuple[int, int]  # the compute capability of a card, e.g. (9, 0)
DEFAULT_CAPABILITY: ComputeCapability = (9, 0)
INSTALL = 'pip install "gpusort[cuda]"'

# Occupancy limits of a multiprocessor, the largest from Volta to Blackwell: on a smaller one an attempt may be in vain.
_REGISTERS, _REGISTER_UNIT, _WARPS = 65536, 8, 64
_SHARED_BYTES, _RESERVED_BYTES = 228 << 10, 1 << 10

_COMPILERS = ("cuda-bindings", "nvidia-nvvm")  # NVVM may also be a toolkit's, which no package tells of
_ASSEMBLERS = ("nvidia-nvjitlink",)


def compile_ptx(program: ir.Program, capability: ComputeCapability | None = None) -> str:
    """The program as PTX for a compute capability: the current card's, or 9.0 where there is no card."""
    if capability is None:
        capability = capability_of_card() or DEFAULT_CAPABILITY
    text = text_of(program)
    shipped = shipped_ptx(program, text) if capability >= SHIPPED_FOR else None
    if shipped is not None:
        return shipped
    key = digest(text.source, str(program.group_size), program.name, repr(capability), _stamp(_COMPILERS), own_stamp())
    return cached(f"{key}.ptx", lambda: compile_uncached(program, capability).encode()).decode()


def compile_machine_code(program: ir.Program, capability: ComputeCapability) -> bytes:
    """The program's cubin for a compute capability; PTX where nvJitLink is not installed (the driver assembles it)."""
    ptx = compile_ptx(program, capability)
    if not has_assembler():
        return ptx.encode()
    fitting = program.group_size, text_of(program).workgroup_bytes, repr(capability)
    key = digest(ptx, repr(fitting), _stamp(_ASSEMBLERS), own_stamp())
    return cached(f"{key}.cubin", lambda: assemble_for_occupancy(ptx, capability, program))


def assemble_for_occupancy(ptx: str, capability: ComputeCapability, program: ir.Program) -> bytes:
    """A cubin with the highest occupancy that shared memory allows and registers can reach without spilling. On its own
    the assembler takes, say, 59 registers where 56 would make three workgroups resident instead of two. `.minnctapersm`
    bounds them."""
    code, said = assemble(ptx, capability)
    used, nbytes = re.search(r"[Uu]sed (\d+) registers", said), text_of(program).workgroup_bytes
    for wanted in () if used is None else occupancies(int(used.group(1)), program.group_size, nbytes):
        bound = re.sub(r"^(\.maxntid .*)$", rf"\1\n.minnctapersm {wanted}", ptx, count=1, flags=re.MULTILINE)
        tighter, said = assemble(bound, capability)
        if not spills(said):
            return tighter
    return code


def spills(said: str) -> bool:
    """Whether the assembler's log reports register spills. Its wording depends on the version."""
    return any(int(count) for count in re.findall(r"(\d+) (?:bytes spill stores|bytes lmem|stack)", said))


def occupancies(used: int, group_size: int, nbytes: int) -> range:
    """The occupancies (resident workgroups of a multiprocessor) worth trying, highest first: higher than with the
    registers `used` now, reachable with at least half of them, and within shared memory and warps."""
    warps = -(-group_size // WARP)
    resident, half = (_fitting_registers(warps, registers) for registers in (used, used // 2))
    fitting = min(_SHARED_BYTES // (nbytes + _RESERVED_BYTES), _WARPS // warps, half)
    return range(fitting, resident, -1)


def _fitting_registers(warps: int, registers: int) -> int:
    """Resident workgroups as far as registers limit them."""
    return _REGISTERS // (warps * WARP * max(1, -(-registers // _REGISTER_UNIT)) * _REGISTER_UNIT)


def assemble(ptx: str, capability: ComputeCapability) -> tuple[bytes, str]:
    """Assembles PTX by nvJitLink: the cubin, and the log with registers, spills and stack. The driver's own JIT would
    need to be no older than the NVVM that wrote the PTX."""
    source = ptx.encode()
    options = [f"-arch=sm_{capability[0]}{capability[1]}", "-O3", "-verbose"]
    linker = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(linker, nvjitlink.InputType.PTX, source, len(source), "kernel")
        nvjitlink.complete(linker)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, cubin)
        log = bytearray(nvjitlink.get_info_log_size(linker))
        nvjitlink.get_info_log(linker, log)
    finally:
        nvjitlink.destroy(linker)
    return bytes(cubin), log.decode(errors="replace").rstrip("\0")


def capability_of_card(device: int | None = None) -> ComputeCapability | None:
    """The compute capability of a card (default: the current one); None where there is none."""
    try:
        digits = cupy.cuda.Device(device).compute_capability  # "90" is 9.0, "120" is 12.0
    except ImportError:
        return None
    except cupy.cuda.runtime.CUDARuntimeError:
        return None
    return int(digits[:-1]), int(digits[-1])


_texts: WeakKeyDictionary[ir.Program, KernelText] = WeakKeyDictionary()


def text_of(program: ir.Program) -> KernelText:
    """The program's source, memoised as long as the program lives."""
    text = _texts.get(program)
    if text is None:
        text = _texts[program] = kernel_text(program)
    return text


def entry_name(program: ir.Program) -> str:
    """The kernel's entry point in PTX, prefixed so that it is not the name of an instruction."""
    return f"gpusort_{plain_name(program.name)}"


def compile_uncached(program: ir.Program, capability: ComputeCapability) -> str:
    """Compiles a program to PTX, whether or not it is cached or shipped."""
    text = text_of(program)
    require_compiler()
    from .function import llvm_text

    return ptx_of(llvm_text(text.source, entry_name(program), program.group_size), capability)


def require_compiler() -> None:
    """Raises TargetUnavailableError where the bindings of NVVM are not installed."""
    if version_of("cuda-bindings") is None:
        raise TargetUnavailableError(f"target 'cuda': cuda-bindings is not installed: {INSTALL}")


def cached(name: str, make: Callable[[], bytes]) -> bytes:
    """The cached file of this name; on a miss, makes and stores it."""
    content = read_sealed("cuda", name)
    if content is None:
        content = make()
        write_sealed("cuda", name, content)
    return content


@cache
def _stamp(packages: tuple[str, ...]) -> str:
    """The versions of Python, NumPy and some packages, as a part of cache keys."""
    return ", ".join([sys.version, np.__version__, *(f"{package} {version_of(package)}" for package in packages)])


def version_of(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def own_stamp() -> str:
    """A digest of the compiler and of all of this package, which chooses how it is called."""
    return stamp_of_package(__name__.rpartition(".")[0], __file__)


@cache
def has_assembler() -> bool:
    """Whether nvJitLink is installed and loads."""
    try:
        nvjitlink.version()
    except Exception:  # bindings raise errors of their own for a missing package or library
        return False
    return True


LIBRARY = "__nv_"  # how the names of libdevice's functions begin


class NvvmRefusal(Exception):
    """NVVM refused a module: a defect here."""


def _no_nvvm(why: str) -> TargetUnavailableError:
    """Where NVVM, or its library of functions, is neither in a package of NVIDIA's nor in a toolkit."""
    return TargetUnavailableError(f"target 'cuda': NVVM is not installed or does not load: {INSTALL} ({why})")


def ptx_of(module: str, capability: ComputeCapability) -> str:
    """The PTX of a module, by NVVM: a library, which needs no card. Raises TargetUnavailableError."""
    folder = folder_of_nvvm()
    options = ["-opt=3", f"-arch=compute_{capability[0]}{capability[1]}"]
    program = nvvm.create_program()
    try:
        text = module.encode()
        nvvm.add_module_to_program(program, text, len(text), "kernel")
        try:
            nvvm.verify_program(program, 0, [])
            if LIBRARY in module:
                library = device_library(folder)
                nvvm.lazy_add_module_to_program(program, library, len(library), "libdevice")
            nvvm.compile_program(program, len(options), options)
        except nvvm.nvvmError as error:
            raise NvvmRefusal(f"{error}: {_log(program)}") from error
        ptx = bytearray(nvvm.get_compiled_result_size(program))
        nvvm.get_compiled_result(program, ptx)
    finally:
        nvvm.destroy_program(program)
    return ptx.decode().rstrip("\0\n") + "\n"


def _log(program: int) -> str:
    log = bytearray(nvvm.get_program_log_size(program))
    nvvm.get_program_log(program, log)
    return log.decode(errors="replace").rstrip("\0")


@cache
def folder_of_nvvm() -> Path:
    """Where NVVM was loaded from: a package's folder, conda's or a toolkit's."""
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        path = load_nvidia_dynamic_lib("nvvm").abs_path
    except DynamicLibNotFoundError as error:
        raise _no_nvvm(str(error)) from error
    if path is None:
        raise _no_nvvm("it was loaded from an unknown place")
    return Path(path).parent


@cache
def device_library(folder: Path) -> bytes:
    """NVIDIA's library of functions such as exponentials, as LLVM bitcode. It lies near NVVM."""
    for above in folder.parents[:2]:
        for found in sorted((*above.glob("libdevice/libdevice*.bc"), *above.glob("nvvm/libdevice/libdevice*.bc"))):
            return found.read_bytes()
    raise _no_nvvm(f"no libdevice near {folder}")
