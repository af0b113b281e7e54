"""Exported reductions, scans, monoids and kernels of one's own, in node with Dawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from examples.log_sum_exp import LogSumExp
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.types.elements import dtype_of
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import U32, U64
from tests.covering import is_whole
from tests.exported import Cases, node
from tests.reference import sample, whole_numbers

# Each more is a second of exporting, and u32, of which --whole asks, differs in comparisons alone.
_TYPES = {"i32": "i4", "f32": "f4", **({"u32": "u4"} if is_whole() else {})}
_LENGTHS = (0, 1, 2, 255, 16384, 16385, 100_003, 2_100_000)


@kernel
def reverse(cx: Invocation, data: Storage[U32], results: Storage[U32], length: U32) -> None:
    """Writes every element from the end."""
    if cx.global_id < length:
        results[length - 1 - cx.global_id] = data[cx.global_id]


def reversing(length: int) -> Schedule:
    """A schedule of one's own, by length."""
    data, results = Buffer("data", U32, length, Role.INPUT), Buffer("results", U32, length, Role.OUTPUT)
    if length == 0:
        return Schedule((data, results), ())
    return Schedule((data, results), (reverse.launch(Grid(-(-length // 64), 64), data, results, U32(length)),))


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node()
    folder = tmp_path_factory.mktemp("exported")
    operations = ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all", "cumsum", "reduce", "scan", "schedule")
    file, _ = gpusort.export(
        operations, folder, keys=tuple(_TYPES), monoids=("examples.log_sum_exp:LogSumExp",),
        schedules={"reversing": reversing},
    )  # fmt: skip
    (folder / "package.json").write_text('{"type": "module"}', "utf-8")
    return file


def test_numpys_reductions(module: Path, tmp_path: Path) -> None:
    """Sums of whole numbers, which are exact; extremes of anything, NaN among it. Each for a type or two: all of them
    are compared where they are made, and here it is the module that is."""
    cases = Cases(module, tmp_path)
    combinations = (
        ("sum", "i32"), ("sum", "f32"), ("min", "f32"), ("max", "i32"), ("argmin", "f32"),
        *(("argmax", name) for name in _TYPES if name != "f32"),
    )  # fmt: skip
    asked = [(*combination, n) for combination in combinations for n in _LENGTHS]
    asked = [(operation, name, n) for operation, name, n in asked if n or operation == "sum"]
    for operation, name, n in asked:
        make = whole_numbers if operation == "sum" else sample
        x, label = make(_TYPES[name], n), f"{operation}-{name}-{n}"
        options = {"operation": operation}
        cases.add(label, "arrays", {"input": x}, call="reduceArray", type=name, options=options)
    cases.run()
    for operation, name, n in asked:
        make = whole_numbers if operation == "sum" else sample
        expected = np.asarray(getattr(np, operation)(make(_TYPES[name], n)))
        is_wide = expected.dtype.itemsize == 8
        found = np.frombuffer(cases.found(f"{operation}-{name}-{n}"), np.int64 if is_wide else np.float64)
        np.testing.assert_array_equal(found[0], expected.astype(found.dtype), err_msg=f"{operation} {name} {n}")


def test_truths(module: Path, tmp_path: Path) -> None:
    """Zeros of either sign are none, NaN is one; of no elements, all are true and none is."""
    cases, zeros = Cases(module, tmp_path), np.zeros(2000, np.float32)
    one, another = zeros.copy(), zeros + 1
    one[1234], another[1234] = np.nan, -0.0
    asked = dict(enumerate((zeros, one, another, zeros + 1, zeros[:0])))
    for number, x in asked.items():
        for operation in ("any", "all"):
            call = {"call": "reduceArray", "type": "f32", "options": {"operation": operation}}
            cases.add(f"{operation}-{number}", "arrays", {"input": x}, **call)
    cases.run()
    for number, x in asked.items():
        found = [cases.found(f"{operation}-{number}") for operation in ("any", "all")]
        assert found == [np.any(x).tobytes(), np.all(x).tobytes()], number


def test_cumulative_sums(module: Path, tmp_path: Path) -> None:
    cases = Cases(module, tmp_path)
    asked = [(name, n) for name in ("i32", "f32") for n in (0, 1, 1792, 1793, 100_003)]
    for name, n in asked:
        cases.add(f"{name}-{n}", "arrays", {"input": whole_numbers(_TYPES[name], n)}, call="scanArray", type=name)
    cases.run()
    for name, n in asked:
        expected = np.cumsum(whole_numbers(_TYPES[name], n))
        np.testing.assert_array_equal(np.frombuffer(cases.found(f"{name}-{n}"), expected.dtype), expected)


def test_a_monoid_of_ones_own(module: Path, tmp_path: Path) -> None:
    """To its states, as gpusort itself gives them; brackets may differ, so nearly."""
    x = np.linspace(-50, 90, 30_000, dtype=np.float32)
    cases = Cases(module, tmp_path)
    options: dict[str, object] = {"operation": "LogSumExp"}
    cases.add("reduced", "arrays", {"input": x}, call="reduceArray", type="f32", options=options)
    cases.add("scanned", "arrays", {"input": x}, call="scanArray", type="f32", options=options)
    before = {**options, "exclusive": True}
    cases.add("before", "arrays", {"input": x}, call="scanArray", type="f32", options=before)
    cases.run()
    state: npt.NDArray[Any] = np.asarray(gpusort.reduce(x, LogSumExp(), target="simulator"))
    found = np.frombuffer(cases.found("reduced"), np.float32)
    np.testing.assert_allclose(found, [state["peak"], state["total"]], rtol=1e-5)
    scanned = np.frombuffer(cases.found("scanned"), np.float32).reshape(-1, 2)
    wide = x.astype(np.float64)
    expected = wide + np.log(np.cumsum(np.exp(wide - 90)) / np.exp(wide - 90))
    np.testing.assert_allclose(scanned[:, 0] + np.log(scanned[:, 1]), expected, rtol=1e-4, atol=1e-4)
    shifted = np.frombuffer(cases.found("before"), np.float32).reshape(-1, 2)
    np.testing.assert_allclose(shifted[1:], scanned[:-1], rtol=1e-4)


@attrs.frozen
class Sale:
    is_first: U32
    amount: U64


@attrs.frozen
class GroupTotal:
    """A monoid whose elements have two fields of different types."""

    element: type[Sale] = Sale
    state: type[Sale] = Sale

    def identity(self) -> Sale:
        return Sale(U32(0), U64(0))

    def lift(self, element: Sale, index: U32) -> Sale:
        return element

    def combine(self, a: Sale, b: Sale) -> Sale:
        return Sale(a.is_first | b.is_first, b.amount if b.is_first != 0 else a.amount + b.amount)


@attrs.frozen
class ByAmount:
    """A key of elements of several fields."""

    element: type[Sale] = Sale
    word: type[U64] = U64

    @property
    def greatest(self) -> U64:
        return U64((1 << 64) - 1)

    def to_word(self, element: Sale) -> U64:
        return element.amount

    def from_word(self, word: U64) -> Sale:
        return Sale(U32(0), word)

    def to_rank(self, element: Sale) -> U64:
        return element.amount

    def mirrored(self, word: U64) -> U64:
        return ~word


def test_elements_of_several_fields(tmp_path: Path) -> None:
    """They come as words of 32 bits, in a typed array."""
    node()
    sales = np.zeros(1000, dtype_of(Sale))
    sales["is_first"], sales["amount"] = np.arange(1000) % 7 == 0, np.random.default_rng(0).permutation(1000)
    totals = {"GroupTotal": GroupTotal()}
    file, types = gpusort.export(("scan", "argmax"), tmp_path, keys={"amount": ByAmount()}, monoids=totals)
    assert '"amount": globalThis.Uint32Array' in file.read_text("utf-8")
    assert "Numbers = Float32Array | Int32Array | Uint32Array;" in types.read_text("utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    cases = Cases(file, tmp_path)
    given = {"input": sales}
    cases.add("scanned", "arrays", given, call="scanArray", type="u32", options={"operation": "GroupTotal"})
    cases.add("greatest", "arrays", given, call="reduceArray", type="u32", options={"operation": "argmax"})
    part = {"input": sales.view(np.uint32)[:-1]}
    cases.add("part", "refused", part, call="scanArray", type="u32", options={"operation": "GroupTotal"})
    cases.run()
    expected = gpusort.scan(sales, GroupTotal())
    found = np.frombuffer(cases.found("scanned"), expected.dtype)
    for field in ("is_first", "amount"):
        np.testing.assert_array_equal(found[field], expected[field])
    assert np.frombuffer(cases.found("greatest"), np.int64) == np.argmax(sales["amount"])
    assert "expected n from 0 to" in cases.found("part").decode()


def test_a_kernel_of_ones_own(module: Path, tmp_path: Path) -> None:
    cases = Cases(module, tmp_path)
    for n in (1, 64, 65, 100_000):
        x = np.arange(n, dtype=np.uint32)
        cases.add(f"own-{n}", "own", {"input": x}, schedule="reversing", bytes=4 * n, n=n)
    cases.run()
    for n in (1, 64, 65, 100_000):
        found = np.frombuffer(cases.found(f"own-{n}")[: 4 * n], np.uint32)
        np.testing.assert_array_equal(found, np.arange(n, dtype=np.uint32)[::-1])
