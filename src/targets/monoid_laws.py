"""Property checks of monoid laws (associativity, identity, commutativity) on samples of the actual data. Integers must
agree exactly. Float operations are not associative to the last bit: the tolerance is half of a float's digits relative
to the largest number involved, more than rounding errors and less than wrong formulas cause. Cases in which
a bracketing overflows or underflows on its way are skipped."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from random import Random
from typing import Any, TypeAlias, cast

import numpy as np

from ..kernel.span import Span
from ..types.elements import decode, encode, leaves, mismatch
from ..types.errors import MonoidError
from ..types.layout import Type
from ..types.monoids import Monoid
from ..types.scalars import U32

_TRIPLES = 40
_TOLERANCE = {Type.F32: 2.0**-12, Type.F64: 2.0**-26}
# Whether a float may have overflowed, or underflowed.
_LOST: tuple[Callable[[float], bool], ...] = (lambda number: not math.isfinite(number), lambda number: number == 0)
Number: TypeAlias = int | float | bool


class Laws:
    def __init__(self, monoid: Monoid[Any, Any]) -> None:
        self.monoid = monoid
        self.types = [leaf.type for leaf in leaves(monoid.state)]

    def check(self, elements: Sequence[Any] | np.ndarray[Any, Any], indices: Sequence[int], commutes: bool) -> None:
        """Raises MonoidError if `combine` is not associative on these elements, if `identity` is not neutral, or, if
        `commutes`, if it is not commutative. `indices` are the elements' indices in their rows."""
        try:
            self._check(elements, indices, commutes)
        except MonoidError:
            raise
        except Exception:  # of a method of the user's: the run itself names it, with its line
            return

    def _check(self, elements: Sequence[Any] | np.ndarray[Any, Any], indices: Sequence[int], commutes: bool) -> None:
        element, combine = self.monoid.element, partial(self.state, self.monoid.combine)
        given = zip(elements, indices, strict=True)
        lifted = [self.state(self.monoid.lift, decode(element, item), U32(index)) for item, index in given]
        states = [*lifted, *(combine(a, b) for a, b in zip(lifted[::2], lifted[1::2], strict=False))]
        nothing = self.state(self.monoid.identity)
        for state in states:
            for how, found in (
                ("combine(identity, a)", combine(nothing, state)),
                ("combine(a, identity)", combine(state, nothing)),
            ):
                if not self.agree(found, state, (state,)):
                    self.fail(f"{how} gives {found!r}, for a = {state!r}, identity = {nothing!r}: they should be alike")
        for a, b, c in _triples(states):
            left_part, right_part = combine(a, b), combine(b, c)
            left, right = combine(left_part, c), combine(a, right_part)
            steps = ((left_part, a, b), (right_part, b, c), (left, left_part, c), (right, a, right_part))
            if not any(self.loses(*step) for step in steps) and not self.agree(
                left, right, (a, b, c, left_part, right_part)
            ):
                self.fail(
                    f"combine(combine(a, b), c) gives {left!r}, combine(a, combine(b, c)) gives {right!r}, "
                    f"for a = {a!r}, b = {b!r}, c = {c!r}: it is not associative"
                )
            other = combine(b, a)
            if commutes and not self.agree(left_part, other, (a, b)):
                self.fail(
                    f"combine(a, b) gives {left_part!r}, combine(b, a) gives {other!r}, for a = {a!r}, b = {b!r}: "
                    "`reduce` takes elements in any order; `scan` keeps it"
                )

    def state(self, method: Callable[..., object], *given: object) -> Any:
        """What a method of the monoid gives. Raises TypeError if that is no state."""
        found = method(*given)
        if (wrong := mismatch(self.monoid.state, found)) is not None:
            raise TypeError(wrong)
        return found

    def loses(self, found: object, *operands: object) -> bool:
        """Whether a result overflows or underflows, as far as can be told: none of the operands had."""
        made, given = self._floats(found), self._floats(*operands)
        return any(any(map(lost, made)) and not any(map(lost, given)) for lost in _LOST)

    def agree(self, found: object, other: object, operands: tuple[object, ...]) -> bool:
        """Whether two results of the operands, among them what is between, agree."""
        numbers = self._floats(found, other, *operands)
        scale = max((abs(number) for number in numbers if math.isfinite(number)), default=0.0)
        results = zip(self.types, _numbers(encode(found)), _numbers(encode(other)), strict=True)
        return all(self._alike(type, a, b, scale) for type, a, b in results)

    @staticmethod
    def _alike(type: Type, a: Number, b: Number, scale: float) -> bool:
        if a == b or not type.is_float:
            return a == b
        return abs(a - b) <= _TOLERANCE[type] * scale or (math.isnan(a) and math.isnan(b))

    def _floats(self, *states: object) -> list[float]:
        numbers = ((self.types, _numbers(encode(state))) for state in states)
        return [number for pair in numbers for type, number in zip(*pair, strict=True) if type.is_float]

    def fail(self, message: str) -> None:
        line = _line_of(self.monoid.combine)
        where = "" if line is None else f"{line}: "
        raise MonoidError(f"{where}{type(self.monoid).__name__}: {message}")


def _triples(states: Sequence[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Neighbouring states, then random ones (with a fixed seed)."""
    yield from islice(zip(states, states[1:], states[2:], strict=False), _TRIPLES // 2)
    draw = Random(1)
    for _ in range(_TRIPLES // 2 if states else 0):
        yield draw.choice(states), draw.choice(states), draw.choice(states)


def _numbers(encoded: object) -> Iterator[Number]:
    """A state's scalars, flattened."""
    if isinstance(encoded, tuple):
        for part in cast("tuple[object, ...]", encoded):
            yield from _numbers(part)
    else:
        yield cast(Number, encoded)


def _line_of(method: Callable[..., object]) -> Span | None:
    """The line of a method's definition, if known."""
    code = getattr(inspect.unwrap(getattr(method, "__func__", method)), "__code__", None)
    return None if code is None else Span(code.co_filename, code.co_firstlineno)
