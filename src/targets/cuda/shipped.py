"""PTX that comes with the package: a first call of a usual sort waits for NVIDIA's assembler, and loads no Numba.

PTX runs on every later card, and what NVVM writes of these kernels for one differs from what it writes for the next in
nothing but the card's name. An entry is found by all that it was made of, so what was changed since is compiled.
`python -m gpusort.targets.cuda.usual` makes the archive.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from ...kernel import ir
from .text import KernelText

SHIPPED_FOR = (8, 0)  # the compute capability of the oldest card that it runs on
SHIPPED_VERSION = "7.0"  # of PTX: the first that knows such cards
ARCHIVE = Path(__file__).with_name("shipped.zip")

_INTRINSICS = ("arithmetic.py", "lanes.py", "memory.py", "ops.py")  # whose functions are compiled in


def shipped_ptx(program: ir.Program, text: KernelText) -> str | None:
    """The program as PTX, if it was made from this very text."""
    try:
        with ZipFile(ARCHIVE) as archive:  # opened each time: forked children would share the place where it is read
            return archive.read(entry_of(program, text)).decode()
    except (KeyError, OSError, BadZipFile):
        return None


def entry_of(program: ir.Program, text: KernelText) -> str:
    """The name of a program in the archive."""
    parts = (text.source, str(program.group_size), program.name, _intrinsics())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def portable(ptx: str) -> str:
    """For assemblers and drivers that are older than the NVVM here, which writes its own version on all it makes."""
    return re.sub(r"^\.version .*$", f".version {SHIPPED_VERSION}", ptx, count=1, flags=re.MULTILINE)


@cache
def _intrinsics() -> str:
    folder = Path(__file__).parent
    return "".join(hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in _INTRINSICS)
