"""What the proofs about a program's indices and loops can depend on; the rest is not looked at."""

from __future__ import annotations

from .. import ir
from .walk import expressions_of, statements_in


def variables_that_matter(program: ir.Program) -> frozenset[ir.Variable]:
    """The variables that indices, conditions and the bounds of loops are made of."""
    return frozenset(expression.variable for expression in _reads(program) if isinstance(expression, ir.Read))


def parameters_that_matter(program: ir.Program) -> tuple[int, ...]:
    """Which of a launch's values what is found depends on."""
    found = {expression.parameter for expression in _reads(program) if isinstance(expression, ir.Argument)}
    return tuple(i for i, p in enumerate(program.parameters) if p in found and not p.type.is_float)


def _reads(program: ir.Program) -> list[ir.Read | ir.Argument]:
    """What indices, conditions and the bounds of loops read, and what that is made of: each once."""
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
