"""An operation made of another's works and a kernel of its own, as docs/extending.md has it, on every target."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, TypeVar, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.layout import Layout
from gpusort.algos.reduce_axis import reduce_axis
from gpusort.api.call import call, call_with
from gpusort.api.in_pieces import desk
from gpusort.api.in_pieces import plan as pieces_plan
from gpusort.arrays.host import NUMPY
from gpusort.arrays.kinds import Viewed
from gpusort.arrays.registry import KNOWN
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.machine import TargetInfo
from gpusort.operations.base import (
    INDEX,
    AlongAxis,
    Copy,
    Operation,
    Output,
    Part,
    Work,
    Works,
    copying,
    rows_together,
)
from gpusort.operations.reduce import Reduction
from gpusort.operations.scan import Cumsum
from gpusort.operations.select import TopK
from gpusort.operations.sort import Sort
from gpusort.targets.python.target import PlainPython
from gpusort.targets.simulator.target import Simulator
from gpusort.types.dtypes import native, number_for
from gpusort.types.elements import dtype_of
from gpusort.types.intrinsics import dynamic_range, maximum, minimum
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.monoids import Monoid, OverStates, Sum
from gpusort.types.scalars import U32, U64, UNSIGNED
from gpusort.types.specs import HostArray, Spec
from tests.host_with_room import HostWithRoom
from tests.small_bindings import Small

E = TypeVar("E")
_GROUP_SIZE = 64


@kernel
def pick_elements(cx: Invocation, source: Storage[E], target: Storage[E], length: U32, index: U32, rows: U32) -> None:
    """Copies the element at `index` of each row."""
    for row in dynamic_range(cx.global_id, rows, cx.num_groups * cx.group_size):
        target[row] = source[row * length + index]


def pick(itemsize: int, rows: int, length: int, index: int) -> Schedule:
    element = UNSIGNED[itemsize]
    source = Buffer("source", element, rows * length, Role.INPUT)
    target = Buffer("target", element, rows, Role.OUTPUT)
    grid = Grid(-(-rows // _GROUP_SIZE), _GROUP_SIZE)
    return Schedule((source, target), (pick_elements.launch(grid, source, target, U32(length), U32(index), U32(rows)),))


@attrs.frozen
class LowMedian(AlongAxis):
    """The lower of the two middle elements of each row, which loses its axis."""

    axis: int | None = -1

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        axes = self.axes(x)
        shape = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
        if not self.rows(x)[1] and 0 not in shape:
            raise gpusort.InvalidArgumentError("x: an empty row has no middle")
        return (Output(shape, x.dtype, (), is_scalar=True),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        (x,) = given
        (rows, length), size = self.rows(x), x.dtype.itemsize
        sorting = Sort(self.axis).works(given, info)
        together = min(rows, rows_together(length, length * size, 1, info))
        parts = {"source": Part(2, length), "target": Part(1, 1)}
        picking = Work(rows, together, lambda count: pick(size, count, length, (length - 1) // 2), parts)
        held = Output((rows * length,), x.dtype, (0,))  # the sorted rows: 0 is x, 1 the result, 2 this, 3 on Sort's own
        return Works((*sorting.within((0, 2), 3), picking), (held, *sorting.between))


def low_median(x: object, *, axis: int | None = -1, target: Any = "auto") -> object:
    return call(LowMedian, (axis,), target, x)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_an_operation_made_of_another_runs_on_every_target(target: str, axis: int | None) -> None:
    for dtype in ("f4", "u1"):
        x = np.random.default_rng(1).integers(0, 100, (5, 6)).astype(dtype)
        for given in (x, x[::-1, ::2], np.asfortranarray(x)):
            expected = np.quantile(given.astype(np.float64), 0.5, axis=axis, method="lower").astype(dtype)
            found = cast("np.ndarray[Any, Any]", low_median(given, axis=axis, target=target))
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == x.dtype


def test_its_mistakes_and_its_empty_results_are_as_everybodys(target: str) -> None:
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^x: an empty row"):
        low_median(np.zeros((2, 0)), target=target)
    assert cast("np.ndarray[Any, Any]", low_median(np.zeros((0, 2)), target=target)).shape == (0,)
    with pytest.raises(np.exceptions.AxisError, match=r"^axis: "):
        low_median(np.zeros((2, 2)), axis=2, target=target)
    numpys: Any = np.int64(-1)
    assert cast("np.ndarray[Any, Any]", low_median(np.ones((3, 2)), axis=numpys, target=target)).shape == (3,)
    wrong: Any = "rows"
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^axis: expected an int, found 'rows'$"):
        low_median(np.zeros((2, 2)), axis=wrong, target=target)


@attrs.frozen
class OfOtherShape(LowMedian):
    """Says that its results are longer than they are, or shorter."""

    by: int = 0

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (found,) = super().outputs(*given)
        return (attrs.evolve(found, shape=(found.shape[0] + self.by,)),)


@attrs.frozen
class SumOfOtherShape(Reduction):
    by: int = 0

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return (Output((self.shape(given[0])[0] + self.by,), np.dtype(np.float32), ()),)

    def monoid(self, given: Spec) -> Monoid[Any, Any]:
        return Sum(number_for("float32"))


@pytest.mark.parametrize("make", [partial(OfOtherShape, -1), partial(SumOfOtherShape, -1, False)])
def test_outputs_of_another_shape_than_its_works_write_are_refused(
    make: Callable[[int], Operation], target: str
) -> None:
    x = np.ones((4, 5), np.float32)
    for given in (x, np.asfortranarray(x)):
        assert cast("np.ndarray[Any, Any]", call(make, (0,), target, given)).shape == (4,)
        with pytest.raises(gpusort.InvalidArgumentError, match=r"^outputs: expected an array of 16 bytes.* of 24$"):
            call(make, (2,), target, given)
        with pytest.raises(gpusort.InvalidArgumentError, match=r"^outputs, or a Part: expected .* of 16 .* of 12$"):
            call(make, (-1,), target, given)


@attrs.frozen
class Copied(LowMedian):
    """The array as it is, and perhaps more, or less."""

    more: int = 0
    to: int = 1

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return (Output((given[0].size + self.more,), given[0].dtype, (0,)),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        return Works((copying(Copy(self.to, 0)),) if given[0].size else ())


def test_what_no_work_writes_is_asked_for(target: str) -> None:
    assert np.shape(cast("np.ndarray[Any, Any]", call(Copied, (0,), target, np.zeros(0)))) == (0,)
    with pytest.raises(
        gpusort.InvalidArgumentError, match=r" of 0 bytes.* of 16; what no work writes, `answer` gives$"
    ):
        call(Copied, (0, 2), target, np.zeros(0))


def test_one_array_takes_one_result(target: str) -> None:
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^out: expected None, as there are 2 results, found one"):
        call_with(TopK, (2,), target, (np.ones(4),), np.ones(2))


def test_what_is_copied_is_all_of_the_result(target: str) -> None:
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(cast("np.ndarray[Any, Any]", call(Copied, (0,), target, x)), x)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^outputs: expected an array of 16 bytes.* of 20$"):
        call(Copied, (0, 1), target, x)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^outputs, or a Copy: expected .* of 16 bytes.* of 12$"):
        call(Copied, (0, -1), target, x)
    for number in (2, -1, 0):
        with pytest.raises(
            gpusort.InvalidArgumentError, match=rf"^Copy: expected an array to write from 1 to 1, found {number}$"
        ):
            call(Copied, (0, 0, number), target, x)


@attrs.frozen
class Misnamed(LowMedian):
    """Says of a buffer's array what it should not."""

    target: str = "target"
    array: int = 1

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        (rows, length), size = self.rows(given[0]), given[0].dtype.itemsize
        parts = {"source": Part(0, length), self.target: Part(self.array, 1)}
        return Works((Work(rows, rows, lambda count: pick(size, count, length, 0), parts),))


