"""Keys done to whole arrays, and host arrays sorted by them, against what each key's methods say of one element."""

from __future__ import annotations

from itertools import product
from typing import Any

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.algos.words import KeyWords
from gpusort.operations.select import TopK
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host.compiled_words import are_compiled
from gpusort.targets.cpu.host.keyed import argsort_by_words, sort_by_words
from gpusort.types.dtypes import key_for
from gpusort.types.elements import decode, dtype_of, encode
from gpusort.types.indices import SortOrder
from gpusort.types.keys import RankKey, SortableKey, is_lossy
from gpusort.types.scalars import U32
from tests import key_cases
from tests.reference import DTYPES, Array, assert_same_bits, sample, sorted_by_numpy

POLICY = HostSortPolicy()
IN_PARTS = attrs.evolve(POLICY, serial_below=256, part_bytes_from=4096, chunk=500)
Key = SortableKey[Any, Any]

USERS: tuple[Key, ...] = (
    key_cases.Absolute(), key_cases.AbsoluteFirst(), key_cases.LowBitsFirst(U32(5)), key_cases.Folded(),
    key_cases.DateKey(), key_cases.Trailing(), key_cases.Cycled(), key_cases.InRounds(), key_cases.Reciprocal(),
    key_cases.ClosestTo(),
)  # fmt: skip


def elements_for(key: Key, shape: int | tuple[int, ...], seed: int = 0) -> Array:
    """Elements that a key takes, equals and extremes among them."""
    dtype = dtype_of(key.element)
    numbers = np.random.default_rng(seed)
    if isinstance(key, key_cases.Folded):
        letters: Array = numbers.choice(np.frombuffer(b"aAbBzZ@[`{\0\xff", np.uint8), (int(np.prod(shape)), 8))
        return letters.view(dtype).reshape(shape)
    if isinstance(key, key_cases.ClosestTo):
        return numbers.choice(np.array([0, -0.0, 0.5, 1.5, 1, -3, 5, 1e-30], "f4"), shape)
    if dtype.fields:
        bits: Array = numbers.integers(0, 4, (int(np.prod(shape)), dtype.itemsize), np.uint8).view(dtype)
        return bits.reshape(shape)
    found = sample(dtype.str[1:], shape, seed)
    small: Array = numbers.integers(0, 2, shape) == 0
    return np.where(small, found % found.dtype.type(9), found)


def words_one_by_one(key: Key, x: Array, order: SortOrder, *, ranks: bool) -> list[int]:
    """By the methods as CPython runs them."""
    found: list[int] = []
    for item in x.view(dtype_of(key.element)):
        element = decode(key.element, item)
        word = key.to_rank(element) if ranks else key.to_word(element)
        found.append(encode(key.mirrored(word) if order is SortOrder.DESCENDING else word))
    return found


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("key", [*map(key_for, DTYPES), RankKey(key_for("f4")), *USERS], ids=str)
def test_words_are_what_the_methods_say(key: Key, order: SortOrder) -> None:
    dtype = dtype_of(key.element)
    x = elements_for(key, 150) if key in USERS else sample(dtype.str[1:], 150)
    by = KeyWords(key, order)
    for ranks in (False, True):
        found = by.to_words(ranks=ranks)(x)
        assert found.dtype == dtype_of(key.word)
        assert found.tolist() == words_one_by_one(key, x, order, ranks=ranks)
        assert by.to_words(ranks=ranks)(x[:0]).size == 0
    if not is_lossy(key):
        assert_same_bits(by.to_elements()(by.to_words()(x)), x.view(dtype))


@pytest.mark.parametrize("key", [*map(key_for, DTYPES), RankKey(key_for("f4")), *USERS], ids=str)
def test_compiled_words_are_the_same(key: Key) -> None:
    dtype, by_numpy = dtype_of(key.element), (key_cases.Cycled, key_cases.Reciprocal)
    for length, order in product((1, 31, 70_000), SortOrder):  # alone, and shared among threads
        x = elements_for(key, length) if key in USERS else sample(dtype.str[1:], length)
        by = KeyWords(key, order)
        transforms = {"words": by.to_words(), "ranks": by.to_words(ranks=True)}
        if not is_lossy(key):
            transforms["elements"] = by.to_elements()
        for name, transform in transforms.items():
            given = transforms["words"](x) if name == "elements" else x
            found = np.zeros(length, transform.target.dtype)
            is_compiled = name == "elements" or not isinstance(key, by_numpy)
            with background.off():
                assert are_compiled(transform, given, found) is is_compiled, name
            if is_compiled:
                assert_same_bits(found, transform(given))


def test_words_are_compiled_in_the_background_for_long_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "in_caller", False)

    @attrs.frozen
    class Mixed(key_cases.LowBitsFirst):
        def from_word(self, word: U32) -> U32:
            return (word << self.count) | (word >> (32 - self.count))

        def to_word(self, element: U32) -> U32:  # whose words nothing else has compiled
            return (element << (32 - self.count)) | (element >> self.count)

    x = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, np.uint32)
    to_words, words = KeyWords(Mixed(U32(9))).to_words(), np.zeros_like(x)
    assert not are_compiled(to_words, x[:10], words[:10])
    for _ in range(3):
        gpusort.sort(x, key=Mixed(U32(7)))
        assert background.wait(60)
    assert are_compiled(to_words, x, words)
    assert_same_bits(words, to_words(x))  # by the count of this key


