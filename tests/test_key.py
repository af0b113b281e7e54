"""Keys as users write them, on every target: sorted by whatever sort is chosen, argsorted, reduced to extremes."""

from __future__ import annotations

import inspect
from itertools import product
from typing import Any, ClassVar, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.argsort import bitonic_argsort
from gpusort.algos.batch import Batch
from gpusort.algos.choice import choose_axis_reduction, choose_pairs, choose_sort
from gpusort.algos.layout import Layout
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.reduce_axis import reduce_rows
from gpusort.algos.sorts import Bitonic, BitonicRows, Radix, RadixRows, bits_of, element_bits
from gpusort.kernel.span import KernelError
from gpusort.machine import Capability, Limits, TargetInfo
from gpusort.targets.base import Target
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.elements import dtype_of
from gpusort.types.errors import UnsupportedTypeError
from gpusort.types.finishes import finish_of
from gpusort.types.indices import Placement, SortOrder
from gpusort.types.keys import RankKey, SortableKey, is_lossy, ranked
from gpusort.types.monoids import Maximum, Minimum, Sum
from gpusort.types.params import BitonicPolicy, RadixPolicy
from gpusort.types.scalars import I32, U32, U64
from gpusort.types.searches import ArgMin
from tests import key_cases
from tests.covering import few_cases
from tests.reference import DTYPES, Array, assert_same_bits
from tests.test_words import Key, elements_for, sorted_one_by_one

UP, DOWN = SortOrder.ASCENDING, SortOrder.DESCENDING
BIJECTIONS: tuple[Key, ...] = (key_cases.AbsoluteFirst(), key_cases.DateKey(), key_cases.Trailing())
SMALL = BitonicPolicy(tile=16, group_size=8, fused_passes=2)


def sorted_by(target: Target, algorithm: Any, key: Key, x: Array, order: SortOrder) -> Array:
    """As the algorithm does it where it does it best."""
    placement = algorithm.placements(key)[0]
    schedule = algorithm.schedule(key, 1, x.size, order, placement)
    data, results = x.copy(), np.zeros_like(x)
    in_place = placement is Placement.IN_PLACE
    target.run(schedule, {"data": data} if in_place else {"data": data, "results": results})
    return data if in_place else results


@pytest.mark.parametrize("key", BIJECTIONS, ids=str)
def test_the_sort_that_is_chosen(target: str, key: Key) -> None:
    x = elements_for(key, 30 if target == "python" else 400)
    where = target_of(target)
    for order in SortOrder:
        algorithm = choose_sort(where.info, key, 1, x.size)
        expected = x[sorted_one_by_one(key, x.reshape(1, -1), order)[0]]
        assert_same_bits(sorted_by(where, algorithm, key, x, order), expected)


def test_a_key_by_which_radix_sorts_go_says_how_many_bits_its_words_have(target: str) -> None:
    @attrs.frozen
    class Named(key_cases.Trailing):
        """Words of 16 bits only."""

        bits: int = 16

        def to_word(self, element: Any) -> U32:
            return 65535 - U32(element)

        def from_word(self, word: U32) -> Any:
            return self.element(65535 - word)

        def mirrored(self, word: U32) -> U32:
            return 65535 - word

    key: Key = Named()
    x = elements_for(key, 20 if target == "python" else 100)
    algorithm = Radix(RadixPolicy(4, 16, 2, 4, subgroups=False))
    expected = x[sorted_one_by_one(key, x.reshape(1, -1), DOWN)[0]]
    assert_same_bits(sorted_by(target_of(target), algorithm, key, x, DOWN), expected)


def test_radix_sorts_refuse_words_wider_than_elements() -> None:
    """They would keep only the lowest bits."""
    refused: tuple[Key, ...] = (*BIJECTIONS, key_cases.ClosestTo())
    for algorithm in (Radix(), RadixRows()):
        for key in refused:
            with pytest.raises(gpusort.UnsupportedTypeError, match=r"Bitonic\(\) sorts any"):
                algorithm.placements(key)
        assert algorithm.placements(key_cases.NotTheOther())


