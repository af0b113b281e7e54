"""The kernels of usual calls, and how the archive of their PTX is made: `python -m gpusort.targets.cuda.usual`.

It takes some minutes. Needed are numba-cuda and NVVM, but no card.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from zipfile import ZIP_LZMA, ZipFile, ZipInfo

import numpy as np

from ...kernel import ir
from ...kernel.passes.safe import Safety
from ...kernel.specialise import specialise
from ...machine import Capability, Limits, TargetInfo
from ...operations.argsort import Argsort
from ...operations.base import Operation
from ...operations.sort import Sort
from ...types.indices import SortOrder
from ...types.specs import Spec
from .compile import compile_anew, text_of
from .shipped import ARCHIVE, SHIPPED_FOR, entry_of, portable
from .writer import WARP

DTYPES = ("u4", "i4", "f4", "u8", "i8", "f8")
# One of each length for which the rules choose another sort: a single row, and rows.
SHAPES = (
    (100,), (1000,), (1500,), (5000,), (100_000,), (1 << 20,), (1 << 24,),
    (1000, 100), (1000, 1000), (1000, 3000), (500, 10_000), (100, 100_000),
)  # fmt: skip

_CARD = TargetInfo(
    name="cuda",
    adapter="a card such as most are",
    driver="none",
    limits=Limits(1024, 227 << 10, (1 << 31) - 1, 1 << 36, 256, WARP, WARP),
    capabilities=frozenset({Capability.FLOAT64, Capability.SUBGROUPS, Capability.FORWARD_PROGRESS}),
)
_DATE = (1980, 1, 1, 0, 0, 0)  # the same archive from the same kernels


def usual_programs(dtypes: tuple[str, ...] = DTYPES) -> Iterator[ir.Program]:
    """The kernels of sorts and argsorts, each once."""
    safety, seen = Safety(lambda group_size: WARP, trusts_own=True), set[ir.Program]()
    for operation in _operations():
        for given in (Spec(shape, np.dtype(dtype)) for dtype in dtypes for shape in SHAPES):
            for work in operation.works((given,), _CARD, False) or ():
                for launch in work.schedule(min(work.rows, work.together)).launches:
                    program = safety.safe(specialise(launch)).program
                    if program not in seen:
                        seen.add(program)
                        yield program


def _operations() -> Iterator[Operation]:
    for order in SortOrder:
        yield Sort(axis=-1, order=order)
    yield Argsort(axis=-1)


def make_archive() -> None:
    """Each worker finds the kernels of a dtype again: programs do not travel."""
    made: dict[str, str] = {}
    with ProcessPoolExecutor() as workers:
        for number, found in enumerate(workers.map(_compiled, DTYPES)):
            made |= found
            print(f"{number + 1} of {len(DTYPES)} dtypes", file=sys.stderr)
    with ZipFile(ARCHIVE, "w", ZIP_LZMA) as archive:
        for name in sorted(made):
            entry = ZipInfo(name, _DATE)
            entry.compress_type = ZIP_LZMA
            archive.writestr(entry, made[name])
    print(f"{ARCHIVE}: {len(made)} kernels, {ARCHIVE.stat().st_size >> 10} KiB")


def _compiled(dtype: str) -> dict[str, str]:
    programs = list(usual_programs((dtype,)))
    return {entry_of(program, text_of(program)): portable(compile_anew(program, SHIPPED_FOR)) for program in programs}


if __name__ == "__main__":
    make_archive()
