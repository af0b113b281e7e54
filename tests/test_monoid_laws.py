"""The simulator and `python` try what a monoid promises on the data that it is used on."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.kernel.span import KernelError
from gpusort.targets.monoid_laws import Laws
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.elements import dtype_of
from gpusort.types.errors import MonoidError
from gpusort.types.monoids import (
    AllTrue,
    AnyTrue,
    Maximum,
    Minimum,
    MinMax,
    Product,
    Sum,
)
from gpusort.types.scalars import F32, U8, U32
from gpusort.types.searches import ArgMax, ArgMin  # fmt: skip

WATCHING = pytest.mark.parametrize("watching", ["simulator", "python"])


@attrs.frozen
class _OfFloats:
    element: type[F32] = F32
    state: type[F32] = F32

    def identity(self) -> F32:
        return F32(0.0)

    def lift(self, element: F32, index: U32) -> F32:
        return element


@attrs.frozen
class Mean(_OfFloats):
    """Of two things: no monoid."""

    def combine(self, a: F32, b: F32) -> F32:
        return (a + b) * 0.5


@attrs.frozen
class Difference(_OfFloats):
    def combine(self, a: F32, b: F32) -> F32:
        return b if a == 0 else a if b == 0 else a - b


@attrs.frozen
class Later:
    """The last element that is not zero: in order, or not at all."""

    element: type[U32] = U32
    state: type[U32] = U32

    def identity(self) -> U32:
        return U32(0)

    def lift(self, element: U32, index: U32) -> U32:
        return element

    def combine(self, a: U32, b: U32) -> U32:
        return a if b == 0 else b


@attrs.frozen
class FromOne(Later):
    """An identity that is none."""

    def identity(self) -> U32:
        return U32(1)

    def combine(self, a: U32, b: U32) -> U32:
        return a + b


@attrs.frozen
class Moments:
    """Count, mean, and the sum of squared distances from it."""

    count: F32
    mean: F32
    squares: F32


@attrs.frozen
class Spread:
    """Welford's, as Chan has it for two parts."""

    forgetful: bool = False
    element: type[F32] = F32
    state: type[Moments] = Moments

    def identity(self) -> Moments:
        return Moments(F32(0.0), F32(0.0), F32(0.0))

    def lift(self, element: F32, index: U32) -> Moments:
        return Moments(F32(1.0), element, F32(0.0))

    def combine(self, a: Moments, b: Moments) -> Moments:
        count = a.count + b.count
        whole = F32(1.0) if count == 0 else count
        apart = b.mean - a.mean
        weight = a.count / whole if self.forgetful else a.count * b.count / whole
        squares = a.squares + b.squares + apart * apart * weight
        return Moments(count, (a.mean * a.count + b.mean * b.count) / whole, squares)


RAMP = np.arange(1, 31, dtype=np.float32)


def place_of(monoid: object) -> str:
    combine: Any = vars(type(monoid))["combine"]
    return f"test_monoid_laws.py:{inspect.getsourcelines(combine)[1]}: {type(monoid).__name__}: "


def refusal(call: Any) -> str:
    with pytest.raises(MonoidError) as caught:
        call()
    return str(caught.value)


@WATCHING
def test_what_is_not_associative(watching: str) -> None:
    for monoid in (Difference(),):
        found = refusal(lambda monoid=monoid: gpusort.scan(RAMP, monoid, target=watching))
        assert f"{place_of(monoid)}combine(combine(a, b), c) gives F32(" in found
        assert "for a = F32(" in found
        assert found.endswith("it is not associative")
        assert "Difference: " in refusal(lambda monoid=monoid: gpusort.reduce(RAMP, monoid, target=watching))
    assert f"{place_of(Mean())}combine(identity, a) gives F32(0.5), for a = F32(1.0), identity = F32(0.0)" in refusal(
        lambda: gpusort.reduce(RAMP, Mean(), target=watching)
    )


@WATCHING
def test_an_identity_that_changes_a_state(watching: str) -> None:
    x = np.arange(12, dtype=np.uint32).reshape(3, 4)
    found = refusal(lambda: gpusort.scan(x, FromOne(), axis=0, target=watching))
    assert f"{place_of(FromOne())}combine(identity, a) gives U32(1), for a = U32(0), identity = U32(1)" in found