def test_a_card_sorts_by_what_its_fastest_sorts_refuse() -> None:
    """The table names sorts for lengths and sizes; a key that they do not take is left to the network."""
    limits = Limits(1024, 48 << 10, 1 << 31, 1 << 36, 32, 32, 32)
    card = TargetInfo("cuda", "a card", "a driver", limits, frozenset({*Capability}))
    keys: tuple[Key, ...] = (*BIJECTIONS, key_cases.ClosestTo())
    for key in keys:
        for rows, length in ((1, 3000), (1, 1 << 24), (100, 3000)):
            assert isinstance(choose_sort(card, key, rows, length), Bitonic)
            assert choose_pairs(card, key, rows, length, 4) is None
        assert isinstance(choose_sort(card, key, 1000, 64), BitonicRows)


def test_bits_of_built_in_keys_are_those_of_their_elements() -> None:
    for dtype in DTYPES:
        for key in (key_for(dtype), RankKey(key_for(dtype))):
            assert bits_of(key) == element_bits(key) == 8 * np.dtype(dtype).itemsize
    assert bits_of(key_cases.Trailing()) == bits_of(RankKey(key_cases.Trailing())) == 32


@pytest.mark.parametrize("key", [key_cases.Absolute(), key_cases.DateKey(), key_cases.ClosestTo()], ids=str)
def test_where_elements_come_from(target: str, key: Key) -> None:
    if target == "cpu" and not isinstance(key, key_cases.ClosestTo):
        pytest.skip("each kernel compiles for seconds there")
    x = elements_for(key, 20 if target == "python" else 100)
    found = np.zeros(x.size, np.uint64)
    schedule = bitonic_argsort(RankKey(key), 1, x.size, DOWN, SMALL)
    target_of(target).run(schedule, {"data": x, "places": found})
    np.testing.assert_array_equal(found, sorted_one_by_one(key, x.reshape(1, -1), DOWN, ranks=True)[0])


def test_a_lossy_key_takes_the_elements_along_as_values(target: str) -> None:
    """What a front does with one: nothing comes back from words."""
    key: Any = key_cases.Reciprocal()
    assert is_lossy(key)
    x = elements_for(key, 30 if target == "python" else 200)
    moved, results = np.zeros_like(x), np.zeros_like(x)
    policy = RadixPolicy(4, 16, 2, 4, subgroups=False)
    schedule = radix_sort(Batch(key, 1, x.size, UP, value=key.element), policy, bits_of(key))
    target_of(target).run(schedule, {"data": x, "values": x.copy(), "results": results, "moved": moved})
    assert_same_bits(moved, x[sorted_one_by_one(key, x.reshape(1, -1), UP)[0]])
    assert choose_pairs(target_of(target).info, key_cases.Trailing(), 1, 1 << 20, 2) is None


@pytest.mark.parametrize("key", BIJECTIONS, ids=str)
def test_extremes(target: str, key: SortableKey[Any, Any]) -> None:
    if target == "cpu" and not isinstance(key, key_cases.DateKey):
        pytest.skip("each kernel compiles for seconds there")
    info, x = target_of(target).info, elements_for(key, 33)
    order = sorted_one_by_one(key, x.reshape(1, -1), UP)[0]
    cases: tuple[tuple[Any, Any], ...] = (
        (Minimum(ranked(key)), x[order[0]]),
        (Maximum(ranked(key)), x[order[-1]]),
    )
    for monoid, expected in cases:
        found = np.zeros(1, dtype_of(key.element))
        schedule = reduce_rows(
            monoid, 1, x.size, choose_axis_reduction(monoid.state, Layout.rows(1, x.size), info), finish_of(monoid)
        )
        target_of(target).run(schedule, {"data": x, "results": found})
        assert found[0].tobytes() == expected.tobytes()


def test_where_the_least_element_by_a_lossy_key_stands(target: str) -> None:
    info, key = target_of(target).info, key_cases.ClosestTo()
    x = elements_for(key, 33)
    monoid: Any = ArgMin(ranked(key))
    found = np.zeros(1, np.uint64)
    schedule = reduce_rows(
        monoid, 1, x.size, choose_axis_reduction(monoid.state, Layout.rows(1, x.size), info), finish_of(monoid)
    )
    target_of(target).run(schedule, {"data": x, "results": found})
    assert found[0] == sorted_one_by_one(key, x.reshape(1, -1), UP, ranks=True)[0][0]


