from typing import Any

class CompileResult:
    # From what _reduce gave, as plain data and code, for the same version of Numba.
    @classmethod
    def _rebuild(cls, target_context: Any, *reduced: object) -> CompileResult: ...
