"""Calls with arrays of libraries in the host's memory, where those are installed: the same kind comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.arrays import registry
from gpusort.arrays.host import NUMPY
from gpusort.arrays.kinds import Viewed
from gpusort.types.specs import HostArray
from tests.reference import sample

FUNCTIONS = ("sort", "argsort", "cumsum", "sum", "max", "argmax", "any")
LIBRARIES: dict[str, Callable[[Any, np.ndarray[Any, Any]], Any]] = {
    "torch": lambda torch, host: torch.from_numpy(host.copy()),
    "jax": lambda jax, host: jax.device_put(host, jax.devices("cpu")[0]),
    "pandas": lambda pandas, host: pandas.Series(host, name="a", copy=True),
    "polars": lambda polars, host: polars.Series("a", host),
    "pyarrow": lambda pyarrow, host: pyarrow.array(host),
}
call: dict[str, Callable[..., Any]] = {name: cast("Callable[..., Any]", getattr(gpusort, name)) for name in FUNCTIONS}


@pytest.fixture(name="made", params=LIBRARIES)
def any_library(request: pytest.FixtureRequest) -> Callable[[np.ndarray[Any, Any]], Any]:
    name = str(request.param)
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    return lambda host: LIBRARIES[name](library, host)


def plain(found: Any) -> Any:
    """As NumPy has it."""
    return found.as_py() if hasattr(found, "as_py") else np.asarray(found)


@pytest.mark.parametrize("where", ["cpu", "wgsl"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_of_the_callers_kind(made: Callable[..., Any], function: str, where: str) -> None:
    gpusort.target(where) if where == "cpu" else pytest.importorskip("wgpu")
    host = sample("i4", 400) % 100
    x = made(host)
    found = call[function](x, target=where)
    expected = getattr(np, function)(host, **({"kind": "stable"} if function == "argsort" else {}))
    if function in ("sort", "argsort", "cumsum"):
        assert type(found).__module__.partition(".")[0] == type(x).__module__.partition(".")[0]
    if function == "sort":
        assert type(found) is type(x)
    np.testing.assert_array_equal(plain(found), expected)
    np.testing.assert_array_equal(plain(x), host)


def test_what_cannot_be_written_is_not_sorted_in_place(made: Callable[..., Any]) -> None:
    host = sample("f4", 100)
    x = made(host)
    sort_inplace: Callable[..., Any] = gpusort.sort_inplace
    if type(x).__name__ == "Tensor":
        sort_inplace(x)
        np.testing.assert_array_equal(plain(x), np.sort(host))
        assert call["sort"](made(host), out=x) is x
        return
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^x: expected an array that can be written"):
        sort_inplace(x)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^out: expected an array that can be written"):
        call["sort"](made(host), out=x)
    np.testing.assert_array_equal(plain(x), host)


def test_calls_are_planned_for_what_can_be_written(made: Callable[..., Any]) -> None:
    host = sample("f4", 100)
    x = made(host)
    if type(x).__name__ == "Tensor":
        np.testing.assert_array_equal(plain(gpusort.plan(gpusort.sort, x)(x)), np.sort(host))
        return
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^plan: results are written anew by every call"):
        gpusort.plan(gpusort.sort, x)


def test_rows_and_columns_of_tensors_and_jax() -> None:
    host = sample("f4", (30, 40))
    for name in ("torch", "jax"):
        x = LIBRARIES[name](pytest.importorskip(name, reason=f"{name} is not installed"), host)
        for view, expected in ((x, host), (x.T, host.T), (x[::2, 1:], host[::2, 1:])):
            for axis in (0, 1):
                np.testing.assert_array_equal(plain(call["sort"](view, axis=axis)), np.sort(expected, axis=axis))
                np.testing.assert_array_equal(plain(call["max"](view, axis=axis)), np.max(expected, axis=axis))


def test_a_tensor_with_a_history_is_sorted_without_it() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.arange(5.0).flip(0).requires_grad_()
    found = call["sort"](x)
    assert not found.requires_grad
    np.testing.assert_array_equal(found.numpy(), np.arange(5.0))


def test_a_warm_call_refuses_tensors_without_memory_and_nested_ones() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    call["sort"](torch.zeros(2, 3))
    rows = [torch.zeros(2), torch.zeros(3)]
    freed = torch.zeros(2, 3)
    freed.untyped_storage().resize_(0)
    for x in (torch.zeros(2, 3, device="meta"), torch.nested.nested_tensor(rows), freed):
        with pytest.raises(gpusort.UnsupportedTypeError, match=r"^x: expected a dense torch tensor"):
            call["sort"](x)
    for transformed in (torch.func.functionalize(call["sort"]), torch.vmap(call["sort"])):
        with pytest.raises(gpusort.UnsupportedTypeError, match=r"^x: expected a dense .* outside of torch\.vmap"):
            transformed(torch.zeros(2, 3))


def test_narrow_floats_are_told_how_to_become_wider() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype in (torch.bfloat16, torch.float8_e5m2):
        with pytest.raises(gpusort.UnsupportedTypeError, match=rf"{dtype} on cpu, whose \.float\(\) has the same"):
            call["sort"](torch.zeros(3, dtype=dtype))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"found torch\.bits8 on cpu$"):
        call["sort"](torch.zeros(3, dtype=torch.bits8))


def test_a_warm_call_finds_what_is_missing() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    call["sort"](polars.Series([3, 1, 2]))
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^x: found missing elements in Series of Int64"):
        call["sort"](polars.Series([3, None, 2]))


def test_columns_of_two_libraries_are_told_apart() -> None:
    pandas, polars = (pytest.importorskip(name, reason=f"{name} is not installed") for name in ("pandas", "polars"))
    keys, values = pandas.Series([3, 1, 2]), polars.Series([1, 2, 3])
    for one, other, said in ((keys, values, "pandas, found Series of polars"), (values, keys, "polars, found Series")):
        with pytest.raises(gpusort.UnsupportedTypeError, match=rf"^values: expected .* same kind as keys, .*{said}"):
            gpusort.sort_by_key(one, other)


def test_a_lazy_frame_is_told_to_be_collected() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"found a LazyFrame of polars: of x = x\.collect\(\)"):
        call["sort"](polars.LazyFrame({"a": [3, 1, 2]}))


@attrs.define(eq=False)
class Movable:
    """An array of a library whose arrays may have other memory later, as torch's."""

    values: HostArray


