"""Two transformations of loops: unrolling, and detecting that a driver has ended one early.

Counted loops that index register arrays are unrolled: GPU compilers keep an array in registers only if all its indices
are constants. lavapipe, Mesa's software driver, silently ends loops after 65,535 iterations, counted over all loops of
an invocation. So for lavapipe each loop sets a flag when it ends by itself. If a loop ends with the flag unset, the
kernel stores 1 to an overrun buffer, and the host refuses the result.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...kernel import ir
from ...kernel.passes.walk import replaced, rewritten, statements_in, variables_in, variables_set_in, with_blocks
from ...types.layout import Type
from ...types.ops import AtomicOp
from .legalize_words import Word, WordBuilder

ITERATIONS = 65_535
_MOST_UNROLLED = 64
_MOST_STATEMENTS = 4096  # of one unrolled loop


def unrolled(program: ir.Program) -> ir.Program:
    """The program with loops over register arrays unrolled."""
    return attrs.evolve(program, body=rewritten(program.body, _statement))


def _statement(statement: ir.Statement) -> Iterator[ir.Statement]:
    iterations = _iterations(statement) if isinstance(statement, ir.For) else None
    if not isinstance(statement, ir.For) or iterations is None:
        yield statement
        return
    for value in iterations:
        number = ir.Const(value, Type.U32, statement.span)
        yield from replaced(statement.body, statement.variable, number)
        yield ir.Assign(statement.variable, number, statement.span)


def _iterations(loop: ir.For) -> range | None:
    """The values of the variable of a loop to unroll: constant bounds, few iterations, no break. Else None."""
    start, stop, step = loop.start, loop.stop, loop.step
    if not (isinstance(start, ir.Const) and isinstance(stop, ir.Const) and isinstance(step, ir.Const)):
        return None
    iterations = range(int(start.value), int(stop.value), int(step.value))
    size = sum(1 for _ in statements_in(loop.body))
    if len(iterations) > _MOST_UNROLLED or len(iterations) * size > _MOST_STATEMENTS:
        return None
    leaves = any(isinstance(statement, ir.Break) for statement in statements_in(loop.body))
    if leaves or loop.variable in variables_set_in(loop.body):
        return None
    return iterations if _indexes_registers(loop) else None


def _indexes_registers(loop: ir.For) -> bool:
    """Whether the loop's variable, or a value derived from it in the loop, indexes a register array."""
    made = {loop.variable}
    for statement in statements_in(loop.body):
        if isinstance(statement, ir.Assign) and not made.isdisjoint(variables_in(statement.value)):
            made.add(statement.variable)
        if isinstance(statement, ir.Load | ir.Store) and statement.memory.space is ir.Space.REGISTERS:
            if not made.isdisjoint(variables_in(statement.index)):
                return True
    return False


def has_loops(program: ir.Program) -> bool:
    """Whether a program has loops, and so can overrun."""
    return any(isinstance(statement, ir.For | ir.Loop) for statement in statements_in(program.body))


def instrumented(program: ir.Program) -> ir.Program:
    """The program with its loops instrumented; the overrun flag is one more storage memory, the last."""
    name = ir.unused("overrun", {memory.name for memory in program.memories})
    overrun, build = ir.Memory(name, ir.Space.STORAGE, Type.U32), WordBuilder(program.span)
    overran = build.variable("overran", Type.BOOL)
    build.assign(overran, build.literal(False, Type.BOOL))
    _Instrumenter(build, overran).statements(program.body, None)
    one = build.literal(1).node
    report = ir.Atomic(None, AtomicOp.STORE, overrun, build.literal(0).node, one, program.span)
    build.emit(ir.If(build.read(overran).node, (report,), (), program.span))
    others = tuple(m for m in program.memories if m.space is not ir.Space.STORAGE)
    variables = (*program.variables, *build.variables)
    memories = (*program.storage, overrun, *others)
    return attrs.evolve(program, memories=memories, variables=variables, body=build.finish())


@attrs.frozen(eq=False)
class _Instrumenter:
    build: WordBuilder
    overran: ir.Variable  # whether some loop was cut short

    def statements(self, block: ir.Block, ended: ir.Variable | None) -> None:
        """`ended` is the flag of the enclosing loop."""
        for statement in block:
            self.build.span = statement.span
            self.statement(statement, ended)

    def nested(self, block: ir.Block, ended: ir.Variable | None) -> ir.Block:
        with self.build.nested() as made:
            self.statements(block, ended)
        return tuple(made)

    def statement(self, statement: ir.Statement, ended: ir.Variable | None) -> None:
        build = self.build
        match statement:
            case ir.Break():
                assert ended is not None, "verify: a break stands in a loop"
                build.assign(ended, build.literal(True, Type.BOOL))
                build.emit(statement)
            case ir.For():  # lowered to a Loop
                stop, step = self.bound(statement.stop).held("stop"), Word(build, statement.step).held("step")
                counter = build.read(statement.variable)
                build.assign(statement.variable, Word(build, statement.start))
                test = ir.If((~(counter < stop)).node, (ir.Break(statement.span),), (), statement.span)
                last = ir.Assign(statement.variable, (counter + step).node, statement.span)
                self.loop((test, *statement.body, last))
            case ir.Loop():
                self.loop(statement.body)
            case _:
                build.emit(with_blocks(statement, lambda inside: self.nested(inside, ended)))

    def bound(self, stop: ir.Expression) -> Word:
        """The end of a counted loop. A constant is hidden from the driver, which would unroll the loop: LLVM then takes
        several times as long to compile, and the kernel runs no faster. A uniform would not hide it, as the driver
        compiles a kernel for the values of its uniforms."""
        known = Word(self.build, stop)
        if not isinstance(stop, ir.Const):
            return known
        never = self.build.builtin(ir.Builtin.GROUP_ID).equals(0xFFFF_FFFF)  # it is below the number of groups
        return known + never.cast(known.type)

    def loop(self, body: ir.Block) -> None:
        build, span = self.build, self.build.span
        ended = build.variable("ended", Type.BOOL)
        inner = self.nested(body, ended)
        build.span = span
        build.assign(ended, build.literal(False, Type.BOOL))
        build.emit(ir.Loop(inner, span))
        build.assign(self.overran, build.read(self.overran) | ~build.read(ended))
