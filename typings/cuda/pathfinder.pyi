# What gpusort uses of cuda-pathfinder, checked against 1.9.

class DynamicLibNotFoundError(RuntimeError): ...

class LoadedDL:
    abs_path: str | None

def load_nvidia_dynamic_lib(libname: str) -> LoadedDL: ...
