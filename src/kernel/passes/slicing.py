"""A backward slice: what indices, conditions and loop bounds depend on. Range analysis ignores everything else."""

from __future__ import annotations

from .. import ir
from .walk import expressions_of, statements_in


def relevant_variables(program: ir.Program) -> frozenset[ir.Variable]:
    """The variables in the slice."""
    return frozenset(expression.variable for expression in _reads(program) if isinstance(expression, ir.Read))


def relevant_parameters(program: ir.Program) -> tuple[int, ...]:
    """The indices of the parameters in the slice: launches that agree in these have the same findings."""
    found = {expression.parameter for expression in _reads(program) if isinstance(expression, ir.Argument)}
    return tuple(i for i, p in enumerate(program.parameters) if p in found and not p.type.is_float)


def _reads(program: ir.Program) -> list[ir.Read | ir.Argument]:
    """The reads of the slice, each variable and parameter once: the transitive closure over assignments."""
    made_of: dict[ir.Variable, list[ir.Expression]] = {}
    waiting: list[ir.Expression] = []
    for statement in statements_in(program.body):
        if isinstance(statement, ir.Assign):
            made_of.setdefault(statement.variable, []).append(statement.value)
        elif isinstance(statement, ir.Access):
            waiting.append(statement.index)
        elif not isinstance(statement, ir.Subgroup):
            waiting += expressions_of(statement)
    found: dict[ir.Variable | ir.Parameter, ir.Read | ir.Argument] = {}
    while waiting:
        match expression := waiting.pop():
            case ir.Read() if expression.variable not in found:
                found[expression.variable] = expression
                waiting += made_of.get(expression.variable, ())
            case ir.Argument():
                found[expression.parameter] = expression
            case ir.Apply():
                waiting += expression.operands
            case _:
                pass
    return list(found.values())
