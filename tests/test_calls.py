"""The front: plans that are kept, prepared calls, and what every operation gets from it: axes, layouts, keys, kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.api import call
from gpusort.api.sorting import Sorting
from gpusort.arrays.recycled import new_array
from gpusort.kernel.launch import Schedule
from gpusort.targets.base import Prepared, prepared_by
from gpusort.targets.simulator.target import Simulator
from gpusort.types.elements import dtype_of
from gpusort.types.errors import InvalidArgumentError, UnsupportedTypeError
from gpusort.types.scalars import U32
from gpusort.types.specs import HostArray, Shape
from tests import key_cases
from tests.covering import few_cases
from tests.reference import assert_same_bits, sample

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: x,
    "Fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: x[..., ::-1],
}


# -- plans ------------------------------------------------------------------------------------------------


def test_a_warm_call_finds_its_plan_whatever_the_length() -> None:
    call.forget_plans()
    for length in (3, 10, 5000):
        gpusort.sort(np.arange(length, dtype="u4"))
    plans = vars(call)["_plans"]
    assert len(set(map(id, plans.values()))) == 1
    gpusort.sort(np.arange(3, dtype="i4"))
    gpusort.sort(np.arange(3, dtype="u4"), descending=True)
    assert len(set(map(id, plans.values()))) == 3


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_stable_sort_is_one_also_behind_others(axis: int, descending: bool) -> None:
    x = np.where(np.arange(2000).reshape(50, 40) % 3, 0.0, -0.0).astype(np.float32)
    for stable in (False, True, False, True):
        found = gpusort.sort(x, axis=axis, descending=descending, stable=stable)
        if stable:
            assert_same_bits(found, x)
        gpusort.sort(x, axis=1 - axis, descending=not descending)


class _CallsAgain(Simulator):
    """Makes another call in the midst of one, as threads do."""

    again: Callable[[], object] | None = None

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        again, self.again = self.again, None
        if again is not None:
            again()
        super().run(schedule, arrays)


def test_calls_at_once_have_scratch_of_their_own() -> None:
    x, y, target = sample("u4", (30, 8)), sample("u4", (30, 8)) // 3, _CallsAgain()
    np.testing.assert_array_equal(gpusort.sort(x, axis=0, target=target), np.sort(x, axis=0))
    found: list[Any] = []
    target.again = lambda: found.append(gpusort.sort(y, axis=0, target=target))
    np.testing.assert_array_equal(gpusort.sort(x, axis=0, target=target), np.sort(x, axis=0))
    np.testing.assert_array_equal(found[0], np.sort(y, axis=0))


def test_what_is_equal_but_of_another_class_is_looked_at_all_the_same() -> None:
    """1 == 1.0 == True, so a plan found by an equal setting would let a wrong one pass."""
    x = np.arange(6.0).reshape(2, 3)
    assert gpusort.sum(x, axis=1).shape == (2,)
    assert gpusort.sort(x, axis=np.int64(1)).shape == (2, 3)
    wrong: Any = 1.0
    for function in (gpusort.sum, gpusort.sort, gpusort.argsort, gpusort.argmax, gpusort.cumsum):
        with pytest.raises(UnsupportedTypeError, match="axis: expected"):
            function(x, axis=wrong)
    with pytest.raises(UnsupportedTypeError, match="descending: expected True or False"):
        gpusort.sort(x, descending=wrong)


def test_an_empty_array_is_no_surprise_to_a_plan_that_is_there() -> None:
    assert gpusort.max(np.arange(3.0)) == 2
    with pytest.raises(InvalidArgumentError, match="zero-size"):
        gpusort.max(np.arange(0.0))
    assert gpusort.sum(np.arange(0.0)) == 0
    assert gpusort.sort(np.arange(0.0)).shape == (0,)


class Marked(np.ndarray[Any, Any]):
    """A subclass of NumPy's."""


@pytest.mark.parametrize("function", [gpusort.sort, gpusort.argsort, gpusort.cumsum])
def test_a_subclass_comes_back(function: Any) -> None:
    x = np.arange(6.0).reshape(2, 3).view(Marked)
    assert type(function(x, axis=0)) is Marked
    assert type(gpusort.sum(x, axis=0)) is Marked
    assert gpusort.sum(x) == 15


