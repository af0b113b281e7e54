"""Builds the archive of ahead-of-time compiled PTX (src/targets/cuda/shipped.py): `python -m benchmarks.ptx`.

It holds the kernels of common calls: usual dtypes, lengths and axes. Needs NVVM, and no card.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import TypeAlias
from zipfile import ZIP_LZMA, ZipFile, ZipInfo

import numpy as np

from gpusort.kernel import ir
from gpusort.kernel.passes.safe import Safety
from gpusort.kernel.specialise import specialise
from gpusort.machine import Capability, Limits, TargetInfo
from gpusort.operations.argsort import Argsort, SortPairs
from gpusort.operations.base import Operation
from gpusort.operations.reduce import Reduce, Reducer
from gpusort.operations.scan import Cumsum
from gpusort.operations.sort import Sort
from gpusort.targets.cuda.compile import compile_uncached, text_of
from gpusort.targets.cuda.shipped import ARCHIVE, SHIPPED_FOR, entry_of, portable
from gpusort.targets.cuda.text import WARP
from gpusort.types.indices import SortOrder
from gpusort.types.specs import Memory, Spec

DTYPES = ("u4", "i4", "f4", "u8", "i8", "f8")
Shape: TypeAlias = tuple[int, ...]
Call: TypeAlias = tuple[Operation, tuple[Spec, ...]]
# One length for each sort that the rules choose: single rows, and many rows. Of those in workgroup memory, which have a
# kernel for each number of elements in an invocation, round lengths.
ROW: tuple[Shape, ...] = ((100,), (1000,), (2000,), (4000,), (8000,), (100_000,), (500_000,), (1 << 20,), (1 << 24,))
ROWS: tuple[Shape, ...] = (
    (1000, 100), (1000, 1000), (1000, 3000), (1000, 4000), (1000, 8000), (500, 10_000), (500, 16_000), (500, 20_000),
    (100, 100_000),
)  # fmt: skip
# The same for reductions and scans, along any axis.
LINES: tuple[Shape, ...] = ((100,), (5000,), (100_000,), (1 << 20,), (1 << 26,))
PLANES: tuple[Shape, ...] = ((100, 100), (1000, 1000), (500, 20_000), (200, 60_000), (100_000, 10), (65_536, 1024))
VALUES = ("u4", "u8")

_CARD = TargetInfo(
    name="cuda",
    adapter="a typical card",
    driver="none",
    limits=Limits(1024, 227 << 10, (1 << 31) - 1, 1 << 36, 256, WARP, WARP),
    capabilities=frozenset({Capability.FLOAT64, Capability.SUBGROUPS, Capability.FORWARD_PROGRESS}),
)
_DATE = (1980, 1, 1, 0, 0, 0)  # fixed, so that builds are reproducible


def usual_programs(dtypes: tuple[str, ...]) -> Iterator[ir.Program]:
    """The distinct kernels of the usual calls."""
    safety, seen = Safety(lambda group_size: WARP, trusts_own=True), set[ir.Program]()
    for dtype in dtypes:
        for operation, given in (*_sorts(dtype), *_pairs(dtype), *_along_axes(dtype)):
            for work in operation.works(given, _CARD):
                for launch in work.schedule(min(work.rows, work.together)).launches:
                    program = safety.safe(specialise(launch)).program
                    if program not in seen:
                        seen.add(program)
                        yield program


def _sorts(dtype: str) -> Iterator[Call]:
    in_orders = (Sort(axis=-1, order=order, stable=stable) for order in SortOrder for stable in (False, True))
    for operation in (*in_orders, Argsort(axis=-1)):
        for shape in (*ROW, *ROWS):
            yield operation, (_spec(shape, dtype),)


def _pairs(dtype: str) -> Iterator[Call]:
    for shape, values in product(ROW, VALUES):
        yield SortPairs(), (_spec(shape, dtype), _spec(shape, values))


def _along_axes(dtype: str) -> Iterator[Call]:
    for shape, axis in (*product(LINES, (-1,)), *product(PLANES, (0, -1))):
        yield Cumsum(axis), (_spec(shape, dtype),)
        for reducer in (Reducer.SUM, Reducer.MIN, Reducer.MAX):
            yield Reduce(axis, reducer=reducer), (_spec(shape, dtype),)


def _spec(shape: Shape, dtype: str) -> Spec:
    return Spec(shape, np.dtype(dtype), Memory.CUDA)


def make_archive() -> None:
    """Compiles in one process for each dtype. Programs cannot be pickled, so each worker derives its own again."""
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
    return {
        entry_of(program, text_of(program)): portable(compile_uncached(program, SHIPPED_FOR)) for program in programs
    }


if __name__ == "__main__":
    ArgumentParser(prog="python -m benchmarks.ptx", description=__doc__).parse_args()  # else --help makes it too
    make_archive()