def test_mistakes_that_no_type_checker_finds_are_told(target: str) -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(
        gpusort.InvalidArgumentError, match=r"^parts: expected one for each .*, source, target; found source, result$"
    ):
        call(Misnamed, (1, "result"), target, x)
    for number in (2, 0):
        with pytest.raises(
            gpusort.InvalidArgumentError, match=rf"^Part: expected an array to write from 1 to 1, found {number}$"
        ):
            call(Misnamed, (1, "target", number), target, x)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^arrays: expected x, found 2 of them$"):
        call_with(LowMedian, (1,), target, (x, x))


@attrs.frozen
class Careless(Reduction):
    """A sum of float32 that checks nothing of its arguments."""

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return (Output(self.shape(given[0]), np.dtype(np.float32), (), is_scalar=True),)

    def monoid(self, given: Spec) -> Monoid[Any, Any]:
        return Sum(number_for("float32"))


def test_elements_that_its_monoid_does_not_read_are_never_taken_for_others(target: str) -> None:
    assert call(Careless, (None, False), target, np.ones(5, np.float32)) == 5
    for dtype in ("i4", "u4", "f8"):  # of one size with float32, whose bits would be those of other numbers; of two
        with pytest.raises(gpusort.UnsupportedTypeError, match=r"^x: expected dtype float32, as Careless takes, found"):
            call(Careless, (None, False), target, np.ones(5, dtype))