def sorted_one_by_one(key: Key, x: Array, order: SortOrder, *, ranks: bool = False) -> Array:
    """Rows in the order of their words; those that share one as they came."""
    rows = [np.argsort(np.array(words_one_by_one(key, row, order, ranks=ranks), np.uint64), kind="stable") for row in x]
    return np.array(rows, np.intp).reshape(x.shape)


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("key", USERS, ids=str)
def test_rows_are_sorted_by_a_users_key(key: Key, order: SortOrder) -> None:
    by = KeyWords(key, order)
    for policy, shape in ((POLICY, (3, 40)), (POLICY, (1, 1)), (IN_PARTS, (2, 300))):
        x = elements_for(key, shape, seed=shape[1])
        expected = sorted_one_by_one(key, x, order, ranks=True)
        np.testing.assert_array_equal(argsort_by_words(x, by, policy), expected)
        for stable in (False, True):
            wanted = expected if stable else sorted_one_by_one(key, x, order)
            assert_same_bits(sort_by_words(x, by, policy, stable), np.take_along_axis(x, wanted, axis=1))


@pytest.mark.parametrize("key", USERS, ids=str)
def test_the_first_of_each_row_by_a_users_key(monkeypatch: pytest.MonkeyPatch, key: Key) -> None:
    """Without a kernel, which would take the time of many sorts."""
    monkeypatch.delattr(TopK, "works")
    for order, (rows, length, k) in product(SortOrder, ((3, 40, 4), (1, 1, 1), (1, 5000, 100), (200, 300, 7))):
        x = elements_for(key, (rows, length), seed=k)
        words = KeyWords(key, order).to_words(ranks=True)(x.reshape(-1)).reshape(x.shape)
        expected = words.argsort(1, "stable")[:, :k]
        settings: Any = {"key": key, "largest": order is SortOrder.DESCENDING}
        for given, axis, places in ((x, 1, expected), (x.T, 0, expected.T), (x[0], None, expected[0])):
            values, indices = gpusort.top_k(given, k, axis=axis, **settings)
            np.testing.assert_array_equal(indices, places)
            assert_same_bits(values, np.take_along_axis(given, places, axis))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_built_in_key_sorts_as_ever(dtype: str, descending: bool) -> None:
    x = sample(dtype, (2, 3000), seed=5)
    by = KeyWords(key_for(dtype), SortOrder.DESCENDING if descending else SortOrder.ASCENDING)
    assert_same_bits(sort_by_words(x, by, POLICY, stable=True), sorted_by_numpy(x, descending=descending))


def test_what_a_key_relies_on_is_looked_at_anew() -> None:
    """A number that comes with the call is none that was compiled in."""
    x = elements_for(key_cases.LowBitsFirst(U32(1)), (1, 100))
    for count in (1, 7):
        by = KeyWords(key_cases.LowBitsFirst(U32(count)))
        assert by.to_words()(x[0]).tolist() == words_one_by_one(by.key, x[0], by.order, ranks=False)


def refused(key: Key, x: Array, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        sort_by_words(x.reshape(1, -1), KeyWords(key), POLICY)


def test_refusals() -> None:
    numbers = np.arange(10, dtype=np.uint32)
    refused(key_cases.NotTheOther(), numbers, gpusort.InvalidArgumentError, "makes 0 of the word of 1; from_word must")
    refused(key_cases.WithMemory(), numbers, gpusort.UnsupportedTypeError, "no memory but the element itself")
    refused(key_cases.OfStructs(), numbers, gpusort.UnsupportedTypeError, "words of U32 or U64 .* found Date")
    refused(key_cases.Trailing(), numbers, gpusort.UnsupportedTypeError, "orders elements of dtype uint16, not uint32")
    refused(key_cases.DateKey(), numbers, gpusort.UnsupportedTypeError, "orders elements of dtype .*, not uint32")


def test_a_division_by_zero_is_an_error_as_it_is_for_one_element() -> None:
    @attrs.frozen
    class Unguarded(key_cases.Reciprocal):
        def to_word(self, element: U32) -> U32:
            return 1000000 // element

    with pytest.raises(ZeroDivisionError):
        KeyWords(Unguarded()).to_words()(np.arange(3, dtype=np.uint32))
    assert KeyWords(Unguarded()).to_words()(np.array([1, 2], np.uint32)).tolist() == [1000000, 500000]


def test_a_key_is_read_once_for_all_arrays() -> None:
    by = KeyWords(key_for(np.dtype(np.float32)))
    assert by.to_words() is by.to_words(ranks=False)
    assert by.to_words(ranks=True) is by.to_words(ranks=True)
    assert by.to_words(ranks=True) is not by.to_words()
    assert by.to_elements() is by.to_elements()
