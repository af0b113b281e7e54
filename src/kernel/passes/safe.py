"""Memory safety at little cost: bounds checks where range analysis cannot prove an access, polling in long loops.

Proofs are memoised by a launch's numbers, as launches repeat. A program is compiled in few variants, each with a set
of checks; a launch may run a variant with more checks than it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import TypeAlias
from weakref import WeakKeyDictionary

import attrs

from .. import ir
from ..launch import Step
from ..verify import verify
from .bounds import LaunchNumbers, analyse
from .guards import guarded, long_loops
from .slicing import relevant_parameters
from .walk import statements_in

_Checks: TypeAlias = tuple[frozenset[int], frozenset[int]]  # accesses to check and loops that poll, by id
_OWN = str(Path(__file__).parents[2])
_PROOFS = 8  # launches of one of gpusort's own kernels to analyse; later ones run the union of their checks
_MOST_VARIANTS = 3  # beyond these, one variant with every check that some launch needed
_MOST_LAUNCHES = 4096


@attrs.define
class _Known:
    """What is known of one program."""

    relevant: tuple[int, ...]  # the launch's values that the analysis depends on
    candidates: frozenset[int]  # the accesses that may get a check
    is_own: bool  # whether all accesses are in gpusort's own source
    final: ir.Program | None = None  # the variant for all later launches
    polling: dict[int, int] = attrs.field(factory=dict[int, int])  # poll_cost of the loops that poll in any variant
    launches: dict[object, ir.Program] = attrs.field(factory=dict[object, ir.Program])
    variants: dict[_Checks, ir.Program] = attrs.field(factory=dict["_Checks", ir.Program])


def guarded_outside_ours(program: ir.Program) -> ir.Program:
    """The program with a bounds check at every access outside gpusort's own source: for export, without a launch."""
    verify(made := guarded(program, _user_accesses(program), {}))
    return made


def _user_accesses(program: ir.Program) -> frozenset[int]:
    """The accesses that are not in gpusort's own source, by id."""
    accesses = (s for s in statements_in(program.body) if isinstance(s, ir.Access))
    return frozenset(id(s) for s in accesses if not s.span.file.startswith(_OWN))


class Safety:
    """A target's cache of proofs and checked variants.

    `lanes` gives the subgroup size for a workgroup size. With `trusts_own`, accesses in gpusort's own source get no
    checks: the simulator tests those kernels, and policies are checked on the host. Otherwise the first launches of
    each are analysed too. With `polls`, loops that may run for seconds poll whether to stop.
    """

    def __init__(self, lanes: Callable[[int], int], *, trusts_own: bool = False, polls: bool = False) -> None:
        self._lanes = lanes
        self._trusts_own = trusts_own
        self._polls = polls
        self._known: WeakKeyDictionary[ir.Program, _Known] = WeakKeyDictionary()
        self._lock = Lock()

    def safe(self, step: Step) -> Step:
        """The same launch, of a variant of its program with the checks that it needs."""
        known = self._known.get(step.program) or self._new(step.program)
        if not (known.candidates or self._polls):
            return step
        values = step.values
        if known.final is not None:
            return step if known.final is step.program else Step(known.final, step.buffers, values, step.groups)
        numbers = [values[number] for number in known.relevant]
        launch = (step.groups, *[buffer.count for buffer in step.buffers], *numbers)
        program = known.launches.get(launch)
        if program is None:
            program = self._analysed(step, known, launch)
        return step if program is step.program else Step(program, step.buffers, values, step.groups)

    def _new(self, program: ir.Program) -> _Known:
        users = _user_accesses(program)
        accesses = frozenset(id(s) for s in statements_in(program.body) if isinstance(s, ir.Access))
        candidates = users if self._trusts_own else accesses
        with self._lock:
            return self._known.setdefault(program, _Known(relevant_parameters(program), candidates, not users))

    def _analysed(self, step: Step, known: _Known, launch: object) -> ir.Program:
        """The variant for a launch, by range analysis with the launch's numbers."""
        program = step.program
        bound = zip(program.storage, step.buffers, strict=True)
        given: dict[object, int] = {memory: buffer.nbytes // memory.type.size for memory, buffer in bound}
        given |= {program.parameters[number]: int(step.values[number]) for number in known.relevant}
        findings = analyse(program, LaunchNumbers(step.groups, self._lanes(program.group_size), given))
        polling = long_loops(program, findings.rounds) if self._polls else {}
        with self._lock:
            if len(known.launches) >= _MOST_LAUNCHES:
                known.launches.clear()
            found = known.launches[launch] = _variant(program, known, findings.unproven & known.candidates, polling)
            if known.is_own and len(known.launches) >= _PROOFS:
                known.final = _union(program, known, frozenset(), frozenset())
        return found


def _variant(program: ir.Program, known: _Known, unproven: frozenset[int], polling: Mapping[int, int]) -> ir.Program:
    """A variant with all checks that a launch needs, and as few more as the limit on variants allows."""
    known.polling |= polling
    needed = unproven, frozenset(polling)
    if needed in known.variants or len(known.variants) < _MOST_VARIANTS:
        return _made(program, known, needed)
    enough = [checks for checks in known.variants if checks[0] >= needed[0] and checks[1] >= needed[1]]
    if enough:
        return known.variants[min(enough, key=lambda checks: (len(checks[1]), len(checks[0])))]
    return _union(program, known, *needed)


def _union(program: ir.Program, known: _Known, unproven: frozenset[int], polling: frozenset[int]) -> ir.Program:
    """The variant with the checks of all variants so far, and these."""
    all_unproven = unproven.union(*(checks[0] for checks in known.variants))
    return _made(program, known, (all_unproven, polling.union(*(checks[1] for checks in known.variants))))


def _made(program: ir.Program, known: _Known, checks: _Checks) -> ir.Program:
    if checks not in known.variants:
        made = guarded(program, checks[0], {loop: known.polling[loop] for loop in checks[1]})
        verify(made)
        known.variants[checks] = made
    return known.variants[checks]