class MovableKind(Viewed[Movable, HostArray]):
    is_host, base = True, NUMPY

    def view(self, array: Movable, name: str = "x") -> HostArray:
        return array.values

    def given_back(self, values: HostArray, like: Movable) -> object:
        return Movable(values)


@pytest.mark.parametrize("has_out", [True, False])
def test_a_prepared_call_writes_to_where_its_results_lie_now(
    monkeypatch: pytest.MonkeyPatch, target: str, has_out: bool
) -> None:
    monkeypatch.setitem(registry.KNOWN, Movable, MovableKind())
    x = np.random.default_rng(0).standard_normal(10).astype(np.float32)
    out = Movable(np.zeros_like(x)) if has_out else None
    planned = gpusort.plan(call["sort"], Movable(x), out=out, target=target)
    result = planned(Movable(x))
    old = result.values
    old[:], result.values = 0, np.zeros_like(x)
    assert planned(Movable(x)) is result
    np.testing.assert_array_equal(result.values, np.sort(x))
    assert not old.any()
    for wrong in (np.zeros(9, np.float32), np.zeros(10, np.int32)):
        result.values = wrong
        with pytest.raises(
            gpusort.InvalidArgumentError, match=r"^out: expected shape \(10,\) and dtype float32, found"
        ):
            planned(Movable(x))
    result.values = np.zeros_like(x)
    result.values.flags.writeable = False
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^out: expected an array that can be written"):
        planned(Movable(x))


def test_a_prepared_call_knows_a_tensor_whose_memory_has_moved() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.rand(10)
    for move in (
        lambda out: out.share_memory_(),  # which frees what it had
        lambda out: setattr(out, "data", torch.zeros(10)),
        lambda out: out.set_(torch.zeros(10)),
    ):
        out = torch.zeros(10)
        planned = gpusort.plan(call["sort"], x, out=out)
        move(out)
        assert planned(x) is out
        assert torch.equal(out, x.sort()[0])
        out.requires_grad_()
        with pytest.raises(gpusort.InvalidArgumentError, match=r"^out: expected .* found one that requires grad"):
            planned(x)
