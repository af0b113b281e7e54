"""Vectorises elementwise kernels over NumPy arrays: a user's code for one element, on whole arrays, without compiling.
In divergent control flow, a mask selects the elements for which a statement takes effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import attrs
import numpy as np
import numpy.typing as npt

from ..kernel import ir
from ..kernel.captures import Captures
from ..kernel.launch import Launch, Step
from ..kernel.span import Span
from ..kernel.specialise import captures_of, specialise
from ..types import ops
from ..types.errors import IterationLimitError, UnsupportedTypeError

Values: TypeAlias = npt.NDArray[Any]  # of any scalar type; of length 1 where all elements have the same value
Mask: TypeAlias = npt.NDArray[np.bool_]

_OWN = ir.Builtin.GROUP_ID  # the element's index: such kernels have one invocation in a workgroup
_EVERY: Mask = np.ones(1, np.bool_)


@attrs.define
class _Run:
    """The state of a run. A mask of length 1 is for all elements."""

    memories: dict[ir.Memory, Values]
    arguments: dict[ir.Parameter, Values]
    variables: dict[ir.Variable, Values] = attrs.field(factory=dict["ir.Variable", "Values"])
    mask: Mask = _EVERY


_Expression: TypeAlias = Callable[[_Run], Values]
_Statement: TypeAlias = Callable[[_Run], None]


@attrs.frozen
class OnArrays:
    """A launch of an elementwise kernel, translated to NumPy."""

    step: Step
    run: _Statement
    arguments: dict[ir.Parameter, Values]
    captures: tuple[Captures, ...]

    @property
    def holds(self) -> bool:
        """Whether the kernel's captures are unchanged since it was read."""
        return all(captures.hold() for captures in self.captures)

    @classmethod
    def of(cls, launch: Launch) -> OnArrays:
        """Raises UnsupportedTypeError, with the line, where an invocation does not only depend on its own element."""
        step = specialise(launch)
        run = _known.get(step.program)
        if run is None:
            run = _known.setdefault(step.program, _Reading().block(step.program.body))
        arguments = {parameter: np.full(1, value, parameter.type.dtype) for parameter, value in step.values.items()}
        return cls(step, run, arguments, captures_of([step]))

    def __call__(self, arrays: Mapping[str, npt.NDArray[Any]], count: int) -> None:
        """Runs the kernel for `count` elements; `arrays` are by the names of buffers."""
        if not count:
            return
        memories: dict[ir.Memory, Values] = {}
        for memory, buffer in self.step.buffers.items():
            units = arrays[buffer.name].view(memory.type.dtype)
            memories[memory] = units.reshape(count, -1)
        with np.errstate(all="ignore"):
            self.run(_Run(memories, self.arguments))


_known: WeakKeyDictionary[ir.Program, _Statement] = WeakKeyDictionary()