def test_a_built_in_key_is_ranked_as_it_is() -> None:
    key = key_for("f4")
    assert ranked(key) is key
    assert Bitonic().placements(key_cases.ClosestTo()) == (Placement.IN_PLACE,)


@few_cases(pairs=False)
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("keepdims", [False, True])
def test_extremes_by_a_lossy_key_are_elements_of_the_array(target: str, axis: int | None, keepdims: bool) -> None:
    """Of those with the same word, the first."""
    key: Any = key_cases.Absolute()
    host = np.random.default_rng(1).integers(-9, 9, (4, 5, 3)).astype(np.int32)
    for x in (host, host.T, host[:, ::2]):
        for function, numpys in ((gpusort.min, np.argmin), (gpusort.max, np.argmax)):
            found = function(x, axis=axis, keepdims=keepdims, key=key, target=target)
            places: Any = numpys(np.abs(x), axis=axis, keepdims=True)
            expected = x.reshape(-1)[places] if axis is None else np.take_along_axis(x, places, axis)
            expected = expected if keepdims else expected.reshape(np.max(x, axis=axis).shape)
            assert np.shape(found) == expected.shape
            assert np.asarray(found).dtype == x.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("key", [key_cases.DateKey(), key_cases.ClosestTo()], ids=str)
def test_places_of_extremes_are_the_first_of_an_argsort(target: str, key: Key) -> None:
    """Of records, and of elements that tie."""
    for x in (elements_for(key, (4, 6)), elements_for(key, (6, 4), seed=1).T):
        for function, descending in ((gpusort.argmin, False), (gpusort.argmax, True)):
            order: Any = {"key": key, "target": target}
            flat, by_columns = (gpusort.argsort(x, axis=axis, descending=descending, key=key) for axis in (None, 0))
            assert function(x, **order) == flat[0]
            assert_same_bits(np.asarray(function(x, axis=0, **order)), by_columns[0])
            assert_same_bits(np.asarray(function(x, axis=0, keepdims=True, **order)), by_columns[:1])
    nothing: Any = elements_for(key, (0, 3))
    assert gpusort.argmin(nothing, axis=1, key=key, target=target).dtype == np.int64
    with pytest.raises(gpusort.InvalidArgumentError, match="neither a least nor a greatest element"):
        gpusort.argmax(nothing, key=key, target=target)


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2)])
def test_extremes_by_a_lossy_key_along_some_axes(target: str, axes: tuple[int, int]) -> None:
    key: Any = key_cases.Absolute()
    x = np.random.default_rng(2).permutation(60).reshape(3, 4, 5).astype(np.int32) - 30
    x[x == -7] = 99  # 7 and -7 share a word: of them the first would be meant, and NumPy is not asked which that is
    found = gpusort.max(x, axis=axes, key=key, target=target)
    expected = np.where(np.abs(x) == np.abs(x).max(axis=axes, keepdims=True), x, -1000).max(axis=axes)
    np.testing.assert_array_equal(np.abs(found), np.abs(expected))


