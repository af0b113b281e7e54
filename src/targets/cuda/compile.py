"""From a program to PTX and on to machine code: Numba and NVVM, then NVIDIA's assembler. No card is needed.

Both results are kept in the user's cache directory, named by what they were made of; a second process loads
neither Numba nor NVVM.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from ...kept.seal import read_sealed, write_sealed
from ...kernel import ir
from ...types.errors import TargetUnavailableError
from ..apart import import_apart
from ..garbage import no_collections
from .pipeline import MODULES, shorten
from .shipped import SHIPPED_FOR, shipped_ptx
from .text import KernelText, kernel_text
from .writer import WARP

if TYPE_CHECKING:
    from types import FunctionType

    from numba.core.typing import Signature

ComputeCapability: TypeAlias = tuple[int, int]  # the compute capability of a card, e.g. (9, 0)
DEFAULT_CAPABILITY: ComputeCapability = (9, 0)
INSTALL = 'pip install "gpusort[cuda]"'

# A multiprocessor from Volta to Blackwell: of the smaller ones less fits, which costs nothing but the attempt.
_REGISTERS, _REGISTER_UNIT, _WARPS = 65536, 8, 64
_SHARED_BYTES, _RESERVED_BYTES = 228 << 10, 1 << 10

_COMPILERS = ("numba-cuda", "numba", "llvmlite", "nvidia-nvvm")
_ASSEMBLERS = ("nvidia-nvjitlink",)


@attrs.frozen
class Compiled:
    """A kernel in text or machine code, by the name it is launched by."""

    entry: str
    text: KernelText
    code: bytes


def compile_ptx(program: ir.Program, capability: ComputeCapability | None = None) -> str:
    """The program as PTX for a compute capability: the current card's, or 9.0 where there is no card."""
    if capability is None:
        capability = capability_of_card() or DEFAULT_CAPABILITY
    text = text_of(program)
    shipped = shipped_ptx(program, text) if capability >= SHIPPED_FOR else None
    if shipped is not None:
        return shipped
    key = _digest(text.source, str(program.group_size), program.name, repr(capability), _stamp(_COMPILERS), own_stamp())
    return kept(f"{key}.ptx", lambda: compile_anew(program, capability).encode()).decode()


def compile_machine_code(program: ir.Program, capability: ComputeCapability) -> Compiled:
    """The program as machine code for a compute capability; as PTX where the assembler is not installed."""
    ptx = compile_ptx(program, capability)
    if not has_assembler():
        return Compiled(entry_name(program), text_of(program), ptx.encode())
    fitting = program.group_size, text_of(program).workgroup_bytes, repr(capability)
    key = _digest(ptx, repr(fitting), _stamp(_ASSEMBLERS), own_stamp())
    cubin = kept(f"{key}.cubin", lambda: assemble_for_occupancy(ptx, capability, program))
    return Compiled(entry_name(program), text_of(program), cubin)


def assemble_for_occupancy(ptx: str, capability: ComputeCapability, program: ir.Program) -> bytes:
    """Machine code that lets as many workgroups live on a multiprocessor as its workgroup memory does, if registers
    can be had so few without a spill. The assembler takes what it likes: 59 where 56 let three in instead of two.
    """
    code, said = assemble(ptx, capability)
    used, nbytes = re.search(r"[Uu]sed (\d+) registers", said), text_of(program).workgroup_bytes
    for wanted in () if used is None else occupancies(int(used.group(1)), program.group_size, nbytes):
        bound = re.sub(r"^(\.maxntid .*)$", rf"\1\n.minnctapersm {wanted}", ptx, count=1, flags=re.MULTILINE)
        tighter, said = assemble(bound, capability)
        if not spills(said):
            return tighter
    return code


def spills(said: str) -> bool:
    """Whether registers were too few. Versions of the assembler say it in different words."""
    return any(int(count) for count in re.findall(r"(\d+) (?:bytes spill stores|bytes lmem|stack)", said))


