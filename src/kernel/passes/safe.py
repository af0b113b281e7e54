"""Bounds checks where range analysis cannot prove an access in bounds, and polling in loops that may run for long. Out
of bounds, a load gives 0 and a store or an atomic does nothing. The analysis of a launch is memoised by its numbers
(workgroups, lengths, parameters). Each set of checks is a variant of the program, and is compiled; so that there are
few, a launch may run a variant with more checks than it needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias
from weakref import WeakKeyDictionary

import attrs

from ...types import ops
from ...types.bounded import Bounded
from ...types.layout import Type
from ...types.real_threads import Lock
from .. import ir
from ..launch import Step
from ..verify import verify
from .bounds import Ranges, relevant_parameters
from .walk import blocks_of, statements_in, with_blocks

_Checks: TypeAlias = frozenset[int]  # accesses to check and loops that poll, by id
_PROOFS = 8  # launches of one of gpusort's own kernels to analyse; later ones run the union of their checks
_MOST_VARIANTS = 3  # beyond these, one variant with every check that some launch needed
_LONG = 1 << 30  # statements that a workgroup runs in about a second
_MOST_COST = 1 << 20  # cap on a loop's poll_cost


@attrs.define
class _Known:
    """What is known of a program, which is let go of with it: so nothing here may refer to the program itself."""

    relevant: tuple[ir.Parameter, ...]  # of whose values the analysis depends
    candidates: frozenset[int]  # the accesses that may get a check
    is_own: bool  # whether all accesses are in gpusort's own source
    final: _Checks | None = None  # those of all later launches
    polling: dict[int, int] = attrs.field(factory=dict[int, int])  # poll_cost of the loops that poll in any variant
    launches: Bounded[object, _Checks] = attrs.field(factory=lambda: Bounded[object, "_Checks"](4096))
    # None: the program itself
    variants: dict[_Checks, ir.Program | None] = attrs.field(factory=dict["_Checks", "ir.Program | None"])


def guarded_outside_ours(program: ir.Program) -> ir.Program:
    """The program with a bounds check at every access outside gpusort's own source: for export, without a launch."""
    verify(made := guarded(program, _user_accesses(program), {}))
    return made


def _user_accesses(program: ir.Program) -> frozenset[int]:
    """The accesses that are not in gpusort's own source, by id."""
    accesses = (s for s in statements_in(program.body) if isinstance(s, ir.Access))
    return frozenset(id(s) for s in accesses if not s.span.is_own)


class Safety:
    """A target's cache of analysed launches and of variants with checks. `lanes` gives the subgroup size for a
    workgroup size. With `trusts_own`, accesses in gpusort's own source get no checks: the simulator tests those
    kernels, and policies are checked on the host. Otherwise the first launches of each are analysed too. With `polls`,
    loops that may run for seconds poll whether to stop."""

    def __init__(self, lanes: Callable[[int], int], *, trusts_own: bool = False, polls: bool = False) -> None:
        self._lanes = lanes
        self._trusts_own = trusts_own
        self._polls = polls
        self._known: WeakKeyDictionary[ir.Program, _Known] = WeakKeyDictionary()
        self._lock = Lock()

    def safe(self, step: Step) -> Step:
        """The launch, with a variant of its program that has the checks it needs."""
        known = self._known.get(step.program) or self._new(step.program)
        if not (known.candidates or self._polls):
            return step
        checks = known.final
        if checks is None:
            numbers = [step.values[parameter] for parameter in known.relevant]
            launch = (step.groups, *[buffer.count for buffer in step.buffers.values()], *numbers)
            checks = known.launches.get(launch)
            if checks is None:
                checks = self._analysed(step, known, launch)
        program = known.variants[checks]
        return step if program is None else attrs.evolve(step, program=program)

    def _new(self, program: ir.Program) -> _Known:
        users = _user_accesses(program)
        accesses = frozenset(id(s) for s in statements_in(program.body) if isinstance(s, ir.Access))
        candidates = users if self._trusts_own else accesses
        with self._lock:
            return self._known.setdefault(program, _Known(relevant_parameters(program), candidates, not users))

    def _analysed(self, step: Step, known: _Known, launch: object) -> _Checks:
        """The checks of the variant for a launch, by range analysis with the launch's numbers."""
        program = step.program
        given: dict[object, int] = {memory: step.length_of(memory) for memory in step.buffers}
        given |= {parameter: int(step.values[parameter]) for parameter in known.relevant}
        ranges = Ranges(program, step.groups, self._lanes(program.group_size), given)
        polling = long_loops(program, ranges.trip_counts) if self._polls else {}
        with self._lock:
            known.polling |= polling
            checks = _chosen(known, (ranges.unproven & known.candidates).union(polling))
            _make(program, known, checks)
            known.launches[launch] = checks
            if known.is_own and len(known.launches) >= _PROOFS:
                every = frozenset[int]().union(*known.variants)
                _make(program, known, every)
                known.final = every
        return checks


