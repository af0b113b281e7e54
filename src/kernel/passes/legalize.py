"""Legalisation: a program for machines that have 32-bit words and nothing else.

What comes out is IR as any other, and means the same. It has U32, I32, F32 and Bool variables; U32, I32 and
F32 in storage and parameters (elements that were of another size lie there as `legalize_memory.Place` says);
no Length, which has become a parameter, as it can no longer be told from a buffer's size. Floats are compared as
integers, and keep their zeros' signs, infinities and NaNs (see legalize_floats.py). One thing is left
to the target: BALLOT gives its U64 mask to a variable that is read in just two forms, `cast(U32, mask)` and
`cast(U32, shr(mask, 32))`, which are its words. MATCH is ballots by then, and shuffles name a lane that there
is.
"""

from __future__ import annotations

import attrs

from ...types import ops
from ...types.layout import Type
from .. import ir
from .counting import ends_before_it_wraps
from .legalize_build import Builder, reads
from .legalize_lanes import MASK_BITS, Lanes
from .legalize_memory import NARROW, WIDE, Place
from .legalize_operations import Operations
from .legalize_words import Pair, Value
from .walk import statements_in
from .widths import Widths

_WHOLE = frozenset({Type.U32, Type.I32, Type.F32})


@attrs.frozen
class Origin:
    """Where the host finds the value of a legalised parameter."""

    parameter: ir.Parameter | None = None  # one of the program's own: this 32-bit word of it
    word: int = 0
    length_of: ir.Memory | None = None  # or the number of elements of a storage buffer; or else zero


@attrs.frozen
class Legalized:
    """The legalised program; the origin of each of its parameters, in their order."""

    program: ir.Program
    origins: tuple[Origin, ...]


def legalize(program: ir.Program, lanes: int = MASK_BITS) -> Legalized:
    """Rewrites a program for 32-bit machines; CapabilityError where that cannot be done. No subgroup has more lanes."""
    return _Legalizer(program, lanes).run()