@attrs.frozen
class Ends:
    low: U32
    high: U32


@attrs.frozen
class ToEnds:
    """A monoid of the least and the greatest."""

    element: type[U32] = U32
    state: type[Ends] = Ends

    def identity(self) -> Ends:
        return Ends(U32(0xFFFFFFFF), U32(0))

    def lift(self, element: U32, index: U32) -> Ends:
        return Ends(element, element)

    def combine(self, a: Ends, b: Ends) -> Ends:
        return Ends(minimum(a.low, b.low), maximum(a.high, b.high))


@attrs.frozen
class End:
    """Of the last state one result."""

    is_high: bool
    state: type[Ends] = Ends
    result: type[U32] = U32

    def finish(self, state: Ends) -> U32:
        return state.high if self.is_high else state.low


@attrs.frozen
class LeastAndGreatest(Reduction):
    """A reduction with two results, by one read: its states lie between works, and each result is made of them."""

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        return (Output(self.shape(x), x.dtype, (), is_scalar=True),) * 2

    def monoid(self, given: Spec) -> ToEnds:
        return ToEnds()

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        (x,), reducing = given, super().works(given, info)
        rows, states = self.rows(x)[0], OverStates(self.monoid(x))
        together = rows_together(1, dtype_of(Ends).itemsize, 1, info)

        def finishing(end: End, count: int) -> Schedule:
            layout = Layout.rows(count, 1)
            return reduce_axis(states, layout, self.policy_for(states, layout, info), end)

        ends = [
            Work(rows, together, partial(finishing, End(high)), {"data": Part(3, 1), "results": Part(1 + high, 1)})
            for high in (False, True)
        ]
        held = Output(
            (rows,), dtype_of(Ends), (0,)
        )  # the states: 0 is x, 1 and 2 the results, 3 these, 4 on the base's
        return Works((*reducing.within((0, 3), 4), *ends), (held, *reducing.between))


@pytest.mark.parametrize("axis", [None, 0, (0, 2)])
def test_a_reduction_with_two_results_runs_on_every_target(target: str, axis: Any) -> None:
    x = np.random.default_rng(1).integers(0, 1 << 32, (4, 5, 6), dtype=np.uint32)
    for given in (x, x.T, x[::2, ::-1]):
        found: Any = call(LeastAndGreatest, (axis,), target, given)
        for own, numpys in zip(found, (given.min(axis), given.max(axis)), strict=True):
            np.testing.assert_array_equal(own, numpys)
            assert type(own) is type(numpys)
    long: Any = call(LeastAndGreatest, (), Small(256), x)  # a row in pieces, whose states lie between, too
    assert long == (x.min(), x.max())


@kernel
def count_below(
    cx: Invocation, data: Storage[U32], values: Storage[U32], places: Storage[U64], length: U32, count: U32
) -> None:  # fmt: skip
    """Where each value belongs in sorted data."""
    for i in dynamic_range(cx.global_id, count, cx.num_groups * cx.group_size):
        low, high = U32(0), length
        while low < high:
            middle = low + (high - low) // 2
            if data[middle] < values[i]:
                low = middle + 1
            else:
                high = middle
        places[i] = U64(low)


