"""Results are such as the caller's arrays of their place: name, unit, subclass. What hides elements is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.types.errors import UnsupportedTypeError
from gpusort.types.monoids import MinMax
from tests.key_cases import DateKey


class Quantity(np.ndarray[Any, Any]):
    """Numbers with a unit, which go from array to array."""

    unit = ""

    def __array_finalize__(self, other: object) -> None:
        self.unit = getattr(other, "unit", "")


def quantity(values: list[float], unit: str) -> Quantity:
    made = np.array(values, np.float32).view(Quantity)
    made.unit = unit
    return made


def test_sorted_values_keep_their_unit_and_keys_theirs(target: str) -> None:
    metres, seconds = quantity([3.0, 1.0, 2.0], "m"), quantity([30.0, 10.0, 20.0], "s")
    plain: Any = np.array([3.0, 1.0, 2.0], np.float32)
    for keys, values, units in ((metres, seconds, ["m", "s"]), (plain, seconds, ["", "s"]), (metres, plain, ["m", ""])):
        planned: Any = gpusort.plan(gpusort.sort_by_key, keys, values, target=target)
        for found in (gpusort.sort_by_key(keys, values, target=target), planned(keys, values)):
            assert [getattr(x, "unit", "") for x in found] == units
            assert [type(x) for x in found] == [type(keys), type(values)]
            np.testing.assert_array_equal(found[1], np.sort(values))
    merged: Any = gpusort.merge_by_key(np.sort(metres), seconds, np.sort(metres), seconds, target=target)
    assert [x.unit for x in merged] == ["m", "s"]
    largest: Any = gpusort.top_k(metres, 2, target=target)
    assert [x.unit for x in largest] == ["m", "m"]


def test_records_stay_of_their_subclass(target: str) -> None:
    days: Any = np.rec.array(
        [(9, 2, 2020), (1, 2, 2020), (3, 1, 1999)], dtype=[("day", "u1"), ("month", "u1"), ("year", "u2")]
    )
    named: Any = days.view(np.ndarray).view(Quantity)
    named.unit = "d"
    for x in (days, named):
        ranks: Any = gpusort.sort_by_key(np.array([3, 1, 2]), x, target=target)[1]
        planned: Any = gpusort.plan(gpusort.sort, x, key=DateKey(), target=target)
        for found in (gpusort.sort(x, key=DateKey(), target=target), planned(x)):
            assert type(found) is type(x) is type(ranks)
            assert found["day"].tolist() == [3, 1, 9]
            assert found.dtype == x.dtype
    assert gpusort.sort(named, key=DateKey(), target=target).unit == "d"
    assert gpusort.sort(days, key=DateKey(), target=target).day.tolist() == [3, 1, 9]
    states: Any = gpusort.scan(quantity([3.0, 1.0], "m"), MinMax(gpusort.key_for("f4")), target=target)
    assert (states.unit, states.dtype.names) == ("m", ("low", "high"))


def test_columns_of_values_keep_their_name(target: str) -> None:
    pandas: Any = pytest.importorskip("pandas")
    keys, values = pandas.Series([1, 2, 3], name="age"), pandas.Series([10.0, 20.0, 30.0], name="weight")
    columns: Any
    for columns in (
        gpusort.sort_by_key(keys, values, target=target),
        gpusort.merge_by_key(keys, values, keys, values, target=target),
    ):
        assert [x.name for x in columns] == ["age", "weight"]


def test_a_prepared_call_refuses_what_a_plain_one_does(target: str) -> None:
    """A masked array has dtype, shape and strides of the array that was planned for, and elements that do not count."""
    x = np.array([3.0, 1.0, 2.0], np.float32)
    masked: Any = np.ma.array(x, mask=[False, True, False])
    function: Any
    for function in (gpusort.sort, gpusort.max, gpusort.argsort):
        planned: Any = gpusort.plan(function, x, target=target)
        with pytest.raises(UnsupportedTypeError, match="x: masked arrays are not supported"):
            planned(masked)
    pairs: Any = gpusort.plan(gpusort.sort_by_key, x, x, target=target)
    with pytest.raises(UnsupportedTypeError, match="values: masked arrays are not supported"):
        pairs(x, masked)
    planned = gpusort.plan(gpusort.sort, x, target=target)
    with pytest.raises(UnsupportedTypeError, match="x: expected an array such as was planned for, found Quantity"):
        planned(quantity([3.0, 1.0, 2.0], "m"))


def test_a_prepared_call_writes_each_time_what_it_gave_first(target: str) -> None:
    """Also the one value of an array of a subclass, whose function gives a scalar."""
    planned: Any = gpusort.plan(gpusort.max, quantity([3.0, 1.0, 2.0], "m"), target=target)
    first = planned(quantity([3.0, 1.0, 2.0], "m"))
    assert first == 3.0
    assert planned(quantity([5.0, 1.0, 2.0], "m")) is first
    assert first == 5.0


class Copied(np.ndarray[Any, Any]):
    """One whose results are copies of what they are made of."""

    def __array_wrap__(self, array: Any, *_: object, **__: object) -> Any:
        return np.array(array).view(Copied)


def test_a_call_whose_results_are_copies_is_not_prepared(target: str) -> None:
    x = np.array([3.0, 1.0, 2.0], np.float32).view(Copied)
    with pytest.raises(UnsupportedTypeError, match=r"^plan: results are .* as arrays like Copied cannot be"):
        gpusort.plan(gpusort.sort, x, target=target)
    out = np.empty(3, np.float32)
    assert gpusort.plan(gpusort.sort, x, out=out, target=target)(x) is out
    assert out.tolist() == [1.0, 2.0, 3.0]


class Masked(np.ndarray[Any, Any]):
    """One that computes for itself, as arrays with units and masks of other libraries do."""

    def __array_ufunc__(self, *_: object, **__: object) -> object:
        return NotImplemented


def test_arrays_that_compute_for_themselves_are_refused() -> None:
    x = np.array([3.0, 1.0, 2.0]).view(Masked)
    function: Any
    for function in (gpusort.sort, gpusort.max, gpusort.argsort):
        with pytest.raises(UnsupportedTypeError, match=r"^x: .* found Masked, which computes for itself .*x\.view\("):
            function(x)
    with pytest.raises(UnsupportedTypeError, match=r"^values: .* found Masked"):
        gpusort.sort_by_key(np.arange(3), x)


def test_what_a_dtype_carries_along_does_not_reach_others(target: str) -> None:
    """Dtypes that are equal share plans, and may differ in metadata."""
    described = np.arange(5).astype(np.dtype("i8", metadata={"of": "one"}))
    gpusort.sort(described, target=target)
    assert gpusort.sort(np.arange(5), target=target).dtype.metadata is None
    assert gpusort.cumsum(np.arange(5), target=target).dtype.metadata is None
