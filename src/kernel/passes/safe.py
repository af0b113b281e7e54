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
from .bounds import Numbers, find, parameters_that_matter
from .guards import guarded, long_loops
from .walk import statements_in

_Need: TypeAlias = tuple[frozenset[int], frozenset[int]]  # accesses to test, loops that ask
_OWN = str(Path(__file__).parents[2])
_MOST_FORMS = 3  # before one that tests everything some launch needed
_MOST_LAUNCHES = 4096


@attrs.define
class _Known:
    """What was found out about one program."""

    matter: tuple[int, ...]  # of a launch's values
    tested: frozenset[int]  # the accesses that are looked at
    launches: dict[object, ir.Program] = attrs.field(factory=dict[object, ir.Program])
    forms: dict[_Need, ir.Program] = attrs.field(factory=dict["_Need", ir.Program])


class Safety:
    """One for each target.

    `lanes` says how many a subgroup has in a workgroup of some size. Where `trusts_own`, accesses that stand in
    gpusort's own source are not looked at: the simulator tests them, and policies are checked on the host. Where not
    `asks`, loops are left as they are.
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
        launch = (step.groups, *[buffer.count for buffer in step.buffers], *[values[number] for number in known.matter])
        program = known.launches.get(launch)
        if program is None:
            program = self._proven(step, known, launch)
        return step if program is step.program else Step(program, step.buffers, values, step.groups)

    def _look_at(self, program: ir.Program) -> _Known:
        known = _Known(parameters_that_matter(program), self._tested(program))
        with self._lock:
            return self._known.setdefault(program, known)

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
        return found

    def _tested(self, program: ir.Program) -> frozenset[int]:
        accesses = (s for s in statements_in(program.body) if isinstance(s, ir.Load | ir.Store | ir.Atomic))
        return frozenset(id(s) for s in accesses if not (self._trusts_own and s.span.file.startswith(_OWN)))


def _form(program: ir.Program, known: _Known, outside: frozenset[int], asking: Mapping[int, int]) -> ir.Program:
    """The program in the form that tests what a launch needs, and little more."""
    need = outside, frozenset(asking)
    if need not in known.forms:
        fitting = [form for form in known.forms if form[0] >= need[0] and form[1] >= need[1]]
        if len(known.forms) >= _MOST_FORMS and fitting:
            need = min(fitting, key=lambda form: (len(form[1]), len(form[0])))
        elif len(known.forms) >= _MOST_FORMS:
            need = need[0].union(*(form[0] for form in known.forms)), need[1].union(*(form[1] for form in known.forms))
    if need not in known.forms:
        made = guarded(program, need[0], {loop: asking.get(loop, 1) for loop in need[1]})
        verify(made)
        known.forms[need] = made
    return known.forms[need]
