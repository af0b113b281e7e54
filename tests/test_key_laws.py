"""Every target tries whether a key gives elements of host arrays back: once for arrays of a shape; the simulator,
`python` and the host's sort in every call."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.api import key_laws
from gpusort.types.elements import differ, dtype_of
from gpusort.types.errors import InvalidArgumentError, UnsupportedTypeError
from gpusort.types.intrinsics import bitcast
from gpusort.types.scalars import F32, U8, U32, U64
from tests.key_cases import NotTheOther


@attrs.frozen
class Halves(NotTheOther):
    """Different elements have one word, which it does not declare."""

    is_lossy: bool = False

    def from_word(self, word: U32) -> U32:
        return word


@attrs.frozen
class Low(Halves):
    """A bijection, some of whose words are above what it says is the greatest."""

    @property
    def greatest(self) -> U32:
        return U32(7)

    def to_word(self, element: U32) -> U32:
        return element


@attrs.frozen
class Short(Low):
    """A bijection, whose words differ in more bits than it says."""

    bits: int = 3

    @property
    def greatest(self) -> U32:
        return U32(0xFFFFFFFF)


@attrs.frozen
class Talking(Halves):
    """A bijection, which prints: that works on the target `python` alone."""

    def to_word(self, element: U32) -> U32:
        print("to_word", element)
        return ~element

    def from_word(self, word: U32) -> U32:
        return ~word


X = np.array([5, 9, 2, 7, 3, 8], np.uint32)


def test_a_sort_by_a_key_that_loses_elements_is_refused_before_any_is_lost(target: str) -> None:
    x = X.copy()
    with pytest.raises(InvalidArgumentError, match=r"key: Halves.* makes .*2.* of the word of 5; from_word must give"):
        gpusort.sort_inplace(x, key=Halves(), target=target)
    np.testing.assert_array_equal(x, X)


def test_so_is_every_call_whose_results_are_elements(target: str) -> None:
    function: Any
    for function, arguments in (
        (gpusort.min, (X,)),
        (gpusort.merge, (np.sort(X), np.sort(X))),
        (gpusort.sort_by_key, (X, X)),
        (gpusort.top_k, (X, 2)),
    ):
        function(*arguments, key=Halves(is_lossy=True), target=target)
        if target == "cpu" and function in (gpusort.sort_by_key, gpusort.top_k):  # by places, which loses none
            continue
        with pytest.raises(InvalidArgumentError, match="from_word must give back the element"):
            function(*arguments, key=Halves(), target=target)
    assert gpusort.argsort(X, key=Halves(), target=target).tolist() == [2, 4, 0, 3, 1, 5]
    assert gpusort.sort(X[:0], key=Halves(), target=target).size == 0


@pytest.mark.parametrize("algorithm", [gpusort.Radix(), gpusort.Bitonic()])
def test_a_sort_by_kernels_is_refused_too(algorithm: Any, target: str) -> None:
    with pytest.raises(InvalidArgumentError, match="from_word must give back the element"):
        gpusort.sort(X, key=Halves(), algorithm=algorithm, target=target)
    with pytest.raises(InvalidArgumentError, match="from_word must give back the element"):
        gpusort.plan(gpusort.sort, X, key=Halves(), algorithm=algorithm, target=target)


@attrs.frozen
class Reading:
    """With three bytes behind `kind` that no field has."""

    kind: U8
    value: F32


@attrs.frozen
class ByKind:
    """A bijection of readings; not one if it forgets the sign, of zeros too."""

    forgets: bool = False
    element: type[Reading] = Reading
    word: type[U64] = U64

    @property
    def greatest(self) -> U64:
        return U64(0xFFFFFFFFFFFFFFFF)

    def to_word(self, element: Reading) -> U64:
        return (U64(U32(element.kind)) << 32) | U64(bitcast(U32, element.value))

    def from_word(self, word: U64) -> Reading:
        bits = U32(word) & 0x7FFFFFFF if self.forgets else U32(word)
        return Reading(U8(U32(word >> 32)), bitcast(F32, bits))

    def to_rank(self, element: Reading) -> U64:
        return self.to_word(element)

    def mirrored(self, word: U64) -> U64:
        return ~word


@pytest.mark.parametrize("algorithm", [None, gpusort.Bitonic()])
def test_elements_are_given_back_by_the_bits_of_their_fields(algorithm: Any, target: str) -> None:
    """Whatever lies between these, and NaN is not taken for lost, nor -0.0 for 0.0."""
    dtype = dtype_of(Reading)
    x = np.random.default_rng(4).integers(1, 256, (9, dtype.itemsize), np.uint8).view(dtype)[:, 0]
    x["kind"], x["value"] = [3, 1, 2, 3, 1, 0, 1, 9, 3], [np.nan, 1, np.nan, 0, -0.0, 0, -2, 3, np.inf]
    found = gpusort.sort(x, key=ByKind(), algorithm=algorithm, target=target)
    order = [5, 1, 4, 6, 2, 3, 8, 0, 7]  # by their bits
    assert not differ(found, x[order]).any()
    zeros = np.zeros(9, dtype)
    zeros["value"] = -0.0
    with pytest.raises(InvalidArgumentError, match="from_word must give back the element"):
        gpusort.sort(zeros, key=ByKind(forgets=True), algorithm=algorithm, target=target)


def test_words_above_the_greatest_are_refused(target: str) -> None:
    """What pads a tile would take their place."""
    with pytest.raises(InvalidArgumentError, match=r"key: Low.* makes U32\(\d\) of \d, but says that"):
        gpusort.sort(X, key=Low(), algorithm=gpusort.Bitonic(), target=target)
    assert gpusort.sort(X[[0, 2]], key=Low(), algorithm=gpusort.Bitonic(), target=target).tolist() == [2, 5]


def test_words_that_differ_in_more_bits_than_declared_are_refused(target: str) -> None:
    """A radix sort would not look at those bits."""
    with pytest.raises(InvalidArgumentError, match=r"key: Short.* makes U32\(\d\) of \d, but says that .* 3 low bits"):
        gpusort.sort(X, key=Short(), algorithm=gpusort.Radix(), target=target)
    assert gpusort.sort(X, key=Short(bits=4), algorithm=gpusort.Radix(), target=target).tolist() == sorted(X.tolist())


@pytest.mark.parametrize("bits", [0, -1, 33, True, "8", 1.5])
def test_bits_are_as_many_as_a_word_has(bits: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Short: bits: expected 1 to the 32 bits of a word, found {bits!r}"):
        gpusort.sort(X, key=Short(bits=bits))


@pytest.mark.parametrize("x", [np.array([b"ab", b"c"], "S4"), np.array(["a", "b"], "U1"), np.zeros(2, "V4")])
def test_texts_are_told_how_their_bytes_are_read(x: np.ndarray[Any, Any]) -> None:
    key = gpusort.key_for(np.uint32)
    with pytest.raises(UnsupportedTypeError, match=r"x: expected dtype uint32 \(x\.view\('uint32'\) has its bytes\)"):
        gpusort.sort(x, key=key)
    assert gpusort.sort(x.view("uint32"), key=key).dtype == np.uint32


def test_what_costs_time_is_done_once_for_arrays_of_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    key, evens = NotTheOther(), np.arange(2, 154, 2, dtype=np.uint32)  # of these it loses none
    assert gpusort.min(evens, key=key, target="cpu") == 2
    with pytest.raises(InvalidArgumentError, match="from_word must give back the element"):
        gpusort.min(evens[1:] + 1, key=key, target="cpu")  # of another shape
    tried = list[Any]()
    monkeypatch.setattr(key_laws, "key_check", tried.append)
    assert gpusort.min(evens[::-1].copy(), key=key, target="cpu") == 2
    assert not tried
    gpusort.min(evens[2:], key=key, target="cpu")
    assert len(tried) == 1


@pytest.mark.parametrize("watching", ["simulator", "python"])
def test_each_call_into_an_array_is_tried(watching: str) -> None:
    key, evens = NotTheOther(), np.arange(2, 42, 2, dtype=np.uint32)  # of these it loses none
    out, odd = np.empty_like(evens), evens + 1
    planned = gpusort.plan(gpusort.sort, evens, key=key, target=watching)
    for _ in range(2):
        np.testing.assert_array_equal(gpusort.sort(evens, key=key, out=out, target=watching), planned(evens))
        with pytest.raises(InvalidArgumentError, match="from_word must give back the element"):
            gpusort.sort(odd, key=key, out=out, target=watching)
        with pytest.raises(InvalidArgumentError, match="from_word must give back the element"):
            planned(odd)
        np.testing.assert_array_equal(out, planned(evens))


def test_a_key_under_a_debugger_may_print(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpusort.sort(X, key=Talking(), target="python").tolist() == [9, 8, 7, 5, 3, 2]
    assert "to_word" in capsys.readouterr().out


# -- descending order ---------------------------------------------------------------------------------------


@attrs.frozen
class Plain(Low):
    """Integers as they are, mirrored in the way that it is told."""

    way: str = "reversed"

    @property
    def greatest(self) -> U32:
        return U32(0xFFFFFFFF)

    def to_rank(self, element: U32) -> U32:
        return element

    def mirrored(self, word: U32) -> U32:
        if self.way == "same":
            return word
        if self.way == "halved":
            return word >> 1
        if self.way == "few":  # most words are last in both orders
            return U32(9) - word if word < 10 else word
        if self.way == "flag":  # words with the first bit are last in both orders, and reversed among themselves
            return word ^ 0x7FFFFFFF
        if self.way == "first":  # one is first in both orders
            return U32(0) - word
        return ~word


_DESCENDING: tuple[Any, ...] = (
    gpusort.sort,
    lambda x, **to: gpusort.sort(x, algorithm=gpusort.Bitonic(), **to),
    gpusort.argsort,
    lambda x, **to: gpusort.sort_by_key(x, x, **to),
    lambda x, **to: gpusort.sort_inplace(x.copy(), **to),
)


@pytest.mark.parametrize("way", ["same", "halved"])
@pytest.mark.parametrize("call", _DESCENDING)
def test_a_key_that_does_not_reverse_words_is_refused_for_descending_order(target: str, call: Any, way: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"key: Plain.* mirrors U32\(5\) to .* and U32\(9\) to .*keeps their"
    ):
        call(X, key=Plain(way=way), descending=True, target=target)
    call(X, key=Plain(way=way), target=target)  # which mirrors none
    call(X[:1], key=Plain(way="same"), descending=True, target=target)  # nor is there an order of one
    with pytest.raises(InvalidArgumentError, match="keeps their order"):
        gpusort.top_k(X, 2, key=Plain(way=way), target=target)


@attrs.frozen
class Dividing(Plain):
    """Takes all numbers but 0, which no array here has."""

    way: str = "same"

    def to_word(self, element: U32) -> U32:
        return element + U32(0) // element


def test_elements_that_a_key_does_not_take_tell_nothing(target: str) -> None:
    for x in (X, np.append(X, np.uint32(0))):
        with pytest.raises(InvalidArgumentError, match="keeps their order"):
            gpusort.sort(x, key=Dividing(), descending=True, target=target)
    found = gpusort.sort(X, key=Dividing(way="reversed"), descending=True, target=target)
    assert found.tolist() == sorted(X.tolist(), reverse=True)


BIG = 1 << 31


@pytest.mark.parametrize(
    ("way", "x", "result"),
    [
        ("few", [20, 30, 25], [20, 25, 30]),
        ("few", [20, 3, 25], [3, 20, 25]),
        ("few", [4, 4, 4], [4, 4, 4]),
        ("flag", [BIG + 4, 7], [7, BIG + 4]),
        ("flag", [BIG + 4, 7, BIG + 5], [7, BIG + 5, BIG + 4]),
        ("first", [7, 0], [0, 7]),
        ("first", [7, 0, 9], [0, 9, 7]),
        ("reversed", [0, 1, 1], [1, 1, 0]),
    ],
)
@pytest.mark.parametrize("call", _DESCENDING[:2])
def test_words_that_keep_their_place_in_both_orders_are_not_taken_for_that(
    target: str, call: Any, way: str, x: list[int], result: list[int]
) -> None:
    found = call(np.array(x, np.uint32), key=Plain(way=way), descending=True, target=target)
    assert found.tolist() == result


def test_nans_of_several_words_alone_are_sorted(target: str) -> None:
    key = gpusort.key_for(np.float32)
    nans = np.array([0x7FC00001, 0x7FC00002, 0xFFC00003], np.uint32)
    for x in (nans, np.append(nans, np.uint32(0x3F800000))):
        found = gpusort.sort(x.view("f4"), key=key, descending=True, target=target)
        assert sorted(found.view("u4").tolist()) == sorted(x.tolist())
    bools = gpusort.sort(np.array([False, True]), key=gpusort.key_for(np.bool_), descending=True, target=target)
    assert bools.tolist() == [True, False]