def test_sums_of_a_matrix_lie_as_they_should() -> None:
    """A np.matrix makes a row of whatever has one dimension, also of a column of sums."""
    values = np.arange(6).reshape(2, 3)
    x = values.view(np.matrix)
    np.testing.assert_array_equal(gpusort.sum(x, axis=1), values.sum(axis=1))
    np.testing.assert_array_equal(gpusort.argmax(x, axis=1), values.argmax(axis=1))
    assert gpusort.sum(x, axis=1).shape == (2,)
    assert type(gpusort.sort(x)) is np.matrix
    assert gpusort.sum(x, axis=1, keepdims=True).shape == (2, 1)


# -- axes and layouts -------------------------------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_every_operation_along_every_axis_of_every_layout(target: str, layout: str, axis: int | None) -> None:
    x: npt.NDArray[np.int16] = LAYOUTS[layout](sample("i2", 60, seed=3).reshape(3, 4, 5) % 7)
    np.testing.assert_array_equal(gpusort.sum(x, axis=axis, target=target), np.sum(x, axis=axis))
    np.testing.assert_array_equal(gpusort.cumsum(x, axis=axis, target=target), np.cumsum(x, axis=axis))
    np.testing.assert_array_equal(gpusort.argmax(x, axis=axis, target=target), np.argmax(x, axis=axis))
    np.testing.assert_array_equal(gpusort.sort(x, axis=axis, target=target), np.sort(x, axis=axis))


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2), (0, 1, 2), ()])
def test_several_axes_and_keepdims(target: str, axes: tuple[int, ...]) -> None:
    x = (sample("u1", 60, seed=4).reshape(3, 4, 5) % 9)[:, ::2]
    for name in ("sum", "max", "any"):
        found = getattr(gpusort, name)(x, axis=axes, keepdims=True, target=target)
        np.testing.assert_array_equal(found, getattr(np, name)(x, axis=axes, keepdims=True))


# -- top_k and keys ---------------------------------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_top_k_is_the_beginning_of_argsort(target: str, axis: int | None, largest: bool) -> None:
    x = sample("f4", 70, seed=5).reshape(7, 10)
    order = gpusort.argsort(x, axis=axis, descending=largest)
    for k in (0, 1, 4):
        values, indices = gpusort.top_k(x, k, axis=axis, largest=largest, target=target)
        expected = order[:k] if axis is None else np.take(order, range(k), axis=axis)
        np.testing.assert_array_equal(indices, expected)
        taken = x.reshape(-1)[expected] if axis is None else np.take_along_axis(x, expected, axis)
        assert_same_bits(values, taken)


def test_top_k_says_how_many_there_are() -> None:
    with pytest.raises(InvalidArgumentError, match="k: expected 0 to the 3 elements of a row, found 4"):
        gpusort.top_k([1, 2, 3], 4)
    with pytest.raises(InvalidArgumentError, match="k: expected 0 or more, found -1"):
        gpusort.top_k([1, 2, 3], -1)


@pytest.mark.parametrize("to", [3, 50])
def test_a_lossy_key_with_a_number_of_the_calls_finds_extremes_on_every_target(target: str, to: int) -> None:
    key: Any = key_cases.Nearest(U32(to))
    x = np.array([[40, 2, 61, 4], [51, 49, 0, 99]], np.uint32)
    away = np.abs(x.astype(np.int64) - to)
    np.testing.assert_array_equal(gpusort.min(x, axis=1, key=key, target=target), x[[0, 1], away.argmin(1)])
    np.testing.assert_array_equal(gpusort.max(x, axis=1, key=key, target=target), x[[0, 1], away.argmax(1)])
    np.testing.assert_array_equal(gpusort.argsort(x, key=key, target=target), away.argsort(axis=1, kind="stable"))


def test_a_key_orders_on_every_target(target: str) -> None:
    key: Any = key_cases.DateKey()
    x = np.random.default_rng(6).integers(1, 250, (2, 48)).astype("u1").view(dtype_of(key.element))
    expected = np.take_along_axis(x, gpusort.argsort(x, key=key), 1)
    assert_same_bits(gpusort.sort(x, key=key, target=target), expected)
    assert_same_bits(gpusort.min(x, axis=1, key=key, target=target), expected[:, 0].copy())
    values = np.array(range(len(x[0])))
    moved = gpusort.sort_by_key(x[0], values, key=key, target=target)[1]
    np.testing.assert_array_equal(moved, gpusort.argsort(x[0], key=key))


def test_a_key_for_other_elements_is_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match="x: expected dtype"):
        gpusort.sort(np.arange(3, dtype="u2"), key=gpusort.key_for("u4"))


# -- prepared calls ---------------------------------------------------------------------------------------


