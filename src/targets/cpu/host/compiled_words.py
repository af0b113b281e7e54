"""A key's transforms by compiled kernels, once loaded: in one pass, what NumPy does an operation at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import attrs

from ....algos.words import Array, KeyTransform
from ....kernel import ir
from ....kernel.passes.walk import expressions_of, nodes_in, statements_in
from ....types import ops
from ...addresses import address_of
from ..background import background
from ..crew import share_kernel

if TYPE_CHECKING:
    from ..kernels import Ready

_FEW = 1 << 12  # elements: fewer take NumPy so little time that only many calls are worth loading anything


def are_compiled(transform: KeyTransform, source: Array, results: Array) -> bool:
    """Writes what a transform makes of packed elements; False, and nothing is done, where NumPy is to do it: as long as
    the kernel is not loaded, and for loops that may not end, which Ctrl-C stops there."""
    program, is_few = transform.run.step.program, source.size < _FEW
    if not _is_compilable(program):
        return False
    if not background.has((_Compiled.load, _Compiled(program, transform)), source.nbytes, is_little=is_few):
        return False
    ready, count = _ready(transform), source.size
    if ready.asks:
        return False
    taken, made = (array.nbytes // size for array, size in zip((source, results), ready.sizes, strict=True))
    numbers = [count, address_of(source), taken, address_of(results), made, *ready.values]
    share_kernel(ready.kernel, count, numbers, 0 if is_few else source.nbytes)
    return True


@attrs.frozen
class _Compiled:
    """The kernel of a program, which is the same for all transforms that have it."""

    program: ir.Program
    transform: KeyTransform = attrs.field(eq=False)

    def load(self) -> Ready:
        return _ready(self.transform)


@lru_cache(maxsize=256)
def _is_compilable(program: ir.Program) -> bool:
    evaluated = (expression for statement in statements_in(program.body) for expression in expressions_of(statement))
    return not any(_is_numpys(node) for expression in evaluated for node in nodes_in(expression))


def _is_numpys(node: ir.Expression) -> bool:
    """By 0 only NumPy's division is an error, and its exponential may differ from others in the last bit."""
    if not isinstance(node, ir.Apply):
        return False
    divides = node.op in (ops.FLOORDIV, ops.MOD) and not isinstance(node.operands[1], ir.Const)
    return divides or node.op in (ops.EXP, ops.LOG)


@lru_cache(maxsize=256)
def _ready(transform: KeyTransform) -> Ready:
    """Its kernel, which loads LLVM."""
    from ...binding import Work
    from ..kernels import ready

    (kernel,) = ready(Work((), (transform.run.step,)))
    return kernel