class _Reading:
    """Translates statements and expressions into closures, so that a run does not dispatch on them."""

    def block(self, block: ir.Block) -> _Statement:
        """Its statements, each of which leaves in the mask the elements that reach the next one."""
        statements = [self._statement(statement) for statement in block]

        def run(run: _Run) -> None:
            for statement in statements:
                statement(run)

        return run

    def _statement(self, statement: ir.Statement) -> _Statement:
        match statement:
            case ir.Assign():
                return _assignment(statement.variable, self._expression(statement.value))
            case ir.Load():
                return _assignment(statement.variable, self._own(statement.memory, statement.index, statement.span))
            case ir.Store():
                place = self._own(statement.memory, statement.index, statement.span)
                value = self._expression(statement.value)
                return lambda run: np.copyto(place(run), value(run), where=run.mask)
            case ir.If():
                return self._if(statement)
            case ir.For():
                return self._for(statement)
            case ir.Loop():
                return self._loop(statement)
            case ir.Break():
                return _break
            case ir.Atomic() | ir.Subgroup() | ir.Barrier():
                raise _refused(statement.span, "expected elements that have nothing to do with each other")

    def _if(self, statement: ir.If) -> _Statement:
        then, otherwise = self.block(statement.then), self.block(statement.otherwise)
        condition = self._expression(statement.condition)

        def choose(run: _Run) -> None:
            before, holds = run.mask, condition(run)
            stay, are_all_left = np.zeros(1, np.bool_), True
            for block, mask in ((then, before & holds), (otherwise, before & ~holds)):
                run.mask = mask
                if mask.any():
                    block(run)
                are_all_left = are_all_left and run.mask is mask
                stay = stay | run.mask
            run.mask = before if are_all_left else stay

        if isinstance(statement.condition, ir.Const):
            return then if statement.condition.value else otherwise
        return choose

    def _for(self, statement: ir.For) -> _Statement:
        bounds = [self._expression(bound) for bound in (statement.start, statement.stop, statement.step)]
        body = self.block(statement.body)

        def loop(run: _Run) -> None:
            # In 64 bits, so that a counter near 2**32 does not overflow.
            counter, stop, step = (bound(run).astype(np.int64) for bound in bounds)
            before = run.mask
            if (before & (step == 0)).any():
                span = statement.span
                raise IterationLimitError(f"{span}: a loop with a step of 0 never ends\n    {span.text}")
            run.mask = before & (counter < stop)
            while run.mask.any():
                _assign(run, statement.variable, counter.astype(np.uint32))
                body(run)
                counter = counter + step
                run.mask = run.mask & (counter < stop)
            run.mask = before

        return loop

    def _loop(self, statement: ir.Loop) -> _Statement:
        body = self.block(statement.body)

        def loop(run: _Run) -> None:
            before = run.mask
            while run.mask.any():
                body(run)
            run.mask = before

        return loop

    def _expression(self, node: ir.Expression) -> _Expression:
        match node:
            case ir.Read():
                variable = node.variable
                return lambda run: run.variables[variable]
            case ir.Const():
                constant = np.full(1, node.value, node.type.dtype)
                return lambda run: constant
            case ir.Argument():
                parameter = node.parameter
                return lambda run: run.arguments[parameter]
            case ir.Apply():
                return self._apply(node)
            case ir.BuiltinValue() | ir.Length():
                raise _refused(node.span, "expected what an element alone decides")

    def _apply(self, node: ir.Apply) -> _Expression:
        op, evaluate, operands = node.op, node.op.evaluate, [self._expression(operand) for operand in node.operands]
        first = operands[0]
        if op is ops.CAST or op is ops.BITCAST:
            return lambda run: evaluate(first(run), node.type)
        if op is ops.SELECT:
            return lambda run: _chosen(first(run), operands[1](run), operands[2](run))
        if op is ops.FLOORDIV or op is ops.MOD:
            return lambda run: evaluate(first(run), _divisor(run, operands[1](run), node))
        if len(operands) == 2:
            second = operands[1]
            return lambda run: evaluate(first(run), second(run))
        return lambda run: evaluate(*[operand(run) for operand in operands])

    def _own(self, memory: ir.Memory, index: ir.Expression, span: Span) -> _Expression:
        """One unit of every element: a column."""
        place = _place_of(index)
        if memory.space is not ir.Space.STORAGE or place is None:
            raise _refused(span, "expected no memory but the element itself")
        return lambda run: run.memories[memory][:, place]


def _assignment(variable: ir.Variable, value: _Expression) -> _Statement:
    return lambda run: _assign(run, variable, value(run))


def _assign(run: _Run, variable: ir.Variable, value: Values) -> None:
    before = run.variables.get(variable) if run.mask is not _EVERY else None
    run.variables[variable] = value if before is None else _chosen(run.mask, value, before)


def _break(run: _Run) -> None:
    run.mask = np.zeros_like(run.mask)


def _chosen(condition: Mask, then: Values, otherwise: Values) -> Values:
    """SELECT, branch-free by bit masks: np.where takes several times as long if its condition is unpredictable."""
    bits = f"u{then.itemsize}"
    chosen: Values = then.view(bits) ^ otherwise.view(bits)
    mask = condition.view(np.uint8) if then.dtype == np.bool_ else np.negative(condition.astype(bits))
    chosen = chosen & mask
    chosen ^= otherwise.view(bits)
    return chosen.view(then.dtype)


def _divisor(run: _Run, divisor: Values, node: ir.Apply) -> Values:
    """The divisor, with 1 in place of 0 for elements that are masked out; raises ZeroDivisionError for others."""
    zero = divisor == 0
    if (zero & run.mask).any():
        raise ZeroDivisionError(f"{node.span}: {node.op} by zero\n    {node.span.text}")
    return divisor | zero if zero.any() else divisor


def _place_of(index: ir.Expression) -> int | None:
    """The unit of the invocation's own element that an index names, `group_id * units + place`; None for others."""
    place = 0
    if isinstance(index, ir.Apply) and index.op is ops.ADD:
        index, added = index.operands
        if not isinstance(added, ir.Const):
            return None
        place = int(added.value)
    if isinstance(index, ir.Apply) and index.op is ops.MUL and isinstance(index.operands[1], ir.Const):
        index = index.operands[0]
    return place if isinstance(index, ir.BuiltinValue) and index.builtin is _OWN else None


def _refused(span: Span, expected: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(f"{span}: {expected}, to be computed on the host\n    {span.text}")
