"""Range analysis: which accesses of a launch are proven in bounds, and the trip counts of its loops. An abstract
interpretation of the program with the launch's own numbers (parameters, lengths, workgroups). Values are linear sums of
unknowns (facts.py); inside a branch or a loop, its condition or bounds are facts about them. For a variable that a loop
changes, widening finds a range that holds in every iteration. An access whose index is not proven below the array's
length gets a bounds check (safe.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count

import attrs

from ...types.layout import Type
from .. import ir
from .evaluate import Evaluator, Value
from .facts import Condition, Facts, Sum, assume, both, either, negated, number
from .walk import assignments_in, expressions_of, leaves_loop, statements_in, variable_set_by, variables_set_in

UNBOUNDED = 1 << 200  # trip count of a loop that may never end
_ATTEMPTS = 3  # widenings of a loop's ranges; after these only the types of its variables are known
_DEEPEST = 2  # nesting of loops up to which ranges are sought


class Ranges:
    """The findings about a program's statements, by their `id`, for a launch of `groups` workgroups on a machine with
    subgroups of `lanes` lanes. `given` has the values of parameters and the lengths of storage memories."""

    def __init__(self, program: ir.Program, groups: int, lanes: int, given: Mapping[object, int]) -> None:
        # of loops: an upper bound on the trip count, a Loop's without the round that leaves it; 0 where none is walked
        self.trip_counts = Counter[int]()
        self._inside: dict[int, bool] = {}
        self._given = given
        self._facts = Facts()
        self._values = Evaluator(self._facts, given, _builtins(self._facts, program.group_size, groups, lanes))
        self._relevant = frozenset(read.variable for read in _reads(program) if isinstance(read, ir.Read))
        self._loops = 0  # nesting of the current statement
        self._block(program.body)
        # accesses that may be out of bounds
        self.unproven = frozenset(access for access, inside in self._inside.items() if not inside)

    def _block(self, block: ir.Block) -> bool:
        """Walks a block. Whether control falls through its end."""
        return all(self._statement(statement) for statement in block)

    def _statement(self, statement: ir.Statement) -> bool:
        match statement:
            case ir.If():
                return self._if(statement)
            case ir.For():
                self._for(statement)
            case ir.Loop():
                ends_whole = statement.test is not None and not leaves_loop(statement.body[1:])
                changed = variables_set_in(statement.body)
                rounds = self._loop(changed, ends_whole, partial(self._block, statement.body))
                self.trip_counts[id(statement)] = rounds
            case ir.Assign():
                if statement.variable in self._relevant:
                    self._values.variables[statement.variable] = self._values.of(statement.value)
            case ir.Load() | ir.Store() | ir.Atomic() | ir.Subgroup():
                if not isinstance(statement, ir.Subgroup):
                    self._inside[id(statement)] = self._is_inside(statement)
                if (variable := variable_set_by(statement)) is not None:
                    self._values.variables.pop(variable, None)
            case ir.Barrier() | ir.Break():
                return isinstance(statement, ir.Barrier)
        return True

    def _is_inside(self, access: ir.Access) -> bool:
        memory = access.memory
        length = self._given.get(memory) if memory.length is None else memory.length
        if length is None:
            return False
        return self._facts.at_most(self._values.exact(access.index), length - 1)

    def _if(self, statement: ir.If) -> bool:
        condition, values = self._values.condition(statement.condition), self._values
        if isinstance(condition, bool):
            # the other side is dead code: what is not walked needs no checks
            return self._block(statement.then if condition else statement.otherwise)
        then = self._branch(statement.then, condition)
        otherwise = self._branch(statement.otherwise, negated(condition))
        if then.falls and otherwise.falls:
            values.variables = self._joined(condition, then, otherwise)
        elif then.falls or otherwise.falls:
            values.variables = (then if then.falls else otherwise).variables
            assume(self._facts, condition, holds=then.falls)
        return then.falls or otherwise.falls

    def _branch(self, block: ir.Block, condition: Condition) -> _Path:
        values = self._values
        before, mark = dict(values.variables), values.mark()
        assume(self._facts, condition)
        falls, after = self._block(block), values.variables
        changed = {v: value for v, value in after.items() if isinstance(value, Sum) and before.get(v) is not value}
        ranges = {v: self._range(v, value) for v, value in changed.items()}
        values.variables = before
        values.roll_back(mark)
        return _Path(falls, after, ranges)

    def _range(self, variable: ir.Variable, value: Sum) -> tuple[int, int]:
        return self._values.range(self._values.fitted(value, variable.type), variable.type)

    def _joined(self, condition: Condition, then: _Path, otherwise: _Path) -> dict[ir.Variable, Value]:
        joined: dict[ir.Variable, Value] = {}
        for variable, a in then.variables.items():
            if variable not in otherwise.variables:
                continue
            b = otherwise.variables[variable]
            if a is b or (a == b and isinstance(a, Sum | bool)):
                joined[variable] = a
            elif isinstance(a, Sum) and isinstance(b, Sum):
                (low, high), (other_low, other_high) = (
                    path.ranges.get(variable) or self._range(variable, value)
                    for path, value in ((then, a), (otherwise, b))
                )
                joined[variable] = self._facts.unknown(min(low, other_low), max(high, other_high))
            elif not isinstance(a, Sum) and not isinstance(b, Sum):
                joined[variable] = either(both(condition, a), both(negated(condition), b))
        return joined

    def _for(self, loop: ir.For) -> None:
        facts, values = self._facts, self._values
        start, stop, step = (values.exact(bound) for bound in (loop.start, loop.stop, loop.step))
        most = max(0, facts.highest(stop) - max(0, facts.lowest(start)))
        rounds = -(-most // facts.lowest(step)) if facts.lowest(step) >= 1 else UNBOUNDED
        self.trip_counts[id(loop)] = rounds
        changed = variables_set_in(loop.body)

        def body() -> bool:
            if step.is_constant:
                value = start.plus(facts.unknown(*Type.U32.bounds), max(1, step.constant))
            else:
                value = facts.unknown(*Type.U32.bounds)
                facts.assume(value.plus(start, -1))
            facts.assume(stop.plus(value, -1).plus(number(-1)))
            values.variables[loop.variable] = value  # also where the body sets it: the count goes on
            return self._block(loop.body)

        # one iteration at most sees the values from before the loop, but leaves others
        again = changed if rounds > 1 else frozenset[ir.Variable]()
        self._loop(again, not leaves_loop(loop.body), body)
        for variable in (changed - again) | {loop.variable}:
            values.variables.pop(variable, None)

    def _loop(self, changed: frozenset[ir.Variable], ends_whole: bool, body: Callable[[], bool]) -> int:
        """Walks a loop's body for an arbitrary iteration; gives an upper bound on the trip count, from a variable that
        each iteration increases, or decreases. For each variable in `changed` a loop invariant is sought, a range that
        holds before every iteration: the range before the loop, widened until the body preserves it."""
        values, facts = self._values, self._facts
        known = values.variables.items() if self._loops < _DEEPEST else ()
        ranges = {
            v: self._range(v, value)
            for v, value in known
            if v in changed and v in self._relevant and isinstance(value, Sum)
        }
        lasting = {v: value for v, value in values.variables.items() if v not in changed}
        falls, most = False, UNBOUNDED
        self._loops += 1
        for attempt in count():
            mark = values.mark()
            before = {v: facts.unknown(low, high) for v, (low, high) in ranges.items()}
            values.variables = {**lasting, **before}
            falls = body()
            behind = {v: self._number_in(v) for v in ranges} if falls else {}
            stays = self._widen(ranges, behind, attempt)
            most = min((self._trip_bound(before[v], after) for v, after in behind.items()), default=UNBOUNDED)
            values.roll_back(mark)
            if stays:
                break
        self._loops -= 1
        after = {v: facts.unknown(low, high) for v, (low, high) in ranges.items()} if ends_whole else {}
        values.variables = {**lasting, **after}
        return most if falls else 1

    def _number_in(self, variable: ir.Variable) -> Sum:
        value = self._values.variables.get(variable)
        return self._values.fitted(value, variable.type) if isinstance(value, Sum) else self._values.any(variable.type)

    def _widen(
        self, ranges: dict[ir.Variable, tuple[int, int]], behind: Mapping[ir.Variable, Sum], attempt: int
    ) -> bool:
        """Whether an iteration preserves all ranges; widens those that it does not."""
        stays = True
        for variable, after in behind.items():
            low, high = ranges[variable]
            least, most = variable.type.bounds
            if not self._facts.at_least(after, low):
                low, stays = least, False
            if not self._facts.at_most(after, high):
                high, stays = max(high, self._values.range(after, variable.type)[1]) if attempt == 0 else most, False
            ranges[variable] = (low, high)
        if not stays and attempt == _ATTEMPTS - 1:
            ranges.clear()  # the last walk knows only their types
        return stays

    def _trip_bound(self, before: Sum, after: Sum) -> int:
        """An upper bound on the trip count, if each iteration changes a variable from `before` to a greater, or to a
        lesser, value `after`."""
        step = after.plus(before, -1)
        if self._facts.at_least(step, 1) or self._facts.at_most(step, -1):
            return max(0, self._facts.highest(before) - self._facts.lowest(before)) + 1
        return UNBOUNDED


@attrs.frozen
class _Path:
    """The state at the end of one side of a branch."""

    falls: bool  # whether control falls through
    variables: dict[ir.Variable, Value]
    ranges: Mapping[ir.Variable, tuple[int, int]]  # of the numbers that it changes


def _builtins(facts: Facts, size: int, groups: int, lanes: int) -> dict[ir.Builtin, Sum]:
    local, lane, subgroup = facts.unknown(0, size - 1), facts.unknown(0, lanes - 1), facts.unknown(0, size - 1)
    zero = local.plus(subgroup, -lanes).plus(lane, -1)  # local_id == subgroup_id * lanes + lane
    facts.assume(zero)
    facts.assume(zero.scaled(-1))
    return {
        ir.Builtin.LOCAL_ID: local,
        ir.Builtin.GROUP_ID: facts.unknown(0, max(0, groups - 1)),
        ir.Builtin.GROUP_SIZE: number(size),
        ir.Builtin.NUM_GROUPS: number(groups),
        ir.Builtin.LANE: lane,
        ir.Builtin.SUBGROUP_ID: subgroup,
        ir.Builtin.SUBGROUP_SIZE: number(lanes),
    }


def relevant_parameters(program: ir.Program) -> tuple[ir.Parameter, ...]:
    """The parameters that the findings depend on: launches that agree in these have the same findings."""
    found = {expression.parameter for expression in _reads(program) if isinstance(expression, ir.Argument)}
    return tuple(p for p in program.parameters if p in found and not p.type.is_float)


def _reads(program: ir.Program) -> list[ir.Read | ir.Argument]:
    """The variables and parameters that indices, conditions and loop bounds depend on (a backward slice), one read of
    each."""
    made_of = assignments_in(program.body)
    waiting: list[ir.Expression] = []
    for statement in statements_in(program.body):
        if not isinstance(statement, ir.Assign | ir.Subgroup):
            waiting += (statement.index,) if isinstance(statement, ir.Access) else expressions_of(statement)
    found: dict[ir.Variable | ir.Parameter, ir.Read | ir.Argument] = {}
    while waiting:
        match expression := waiting.pop():
            case ir.Read() if expression.variable not in found:
                found[expression.variable] = expression
                waiting += [s.value for s in made_of.get(expression.variable, ()) if isinstance(s, ir.Assign)]
            case ir.Argument():
                found[expression.parameter] = expression
            case ir.Apply():
                waiting += expression.operands
            case _:
                pass
    return list(found.values())
