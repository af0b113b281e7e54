"""Launches made safe: nothing that a kernel does can touch what is not its own, and what never ends can be stopped.

What is proven of a launch is kept by its numbers, for launches come again. Kernels are compiled for what remains to be
tested; a program has few such forms, for a launch also takes one that tests more than it needs.
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
from .bounds import Numbers, find
from .guards import guarded, long_loops
from .matter import parameters_that_matter
from .walk import statements_in

_Need: TypeAlias = tuple[frozenset[int], frozenset[int]]  # accesses to test, loops that ask
_OWN = str(Path(__file__).parents[2])
_PROOFS = 8  # of different launches of a kernel of our own; those that follow are taken to be like them
_MOST_FORMS = 3  # before one that tests everything some launch needed
_MOST_LAUNCHES = 4096


@attrs.define
class _Known:
    """What was found out about one program."""

    matter: tuple[int, ...]  # of a launch's values
    tested: frozenset[int]  # the accesses that are looked at
    is_own: bool  # whether all accesses stand in gpusort's own source
    settled: ir.Program | None = None  # the form that serves all launches from now on
    asking: dict[int, int] = attrs.field(factory=dict[int, int])  # loops that ask in some form
    launches: dict[object, ir.Program] = attrs.field(factory=dict[object, ir.Program])
    forms: dict[_Need, ir.Program] = attrs.field(factory=dict["_Need", ir.Program])


def guarded_outside_ours(program: ir.Program) -> ir.Program:
    """With a test at every access that does not stand in gpusort's own source: for launches that nobody knows yet."""
    verify(made := guarded(program, _theirs(program), {}))
    return made


def _theirs(program: ir.Program) -> frozenset[int]:
    """The accesses that do not stand in gpusort's own source."""
    accesses = (s for s in statements_in(program.body) if isinstance(s, ir.Access))
    return frozenset(id(s) for s in accesses if not s.span.file.startswith(_OWN))


class Safety:
    """One for each target.

    `lanes` says how many a subgroup has in a workgroup of some size. Where `trusts_own`, accesses that stand in
    gpusort's own source are not looked at: the simulator tests them, and policies are checked on the host. Else some
    launches of each kernel are. Where not `asks`, loops are left as they are.
    """

    def __init__(self, lanes: Callable[[int], int], *, trusts_own: bool = False, asks: bool = False) -> None:
        self._lanes = lanes
        self._trusts_own = trusts_own
        self._asks = asks
        self._known: WeakKeyDictionary[ir.Program, _Known] = WeakKeyDictionary()
        self._lock = Lock()

    def safe(self, step: Step) -> Step:
        """The same launch, of a program with the tests that it needs."""
        known = self._known.get(step.program) or self._look_at(step.program)
        if not (known.tested or self._asks):
            return step
        values = step.values
        if known.settled is not None:
            return step if known.settled is step.program else Step(known.settled, step.buffers, values, step.groups)
        launch = (step.groups, *[buffer.count for buffer in step.buffers], *[values[number] for number in known.matter])
        program = known.launches.get(launch)
        if program is None:
            program = self._proven(step, known, launch)
        return step if program is step.program else Step(program, step.buffers, values, step.groups)

    def _look_at(self, program: ir.Program) -> _Known:
        theirs = _theirs(program)
        accesses = frozenset(id(s) for s in statements_in(program.body) if isinstance(s, ir.Access))
        tested = theirs if self._trusts_own else accesses
        with self._lock:
            return self._known.setdefault(program, _Known(parameters_that_matter(program), tested, not theirs))

    def _proven(self, step: Step, known: _Known, launch: object) -> ir.Program:
        program = step.program
        bound = zip(program.storage, step.buffers, strict=True)
        given: dict[object, int] = {memory: buffer.nbytes // memory.type.size for memory, buffer in bound}
        given |= {program.parameters[number]: int(step.values[number]) for number in known.matter}
        findings = find(program, Numbers(step.groups, self._lanes(program.group_size), given))
        asking = long_loops(program, findings.rounds) if self._asks else {}
        with self._lock:
            if len(known.launches) >= _MOST_LAUNCHES:
                known.launches.clear()
            found = known.launches[launch] = _form(program, known, findings.outside & known.tested, asking)
            if known.is_own and len(known.launches) >= _PROOFS:
                known.settled = _union(program, known, frozenset(), frozenset())
        return found


def _form(program: ir.Program, known: _Known, outside: frozenset[int], asking: Mapping[int, int]) -> ir.Program:
    """The program in the form that tests what a launch needs, and little more."""
    known.asking |= asking
    need = outside, frozenset(asking)
    if need in known.forms or len(known.forms) < _MOST_FORMS:
        return _made(program, known, need)
    fitting = [form for form in known.forms if form[0] >= need[0] and form[1] >= need[1]]
    if fitting:
        return known.forms[min(fitting, key=lambda form: (len(form[1]), len(form[0])))]
    return _union(program, known, *need)


def _union(program: ir.Program, known: _Known, outside: frozenset[int], asking: frozenset[int]) -> ir.Program:
    """The form that does what any form does, and this besides."""
    all_outside = outside.union(*(form[0] for form in known.forms))
    return _made(program, known, (all_outside, asking.union(*(form[1] for form in known.forms))))


def _made(program: ir.Program, known: _Known, need: _Need) -> ir.Program:
    if need not in known.forms:
        made = guarded(program, need[0], {loop: known.asking[loop] for loop in need[1]})
        verify(made)
        known.forms[need] = made
    return known.forms[need]
