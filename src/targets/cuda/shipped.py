"""Ahead-of-time compiled PTX in the package: the first call of a common kernel needs only the assembler, not NVVM.

PTX is forward compatible, and NVVM's output for these kernels differs between architectures only in `.target`. Entries
are named by a digest of all that they were compiled from, so a changed kernel misses and is compiled.
`python -m benchmarks.ptx` builds the archive.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from ...kernel import ir
from ..llvm.stamp import stamp_of
from .text import KernelText

SHIPPED_FOR = (8, 0)  # the lowest compute capability that it runs on
SHIPPED_VERSION = "7.0"  # PTX ISA version: the first that has this capability
ARCHIVE = Path(__file__).with_name("shipped.zip")


def shipped_ptx(program: ir.Program, text: KernelText) -> str | None:
    """The program's PTX from the archive; None if it holds none for this source."""
    try:
        with ZipFile(ARCHIVE) as archive:  # opened each time: a forked child would share an open file's offset
            return archive.read(entry_of(program, text)).decode()
    except (KeyError, OSError, BadZipFile):
        return None


def entry_of(program: ir.Program, text: KernelText) -> str:
    """The program's entry in the archive: a digest of its source, its group size and this compiler."""
    return digest(text.source, str(program.group_size), program.name, _compiler())


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def portable(ptx: str) -> str:
    """Lowers the PTX version from that of the NVVM here, which older assemblers and drivers would refuse."""
    return re.sub(r"^\.version .*$", f".version {SHIPPED_VERSION}", ptx, count=1, flags=re.MULTILINE)


@cache
def _compiler() -> str:
    """What a text becomes LLVM IR by."""
    return stamp_of(Path(__file__).with_name(name) for name in ("function.py", "lanes.py", "memory.py"))