def occupancies(used: int, group_size: int, nbytes: int) -> range:
    """The occupancies (workgroups on a multiprocessor) that fewer registers each might reach, but no less than half:
    from the highest on down to one more than as it is."""
    warps = -(-group_size // WARP)
    resident, half = (_fitting_registers(warps, registers) for registers in (used, used // 2))
    fitting = min(_SHARED_BYTES // (nbytes + _RESERVED_BYTES), _WARPS // warps, half)
    return range(fitting, resident, -1)


def _fitting_registers(warps: int, registers: int) -> int:
    """How many workgroups of so many warps fit, by their registers."""
    return _REGISTERS // (warps * WARP * max(1, -(-registers // _REGISTER_UNIT)) * _REGISTER_UNIT)


def assemble(ptx: str, capability: ComputeCapability) -> tuple[bytes, str]:
    """PTX as machine code, and what the assembler says of it: registers, spills, stack.

    The driver could do it, but only if it is no older than the compiler that wrote the PTX.
    """
    from cuda.bindings import nvjitlink

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
    """What a card can compute, the current one if none is named; None where there is none."""
    try:
        import cupy
    except ImportError:
        return None
    try:
        digits = cupy.cuda.Device(device).compute_capability  # "90" is 9.0, "120" is 12.0
    except cupy.cuda.runtime.CUDARuntimeError:
        return None
    return int(digits[:-1]), int(digits[-1])


_texts: WeakKeyDictionary[ir.Program, KernelText] = WeakKeyDictionary()


def text_of(program: ir.Program) -> KernelText:
    """The program's Numba source, written once."""
    text = _texts.get(program)
    if text is None:
        text = _texts[program] = kernel_text(program)
    return text


def entry_name(program: ir.Program) -> str:
    """The kernel's name in PTX: one that no instruction has."""
    return f"gpusort_{program.name}"


def compile_anew(program: ir.Program, capability: ComputeCapability) -> str:
    """The same, whatever is kept somewhere."""
    text = text_of(program)
    _prepare_for_numba_cuda()
    import_apart("numba.cuda")
    from numba import cuda

    shorten()
    namespace: dict[str, object] = {"__name__": f"{MODULES}.{program.name}"}
    exec(compile(text.source, f"<{program.name} for CUDA>", "exec"), namespace)
    with no_collections():
        ptx, _ = cuda.compile(
            cast("FunctionType", namespace["kernel"]),
            cast("Signature", namespace["SIGNATURE"]),
            device=False,
            abi="numba",
            fastmath=False,
            cc=capability,
            launch_bounds=program.group_size,
        )
    return _tidied(ptx, entry_name(program))


def _tidied(ptx: str, entry: str) -> str:
    """The kernel under a name that people can read, without Numba's environment, which it does not use."""
    found = re.search(r"^\.visible \.entry (\S+)\(", ptx, re.MULTILINE)
    assert found is not None, "a compiled kernel has an entry"
    without_environment = re.sub(r"^\.common \.global .* _ZN\d+NumbaEnv\S+;\n", "", ptx, flags=re.MULTILINE)
    return without_environment.replace(found.group(1), entry)


def _prepare_for_numba_cuda() -> None:
    """Makes numba.cuda importable on any NumPy, or says that it is missing."""
    # NumPy 2.5 dropped the name; numba-cuda up to 0.30 looks it up as it is imported.
    if not hasattr(np, "row_stack"):
        setattr(np, "row_stack", np.vstack)  # noqa: B010  (checkers do not know it as an attribute)
    if find_spec("numba_cuda") is None:
        raise TargetUnavailableError(f"target 'cuda': numba-cuda is not installed: {INSTALL}")


# -- the cache --------------------------------------------------------------------------------------------


def kept(name: str, make: Callable[[], bytes]) -> bytes:
    """What the cache holds under this name, made first if it is not there."""
    content = read_sealed("cuda", name)
    if content is None:
        content = make()
        write_sealed("cuda", name, content)
    return content


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _stamp(packages: tuple[str, ...]) -> str:
    """The versions of what compiles."""
    return ", ".join([sys.version, np.__version__, *(f"{package} {version_of(package)}" for package in packages)])


def version_of(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def own_stamp() -> str:
    """This version of all that stands here: a kernel in the cache has the intrinsics compiled in."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


@cache
def has_assembler() -> bool:
    """Whether PTX can be made into machine code here."""
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()
    except Exception:  # absent package, absent library: each binding raises its own
        return False
    return True