class _Legalizer:
    def __init__(self, program: ir.Program, lanes: int) -> None:
        self.program = program
        self.build = Builder(program.span)
        self.parameters: dict[ir.Parameter, Value] = {}
        self.lengths: dict[ir.Memory, ir.Parameter] = {}
        self.zero: ir.Parameter | None = None
        self.variables: dict[ir.Variable, tuple[ir.Variable, ...]] = {}
        self.places: dict[ir.Memory, Place] = {}
        self.operations = Operations(self.build, self._leaf, self._hidden_zero)
        self.lanes = Lanes(self.build, program.group_size, lanes)
        self.widths = Widths(program, lanes)

    def run(self) -> Legalized:
        stored = {s.memory for s in statements_in(self.program.body) if isinstance(s, ir.Store)}
        for memory in self.program.memories:
            self.places[memory] = Place.of(memory, memory in stored)
        made = [self._parameter(parameter) for parameter in self.program.parameters]
        parameters = [parameter for own in made for parameter, _ in own]
        origins = [origin for own in made for _, origin in own]
        self._statements(self.program.body)
        for memory, parameter in self.lengths.items():
            parameters.append(parameter)
            origins.append(Origin(length_of=memory))
        if self.zero is not None:
            parameters.append(self.zero)
            origins.append(Origin())
        own = tuple(half for halves in self.variables.values() for half in halves)
        legal = ir.Program(
            name=self.program.name,
            group_size=self.program.group_size,
            parameters=tuple(parameters),
            memories=tuple(self.places[memory].after for memory in self.program.memories),
            variables=own + tuple(self.build.variables),
            body=self.build.finish(),
            span=self.program.span,
            needs=self.program.needs,
        )
        return Legalized(legal, tuple(origins))

    # -- parameters, variables, leaves --------------------------------------------------------------------

    def _parameter(self, parameter: ir.Parameter) -> list[tuple[ir.Parameter, Origin]]:
        def argument(of: ir.Parameter) -> ir.Argument:
            return ir.Argument(of, self.program.span)

        if parameter.type in _WHOLE:
            self.parameters[parameter] = argument(parameter)
            return [(parameter, Origin(parameter))]
        if parameter.type in NARROW:
            word = ir.Parameter(parameter.name, Type.U32)
            value: ir.Expression = argument(word)
            if parameter.type is Type.BOOL:
                value = self.build.apply(ops.NE, value, self.build.word(0))
            self.parameters[parameter] = value
            return [(word, Origin(parameter))]
        low, high = (ir.Parameter(f"{parameter.name}_{half}", Type.U32) for half in ("low", "high"))
        self.parameters[parameter] = Pair(argument(low), argument(high))
        return [(low, Origin(parameter)), (high, Origin(parameter, 1))]

    def _halves(self, variable: ir.Variable) -> tuple[ir.Variable, ...]:
        """The variables that stand for one: itself, a U32, or two of them."""
        known = self.variables.get(variable)
        if known is None:
            if variable.type in WIDE:
                known = tuple(ir.Variable(f"{variable.name}_{half}", Type.U32) for half in ("low", "high"))
            elif variable.type in (Type.U8, Type.U16):
                known = (ir.Variable(variable.name, Type.U32),)
            else:
                known = (variable,)
            self.variables[variable] = known
        return known

    def _leaf(self, node: ir.Read | ir.Argument | ir.Identity | ir.Length) -> Value:
        match node:
            case ir.Read():
                halves = [ir.Read(half, node.span) for half in self._halves(node.variable)]
                return halves[0] if len(halves) == 1 else Pair(halves[0], halves[1])
            case ir.Argument():
                return self.parameters[node.parameter]
            case ir.Length():
                default = ir.Parameter(f"{node.memory.name}_length", Type.U32)
                return ir.Argument(self.lengths.setdefault(node.memory, default), node.span)
            case ir.Identity():
                # a number like others, so that what it is part of is computed here: WGSL refuses `64u - 65u`
                return self.build.word(self.program.group_size) if node.builtin is ir.Builtin.GROUP_SIZE else node

    def _hidden_zero(self) -> ir.Expression:
        """A zero that no compiler can know to be one."""
        if self.zero is None:
            self.zero = ir.Parameter("hidden_zero", Type.U32)
        return ir.Argument(self.zero, self.build.span)

    def _word(self, expression: ir.Expression) -> ir.Expression:
        """The value of an expression that is of 32 bits or a Bool."""
        value = self.operations.value(expression)
        assert not isinstance(value, Pair), f"{expression.span}: expected a word, found {expression.type}"
        return value

    # -- statements ---------------------------------------------------------------------------------------

    def _statements(self, block: ir.Block) -> None:
        for statement in block:
            self.build.span = statement.span
            self._statement(statement)

    def _block(self, block: ir.Block) -> ir.Block:
        with self.build.block() as statements:
            self._statements(block)
        return tuple(statements)

    def _statement(self, statement: ir.Statement) -> None:
        build = self.build
        match statement:
            case ir.Assign():
                self._assign(statement.variable, self.operations.value(statement.value))
            case ir.Load() if statement.for_all:
                loaded, memory = self._halves(statement.variable)[0], self.places[statement.memory].after
                build.emit(ir.Load(loaded, memory, self._word(statement.index), statement.span, for_all=True))
            case ir.Load():
                value = self.places[statement.memory].load(build, self._word(statement.index))
                self._assign(statement.variable, value)
            case ir.Store():
                index = self._word(statement.index)
                self.places[statement.memory].store(build, index, self.operations.value(statement.value))
            case ir.Atomic():
                operand = None if statement.value is None else self._word(statement.value)
                memory, index = self.places[statement.memory].after, self._word(statement.index)
                variable = None if statement.variable is None else self._halves(statement.variable)[0]
                build.emit(ir.Atomic(variable, statement.op, memory, index, operand, statement.span))
            case ir.Subgroup():
                operands = [self.operations.value(operand) for operand in statement.operands]
                self._assign(
                    statement.variable,
                    self.lanes.subgroup(statement.op, operands, self.widths.of(statement.operands[0])),
                )
            case ir.If():
                condition = self._word(statement.condition)
                then, otherwise = self._block(statement.then), self._block(statement.otherwise)
                build.emit(ir.If(condition, then, otherwise, statement.span))
            case ir.For():
                self._counted(statement)
            case ir.While():
                with build.block() as head:
                    self._statements(statement.head)
                    build.span = statement.span
                    condition = self._word(statement.condition)  # what it needs is computed at the end of the head
                build.emit(ir.While(tuple(head), condition, self._block(statement.body), statement.span))
            case ir.Barrier() | ir.Break():
                build.emit(statement)

    def _counted(self, loop: ir.For) -> None:
        """Where the counter might wrap round before it passes the end, the turns are counted instead."""
        build, variable = self.build, self._halves(loop.variable)[0]
        start, stop, step = (self._word(e) for e in (loop.start, loop.stop, loop.step))
        if ends_before_it_wraps(attrs.evolve(loop, start=start, stop=stop, step=step)):
            build.emit(ir.For(variable, start, stop, step, self._block(loop.body), loop.span))
            return
        none, one = build.word(0), build.word(1)
        step = step if isinstance(step, ir.Const) else build.held(build.apply(ops.MAX, step, one), "step")
        start, stop = build.held(start, "start"), build.held(stop, "stop")
        rounds = build.apply(ops.FLOORDIV, build.apply(ops.SUB, build.apply(ops.SUB, stop, start), one), step)
        some = build.apply(ops.LT, start, stop)
        turns = build.held(build.apply(ops.SELECT, some, build.apply(ops.ADD, rounds, one), none), "turns")
        turn = build.fresh("turn", Type.U32)
        with build.block() as body:
            build.assign(variable, build.apply(ops.ADD, start, build.apply(ops.MUL, build.read(turn), step)))
            self._statements(loop.body)
        build.emit(ir.For(turn, none, turns, one, tuple(body), loop.span))

    def _assign(self, variable: ir.Variable, value: Value) -> None:
        halves = self._halves(variable)
        values = (value.low, value.high) if isinstance(value, Pair) else (value,)
        if self.build.filled(halves, values):
            return
        if len(values) == 2 and reads(values[1], halves[0]):
            values = (values[0], self.build.held(values[1], "high"))
        for half, word in zip(halves, values, strict=True):
            self.build.assign(half, word)