def test_what_a_key_takes_from_outside_may_change(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(9, dtype="u4")
    for flipped in (0, 1, 0xFFFFFFFF, 0):
        monkeypatch.setattr(key_cases, "FLIPPED", U32(flipped))
        expected = np.argsort(x ^ np.uint32(flipped))
        assert gpusort.sort(x, key=key_cases.Flipped(), target=target).tolist() == expected.tolist()
        assert gpusort.argsort(x, key=key_cases.Flipped(), target=target).tolist() == expected.tolist()
        assert gpusort.min(x, key=key_cases.Flipped(), target=target) == expected[0]


@attrs.frozen
class FlippedByItsClass(key_cases.Flipped):
    """Frozen, but for what its class has: an attribute, and a property that takes another from outside."""

    low: ClassVar[U32] = U32(0)

    @property
    def high(self) -> U32:
        return U32(HIGH << 16)

    def to_word(self, element: U32) -> U32:
        return element ^ self.low ^ self.high

    def from_word(self, word: U32) -> U32:
        return word ^ self.low ^ self.high

    def to_rank(self, element: U32) -> U32:
        return self.to_word(element)


HIGH = 0


def test_what_a_frozen_keys_class_has_may_change(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([3, 1, 0x20002, 0x10000, 0x30003, 2], "u4")
    for low, high in ((0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (0, 0)):
        monkeypatch.setattr(FlippedByItsClass, "low", U32(low))
        monkeypatch.setattr(f"{__name__}.HIGH", high)
        expected = np.argsort(x ^ np.uint32(low + (high << 16)))
        assert gpusort.argsort(x, key=FlippedByItsClass(), target=target).tolist() == expected.tolist()
        assert gpusort.sort(x, key=FlippedByItsClass(), target=target).tolist() == x[expected].tolist()


@attrs.frozen
class AsShortAsItsClassSays(key_cases.Flipped):
    """Numbers below two to the power of `bits`, which is no field."""

    bits: ClassVar[int] = 4

    def to_word(self, element: U32) -> U32:
        return element

    def from_word(self, word: U32) -> U32:
        return word

    def to_rank(self, element: U32) -> U32:
        return element


def test_how_many_bits_the_class_of_a_key_says_may_change(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a radix sort each digit is a pass."""
    for bits in (4, 24, 8):
        monkeypatch.setattr(AsShortAsItsClassSays, "bits", bits)
        x = np.random.default_rng(bits).integers(0, 1 << bits, 700, "u4")
        found = gpusort.sort(x, key=AsShortAsItsClassSays(), algorithm=gpusort.Radix(), target=target)
        assert found.tolist() == np.sort(x).tolist()
        found = gpusort.argsort(x, key=AsShortAsItsClassSays(), target=target)
        assert found.tolist() == np.argsort(x, kind="stable").tolist()


@attrs.frozen
class InPairs(key_cases.Flipped):
    """Numbers, of which two at a time tie."""

    is_lossy: bool = False

    def to_rank(self, element: U32) -> U32:
        return element >> 1


def test_a_stable_sort_keeps_what_ties_in_its_order(target: str) -> None:
    """By its rank, not by its word; where some words are their elements' ranks, and where none is."""
    for least, loses, algorithm in product((0, 2), (False, True), (None, gpusort.Bitonic())):
        x = np.array([3, 2, 9, 8, 5, 4, 3, 1, 0], "u4") + np.uint32(least)
        kept = np.array([1, 0, 3, 2, 3, 5, 4, 9, 8], "u4") + np.uint32(least)
        settings: Any = {"key": InPairs(is_lossy=loses), "algorithm": algorithm, "target": target}
        np.testing.assert_array_equal(gpusort.sort(x, stable=True, **settings), kept)
        np.testing.assert_array_equal(gpusort.sort(x, **settings), np.sort(x))
        if algorithm is None:
            del settings["algorithm"]
            first, places = gpusort.top_k(x, 6, largest=False, **settings)
            np.testing.assert_array_equal(first, kept[:6])
            np.testing.assert_array_equal(places, gpusort.argsort(x, **settings)[:6])


class NumberForWord(key_cases.AbsoluteFirst):
    def to_word(self, element: Any) -> Any:
        return 3


class NoWord(key_cases.AbsoluteFirst):
    def to_word(self, element: Any) -> Any:
        pass


class WideRank(key_cases.AbsoluteFirst):
    def to_rank(self, element: Any) -> Any:
        return U64(U32(element))


GREATEST = U32(0xFFFFFFFF)


@attrs.frozen
class WideWordWithAScalar(key_cases.AbsoluteFirst):
    greatest: U32 = GREATEST

    def to_word(self, element: Any) -> Any:
        return U64(U32(element))


class WordForElement(key_cases.AbsoluteFirst):
    def from_word(self, word: Any) -> Any:
        return word


class PythonsGreatest(key_cases.AbsoluteFirst):
    greatest: Any = 0xFFFFFFFF


@attrs.frozen
class SignedWords:
    """Satisfies SortableKey[I32, I32]."""

    element: type[I32] = I32
    word: type[I32] = I32

    @property
    def greatest(self) -> I32:
        return I32(2**31 - 1)

    def to_word(self, element: I32) -> I32:
        return element

    def from_word(self, word: I32) -> I32:
        return word

    def to_rank(self, element: I32) -> I32:
        return element

    def mirrored(self, word: I32) -> I32:
        return ~word


class NumpysWord(key_cases.AbsoluteFirst):
    word: Any = np.uint32


@pytest.mark.parametrize(
    ("key", "method", "complaint"),
    [
        (NumberForWord(), "to_word", "expected U32, the `word` of NumberForWord, from 'NumberForWord.to_word', found "
         "the compile-time value 3, e.g. `return U32(x)`"),
        (NoWord(), "to_word", "expected U32, the `word` of NoWord, from 'NoWord.to_word', found the compile-time value "
         "None, e.g. `return U32(x)`"),
        (WideRank(), "to_rank", "expected U32, the `word` of WideRank, from 'WideRank.to_rank', found a U64, e.g. "
         "`return U32(x)`"),
        (WideWordWithAScalar(), "to_word", "expected U32, the `word` of WideWordWithAScalar, from "
         "'WideWordWithAScalar.to_word', found a U64, e.g. `return U32(x)`"),
        (WordForElement(), "from_word", "expected I32, the `element` of WordForElement, from "
         "'WordForElement.from_word', found a U32, e.g. `return I32(x)`"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
@pytest.mark.parametrize("where", ["cpu", "simulator", "python"])  # no target is asked: the reader tells
def test_a_method_that_gives_another_class_is_named_with_its_line(
    key: Any, method: str, complaint: str, where: str
) -> None:
    x = np.array([3, -1, 2], np.int32)
    with pytest.raises(KernelError) as caught:
        gpusort.argsort(x, key=key, target=where) if method == "to_rank" else gpusort.sort(x, key=key, target=where)
    line = inspect.getsourcelines(getattr(key, method))[1]
    assert str(caught.value).split("\n")[0].endswith(f"test_key.py:{line}: {complaint}")


class Printed(key_cases.AbsoluteFirst):
    """What no other target runs."""

    def to_word(self, element: Any) -> Any:
        print(element)
        return super().to_word(element)


def test_plain_python_goes_by_no_word_of_another_class_and_runs_what_it_alone_can(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where what such words give is a result, it is a wrong one."""
    x = np.array([1, 2, 3], np.int32)
    for call in (
        lambda: gpusort.merge(x, x, key=NumberForWord(), target="python"),
        lambda: gpusort.min(x, key=NumberForWord(), target="python"),
    ):
        with pytest.raises(KernelError, match="to_word', found the compile-time value 3"):
            call()
    found = gpusort.merge(x, -x, key=Printed(), target="python")
    assert found.tolist() == gpusort.merge(x, -x, key=key_cases.AbsoluteFirst(), target="cpu").tolist()
    assert "-3" in capsys.readouterr().out


def test_what_a_key_says_of_its_words_is_checked_on_every_target(target: str) -> None:
    x = np.array([3, -1, 2], np.int32)
    for key, complaint in (
        (PythonsGreatest(), "PythonsGreatest: greatest: expected U32 to store, found 4294967295, e.g. `U32(x)`"),
        (NumpysWord(), "NumpysWord: word: expected a scalar, an enum or a frozen attrs class as an element, found"),
    ):
        for function in (gpusort.sort, gpusort.argsort, gpusort.max):
            with pytest.raises(UnsupportedTypeError) as caught:
                function(x, key=key, target=target)
            assert str(caught.value).startswith(complaint)


@attrs.frozen
class Lossy(key_cases.OfStructs):
    is_lossy: bool = True


def test_words_that_are_no_numbers_are_refused_by_what_stores_or_combines_them(target: str) -> None:
    x, key = np.arange(5, dtype=np.uint32), key_cases.OfStructs()
    calls: tuple[Any, ...] = (
        lambda: gpusort.argsort(x, key=key, target=target),
        lambda: gpusort.top_k(x, 2, key=key, target=target),
        lambda: gpusort.sort_by_key(x, x, key=key, target=target),
        lambda: gpusort.min(x, key=key, target=target),
        lambda: gpusort.sort(x, key=Lossy(), algorithm=gpusort.Bitonic(), target=target),
        lambda: gpusort.sort(x, key=key, stable=True, algorithm=gpusort.Bitonic(), target=target),
    )
    for call in calls:
        with pytest.raises(gpusort.UnsupportedTypeError, match=r"^key: expected words of U32 or U64, found Date in "):
            call()
    with pytest.raises(
        gpusort.UnsupportedTypeError, match=r"found I32 in SignedWords; .*sort\(..., algorithm=Bitonic\(\)"
    ):
        gpusort.argsort(np.array([3, 1], np.int32), key=SignedWords(), target=target)
    assert gpusort.sort(np.array([3, -1, 2], np.int32), key=SignedWords(), target=target).tolist() == [-1, 2, 3]


def test_methods_that_take_other_arguments_are_told_by_their_names(target: str) -> None:
    def altered(value: Any, **members: object) -> Any:
        own: type[object] = value.__class__
        return type("Altered", (own,), members)(*attrs.astuple(value, recurse=False))

    def none(self: object) -> U32:
        return U32(0)

    def without_index(self: object, element: U32) -> U32:
        return element

    x, total = np.arange(5, dtype=np.uint16), Sum(number_for("u2"))
    said = r"^Altered\.{}: expected a method that takes self and {} more: "
    for call in (gpusort.sort, gpusort.argsort, gpusort.max):
        with pytest.raises(UnsupportedTypeError, match=said.format("mirrored", 1)):
            cast(Any, call)(x, key=altered(key_cases.Trailing(), mirrored=none), target=target)
    for fold in (gpusort.reduce, gpusort.scan):
        with pytest.raises(UnsupportedTypeError, match=said.format("lift", 2)):
            fold(x, altered(total, lift=without_index), target=target)
        with pytest.raises(UnsupportedTypeError, match=said.format("identity", 0) + ".* not a callable"):
            fold(x, altered(total, identity=U32(0)), target=target)


def test_fields_at_other_places_are_refused_with_what_puts_them_right() -> None:
    key: Any = key_cases.DateKey()
    wanted = dtype_of(key.element)
    fields: Any = {name: (field[0], 4 * place) for place, (name, field) in enumerate(dict(wanted.fields or {}).items())}
    x: Array = np.zeros(3, np.dtype(fields))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"x\.astype\(np\.dtype\(\[\.\.\.\], align=True\)\) has it"):
        gpusort.sort(x, key=key)
    assert gpusort.sort(x.astype(wanted), key=key).dtype == wanted
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"cannot order .* of several fields by a key of your own$"):
        gpusort.sort(x)
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"cannot add .* of several fields by a monoid of your own$"):
        gpusort.sum(x)


@pytest.mark.parametrize("dtype", [">i4", ">i8", ">M8[s]"])
def test_the_byte_order_of_results_is_that_without_a_key(target: str, dtype: str) -> None:
    """Elements that are moved keep it, and extremes are in the machine's, as NumPy's are."""
    x = np.array([[3, 1, 2]], dtype)
    for key in None, key_for(dtype):
        how: Any = {"key": key, "target": target}
        moved = gpusort.sort(x, **how), gpusort.sort(x, stable=True, **how), gpusort.top_k(x, 2, **how)[0]
        moved += *gpusort.sort_by_key(x[0], x[0], **how), gpusort.merge(x[0, :1], x[0, :1], **how)
        assert {found.dtype.str for found in moved} == {dtype}
        assert_same_bits(moved[0], np.sort(x))
        for shape in x, x[:, :0]:
            assert gpusort.max(shape, axis=0, **how).dtype == np.max(x, axis=0).dtype
        assert_same_bits(gpusort.min(x, axis=1, **how), np.min(x, axis=1))