def search(length: int, count: int) -> Schedule:
    data, values = Buffer("data", U32, length, Role.INPUT), Buffer("values", U32, count, Role.INPUT)
    places = Buffer("places", U64, count, Role.OUTPUT)
    grid = Grid(-(-count // _GROUP_SIZE), _GROUP_SIZE)
    launch = count_below.launch(grid, data, values, places, U32(length), U32(count))
    return Schedule((data, values, places), (launch,))


@attrs.frozen
class Search(Operation):
    """NumPy's searchsorted: two arrays of different lengths, the second of any shape, a few values to a run."""

    together: int
    names = "x", "values"
    like = (1,)

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        x, values = given
        if len(x.shape) != 1:
            raise gpusort.InvalidArgumentError(f"x: expected an array of one dimension, found shape {x.shape}")
        for name, array in zip(self.names, given, strict=True):
            if native(array.dtype) != np.uint32:  # which the kernel reads whatever it is given
                raise gpusort.UnsupportedTypeError(f"{name}: expected dtype uint32, found {array.dtype}")
        return (Output(values.shape, INDEX, (), is_scalar=True),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        x, values = given
        parts = {"data": Part(0, x.size, 0), "values": Part(1, 1), "places": Part(2, 1)}
        return Works((Work(values.size, self.together, partial(search, x.size), parts),))


@attrs.frozen
class SearchByLimits(Search):
    """As many values to a run as a target takes."""

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        (work,) = super().works(given, info)
        rows_together(given[0].size, given[0].nbytes, 1, info)
        return Works((attrs.evolve(work, together=rows_together(1, INDEX.itemsize, 1, info)),))


def test_arrays_of_several_lengths_and_shapes_keep_the_order_of_their_elements(target: str) -> None:
    x = np.arange(0, 90, 3, dtype=np.uint32)
    whole = np.random.default_rng(1).integers(0, 99, (3, 8), dtype=np.uint32)
    for values in (whole, whole.T, np.asfortranarray(whole), whole[:, ::2], whole[0], whole[0, 0, ...], whole[:0]):
        for together in (24, 16):  # in one run; in two
            found = call_with(Search, (together,), target, (x, values))
            expected = np.searchsorted(x, values)
            np.testing.assert_array_equal(cast("np.ndarray[Any, Any]", found), expected)
            assert type(found) is type(expected)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^x: expected an array of one dimension"):
        call_with(Search, (24,), target, (whole, x))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^values: expected dtype uint32, found float32$"):
        call_with(Search, (24,), target, (x, whole.astype(np.float32)))


@attrs.frozen(eq=False)
class Named:
    """An array of a library that names arrays."""

    values: HostArray
    name: str


class NamedKind(Viewed[Named, HostArray]):
    is_host, base = True, NUMPY

    def view(self, array: Named, name: str = "x") -> HostArray:
        return array.values

    def given_back(self, values: HostArray, like: Named) -> object:
        return Named(values, like.name)


def search_at(x: object, values: object, target: Any) -> Any:
    return call(Search, (24,), target, x, values)


def test_a_result_is_such_as_the_array_that_the_operation_says(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KNOWN, Named, NamedKind())
    x, values = Named(np.arange(9, dtype=np.uint32), "sorted"), Named(np.array([3, 5], np.uint32), "values")
    for found in (
        search_at(x, values, target),
        cast(Any, call_with(Search, (24,), target, (x, values))),
        gpusort.plan(search_at, x, values, target=target)(x, values),
    ):
        assert found.name == "values"
        assert found.values.tolist() == [3, 5]


def test_arrays_of_an_operation_that_a_function_makes_have_its_names(target: str) -> None:
    def search() -> Search:
        return Search(24)

    lists = tuple([*np.array(numbers, np.uint32)] for numbers in ([1, 2], [0, 2, 3]))
    expected = [0, 1, 2]
    for few in (call(search, (), target, *lists), call_with(search, (), target, lists)):
        assert cast("np.ndarray[Any, Any]", few).tolist() == expected


@kernel
def add_products(
    cx: Invocation, left: Storage[U32], right: Storage[U32], sums: Storage[U32], length: U32, shared: int
) -> None:  # fmt: skip
    total, row = U32(0), cx.group_id * length
    for i in dynamic_range(U32(0), length):
        total += left[row + i] * right[i if shared else row + i]
    sums[cx.group_id] = total


def products(rows: int, length: int, shared: int) -> Schedule:
    left = Buffer("left", U32, rows * length, Role.INPUT)
    right = Buffer("right", U32, length if shared else rows * length, Role.INPUT)
    sums = Buffer("sums", U32, rows, Role.OUTPUT)
    launch = add_products.launch(Grid(rows, 1), left, right, sums, U32(length), shared)
    return Schedule((left, right, sums), (launch,))


@attrs.frozen
class RowProducts(AlongAxis):
    """The sum of the products of each row of one array with that of another; or, `shared`, with its first."""

    axis: int | None = -1
    shared: int = 0
    names = "left", "right"

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return (attrs.evolve(LowMedian(self.axis).outputs(given[0])[0], dtype=np.dtype(np.uint32)),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        rows, length = self.rows(given[0])
        parts = {"left": Part(0, length), "right": Part(1, length, 0 if self.shared else None), "sums": Part(2, 1)}
        together = rows_together(length, length * 4, 1, info)
        return Works((Work(rows, together, lambda count: products(count, length, self.shared), parts),))


@pytest.fixture
def beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    """All arrays may exceed a device."""
    monkeypatch.setattr(pieces_plan, "ALWAYS_FIT", 0)
    monkeypatch.setattr(desk, "_LEAST_BYTES", 1 << 10)


@pytest.mark.usefixtures("beyond")
def test_rows_of_several_arrays_beyond_a_device_are_sent_in_batches() -> None:
    """Also where all rows of one need the same of another, which comes with each batch."""
    x = np.arange(3000, dtype=np.uint32).reshape(60, 50)
    turned = (x, x + np.uint32(1), 1), (x, x[::-1], 0), (x.T, x.T, -1)
    for (left, right, axis), shared in product(turned, (0, 1)):
        target = HostWithRoom(1 << 13)
        found = call(RowProducts, (axis, shared), target, left, right)
        others = np.take(right, [0], axis=1 - axis % 2) if shared else right
        np.testing.assert_array_equal(cast("np.ndarray[Any, Any]", found), (left * others).sum(axis=axis))
        assert target.rooms[-1].works > 1
    small = call(
        RowProducts, (1, 1), HostWithRoom(1 << 13), x, x[1:2]
    )  # which is no result, though one could stay there
    np.testing.assert_array_equal(cast("np.ndarray[Any, Any]", small), (x * x[1]).sum(axis=1))
    with pytest.raises(gpusort.DeviceMemoryError, match=r"^rowproducts of left, 12,000 bytes .* and right, "):
        call(RowProducts, (1, 1), HostWithRoom(200), x, x)


@pytest.mark.usefixtures("beyond")
def test_arrays_of_several_shapes_beyond_a_device_are_sent_as_works_take_them() -> None:
    x, values = np.arange(0, 900, 3, dtype=np.uint32), np.random.default_rng(1).integers(0, 999, (40, 50), np.uint32)
    for given in (values, values.T, np.repeat(values, 2, 1)[:, ::2]):
        target, out = HostWithRoom(1 << 14), np.zeros(given.shape, np.int64)
        for into in (None, out):
            found = call_with(SearchByLimits, (0,), target, (x, given), into)
            np.testing.assert_array_equal(cast("np.ndarray[Any, Any]", found), np.searchsorted(x, given))
        assert target.rooms[-1].works > 1
    with pytest.raises(gpusort.DeviceMemoryError, match=r"^searchbylimits of x, 1,200 bytes"):
        call(SearchByLimits, (0,), HostWithRoom(1 << 10), x, values)


@attrs.frozen
class SumThatCopies(Cumsum):
    """A work of it is a copy."""

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        found = super().works(given, info)
        return Works((copying(Copy(1, 0)), *found), found.between)


@pytest.mark.parametrize("make", [LowMedian, SumThatCopies])
def test_what_cannot_be_done_by_parts_is_refused_at_once(
    make: Callable[[int], Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not when it was tried with ever smaller parts, of which there are ever more."""
    monkeypatch.setattr(pieces_plan, "ALWAYS_FIT", 0)
    monkeypatch.setattr(desk, "_LEAST_BYTES", 1 << 10)
    bindings, works = list[int](), cast(Any, make).works

    def noted(self: object, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        bindings.append(info.limits.storage_bytes)
        found: Works = works(self, given, info)
        return found

    monkeypatch.setattr(make, "works", noted)
    with pytest.raises(gpusort.DeviceMemoryError):
        call(make, (0,), HostWithRoom(1 << 14), np.zeros(1 << 16, np.float32))
    assert 1 << 14 in bindings
    assert min(bindings) >= 1 << 13


def test_a_row_that_no_launch_takes_is_refused_by_what_it_takes_most_of() -> None:
    """Which may be a result, longer than the row."""
    info = attrs.evolve(gpusort.target("simulator").info, name="small")
    info = attrs.evolve(info, limits=attrs.evolve(info.limits, storage_bytes=256, groups=8))
    assert rows_together(3, 100, 2, info) == 2
    with pytest.raises(
        gpusort.CapabilityError, match=r"^x: a row of 3 elements takes 320 bytes of one buffer,.*: 256$"
    ):
        rows_together(3, 320, 1, info)
    with pytest.raises(gpusort.CapabilityError, match=r"^y: a row of 3 elements takes 9 workgroups, .*'small' has: 8$"):
        rows_together(3, 12, 9, info, "y")


@pytest.mark.parametrize("kind", [Simulator, PlainPython])
def test_what_a_target_of_other_limits_refuses_it_refuses_by_its_own_name(kind: Callable[[], Any]) -> None:
    small = kind()
    small.info = attrs.evolve(small.info, name="small", limits=attrs.evolve(small.info.limits, group_size=32))
    with pytest.raises(gpusort.CapabilityError, match=r"asks for 64 invocations in a workgroup, target 'small' has 32"):
        low_median(np.ones((2, 3)), target=small)
