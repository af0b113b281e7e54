"""Compiles expressions to Python closures over NumPy arrays, once for each program, instead of walking the tree again
for each chunk of invocations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np

from ...kernel import ir
from ...kernel.span import Span
from ...types import ops
from ...types.layout import Type
from ..counts import are_all
from ..host_buffers import Values
from .checks import Lanes

if TYPE_CHECKING:
    from .lockstep import Lockstep


# The value for each lane; a 0-d array if it is uniform.
Evaluate: TypeAlias = "Callable[[Lockstep, Lanes], Values]"


# Of each program's expressions, by id(): they live as long as the program.
evaluators: WeakKeyDictionary[ir.Program, dict[int, Evaluate]] = WeakKeyDictionary()


def values_at(values: Values, lanes: Lanes) -> Values:
    """The values of the lanes, without a copy if these are all."""
    return values if values.ndim == 0 or len(values) == len(lanes) else values[lanes]


def evaluator(expression: ir.Expression) -> Evaluate:
    match expression:
        case ir.Const(value, type):
            constant = np.asarray(value, type.dtype)
            return lambda run, lanes: constant
        case ir.Read(variable):
            return lambda run, lanes: values_at(run.values_of(variable), lanes)
        case ir.Argument(parameter):
            return lambda run, lanes: run.arguments[parameter]
        case ir.Identity(builtin):
            return lambda run, lanes: values_at(run.builtins[builtin], lanes)
        case ir.Length(memory):
            return lambda run, lanes: np.asarray(run.regions[memory.name].length, np.uint32)
        case ir.Apply(op, operands, type, span):
            return _applied(op, [evaluator(operand) for operand in operands], type, span)


def _applied(op: ops.Op, operands: list[Evaluate], type: Type, span: Span) -> Evaluate:
    """`ops.apply` as a closure, which takes its slow path for 0-d arrays only if all operands are. The caller has to
    silence NumPy's floating-point warnings."""
    evaluate = cast("Callable[..., Values]", op.evaluate)
    to = type if op in (ops.CAST, ops.BITCAST) else None
    divides, adds = op in (ops.FLOORDIV, ops.MOD), op is ops.ADD_NOWRAP

    def applied(run: Lockstep, lanes: Lanes) -> Values:
        values = [operand(run, lanes) for operand in operands]
        if divides and not are_all(values[1]):
            run.checks.nonzero_divisor(values[1], span, lanes)
        if any(value.ndim for value in values):
            result = evaluate(*values) if to is None else evaluate(*values, to)
        else:
            result = ops.apply(op, *values, to=to)
        if adds:
            run.checks.no_overflow(values[0], result, span, lanes)
        return result

    return applied
