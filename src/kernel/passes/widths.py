"""Bit-width analysis: upper bounds on the significant bits of integers. Where a subgroup's `match` is emulated by one
ballot for each bit, a digit of eight bits takes eight ballots, not 32."""

from __future__ import annotations

from collections.abc import Sequence

from ...types import ops
from ...types.layout import Type
from .. import ir
from .walk import assignments_in

_DEEPEST = 24  # beyond this depth an expression counts as wide as its type, which bounds the search


class Widths:
    """Upper bounds on the widths of expressions, flow-insensitive: over all assignments to each variable."""

    def __init__(self, program: ir.Program, lanes: int) -> None:
        self._lanes = lanes  # of a subgroup, hence the width of a mask of lanes
        self._assigned = {
            variable: [self._source(statement, variable) for statement in assignments]
            for variable, assignments in assignments_in(program.body).items()
        }

    def of(self, expression: ir.Expression) -> int:
        """The number of low bits that may be set, in any evaluation of the expression."""
        return self._width(expression, frozenset(), 0)

    def _source(self, statement: ir.Statement, variable: ir.Variable) -> ir.Expression | int:
        """The expression that a statement assigns to a variable, or the width of what it sets."""
        if isinstance(statement, ir.Assign):
            return statement.value
        is_mask = isinstance(statement, ir.Subgroup) and statement.op in _MASKS
        return self._lanes if is_mask else variable.type.bits

    def _width(self, expression: ir.Expression, within: frozenset[ir.Variable], depth: int) -> int:
        whole = expression.type.bits
        if depth > _DEEPEST or expression.type.is_float or expression.type.sign:
            return whole
        match expression:
            case ir.Const():
                return int(expression.value).bit_length()
            case ir.Read():
                return min(whole, self._variable(expression.variable, within, depth))
            case ir.BuiltinValue():
                return min(whole, self._lanes.bit_length()) if expression.builtin in _IN_A_SUBGROUP else whole
            case ir.Apply():
                if expression.type is Type.BOOL:
                    return 1
                widths = [self._width(operand, within, depth + 1) for operand in expression.operands]
                return min(whole, _result(expression, widths))
            case _:
                return whole

    def _variable(self, variable: ir.Variable, within: frozenset[ir.Variable], depth: int) -> int:
        """The widest of all assignments. An assignment from the variable itself, in a loop, adds nothing."""
        if variable in within:
            return 0
        inside = within | {variable}
        sources = self._assigned.get(variable, [])
        return max((s if isinstance(s, int) else self._width(s, inside, depth + 1) for s in sources), default=0)


def _result(node: ir.Apply, widths: Sequence[int]) -> int:
    """The width of an operation's result from the widths of its operands."""
    op, whole = node.op, node.type.bits
    if op in (ops.AND, ops.MIN):
        return min(widths)
    if op in (ops.OR, ops.XOR, ops.MAX):
        return max(widths)
    if op is ops.SELECT:
        return max(widths[1:])
    if op is ops.CAST:
        return widths[0] if not node.operands[0].type.sign else whole
    last = node.operands[-1]
    if op is ops.SHR and isinstance(last, ir.Const):
        return max(0, widths[0] - int(last.value) % node.type.bits)
    if op is ops.MOD and isinstance(last, ir.Const):
        return (int(last.value) - 1).bit_length()
    if op is ops.FLOORDIV:
        return widths[0]
    return _COUNT if op in ops.BIT_COUNTS else whole


_MASKS = (ops.SubgroupOp.BALLOT, ops.SubgroupOp.MATCH)
_IN_A_SUBGROUP = frozenset({ir.Builtin.LANE, ir.Builtin.SUBGROUP_SIZE})
_COUNT = 7  # the width of a number of bits: 64 at most
