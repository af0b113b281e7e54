"""NVVM, NVIDIA's compiler from LLVM IR to PTX. It is a library, and needs no card."""

from __future__ import annotations

from functools import cache
from pathlib import Path

LIBRARY = "__nv_"  # how the names of libdevice's functions begin


class NvvmRefusal(Exception):
    """NVVM refused a module: a defect here."""


class NvvmMissing(Exception):
    """NVVM, or its library of functions, is neither in a package of NVIDIA's nor in a toolkit."""


def ptx_of(module: str, capability: tuple[int, int]) -> str:
    """The PTX of a module. Raises NvvmMissing."""
    from cuda.bindings import nvvm

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
    from cuda.bindings import nvvm

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
        raise NvvmMissing(str(error)) from error
    if path is None:
        raise NvvmMissing("it was loaded from an unknown place")
    return Path(path).parent


@cache
def device_library(folder: Path) -> bytes:
    """NVIDIA's library of functions such as exponentials, as LLVM bitcode. It lies near NVVM."""
    for above in folder.parents[:2]:
        for found in sorted((*above.glob("libdevice/libdevice*.bc"), *above.glob("nvvm/libdevice/libdevice*.bc"))):
            return found.read_bytes()
    raise NvvmMissing(f"no libdevice near {folder}")
