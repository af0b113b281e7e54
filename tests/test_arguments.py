"""Arguments of the wrong kind: each parameter of each public function names itself, and says what it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pytest

import gpusort
from gpusort.kernel.arguments import members_of
from gpusort.targets.base import Target
from gpusort.types.checks import KEY_MEMBERS, MONOID_MEMBERS
from gpusort.types.errors import InvalidArgumentError, UnsupportedTypeError
from gpusort.types.keys import SortableKey, UnsignedKey
from gpusort.types.monoids import Monoid, Sum
from gpusort.types.numbers import FloatNumber
from gpusort.types.scalars import F64, U32

Function: TypeAlias = Callable[..., Any]  # called here in ways that the checkers would refuse

X = np.arange(6.0).reshape(2, 3)
ROW = np.arange(6.0)
TOTAL = Sum(gpusort.number_for("f8"))
SORTS = ("sort", "argsort", "sort_inplace")
REDUCTIONS = ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all")
WITH_MONOIDS = ("reduce", "scan")
ALL = (*SORTS, *REDUCTIONS, *WITH_MONOIDS, "cumsum", "top_k")
KEYED = (*SORTS, "min", "max", "argmin", "argmax", "top_k")

ONE_AXIS = ("sort", "argsort", "argmin", "argmax", "cumsum", "top_k")
MANY_AXES = ("sum", "prod", "min", "max", "any", "all", "reduce")
AN_AXIS = ("sort_inplace", "scan")

Case: TypeAlias = tuple[tuple[str, ...], str, list[object], str]


class Empty:
    """Neither an array nor a target, a monoid, a policy, an algorithm."""

    def __repr__(self) -> str:
        return "Empty"


class Sparse:
    """An array that NumPy does not see as one; its rows are such, too."""

    shape = 2, 2

    def __iter__(self) -> Iterator[object]:
        return iter([Sparse()])


# functions, a parameter, values of the wrong kind for it, and what is said of each
CASES: list[Case] = [
    (
        ONE_AXIS,
        "axis",
        [[0], "0", 0.5, (0, 1), {}, np.array([0]), int, Empty()],
        "axis: expected an int or None, found ",
    ),
    (
        MANY_AXES,
        "axis",
        [[0], "0", 0.5, {0}, ("a",), Empty()],
        "axis: expected an int, a tuple of ints or None, found ",
    ),
    (AN_AXIS, "axis", [None, [0], "0", 0.5, (0,)], "axis: expected an int, found "),
    (SORTS, "descending", ["no", None, 2, 0.0, [], X], "descending: expected True or False, found "),
    (SORTS, "stable", ["yes", None, 2, 1.0, ()], "stable: expected True or False, found "),
    ((*REDUCTIONS, "reduce"), "keepdims", ["no", None, 2, "", []], "keepdims: expected True or False, found "),
    (("scan",), "exclusive", ["no", None, 2], "exclusive: expected True or False, found "),
    (ALL, "target", [3, None, Empty(), Target, X], "target: expected 'auto', 'cpu'"),
    (
        ("sort", "sort_inplace"),
        "algorithm",
        ["radix", Empty(), 3],
        "algorithm: expected a value such as Bitonic(), or None, found ",
    ),
    (("reduce",), "policy", [3, gpusort.ScanPolicy(), gpusort.ReducePolicy], "policy: expected a ReducePolicy or None"),
    (("scan",), "policy", [3, gpusort.ReducePolicy(), {}], "policy: expected a ScanPolicy or None, found "),
    (("sort",), "out", [3, [0.0], Empty()], "out: expected a"),
    (KEYED, "key", ["f4", len, Empty(), UnsignedKey], "key: expected a SortableKey, e.g. key_for(x.dtype), "),
    (("top_k",), "largest", ["no", None, 2], "largest: expected True or False, found "),
    (("top_k",), "sorted", ["no", None, 2], "sorted: expected True or False, found "),
]


def arguments(name: str) -> list[object]:
    if name == "top_k":
        return [X.copy(), 2]
    return [X.copy(), TOTAL] if name in WITH_MONOIDS else [X.copy()]


def kind(value: object) -> str:
    return type(value).__name__


def refused(name: str, given: Sequence[object], options: Mapping[str, object]) -> str:
    function: Function = getattr(gpusort, name)
    with pytest.raises((UnsupportedTypeError, InvalidArgumentError)) as caught:
        function(*given, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "parameter", "values", "said"),
    [(name, parameter, values, said) for names, parameter, values, said in CASES for name in names],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_value_of_the_wrong_kind_is_named(name: str, parameter: str, values: list[object], said: str) -> None:
    for value in values:
        message = refused(name, arguments(name), {parameter: value})
        assert message.startswith(said), message


@pytest.mark.parametrize("name", [*ALL, "sort_by_key"])
def test_every_parameter_is_in_the_table(name: str) -> None:
    options = {
        parameter.name
        for parameter in inspect.signature(getattr(gpusort, name)).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert options <= {parameter for names, parameter, _, _ in CASES if name in names or name == "sort_by_key"}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("value", [None, {1, 2}, {1: 2}, (i for i in [1]), Empty()], ids=kind)
def test_what_is_no_array_is_named(name: str, value: object) -> None:
    message = refused(name, [value, *arguments(name)[1:]], {})
    assert message.startswith("x: expected a NumPy or cupy array")


def test_what_can_be_gone_through_once_needs_a_list() -> None:
    for value in ((i for i in [1]), {1, 2}, {1: 2}.values()):
        assert refused("sort", [value], {}).endswith("; make a list of it")
    assert refused("sort", [Sparse()], {}).endswith(", found Sparse")
    assert gpusort.sort(list({2, 1})).tolist() == [1, 2]


@pytest.mark.parametrize("name", ["keys", "values"])
def test_keys_and_values_are_named(name: str) -> None:
    given: list[object] = [None, ROW] if name == "keys" else [ROW, None]
    assert refused("sort_by_key", given, {}).startswith(f"{name}: expected a NumPy or cupy array")
    assert refused("sort_by_key", [ROW, ROW], {"descending": "no"}).startswith("descending: expected True or False")


class HalfAKey:
    element = word = U32

    def to_word(self, element: U32) -> U32:
        return ~element

    from_word = to_word


class OfPythons:
    """A key and a monoid, but for the classes, of which no array is made."""

    element: type[object] = int
    word = element
    state: type[object] = element

    @property
    def greatest(self) -> int:
        return 0

    def to_word(self, element: int) -> int:
        return element

    identity = lift = combine = from_word = to_rank = mirrored = to_word


class OfTuples(OfPythons):
    element = F64
    state = tuple


@pytest.mark.parametrize("name", [*WITH_MONOIDS, *KEYED])
def test_a_class_that_is_no_element_is_named(name: str) -> None:
    wrong = OfPythons()
    message = refused(name, [X, wrong], {}) if name in WITH_MONOIDS else refused(name, arguments(name), {"key": wrong})
    assert message.startswith("OfPythons: element: expected a scalar, an enum or a frozen attrs class as an element, ")
    if name in WITH_MONOIDS:
        assert refused(name, [X, OfTuples()], {}).startswith("OfTuples: state: expected a scalar, an enum or a frozen ")


_ELSEWHERE = """
from __future__ import annotations
import attrs
from gpusort.types.scalars import F32, U32