def test_a_prepared_call_gives_the_same_arrays_every_time(target: str) -> None:
    x = sample("i4", 60, seed=7).reshape(6, 10)
    prepared = gpusort.plan(gpusort.sort, x, axis=0, target=target)
    first = prepared(x)
    np.testing.assert_array_equal(first, np.sort(x, axis=0))
    assert prepared(x[::-1].copy()) is first
    np.testing.assert_array_equal(first, np.sort(x, axis=0))
    with pytest.raises(UnsupportedTypeError, match=r"x: expected an array such as .*, found list; np\.asarray makes"):
        prepared(x.tolist())
    with pytest.raises(InvalidArgumentError, match="arrays: expected such as were planned for"):
        prepared(x[:3])


def test_a_prepared_call_allocates_nothing_between_its_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Shape] = []

    def noted(shape: Shape, dtype: np.dtype[Any]) -> HostArray:
        made.append(shape)
        return new_array(shape, dtype)

    monkeypatch.setattr("gpusort.arrays.host.new_array", noted)
    x = sample("i4", 60, seed=7).reshape(6, 10)
    prepared = gpusort.plan(gpusort.sort, x, axis=0, target="simulator")
    assert len(made) == 2, "the result, and the rows that kernels sort"
    for _ in range(2):
        np.testing.assert_array_equal(prepared(x), np.sort(x, axis=0))
    assert len(made) == 2


class _OfAligned(Simulator):
    """Takes aligned arrays alone."""

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        assert all(cast(HostArray, array).flags.aligned for array in arrays.values())
        super().run(schedule, arrays)


