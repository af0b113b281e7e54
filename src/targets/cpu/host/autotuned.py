"""Autotuning: of several ways to the same result, the one that takes the least time here.

Whether NumPy's loop or a compiled one is faster depends on an array's dtype, shape and layout, on NumPy's version, and
on the processor. So the first calls for arrays of a class try each way in turn, and the fastest is kept. Ways differ in
time alone: their results are the same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from typing import TypeAlias

import attrs

from ....types.bounded import Bounded
from ...base import HostArray

Way: TypeAlias = Callable[[HostArray], HostArray]

# Each way has a turn of some tries, one after the other, until they have taken so long; then all have another turn: the
# best try counts, as first ones find caches empty, and whole turns are disturbed by what else the machine does.
_LEAST_TRIES, _TRIES, _ENOUGH, _TURNS = 2, 20, 1e-3, 2
_CLEAR = 2  # one turn is enough where all other ways take so many times as long
_MOST_CLASSES = 1 << 8


class Choice:
    """Among ways, for arrays of one class. Threads may share one: at worst a try is not counted, or a turn is left
    out."""

    def __init__(self, *names: str) -> None:
        self.fastest = names[0] if len(names) == 1 else ""  # its name, once it is known
        self._turn = self._tries = 0
        self._spent = 0.0  # seconds in this turn
        self._least = dict.fromkeys(names, math.inf)  # seconds an element

    def timed(self, ways: dict[str, Way], x: HostArray) -> HostArray:
        """What the way gives whose turn it is."""
        least, name = self._least, [*ways][self._turn % len(ways)]
        start = time.perf_counter()
        found = ways[name](x)
        took = time.perf_counter() - start
        least[name] = min(took / x.size, least[name])
        self._tries, self._spent = self._tries + 1, self._spent + took
        if self._tries >= (_LEAST_TRIES if self._spent >= _ENOUGH else _TRIES):
            self._turn, self._tries, self._spent = self._turn + 1, 0, 0.0
            if self._turn % len(ways) == 0:
                best, *others = sorted(least.values())
                if self._turn >= _TURNS * len(ways) or all(other > _CLEAR * best for other in others):
                    self.fastest = min(least, key=least.__getitem__)
        return found


@attrs.frozen(eq=False)
class Ways:
    """To the results of arrays of one shape and layout."""

    named: dict[str, Way]
    choice: Choice

    def __call__(self, x: HostArray) -> HostArray:
        fastest = self.choice.fastest
        return self.named[fastest](x) if fastest else self.choice.timed(self.named, x)


class Choices:
    """A choice for each class of arrays."""

    def __init__(self) -> None:
        self._known = Bounded[Hashable, Choice](_MOST_CLASSES)

    def among(self, key: Hashable, **named: Way) -> Ways:
        """Ways for arrays of the class of this key."""
        key = key, *named
        choice = self._known.get(key)
        if choice is None:
            choice = self._known[key] = Choice(*named)
        return Ways(named, choice)