@attrs.frozen
class Counted:
    total: F32
    count: U32

@attrs.frozen
class Nested:
    counted: Counted
    count: U32

@attrs.frozen
class Mean:
    element: type[F32] = F32
    state: type[Counted] = Counted

    def identity(self) -> Counted:
        return Counted(F32(0.0), U32(0))

    def lift(self, element: F32, index: U32) -> Counted:
        return Counted(element, U32(1))

    def combine(self, a: Counted, b: Counted) -> Counted:
        return Counted(a.total + b.total, a.count + b.count)
"""


def test_a_struct_in_whose_module_its_types_are_not_is_known_by_the_names_of_scalars() -> None:
    names: dict[str, Any] = {"__name__": "gpusort"}  # as where a pickle brings a class, or text that is executed
    exec(_ELSEWHERE, names)
    found: Any = gpusort.reduce(np.arange(4, dtype=np.float32), names["Mean"](), target="python")
    assert found.tolist() == (6.0, 4)
    message = refused("reduce", [X.astype(np.float32), names["Mean"](state=names["Nested"])], {})
    assert message.startswith("Mean: state: expected types of Nested's fields that module 'gpusort' has, found 'Cou")


@pytest.mark.parametrize("name", KEYED)
def test_what_a_key_lacks_is_named(name: str) -> None:
    message = refused(name, arguments(name), {"key": HalfAKey()})
    assert message.endswith("which has no greatest, to_rank, mirrored")


@pytest.mark.parametrize("name", WITH_MONOIDS)
@pytest.mark.parametrize(
    ("monoid", "said"),
    [
        (np.add, "found <ufunc 'add'>, which has no element, state, lift, combine"),
        (None, "found None, which has no element, state, identity, lift, combine"),
        (Sum, "found the class Sum: make a value of it"),
        (UnsignedKey(U32, U32, 32), "which has no state, identity, lift, combine"),
        ("sum", "found 'sum', which has no element"),
        (F64, "found the class F64"),
    ],
    ids=kind,
)
def test_what_is_no_monoid_is_named(name: str, monoid: object, said: str) -> None:
    message = refused(name, [X, monoid], {})
    assert message.startswith("monoid: expected a monoid, e.g. Sum(number_for(x.dtype)), ")
    assert said in message


class Named(NamedTuple):
    """All that a key and a monoid have, in a tuple."""

    element: object = U32
    word: object = U32
    state: object = U32
    greatest: object = U32(0xFFFFFFFF)
    from_word: object = U32
    to_rank: object = U32
    mirrored: object = U32
    lift: object = U32

    def to_word(self, element: U32) -> U32:
        return element

    def combine(self, a: U32, b: U32) -> U32:
        return a + b

    def identity(self) -> U32:
        return U32(0)


@pytest.mark.parametrize("name", [*WITH_MONOIDS, *KEYED])
def test_a_tuple_is_no_key_and_no_monoid(name: str) -> None:
    """Plain Python would run its methods, and no kernel finds them."""
    given, options = ([X, Named()], {}) if name in WITH_MONOIDS else (arguments(name), {"key": Named()})
    assert refused(name, given, options).endswith(", found a tuple, Named: make its class one of attrs, frozen")


class Unhashable(OfPythons):
    """As a class with `__eq__`, or a dataclass that is not frozen."""

    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]  # so says Python


@pytest.mark.parametrize("name", [*WITH_MONOIDS, *KEYED])
def test_what_has_no_hash_is_named(name: str) -> None:
    wrong = Unhashable()
    message = refused(name, [X, wrong], {}) if name in WITH_MONOIDS else refused(name, arguments(name), {"key": wrong})
    assert message.endswith(
        "found a Unhashable that has no hash (unhashable type: 'Unhashable'); make its class and its fields immutable"
    )


@pytest.mark.parametrize("name", ["Radix", "Bitonic", "RadixRows", "BitonicRows"])
def test_the_class_of_an_algorithm_is_no_algorithm(name: str) -> None:
    for function in ("sort", "sort_inplace"):
        message = refused(function, [ROW.copy()], {"algorithm": getattr(gpusort, name)})
        assert message.endswith(f"found the class {name}: make a value of it")


@pytest.mark.parametrize("name", [*ALL, "sort_by_key"])
def test_a_misspelled_option_is_a_type_error(name: str) -> None:
    function: Function = getattr(gpusort, name)
    given = [ROW, ROW] if name == "sort_by_key" else arguments(name)
    with pytest.raises(TypeError, match="axes_"):
        function(*given, axes_=0)


def test_one_and_zero_are_true_and_false_as_in_numpy() -> None:
    flags: list[Any] = [1, np.True_, np.int64(1)]
    for yes in flags:
        assert gpusort.sort(ROW, descending=yes).tolist() == ROW[::-1].tolist()
        assert gpusort.argsort(ROW, descending=yes).tolist() == [5, 4, 3, 2, 1, 0]
        assert gpusort.sort_by_key(ROW, ROW, descending=yes)[1].tolist() == ROW[::-1].tolist()
        assert gpusort.top_k(ROW, 1, largest=yes, sorted=yes)[1].tolist() == [5]
        in_place = ROW.copy()
        gpusort.sort_inplace(in_place, descending=yes, stable=yes)
        assert in_place.tolist() == ROW[::-1].tolist()
        assert gpusort.sum(X, keepdims=yes).shape == (1, 1)
        assert gpusort.sum(X, axis=0, keepdims=yes).shape == (1, 3)


@pytest.mark.parametrize("zero", [np.int64(0), np.array(0)], ids=repr)
def test_an_axis_is_whatever_is_an_index(zero: Any) -> None:
    assert gpusort.sum(X, axis=zero).tolist() == gpusort.sum(X, axis=(zero,)).tolist() == [3, 5, 7]
    assert gpusort.argmin(X, axis=zero).tolist() == gpusort.sort(X, axis=zero).argmin(0).tolist()
    assert gpusort.top_k(ROW, zero, axis=zero)[0].tolist() == []


@pytest.mark.parametrize("wrong", [True, False, np.True_, np.array(True), 1.0, np.float64(0)], ids=repr)
def test_bools_and_floats_are_no_numbers(wrong: Any) -> None:
    for name in ALL:
        options = [{"axis": wrong}, *([{"axis": (0, wrong)}] if name in MANY_AXES else [])]
        for given in options:
            message = refused(name, arguments(name), given)
            assert message.startswith("axis: expected an int")
            assert message.endswith(f"found {wrong!r}")
    assert refused("top_k", [ROW, wrong], {}) == f"k: expected an int, found {wrong!r}"


@pytest.mark.parametrize("value", [3, None, "nothing", Empty(), [("a", "f4"), ("a", "f4")], ("f4", -1)], ids=repr)
def test_what_is_no_dtype_is_named(value: object) -> None:
    for name in ("key_for", "number_for"):
        assert refused(name, [value], {}).startswith("dtype: ")


def test_times_are_among_what_can_be_added() -> None:
    message = refused("number_for", ["M8[s]"], {})
    assert message.endswith("supported: bool, integers of 8 to 64 bits, float16, float32, float64 and timedelta64")
    assert refused("sum", [np.array(["2020"], "M8[s]")], {}).endswith(message.partition("; ")[2])


@pytest.mark.parametrize("name", [*WITH_MONOIDS, "sort", "max"])
def test_texts_of_any_length_are_named(name: str) -> None:
    """Of which NumPy makes none of another byte order."""
    texts = np.array(["b", "a"], np.dtypes.StringDType())
    options = {} if name in WITH_MONOIDS else {"key": gpusort.key_for("f8")}
    message = refused(name, [texts, *arguments(name)[1:]], options)
    assert message.startswith("x: expected dtype ")
    assert message.endswith("found StringDType()")


def test_tuning_names_what_it_takes() -> None:
    assert refused("tune", [3], {}).startswith("target: expected 'auto', 'cpu'")
    assert refused("tune", ["cpu"], {"largest": "much"}).startswith("largest: expected an int")
    assert refused("tune", ["cpu"], {"report": 3}).startswith("report: expected a function or None")
    assert refused("forget_tuning", [3], {}).startswith("target: expected 'auto', 'cpu'")


def test_what_has_no_hash_and_no_index_is_named() -> None:
    for wrong in (3, [0], "auto"):  # of which there is none by that name, and one that cannot be looked up
        assert refused("target", [wrong], {}).startswith("target: expected 'cpu', 'wgsl'")
    assert refused("top_k", [[3, 1], np.array([1])], {}).startswith("k: expected an int, found array")


@pytest.mark.parametrize("name", ALL)
def test_an_axis_beyond_all_is_out_of_bounds(name: str) -> None:
    function: Function = getattr(gpusort, name)
    for axis in (1 << 31, -(1 << 63), 1 << 70, np.uint64((1 << 64) - 1)):
        with pytest.raises(
            np.exceptions.AxisError, match=f"axis: axis {axis} is out of bounds for array of dimension 2"
        ):
            function(*arguments(name), axis=axis)
        if name in MANY_AXES:
            with pytest.raises(np.exceptions.AxisError, match=f"axis: axis {axis} is out of bounds"):
                function(*arguments(name), axis=(0, axis))


def test_an_int_beyond_floats_is_no_scalar() -> None:
    with pytest.raises(ValueError, match="an int of 1329 bits does not fit F64"):
        F64(10**400)


def test_a_policy_names_a_field_that_is_no_enum() -> None:
    wrong = cast("Function", gpusort.ReducePolicy)
    with pytest.raises(UnsupportedTypeError, match="ReducePolicy: totals: expected a Totals, found 3"):
        wrong(totals=3)


def test_what_is_no_array_may_be_named() -> None:
    x = np.array([3.0, 1.0, 2.0])
    values, indices = gpusort.top_k(x, k=2)
    assert values.tolist() == [3.0, 2.0]
    assert indices.tolist() == [0, 2]
    assert gpusort.plan(gpusort.top_k, x, k=2)(x)[1].tolist() == [0, 2]
    monoid = Sum(FloatNumber(F64))
    assert gpusort.reduce(x, monoid=monoid) == 6.0
    assert gpusort.scan(x, monoid=monoid).tolist() == [3.0, 4.0, 6.0]


def test_what_is_asked_of_keys_and_monoids_is_what_their_protocols_have() -> None:
    """The lists spare a call that has neither the import of both."""
    assert members_of(SortableKey) == KEY_MEMBERS
    assert members_of(Monoid) == MONOID_MEMBERS
