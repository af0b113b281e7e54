"""Compiled loops that add up along an axis. Importing this loads Numba.

A plan says where to go: start; two ways that stay (length, stride, stride of the results), and the one to add up along.
Where neighbours stay, a row of sums is the one before it and a row of elements. Where they go, rows are added up in
pieces, four of them side by side, for one sum has to wait for the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ..jit import inner, njit
from ..keeping import keep

Elements = npt.NDArray[Any]
Plan = npt.NDArray[np.int64]
Columns = Callable[[Elements, Elements, Plan, int, int], None]  # the last two: which blocks
# With what came before each piece, or for what it comes to; the last two: which fours of them.
Pieces = Callable[[Elements, Elements, Elements, Plan, int, int], None]


def _columns(wide: Any, label: str) -> Columns:
    @njit(nogil=True)
    def columns(flat: Elements, out: Elements, plan: Plan, first: int, last: int) -> None:
        start, _, s0, o0, n1, s1, o1, length, step, out_step, block = plan
        blocks = (n1 + block - 1) // block
        for task in range(first, last):
            outer, begin = task // blocks, (task % blocks) * block
            count = min(block, n1 - begin)
            source, place = start + outer * s0 + begin * s1, outer * o0 + begin * o1
            for j in range(count):
                out[np.uint64(place + j * o1)] = wide(flat[np.uint64(source + j * s1)])
            for r in range(1, length):
                base, at = source + r * step, place + r * out_step
                if o1 == 1 and s1 == 1:
                    row, sums = flat[base : base + count], out[at : at + count]
                    before = out[at - out_step : at - out_step + count]
                    for j in range(count):
                        sums[j] = wide(before[j] + wide(row[j]))
                else:
                    for j in range(count):
                        element = wide(flat[np.uint64(base + j * s1)])
                        out[np.uint64(at + j * o1)] = wide(out[np.uint64(at - out_step + j * o1)] + element)

    return keep(columns, f"columns {label}")


@inner
def _piece(plan: Plan, number: int) -> tuple[int, int, int]:
    """Where a piece begins, where its results do, and how long it is."""
    start, _, s0, o0, n1, s1, o1, length, step, out_step, piece = plan
    pieces = (length + piece - 1) // piece
    row, begin = number // pieces, (number % pieces) * piece
    outer, inner = row // n1, row % n1
    source = start + outer * s0 + inner * s1 + begin * step
    return source, outer * o0 + inner * o1 + begin * out_step, min(piece, length - begin)


def _pieces(wide: Any, label: str, writes: bool) -> Pieces:
    """Either writes the sums of pieces, or only adds them up."""

    @njit(nogil=True)
    def pieces(flat: Elements, out: Elements, sums: Elements, plan: Plan, first: int, last: int) -> None:
        step, out_step = plan[8], plan[9]
        for four in range(4 * first, min(4 * last, sums.size), 4):
            p, at_p, n = _piece(plan, four)
            q, at_q, nq = _piece(plan, min(four + 1, sums.size - 1))
            r, at_r, nr = _piece(plan, min(four + 2, sums.size - 1))
            s, at_s, ns = _piece(plan, min(four + 3, sums.size - 1))
            if n == nq == nr == ns and four + 3 < sums.size:
                w, x, y, z = sums[four], sums[four + 1], sums[four + 2], sums[four + 3]
                a, b = wide(flat[np.uint64(p)]), wide(flat[np.uint64(q)])
                c, d = wide(flat[np.uint64(r)]), wide(flat[np.uint64(s)])
                if writes:
                    out[np.uint64(at_p)], out[np.uint64(at_q)] = wide(w + a), wide(x + b)
                    out[np.uint64(at_r)], out[np.uint64(at_s)] = wide(y + c), wide(z + d)
                for i in range(1, n):
                    a = wide(a + wide(flat[np.uint64(p + i * step)]))
                    b = wide(b + wide(flat[np.uint64(q + i * step)]))
                    c = wide(c + wide(flat[np.uint64(r + i * step)]))
                    d = wide(d + wide(flat[np.uint64(s + i * step)]))
                    if writes:
                        out[np.uint64(at_p + i * out_step)] = wide(w + a)
                        out[np.uint64(at_q + i * out_step)] = wide(x + b)
                        out[np.uint64(at_r + i * out_step)] = wide(y + c)
                        out[np.uint64(at_s + i * out_step)] = wide(z + d)
                if not writes:
                    sums[four], sums[four + 1], sums[four + 2], sums[four + 3] = a, b, c, d
            else:
                for number in range(four, min(four + 4, sums.size)):
                    p, at_p, n = _piece(plan, number)
                    w, a = sums[number], wide(flat[np.uint64(p)])
                    if writes:
                        out[np.uint64(at_p)] = wide(w + a)
                    for i in range(1, n):
                        a = wide(a + wide(flat[np.uint64(p + i * step)]))
                        if writes:
                            out[np.uint64(at_p + i * out_step)] = wide(w + a)
                    if not writes:
                        sums[number] = a

    return keep(pieces, f"{'pieces' if writes else 'totals'} {label}")


@attrs.frozen
class ScanLoops:
    """The loops for one dtype of results."""

    columns: Columns
    totals: Pieces
    pieces: Pieces

    @classmethod
    def of(cls, wide: Any, label: str) -> ScanLoops:
        return cls(_columns(wide, label), _pieces(wide, label, writes=False), _pieces(wide, label, writes=True))


SCANS = {
    "i8": ScanLoops.of(np.int64, "i8"), "u8": ScanLoops.of(np.uint64, "u8"), "f4": ScanLoops.of(np.float32, "f4"),
    "f8": ScanLoops.of(np.float64, "f8"),
}  # fmt: skip