class _Noting(_OfAligned):
    """Notes whether schedules are prepared with scratch of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = list[bool]()

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> Prepared:
        self.kept.append(keeps_scratch)
        return prepared_by(_OfAligned(), schedule)


@pytest.mark.parametrize("function", [gpusort.sort, gpusort.argsort, gpusort.max])
def test_kernels_take_aligned_arrays_alone_and_keep_scratch_for_a_prepared_call(function: Any) -> None:
    aligned, target = sample("u4", 60), _Noting()
    behind = np.zeros(241, np.uint8)[1:].view("u4")
    behind[...] = aligned
    expected = function(aligned)
    for x in (aligned, behind, aligned):
        np.testing.assert_array_equal(function(x, target=target), expected)
    assert set(target.kept) == {False}
    target.kept.clear()
    planned = gpusort.plan(function, aligned, target=target)
    np.testing.assert_array_equal(planned(aligned), expected)
    with pytest.raises(InvalidArgumentError, match=r"found uint32 of shape \(60,\) .*, not aligned$"):
        planned(behind)
    assert set(target.kept) == {True}


def test_a_prepared_call_writes_where_it_was_told() -> None:
    x, out = sample("f4", 100, seed=8), np.empty(100, "f4")
    prepared = gpusort.plan(gpusort.sort, x, out=out, target="python", algorithm=gpusort.Bitonic())
    assert prepared(x) is out
    assert_same_bits(out, gpusort.sort(x))
    cost = prepared.cost
    assert cost.launches >= 1
    assert cost.temporary_bytes == 0
    assert cost.bytes_moved is not None
    assert cost.bytes_moved >= x.nbytes


def test_the_cost_of_a_prepared_call_has_the_arrays_between_its_launches() -> None:
    x = sample("f4", 60, seed=8).reshape(6, 10)
    for axis, turned in ((1, 0), (0, x.nbytes)):
        assert gpusort.plan(gpusort.sort, x, axis=axis, target="simulator").cost.temporary_bytes == turned
    rows, columns = (gpusort.plan(gpusort.argsort, x, axis=axis, target="simulator").cost for axis in (1, 0))
    assert rows.temporary_bytes is not None
    assert columns.temporary_bytes == rows.temporary_bytes + x.nbytes + x.size * 8  # the array, and its indices


def test_any_function_can_be_planned(target: str) -> None:
    x = sample("u4", 50, seed=9)
    assert gpusort.plan(gpusort.max, x, target=target)(x) == x.max()
    np.testing.assert_array_equal(gpusort.plan(gpusort.top_k, x, 3, target=target)(x)[0], np.sort(x)[::-1][:3])
    keys, values = gpusort.plan(gpusort.sort_by_key, x, x, target=target)(x, x)
    np.testing.assert_array_equal(keys, values)


def test_prepared_calls_of_arrays_without_elements_write_what_there_is(target: str) -> None:
    empty, x, rows = np.empty(0, "f4"), np.arange(5, dtype="f4"), np.empty((3, 0), "f4")
    for first, second in ((empty, x), (x, empty)):
        merged = gpusort.plan(gpusort.merge, first, second, target=target)
        merged.outs[0][...] = 77
        np.testing.assert_array_equal(merged(first, second), x)
    function: Any
    for function, expected in ((gpusort.sum, 0), (gpusort.prod, 1), (gpusort.any, False), (gpusort.all, True)):
        prepared = gpusort.plan(function, rows, axis=1, target=target)
        prepared.outs[0][...] = 77
        np.testing.assert_array_equal(prepared(rows), np.full(3, expected))


def without_target(x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return gpusort.sort(x)


def test_what_cannot_be_planned_says_what_can() -> None:
    wrong: Any = gpusort.plan
    x = np.arange(3)
    for function, arguments, said in (
        (
            gpusort.sort_file,
            ("a.npy", "b.npy"),
            r"gpusort\.api\.files\.sort_file, whose calls have nothing to be prepared",
        ),
        (gpusort.plan, (gpusort.sort, x), r"gpusort\.api\.prepared\.plan, whose calls have nothing to be prepared"),
        (gpusort.multi.sort, ([x],), r"gpusort\.multi\.\w+\.sort, whose calls have nothing to be prepared"),
        (gpusort.plan(gpusort.sort, x), (x,), "a prepared call: it can be called as it is"),
        (gpusort.sort_inplace, (x,), r"gpusort\.sort_inplace: plan gpusort\.sort with out=x, which sorts in place"),
        (partial(gpusort.sort, axis=0), (x,), r"a functools\.partial: hand over its settings by name"),
        ("sort", (x,), "'sort'"),
        (np.sort, (x,), "<function sort at"),
        (without_target, (x,), "<function .*, which has no target to hand over to gpusort"),
    ):
        with pytest.raises(
            UnsupportedTypeError, match=rf"function: expected one of gpusort's functions of arrays, .*, found {said}"
        ):
            wrong(function, *arguments)


def test_a_users_function_is_planned_if_it_hands_its_target_over() -> None:
    """What it does to its arguments on the way is its own affair."""
    x = np.arange(6.0).reshape(2, 3)

    def smallest(x: npt.NDArray[np.float64], *, target: Any = "auto") -> npt.NDArray[np.float64]:
        return gpusort.min(x, axis=1, target=target)

    def smallest_here(x: npt.NDArray[np.float64], *, target: Any = "auto") -> object:
        return gpusort.min(x, axis=1)

    assert gpusort.plan(smallest, x)(x + 1).tolist() == [1.0, 4.0]
    with pytest.raises(UnsupportedTypeError, match=r"function: <function .*smallest_here .* does not hand its target"):
        gpusort.plan(smallest_here, x)


class Sorter:
    def __init__(self, *, descending: bool) -> None:
        self.descending = descending

    def sorted(self, x: npt.NDArray[np.float64], *, target: Any = "auto") -> npt.NDArray[np.float64]:
        return gpusort.sort(x, descending=self.descending, target=target)

    @classmethod
    def upwards(cls, x: npt.NDArray[np.float64], **how: Unpack[Sorting]) -> npt.NDArray[np.float64]:
        return gpusort.sort(x, axis=0, **how)


def test_methods_and_functions_of_any_names_are_planned() -> None:
    x = np.array([2.0, 3.0, 1.0])
    assert gpusort.plan(Sorter(descending=True).sorted, x)(x).tolist() == [3.0, 2.0, 1.0]
    assert gpusort.plan(Sorter.upwards, x, stable=True)(x).tolist() == [1.0, 2.0, 3.0]


def test_a_callable_object_is_planned() -> None:
    class Downwards:
        def __call__(self, x: npt.NDArray[np.float64], *, target: Any = "auto") -> npt.NDArray[np.float64]:
            return gpusort.sort(x, descending=True, target=target)

    x = np.array([2.0, 3.0, 1.0])
    assert gpusort.plan(Downwards(), x)(x).tolist() == [3.0, 2.0, 1.0]
    without_target: tuple[Any, ...] = (np.add, np.frombuffer, Sorter)
    for function in without_target:
        with pytest.raises(UnsupportedTypeError, match=r"^function: .* has no target to hand over to gpusort$"):
            gpusort.plan(function, x)


def test_a_users_function_may_choose_by_its_target() -> None:
    x = np.array([2, 3, 1])

    def downwards_on_cpu(x: npt.NDArray[np.int64], *, target: str) -> npt.NDArray[np.int64]:
        return gpusort.sort(x, descending=target == "cpu", target=target)

    for target, expected in (("cpu", [3, 2, 1]), ("python", [1, 2, 3])):
        assert downwards_on_cpu(x, target=target).tolist() == expected
        assert gpusort.plan(downwards_on_cpu, x, target=target)(x).tolist() == expected

    def opened(x: npt.NDArray[np.int64], *, target: str) -> npt.NDArray[np.int64]:
        return gpusort.sort(x, target=gpusort.target(target))

    with pytest.raises(
        InvalidArgumentError, match=r"^target: .* found what gpusort\.plan hands over in place of 'cpu'$"
    ):
        gpusort.plan(opened, x, target="cpu")


def test_a_users_function_that_needs_results_is_told_that_there_are_none() -> None:
    x = np.array([2, 3, 1])

    def first_two(x: npt.NDArray[np.int64], *, target: Any = "auto") -> npt.NDArray[np.int64]:
        return gpusort.sort(x, target=target)[:2]

    def forgets(x: npt.NDArray[np.int64], *, target: Any = "auto") -> None:
        gpusort.sort(x, target=target)

    def fails(x: npt.NDArray[np.int64], *, target: Any = "auto") -> None:
        raise TypeError("of its own")

    with pytest.raises(TypeError, match="not subscriptable") as e:
        gpusort.plan(first_two, x)
    assert e.value.__notes__ == ["gpusort.plan: a function gets a PreparedCall in place of results, and must return it"]
    with pytest.raises(UnsupportedTypeError, match=r"<function .* does not return what gpusort gives, as it is"):
        gpusort.plan(forgets, x)
    with pytest.raises(TypeError, match="of its own") as e:
        gpusort.plan(fails, x)
    assert not hasattr(e.value, "__notes__")


@pytest.mark.parametrize("algorithm", [None, gpusort.Bitonic(), gpusort.SerialRadix()], ids=repr)
def test_what_may_not_be_written_is_not_by_a_warm_call_either(target: str, algorithm: Any) -> None:
    """On the CPU a kernel would write to it through its address: to the bytes of a text, say."""
    x = np.array([3, 1, 2], np.uint32)
    settings: dict[str, Any] = {"target": target, "algorithm": algorithm if target == "cpu" else None}
    gpusort.sort(x, out=np.empty_like(x), **settings)
    raw = bytes(12)
    frozen = np.frombuffer(raw, np.uint32)
    with pytest.raises(InvalidArgumentError, match="out: expected an array that can be written, found a read-only one"):
        gpusort.sort(x, out=frozen, **settings)
    out = np.zeros_like(x)
    prepared = gpusort.plan(gpusort.sort, x, out=out, target=target, algorithm=settings["algorithm"])
    out.flags.writeable = False
    with pytest.raises(InvalidArgumentError, match="out: expected an array that can be written, found a read-only one"):
        prepared(x)
    assert not any(raw)
    assert not out.any()


WINDOWS: dict[str, Callable[[], npt.NDArray[np.uint32]]] = {
    "broadcast": lambda: np.lib.stride_tricks.as_strided(np.arange(4, dtype="u4"), (3, 4), (0, 4)),
    "sliding": lambda: np.lib.stride_tricks.sliding_window_view(np.arange(6, dtype="u4")[::-1], 4, writeable=True),
    "between": lambda: np.lib.stride_tricks.as_strided(np.arange(7, dtype="u4"), (3, 4), (2, 4)),
}
APART: dict[str, Callable[[], npt.NDArray[np.uint32]]] = {
    "columns": lambda: np.arange(40, dtype="u4").reshape(4, 10)[:, ::-2].T,
    "interleaved": lambda: np.arange(48, dtype="u4").reshape(6, 8)[::2, 1:2],
    "one row broadcast once": lambda: np.lib.stride_tricks.as_strided(np.arange(9, 0, -1, dtype="u4"), (1, 4), (0, 8)),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_elements_that_share_a_place_are_not_written(target: str, name: str) -> None:
    """Whichever was written last would be left, and the others lost."""
    out = WINDOWS[name]()
    assert out.flags.writeable
    before, x = out.copy(), np.arange(out.size, dtype=np.uint32).reshape(out.shape)
    for _ in range(2):
        with pytest.raises(
            InvalidArgumentError, match=r"out: expected an array each of whose elements .*copy it first"
        ):
            gpusort.sort(x, axis=1, out=out, target=target)
        with pytest.raises(InvalidArgumentError, match="each of whose elements has a place of its own"):
            gpusort.sort_inplace(out, axis=1, target=target)
        gpusort.sort(x, axis=1, out=np.empty_like(x), target=target)  # which fits, and is warm from here on
        np.testing.assert_array_equal(gpusort.sort(out, axis=1, target=target), np.sort(before, axis=1))
    np.testing.assert_array_equal(out, before)


def test_lists_are_taken_by_calls_of_several_arrays_and_into_one() -> None:
    sort: Callable[..., Any] = gpusort.sort
    merge_by_key: Callable[..., Any] = gpusort.merge_by_key
    assert sort([3, 1, 2], out=np.empty(3, np.intp)).tolist() == [1, 2, 3]
    for values in ([1, 2], np.array([1, 2])):
        keys, moved = merge_by_key([1, 3], values, [2], [3])
        assert (keys.tolist(), moved.tolist()) == ([1, 2, 3], [1, 3, 2])


def test_long_results_that_cannot_be_written_are_refused_behind_others_that_can() -> None:
    x = sample("u4", 200_000)
    out = np.lib.stride_tricks.as_strided(np.zeros(1, x.dtype), x.shape, (0,))
    raw = bytes(x.nbytes)
    for _ in range(2):
        assert_same_bits(gpusort.sort(x, out=np.empty_like(x)), np.sort(x))
        with pytest.raises(InvalidArgumentError, match="each of whose elements has a place of its own"):
            gpusort.sort(x, out=out)
        with pytest.raises(InvalidArgumentError, match="an array that can be written, found a read-only one"):
            gpusort.sort(x, out=np.frombuffer(raw, x.dtype))
    assert not out.any()
    assert not any(raw)


@pytest.mark.parametrize("name", APART)
def test_elements_that_lie_apart_are_written_however_they_lie(target: str, name: str) -> None:
    out = APART[name]()
    expected = np.sort(out, axis=0)
    gpusort.sort_inplace(out, axis=0, target=target)
    np.testing.assert_array_equal(out, expected)


def test_a_result_that_does_not_fit_is_refused_when_the_call_is_planned(target: str) -> None:
    x = np.arange(3)
    for out, said in ((np.empty(4, x.dtype), "expected shape"), (np.frombuffer(bytes(24), x.dtype), "a read-only one")):
        with pytest.raises(InvalidArgumentError, match=f"out: .*{said}"):
            gpusort.plan(gpusort.sort, x, out=out, target=target)


def test_what_is_not_gpusorts_cannot_be_planned() -> None:
    with pytest.raises(UnsupportedTypeError, match="function: expected one of gpusort's"):
        gpusort.plan(np.sort, np.arange(3))


def test_a_prepared_call_says_what_it_is_of() -> None:
    call = gpusort.plan(gpusort.sort, np.zeros((3, 1 << 10), np.float32), axis=0)
    assert re.fullmatch(r"<PreparedCall of Sort\(axis=0, .*\): float32 of shape \(3, 1024\)>", repr(call))


def test_only_functions_that_hand_over_their_arrays_as_they_are_can_be_prepared(target: str) -> None:
    """What one does to its arrays first, the prepared call would not do."""
    x, y = np.array([3.0, 1.0, 2.0], np.float32), np.array([7.0, 8.0, 9.0], np.float32)

    def downwards(x: Any, *, target: Any) -> Any:
        return gpusort.sort(x, descending=True, target=target)

    def negated(x: Any, *, target: Any) -> Any:
        return gpusort.sort(-x, target=target)

    def swapped(x: Any, y: Any, *, target: Any) -> Any:
        return gpusort.sort_by_key(y, x, target=target)

    def twice(x: Any, *, target: Any) -> Any:
        return gpusort.sort(x, target=target), gpusort.sort(x, target=target)

    for given in (x, x.view(Marked)):
        planned: Any = gpusort.plan(downwards, given, target=target)
        np.testing.assert_array_equal(np.asarray(planned(given)).reshape(-1), [3, 2, 1])
        with pytest.raises(gpusort.UnsupportedTypeError, match=r"^function: expected one that hands over the arrays"):
            gpusort.plan(negated, given, target=target)
        with pytest.raises(gpusort.UnsupportedTypeError, match=r"^function: expected one call .* found another$"):
            gpusort.plan(twice, given, target=target)
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^function: .* found one that hands over others"):
        gpusort.plan(swapped, x, y, target=target)