def _chosen(known: _Known, needed: _Checks) -> _Checks:
    """The checks that a launch needs, and as few more as the limit on variants allows."""
    if needed in known.variants or len(known.variants) < _MOST_VARIANTS:
        return needed
    enough = [other for other in known.variants if other >= needed]
    return min([*enough, needed.union(*known.variants)], key=lambda all: (len(all & known.polling.keys()), len(all)))


def _make(program: ir.Program, known: _Known, checks: _Checks) -> None:
    """Makes the variant with these checks, unless there is one."""
    if checks not in known.variants:
        polling = {loop: cost for loop, cost in known.polling.items() if loop in checks}
        made = guarded(program, checks - polling.keys(), polling) if checks else None
        if made is not None:
            verify(made)
        known.variants[checks] = made


def guarded(program: ir.Program, unproven: Collection[int], polling: Mapping[int, int]) -> ir.Program:
    """The program with a bounds check around each access in `unproven`, and with poll_cost set on loops in `polling`.
    Statements are given by their `id`."""
    if not unproven and not polling:
        return program
    variables = list(program.variables)

    def block(block_: ir.Block) -> ir.Block:
        return tuple(after for statement in block_ for after in made_of(statement))

    def made_of(statement: ir.Statement) -> Iterator[ir.Statement]:
        if isinstance(statement, ir.Access) and id(statement) in unproven:
            yield from _checked(statement, variables)
            return
        made = with_blocks(statement, block)
        if isinstance(made, ir.For | ir.Loop):
            made = attrs.evolve(made, poll_cost=polling.get(id(statement), 0))
        elif isinstance(made, ir.If) and any(id(inside) in unproven for inside in statements_in((statement,))):
            made = attrs.evolve(made, overridable=None)  # a target's own implementation would lack the checks
        yield made

    body = block(program.body)
    return attrs.evolve(program, body=body, variables=tuple(variables))


def long_loops(program: ir.Program, rounds: Mapping[int, int]) -> dict[int, int]:
    """The loops in which a workgroup may spend a second or more, by `id`, with the number of statements of an
    iteration."""
    found: dict[int, int] = {}

    def cost(block: ir.Block) -> int:
        total = len(block)
        for statement in block:
            inside = sum(map(cost, blocks_of(statement)))
            if isinstance(statement, ir.For | ir.Loop):
                once = 1 + inside
                inside = once * rounds.get(id(statement), 0)
                if inside * program.group_size > _LONG:
                    found[id(statement)] = min(once, _MOST_COST)
            total += inside
        return total

    cost(program.body)
    return found


def _checked(access: ir.Access, variables: list[ir.Variable]) -> Iterator[ir.Statement]:
    """An access with its bounds check; a variable for the index is appended to `variables`."""
    span, memory = access.span, access.memory
    length: ir.Expression = (
        ir.Length(memory, span) if memory.length is None else ir.Const(memory.length, Type.U32, span)
    )
    index = access.index
    if isinstance(index, ir.Apply) and index.op is ops.ADD_NOWRAP:
        # as a 64-bit address computation it could differ from the value that is checked
        index = attrs.evolve(index, op=ops.ADD)
    if isinstance(access, ir.Load) and access.uniform:
        # between barriers, so control flow must stay uniform: clamp to the last element instead
        last = ir.Apply(ops.SUB, (length, ir.Const(1, Type.U32, span)), Type.U32, span)
        yield attrs.evolve(access, index=ir.Apply(ops.MIN, (index, last), Type.U32, span))
        return
    if isinstance(index, ir.Apply):
        held = ir.Variable("place", Type.U32)
        variables.append(held)
        yield ir.Assign(held, index, span)
        index = ir.Read(held, span)
    otherwise: ir.Block = ()
    if not isinstance(access, ir.Store) and access.variable is not None:
        kind = access.variable.type
        zero = ir.Const(False if kind is Type.BOOL else 0.0 if kind.is_float else 0, kind, span)
        otherwise = (ir.Assign(access.variable, zero, span),)
    inside = ir.Apply(ops.LT, (index, length), Type.BOOL, span)
    yield ir.If(inside, (attrs.evolve(access, index=index),), otherwise, span)