@WATCHING
def test_what_does_not_commute_is_for_scan(watching: str) -> None:
    x = np.array([3, 0, 5, 0, 0, 7, 0], np.uint32)
    assert np.asarray(gpusort.scan(x, Later(), target=watching)).tolist() == [3, 3, 5, 5, 5, 7, 7]
    found = refusal(lambda: gpusort.reduce(x, Later(), target=watching))
    assert f"{place_of(Later())}combine(a, b) gives U32(" in found
    assert found.endswith("`reduce` takes elements in any order; `scan` keeps it")


@WATCHING
def test_structs_of_floats(watching: str) -> None:
    x = np.random.default_rng(1).normal(1000, 3, 200).astype(np.float32)
    found: Any = gpusort.reduce(x, Spread(), target=watching)
    assert found["squares"] / found["count"] == pytest.approx(np.var(x.astype(np.float64)), rel=1e-3)
    assert "Spread: combine(a, identity) gives Moments(count=F32(1.0)" in refusal(
        lambda: gpusort.reduce(RAMP * RAMP, Spread(forgetful=True), target=watching)
    )


class NumberForNothing(_OfFloats):
    def identity(self) -> Any:
        return 0.0

    def combine(self, a: F32, b: F32) -> F32:
        return a + b


class PlaceForState(_OfFloats):
    def lift(self, element: F32, index: U32) -> Any:
        return index

    def combine(self, a: F32, b: F32) -> F32:
        return a + b


class NoState(_OfFloats):
    def combine(self, a: F32, b: F32) -> Any:
        pass


class PartForWhole(Spread):
    def combine(self, a: Moments, b: Moments) -> Any:
        return a.mean


