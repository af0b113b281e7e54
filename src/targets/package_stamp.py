"""What a compiler's results depend on besides the text, also where its sources are no files: in a zip archive, or in a
program of compiled modules alone."""

from __future__ import annotations

import hashlib
import marshal
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import llvm
from .llvm.stamp import stamp_of

_WITHOUT_REFERENCES = 2  # the version of marshal's format that is the same bytes in every process


def stamp_of_package(package: str, file: str) -> str:
    """A digest of a compiler's package, of which one module is in this file, and of what all compilers share."""
    files = list(Path(file).parent.glob("*.py"))
    if files:
        return stamp_of(files)
    digests = (hashlib.sha256(code).digest() for name in (llvm.__name__, package) for code in _codes(name))
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _codes(package: str) -> Iterator[bytes]:
    """The code of a package's modules, wherever Python has them from."""
    within = pkgutil.iter_modules(import_module(package).__path__, f"{package}.")
    for name in sorted([package, *(module.name for module in within)]):
        loader: Any = getattr(find_spec(name), "loader", None)
        yield name.encode()
        if hasattr(loader, "get_code"):  # as Python's own loaders have it, and PyInstaller's
            yield marshal.dumps(loader.get_code(name), _WITHOUT_REFERENCES)
