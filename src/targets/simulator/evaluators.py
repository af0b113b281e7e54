"""Compiles expressions to Python closures over NumPy arrays, once for each program, instead of walking the tree again
for each chunk of invocations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ...kernel import ir
from ...kernel.span import Span
from ...types import ops
from ...types.layout import Type
from ...types.ops import SubgroupOp
from ..counts import are_all
from ..interpreters import Lanes, Values, located
from .races import Mask

if TYPE_CHECKING:
    from .lockstep import Lockstep


# The value for each lane; one only if it is the same for all.
Evaluate: TypeAlias = "Callable[[Lockstep, Lanes], Values]"


# Of each program's expressions, by id(): they live as long as the program.
evaluators: WeakKeyDictionary[ir.Program, dict[int, Evaluate]] = WeakKeyDictionary()


def values_at(values: Values, lanes: Lanes) -> Values:
    """The values of the lanes, without a copy if these are all or it is one for all."""
    count = len(values)
    return values if count == 1 or count == len(lanes) else values[lanes]


def evaluator(expression: ir.Expression) -> Evaluate:
    match expression:
        case ir.Const(value, type):
            constant = np.full(1, value, type.dtype)
            return lambda run, lanes: constant
        case ir.Read(variable):
            return lambda run, lanes: values_at(run.variables[variable], lanes)
        case ir.Argument(parameter):
            return lambda run, lanes: run.arguments[parameter]
        case ir.BuiltinValue(builtin):
            return lambda run, lanes: values_at(run.builtins[builtin], lanes)
        case ir.Length(memory):
            return lambda run, lanes: np.full(1, run.regions[memory.name].length, np.uint32)
        case ir.Apply(op, operands, type, span):
            return _applied(op, [evaluator(operand) for operand in operands], type, span)


def _applied(op: ops.Op, operands: list[Evaluate], type: Type, span: Span) -> Evaluate:
    """`ops.apply` as a closure. The caller has to silence NumPy's floating-point warnings."""
    evaluate = cast("Callable[..., Values]", op.evaluate)
    first, second = operands[0], operands[-1]
    if op in ops.CONVERSIONS:
        return lambda run, lanes: evaluate(first(run, lanes), type)
    if op in (*ops.DIVISIONS, ops.ADD_NOWRAP):
        divides = op is not ops.ADD_NOWRAP

        def checked(run: Lockstep, lanes: Lanes) -> Values:
            a, b = first(run, lanes), second(run, lanes)
            if divides and not are_all(b):
                raise ZeroDivisionError(located(span, f"division by zero in {run.checks.name(lanes, b == 0)}"))
            result = evaluate(a, b)
            if not divides:
                run.checks.no_overflow(a, result, span, lanes)
            return result

        return checked
    if len(operands) == 2:
        return lambda run, lanes: evaluate(first(run, lanes), second(run, lanes))
    return lambda run, lanes: evaluate(*[operand(run, lanes) for operand in operands])


def combine(op: SubgroupOp, values: Values, present: Mask) -> Values:
    """The operations of one operand. `present` masks the existing lanes: the last subgroup may be partial."""
    width = values.shape[1]
    if op is SubgroupOp.BALLOT:
        votes = cast(Mask, values) & present
        return np.broadcast_to(_mask(votes)[:, None], values.shape)
    if op is SubgroupOp.MATCH:
        alike = (values[:, :, None] == values[:, None, :]) & present[:, None, :]
        return _mask(alike)
    counted = np.where(present, cast("npt.NDArray[np.uint32]", values), np.uint32(0))
    sums = np.cumsum(counted, axis=1, dtype=np.uint32)
    if op is SubgroupOp.ADD:
        return np.broadcast_to(sums[:, width - 1 :], values.shape)
    assert op is SubgroupOp.EXCLUSIVE_ADD, op
    return sums - counted


def _mask(votes: Mask) -> npt.NDArray[np.uint64]:
    """Packs the last axis into lane masks, bit i for lane i."""
    bits = np.uint64(1) << np.arange(votes.shape[-1], dtype=np.uint64)
    return cast("npt.NDArray[np.uint64]", np.sum(np.where(votes, bits, np.uint64(0)), axis=-1))