@pytest.mark.parametrize(
    ("monoid", "method", "state"),
    [
        (NumberForNothing(), "identity", "F32"),
        (PlaceForState(), "lift", "F32"),
        (NoState(), "combine", "F32"),
        (PartForWhole(), "combine", "Moments"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("function", [gpusort.reduce, gpusort.scan])
def test_a_method_that_gives_no_state_is_named_with_its_line(
    monoid: Any, method: str, state: str, function: Any
) -> None:
    line = inspect.getsourcelines(getattr(monoid, method))[1]
    name = monoid.__class__.__name__
    said = f"test_monoid_laws.py:{line}: expected {state}, the `state` of {name}, from '{name}.{method}', found "
    for target in ("cpu", "simulator", "python"):
        with pytest.raises(KernelError, match=re.escape(said)):
            function(RAMP, monoid, target=target)


class Mixed(_OfFloats):
    def combine(self, a: F32, b: F32) -> Any:
        other: Any = U32(1)
        return a + other


@WATCHING
def test_what_scalars_refuse_in_a_monoid_is_named_with_its_line(watching: str) -> None:
    line = inspect.getsourcelines(Mixed.combine)[1] + 2
    with pytest.raises(KernelError, match=rf"test_monoid_laws\.py:{line}: expected .* found .*; convert "):
        gpusort.reduce(RAMP, Mixed(), target=watching)


class Narrowed:
    """Of bytes, which have no arithmetic: Python itself finds no operator, not a method of theirs."""

    element = state = U8

    def __init__(self, name: str) -> None:
        self.name = name

    def identity(self) -> U8:
        return U8(0)

    def lift(self, element: U8, index: U32) -> U8:
        return element

    def combine(self, a: Any, b: Any) -> Any:
        if self.name == "less":
            return a if a < b else b
        return a ^ b if self.name == "xor" else ~a


@WATCHING
@pytest.mark.parametrize(
    ("name", "said", "below"),
    [
        ("xor", "unsupported operand type(s) for ^: 'U8' and 'U8'", 3),
        ("less", "'<' not supported between instances of 'U8' and 'U8'", 2),
        ("invert", "bad operand type for unary ~: 'U8'", 3),
    ],
)
def test_an_operator_that_scalars_lack_is_named_with_its_line(name: str, said: str, below: int, watching: str) -> None:
    line = inspect.getsourcelines(Narrowed.combine)[1] + below
    monoid: Any = Narrowed(name)
    shown = re.escape(said) if watching == "python" else "expected "
    with pytest.raises(KernelError, match=rf"test_monoid_laws\.py:{line}: {shown}"):
        gpusort.reduce(np.arange(9, dtype=np.uint8), monoid, target=watching)


def test_other_targets_look_at_nothing() -> None:
    assert not hasattr(target_of("cpu"), "check_monoid")


@WATCHING
def test_an_array_of_no_elements(watching: str) -> None:
    assert gpusort.reduce(np.zeros(0, np.float32), Mean(), target=watching) == 0


def hostile(dtype: str) -> list[npt.NDArray[Any]]:
    """Sums that depend on their order, products out of range, and any bits there are."""
    draw = np.random.default_rng(3)
    size = np.dtype(dtype).itemsize
    found = [draw.integers(0, 256, 12 * size, np.uint8).view(dtype) for _ in range(6)]
    if np.dtype(dtype).kind == "f":
        big = float(np.finfo(dtype).max) / 4
        found.append(np.array([big, 1, -big, 1e-3, big, -big, 0, -0.0, np.inf, -1, 3, 7], dtype))
        most, tiny = np.finfo(dtype).max, np.finfo(dtype).tiny
        found.append(np.array([-np.inf, most, most, 0, most, tiny, tiny, 0, np.inf, -most, -most, most], dtype))
        found.append(np.array([1e4, -1e4, 0.1, 0.2, 0.3, 1e-7, -1e4, 1e4, 5, np.nan, -np.inf, 2], dtype))
    return found


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "u4", "i4", "f4", "i8", "f8", "M8[s]"])
def test_the_librarys_own_are_monoids(dtype: str) -> None:
    key: Any = key_for(np.dtype(dtype))
    monoids: list[Any] = [make(key) for make in (Minimum, Maximum, MinMax, ArgMin, ArgMax, AnyTrue, AllTrue)]
    if not dtype.startswith("M8"):
        number: Any = number_for(np.dtype(dtype), "x")
        monoids += [Sum(number), Product(number)]
    for x in hostile(dtype):
        for monoid in monoids:
            Laws(monoid).check(x.view(dtype_of(monoid.element)), range(12), commutes=True)


@attrs.frozen
class Halved:
    """A number with something in it that may change, so that it has no hash."""

    element: type[F32] = F32
    state: type[F32] = F32
    weights: list[float] = attrs.field(factory=lambda: [0.5])

    def to_number(self, element: F32) -> F32:
        return element * F32(0.5)


@attrs.frozen(cache_hash=True)
class Clipped(Sum[Any, Any]):
    """A user's sum with a setting more."""

    most: float

    def combine(self, a: Any, b: Any) -> Any:
        return a + b if a + b < self.most else self.number.state(self.most)


def test_a_sum_that_is_named_in_each_call_is_one_object() -> None:
    number: Any = number_for(np.float32)
    made: Any = Sum(number)
    assert Sum(number) is made
    assert Sum(number=number) == made
    for other in (Product(number), Sum(number_for(np.float64))):
        assert other != made
    for copied in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert copied == made
        assert hash(copied) == hash(made)
        assert type(copied) is Sum


def test_sums_of_users_own_classes() -> None:
    number: Any = number_for(np.float32)
    x = np.full(5, 3, np.float32)
    assert [gpusort.reduce(x, Clipped(number, most)) for most in (10.0, 20.0, 10.0)] == [10, 15, 10]
    assert Clipped(number, most=10.0) == Clipped(number, 10.0)
    halved: Any = Halved()
    assert Sum(halved).number is halved  # kernels refuse what may change, and say so
    with pytest.raises(TypeError):
        Sum()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # what a user may write


class Unlucky(_OfFloats):
    def combine(self, a: F32, b: F32) -> Any:
        known: dict[str, F32] = {}
        return known["missing"]


class Careless(_OfFloats):
    def combine(self, a: F32, b: F32) -> Any:
        return cast(Any, None)[0]


class Misspelt(_OfFloats):
    def combine(self, a: F32, b: F32) -> Any:
        return cast(Any, a).valeu


@pytest.mark.parametrize("monoid", [Unlucky(), Careless(), Misspelt()], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("function", [gpusort.reduce, gpusort.scan])
def test_what_a_method_raises_itself_is_told_as_by_other_targets(monoid: Any, function: Any) -> None:
    said: list[str] = []
    for target in ("cpu", "simulator"):
        with pytest.raises(KernelError, match=r"test_monoid_laws\.py:\d+: expected ") as caught:
            function(RAMP, monoid, target=target)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_what_a_method_raises_itself_is_raised_by_plain_python() -> None:
    with pytest.raises(KeyError, match="missing"):
        gpusort.reduce(RAMP, Unlucky(), target="python")
    with pytest.raises(TypeError, match="not subscriptable") as caught:
        gpusort.reduce(RAMP, Careless(), target="python")
    assert type(caught.value) is TypeError
