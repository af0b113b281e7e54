"""A lockstep (SIMT) interpreter of the IR: runs a kernel for many invocations at once, vectorised by NumPy. A variable
is an array with an entry for each invocation, or with one for all. `lanes`, ascending indices of invocations, is the
execution mask, which control flow narrows. Each statement completes in all invocations before the next starts; the
checks report where another interleaving could differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ...kernel import ir
from ...kernel.span import Span
from ...types import ops
from ...types.errors import IterationLimitError, OutOfBoundsError
from ..counts import are_all, count_nonzero, is_any
from ..interpreters import Lanes, Values, located, source_lane
from .checks import Checks, Shape
from .evaluators import Evaluate, combine, evaluator, evaluators
from .memory import Region
from .races import Access, Indices, Mask

_S = TypeVar("_S", bound=np.generic)
MOST_ROUNDS = 1 << 20  # of a loop
_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)


class Lockstep:
    """Executes a kernel for one chunk of workgroups."""

    def __init__(
        self, shape: Shape, regions: Mapping[str, Region], values: Mapping[ir.Parameter, Values],
        sites: dict[int, Span],
    ) -> None:  # fmt: skip
        self._shape = shape
        self.regions = regions
        self.arguments = values
        self.variables = _Variables()
        self._evaluators: dict[int, Evaluate] = {}

        self._all = np.arange(shape.invocations, dtype=np.int64)
        row = self._all // shape.group_size
        local = self._all % shape.group_size
        self.checks = Checks(shape, row, local, sites)
        subgroup = local // shape.subgroup_size
        self._lane = (local % shape.subgroup_size).astype(np.uint32)
        self._subgroup_row = row * -(-shape.group_size // shape.subgroup_size) + subgroup
        self._subgroup_sizes = np.bincount(self._subgroup_row)
        self.builtins: dict[ir.Builtin, Values] = {
            ir.Builtin.LOCAL_ID: local.astype(np.uint32),
            ir.Builtin.GROUP_ID: (row + shape.first_group).astype(np.uint32)[: 1 if shape.groups == 1 else None],
            ir.Builtin.GROUP_SIZE: np.full(1, shape.group_size, np.uint32),
            ir.Builtin.NUM_GROUPS: np.full(1, shape.num_groups, np.uint32),
            ir.Builtin.LANE: self._lane,
            ir.Builtin.SUBGROUP_ID: subgroup.astype(np.uint32),
            ir.Builtin.SUBGROUP_SIZE: np.full(1, shape.subgroup_size, np.uint32),
        }

    def run(self, program: ir.Program) -> None:
        self._evaluators = evaluators.setdefault(program, {})
        with np.errstate(all="ignore"):
            self._block(program.body, self._all)

    # -- statements: each returns the lanes that continue ----------------------------------------------------

    def _block(self, block: ir.Block, lanes: Lanes) -> Lanes:
        for statement in block:
            if not len(lanes):
                break
            lanes = self._run[type(statement)](self, statement, lanes)
        return lanes

    def _set(self, statement: ir.Assign, lanes: Lanes) -> Lanes:
        values = self._evaluate(statement.value, lanes)
        # Results of operations are new arrays; others may be a variable's own, which changes in place.
        is_new = isinstance(statement.value, ir.Apply) and statement.value.op is not ops.BITCAST
        self._assign(statement.variable, lanes, values if is_new else values.copy())
        return lanes

    def _barrier(self, statement: ir.Barrier, lanes: Lanes) -> Lanes:
        self.checks.barrier(statement.span, lanes)
        return lanes

    def _break(self, _: ir.Break, lanes: Lanes) -> Lanes:
        return lanes[:0]

    def _if(self, statement: ir.If, lanes: Lanes) -> Lanes:
        holds = cast(Mask, self._evaluate(statement.condition, lanes))
        count = count_nonzero(holds)
        self.checks.enter("if", statement.span, lanes)
        if count == len(holds) or count == 0:
            stay = self._block(statement.then if count else statement.otherwise, lanes)
        else:
            then, otherwise = lanes[holds], lanes[~holds]
            stay, others = self._block(statement.then, then), self._block(statement.otherwise, otherwise)
            remain_all = len(stay) + len(others) == len(lanes)
            stay = lanes if remain_all else np.sort(np.concatenate([stay, others]))
        self.checks.leave()
        return stay

    def _for(self, statement: ir.For, lanes: Lanes) -> Lanes:
        # Counted in 64 bits, so that a counter near 2^32 ends its loop instead of wrapping.
        counter, stop, step = (
            self._evaluate(bound, lanes).astype(_INT64) for bound in (statement.start, statement.stop, statement.step)
        )
        if len(counter) + len(stop) + len(step) > 3:
            counter, stop, step = (_broadcast(bound, lanes) for bound in (counter, stop, step))
        if not are_all(step):
            raise IterationLimitError(located(statement.span, "a loop with a step of 0 never ends"))
        self.checks.enter("loop", statement.span, lanes)
        entered = lanes
        while len(lanes):
            looping = counter < stop
            count = count_nonzero(looping)
            if not count:
                break
            if count < len(looping):
                lanes, counter, stop, step = lanes[looping], counter[looping], stop[looping], step[looping]
            self._assign(statement.variable, lanes, counter.astype(_UINT32))
            stay = self._block(statement.body, lanes)
            if len(stay) < len(lanes):
                if len(counter) > 1:
                    looping = np.isin(lanes, stay, assume_unique=True)
                    counter, stop, step = counter[looping], stop[looping], step[looping]
                lanes = stay
            counter = counter + step
        self.checks.leave()
        return entered

    def _loop(self, statement: ir.Loop, lanes: Lanes) -> Lanes:
        self.checks.enter("loop", statement.span, lanes)
        entered = lanes
        for _ in range(MOST_ROUNDS):
            lanes = self._block(statement.body, lanes)
            if not len(lanes):
                self.checks.leave()
                return entered
        message = (
            f"this loop still runs after {MOST_ROUNDS} rounds in {self.checks.name(lanes)}. It may wait for a write by "
            "another invocation: within a launch nothing promises that the other makes progress"
        )
        raise IterationLimitError(located(statement.span, message))

    def _load(self, statement: ir.Load, lanes: Lanes) -> Lanes:
        region, elements = self._locate(statement, lanes)
        self.checks.race_free(statement, region, elements, lanes, Access.READ)
        self.checks.initialised(statement, region, elements, lanes)
        self._assign(statement.variable, lanes, region.items[elements])
        return lanes

    def _store(self, statement: ir.Store, lanes: Lanes) -> Lanes:
        region, elements = self._locate(statement, lanes)
        elements = _broadcast(elements, lanes)
        self.checks.race_free(statement, region, elements, lanes, Access.WRITE)
        region.store(elements, self._evaluate(statement.value, lanes))
        return lanes

    def _atomic(self, statement: ir.Atomic, lanes: Lanes) -> Lanes:
        region, elements = self._locate(statement, lanes)
        elements = _broadcast(elements, lanes)
        reads = statement.op is ops.AtomicOp.LOAD
        self.checks.race_free(statement, region, elements, lanes, Access.ATOMIC_READ if reads else Access.ATOMIC_WRITE)
        if statement.op is ops.AtomicOp.STORE:
            assert statement.value is not None, "verify: an atomic store has a value"
            region.store(elements, self._evaluate(statement.value, lanes))
            return lanes
        self.checks.initialised(statement, region, elements, lanes)
        if statement.value is None:
            before = region.items[elements]
        else:
            before = region.update(elements, statement.op, self._evaluate(statement.value, lanes))
        if statement.variable is not None:
            self._assign(statement.variable, lanes, before)
        return lanes

    def _subgroup(self, statement: ir.Subgroup, lanes: Lanes) -> Lanes:
        what = f"the subgroup operation '{statement.op.value}'"
        self.checks.converged(what, statement.span, lanes, self._subgroup_row, self._subgroup_sizes)
        column, ids = self._lane[lanes], self._subgroup_row[lanes]
        row = np.cumsum(np.concatenate([[0], ids[1:] != ids[:-1]]))
        value = _broadcast(self._evaluate(statement.operands[0], lanes), lanes)
        table = np.zeros((int(row[-1]) + 1, self._shape.subgroup_size), value.dtype)
        table[row, column] = value
        if not statement.op.is_shuffle:
            present = np.zeros(table.shape, np.bool_)
            present[row, column] = True
            self._assign(statement.variable, lanes, combine(statement.op, table, present)[row, column])
            return lanes
        operand, count = _broadcast(self._evaluate(statement.operands[1], lanes), lanes), self._subgroup_sizes[ids]
        mine, asked = column.astype(_INT64), operand.astype(_INT64)
        source = source_lane(statement.op, mine, asked, self._shape.subgroup_size, count)
        lacking = source >= count
        if is_any(lacking):
            at = int(np.argmax(lacking))
            whom = self.checks.name(lanes[lacking])
            message = f"{what} reads lane {source[at]} of a subgroup of {count[at]}, in {whom}"
            raise OutOfBoundsError(located(statement.span, message))
        self._assign(statement.variable, lanes, table[row, source])
        return lanes

    def _evaluate(self, expression: ir.Expression, lanes: Lanes) -> Values:
        """The value for each lane; one only if it is the same for all."""
        evaluate = self._evaluators.get(id(expression))
        if evaluate is None:
            evaluate = self._evaluators[id(expression)] = evaluator(expression)
        return evaluate(self, lanes)

    def _assign(self, variable: ir.Variable, lanes: Lanes, values: Values) -> None:
        """Sets a variable; the array becomes its own, if these are all lanes."""
        if len(lanes) < len(self._all):
            storage = _broadcast(self.variables[variable], self._all)
            storage[lanes] = values
            values = storage
        self.variables[variable] = values

    def _locate(self, statement: ir.Access, lanes: Lanes) -> tuple[Region, Indices]:
        """The memory's region, and the lanes' bounds-checked positions in it; one if it is the same for all."""
        region = self.regions[statement.memory.name]
        index = self._evaluate(statement.index, lanes).astype(_INT64)
        self.checks.in_bounds(statement, region, index, lanes)
        if (firsts := region.firsts) is not None:
            index = index + (firsts if len(lanes) == len(firsts) else firsts[lanes])
        return region, index

    # What runs each kind of statement; it gives the lanes that continue.
    _run: ClassVar[Mapping[type[ir.Statement], Callable[[Any, Any, Lanes], Lanes]]] = {
        ir.Assign: _set, ir.Load: _load, ir.Store: _store, ir.Atomic: _atomic, ir.Subgroup: _subgroup,
        ir.Barrier: _barrier, ir.If: _if, ir.For: _for, ir.Loop: _loop, ir.Break: _break,
    }  # fmt: skip


class _Variables(dict[ir.Variable, Values]):
    """The values of variables, which begin with zeros."""

    def __missing__(self, variable: ir.Variable) -> Values:
        return np.zeros(1, variable.type.dtype)


def _broadcast(values: npt.NDArray[_S], lanes: Lanes) -> npt.NDArray[_S]:
    return values if len(values) == len(lanes) else values.repeat(len(lanes))
