"""NVVM, NVIDIA's compiler from LLVM IR to PTX. It is a library, and needs no card."""

from __future__ import annotations

from functools import cache
from importlib.metadata import distribution

LIBRARY = "__nv_"  # how the names of libdevice's functions begin


class NvvmRefusal(Exception):
    """NVVM refused a module: a defect here."""


class NvvmMissing(Exception):
    """NVVM's library is not here, or does not load."""


def ptx_of(module: str, capability: tuple[int, int]) -> str:
    """The PTX of a module."""
    from cuda.bindings import nvvm

    options = ["-opt=3", f"-arch=compute_{capability[0]}{capability[1]}"]
    try:
        program = nvvm.create_program()
    except RuntimeError as error:  # of cuda.pathfinder, which looks for the library
        raise NvvmMissing(str(error).partition("\n")[0]) from error
    try:
        text = module.encode()
        nvvm.add_module_to_program(program, text, len(text), "kernel")
        try:
            nvvm.verify_program(program, 0, [])
            if LIBRARY in module:
                library = _device_library()
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
def _device_library() -> bytes:
    """NVIDIA's library of functions such as exponentials, as LLVM bitcode."""
    files = distribution("nvidia-nvvm").files or ()
    return next(file for file in files if file.name.startswith("libdevice")).read_binary()
