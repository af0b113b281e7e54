"""The disk cache of the loops that Numba compiles for the host, in sealed files of our own.

Numba's cache would keep them too: beside the package's source, where others may be able to write, under an index that
is a pickle and is read unproven. Here Numba is given another keeper, which believes only what it kept itself. A file's
name tells all that its code depends on, so that of another version, processor or setting is never found.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from ...disk_cache.seal import read_sealed, write_sealed
from ...types.errors import TargetUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

L = TypeVar("L")

_KIND = "cpu"
_HERE = Path(__file__).parent
_USES_NUMBA = re.compile(rb"^\s*(?:from|import) (?:numba|llvmlite|\.host_jit)\b", re.MULTILINE)
_IMPORTS = re.compile(rb"^\s*from (\.+)([\w.]+) import", re.MULTILINE)
_SETTINGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "ENABLE_AVX", "DISABLE_INTEL_SVML",
    "LLVM_REFPRUNE_PASS",
)  # fmt: skip


def kept(loop: L) -> L:
    """Keeps a compiled loop of this package's: to be put above Numba's own decorator."""
    return keep(loop, "")


def keep(loop: L, source: str) -> L:
    """Keeps a compiled loop whose source is given, or lies in this package."""
    function: Callable[..., object] | None = getattr(loop, "py_func", None)  # Numba's class has it, its protocol not
    if function is None:  # its decorator gave back the plain function
        raise TargetUnavailableError(
            "target 'cuda' compiles with Numba, which NUMBA_DISABLE_JIT forbids: unset it, or call with "
            "target='simulator' or 'python'"
        )
    setattr(loop, "_cache", Keeper(function, source))  # noqa: B010
    return loop


@attrs.frozen
class Keeper:
    """What Numba asks before it compiles a function for some types, and gives the result to.

    The protocol is that of numba.core.caching. All of it is best effort: what cannot be read is compiled.
    """

    function: Callable[..., object]
    source: str

    @property
    def cache_path(self) -> None:
        """Numba's statistics ask for it; there is no place of Numba's own."""

    def load_overload(self, sig: object, target_context: Any) -> object:
        from numba.core.compiler import CompileResult

        target_context.refresh()
        found = read_sealed(_KIND, self.name(sig, target_context.codegen()))
        if found is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(found))
        except Exception:  # whatever a version that says it is the same does otherwise
            return None

    def save_overload(self, sig: object, data: Any) -> None:
        from numba.core.serialize import dumps

        if data.lifted or data.library.has_dynamic_globals:  # it holds addresses of this process
            return
        try:
            content = dumps(data._reduce())
        except Exception:  # the code is there, and works; it is only not kept
            return
        write_sealed(_KIND, self.name(sig, data.codegen), content)

    def enable(self) -> None:
        """There is no other state."""

    def disable(self) -> None:
        """There is no other state."""

    def flush(self) -> None:
        """Old files are never found, and so need not go."""

    def name(self, signature: object, codegen: Any) -> str:
        function = self.function
        parts = (
            function.__module__, function.__qualname__, function.__code__.co_code.hex(), self.source, str(signature),
            repr(codegen.magic_tuple()), stamp(),
        )  # fmt: skip
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return f"{re.sub(r'[^A-Za-z0-9_]', '', function.__module__.rpartition('.')[2])[:40]}-{digest[:40]}"


@lru_cache(maxsize=1)
def stamp() -> str:
    """All that code depends on besides its own source: compilers, settings, and every file here that uses Numba, for
    loops have each other and the helpers compiled in."""
    import llvmlite
    import numba
    import numpy as np
    from numba.core import config

    settings = [getattr(config, name, None) for name in _SETTINGS]
    versions = (numba.__version__, llvmlite.__version__, np.__version__, sys.version, sys.implementation.cache_tag)
    return repr((versions, settings, [hashlib.sha256(content).hexdigest() for content in _sources()]))


def _sources() -> list[bytes]:
    """The files here that use Numba, and what these import of ours: a constant is compiled in, too."""
    found: dict[Path, bytes] = {
        _HERE / name: b"" for name in ("host_keeping.py", "host_jit.py")
    }  # who have no part in it
    ahead = [path for path in sorted(_HERE.rglob("*.py")) if _USES_NUMBA.search(path.read_bytes())]
    while ahead:
        path = ahead.pop()
        if path not in found and path.is_file():
            found[path] = path.read_bytes()
            for dots, name in _IMPORTS.findall(found[path]):
                ahead.append(path.parents[len(dots) - 1].joinpath(*name.decode().split(".")).with_suffix(".py"))
    return [found[path] for path in sorted(found)]
