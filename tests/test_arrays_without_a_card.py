"""The whole way of a call with arrays on a CUDA device, on stand-ins for the card and its libraries."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.sorts import Bitonic, Radix
from gpusort.api import call as front
from gpusort.api import step_calls
from gpusort.api.call import forget_plans
from gpusort.arrays import cuda as cuda_arrays
from gpusort.machine import TargetInfo
from gpusort.operations.base import INDEX, Operation, Output, Works
from gpusort.operations.reduce import Fold, Reduce, Reducer
from gpusort.targets import registry as targets
from gpusort.targets.cuda import plan as cuda_plan
from gpusort.targets.cuda.target import CudaTarget
from gpusort.types.params import RadixPolicy
from gpusort.types.searches import ArgMin
from gpusort.types.specs import Spec
from tests import fake_cupy, fake_torch, key_cases
from tests.array_classes import forget_classes
from tests.reference import sample

# What the checkers have no types for is called past them.
FUNCTIONS = ("sort", "argsort", "sum", "max", "cumsum")
call: dict[str, Callable[..., Any]] = {name: cast("Callable[..., Any]", getattr(gpusort, name)) for name in FUNCTIONS}


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fake_cupy.put_in_place(monkeypatch)
    monkeypatch.setitem(sys.modules, "torch", fake_torch.module())
    monkeypatch.setattr(cuda_plan, "RECORDING", 0)  # addresses that come again are launched as a graph
    fake_cupy.forget()
    forget_classes()
    cuda_arrays.device_count.cache_clear()
    forget_plans()
    target = CudaTarget()
    monkeypatch.setattr(targets, "_opened", {"cuda": target})
    yield
    forget_classes()
    cuda_arrays.device_count.cache_clear()
    forget_plans()
    assert fake_cupy.current_device == [0]
    assert not fake_cupy.entered


def on_card(library: str, host: np.ndarray[Any, Any], device: int = 0) -> Any:
    inside = fake_cupy.on_card(host, device)
    return inside if library == "cupy" else fake_torch.Tensor(inside)


def host_of(array: Any) -> np.ndarray[Any, Any]:
    inside = array if isinstance(array, fake_cupy.ndarray) else array.inside
    found: np.ndarray[Any, Any] = inside.host
    return found


@pytest.mark.parametrize(
    ("library", "function"), [*[("cupy", name) for name in FUNCTIONS], ("torch", "sort"), ("torch", "max")]
)
def test_every_function_keeps_arrays_where_they_are(library: str, function: str) -> None:
    host = sample("i4", (3, 20)) % 1000
    more = {"kind": "stable"} if function == "argsort" else {}
    for axis in (0, 1):
        x = on_card(library, host)
        fake_cupy.log.clear()
        found = call[function](x, axis=axis)
        assert type(found) is type(x)
        expected = getattr(np, function)(host, axis=axis, **more)
        assert host_of(found).dtype == expected.dtype
        np.testing.assert_array_equal(host_of(found), expected)
        assert not [line for line in fake_cupy.log if line.startswith(("copy", "synchronize"))]
        np.testing.assert_array_equal(host_of(x), host)


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_work_is_done_on_the_arrays_device_and_stream(library: str) -> None:
    host = sample("u4", 50)
    x, out = on_card(library, host, device=1), on_card(library, host, device=1)
    planned = gpusort.plan(call["sort"], x)
    calls: list[Callable[[], Any]] = [
        lambda: call["sort"](x),
        lambda: gpusort.sort_by_key(x, x)[0],
        lambda: call["sort"](x, out=out),
        lambda: planned(x),
    ]
    for one in calls * 2:  # and warm ones
        fake_cupy.log.clear()
        with fake_torch.stream(88):
            found = one()
        inside = found if library == "cupy" else found.inside
        assert inside.data.device_id == 1
        np.testing.assert_array_equal(host_of(found), np.sort(host))
        assert any(line in ("stream 88", "graph on 88") for line in fake_cupy.log) == (library == "torch")


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_in_place_and_out(library: str) -> None:
    host = sample("u4", (4, 30))
    x, out = on_card(library, host), on_card(library, np.zeros_like(host))
    sort_inplace: Callable[..., Any] = gpusort.sort_inplace
    assert call["sort"](x, out=out) is out
    np.testing.assert_array_equal(host_of(out), np.sort(host))
    sort_inplace(x, axis=0)
    np.testing.assert_array_equal(host_of(x), np.sort(host, axis=0))
    part = x[:, ::2]
    sort_inplace(part)
    expected = np.sort(host, axis=0)
    expected[:, ::2].sort()
    np.testing.assert_array_equal(host_of(x), expected)


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_a_warm_call_of_several_arrays_looks_for_no_plan(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sample("u4", 50)
    x, values, out = (on_card(library, array) for array in (host, np.arange(50, dtype="i4"), np.zeros_like(host)))
    calls: list[Callable[[], Any]] = [
        lambda: call["sort"](x, out=out),
        lambda: gpusort.sort_by_key(x, values),
        lambda: gpusort.sort_inplace(out),
    ]
    for one in calls * 2:
        one()
    monkeypatch.setattr(front, "_plan_of", None)
    _, (_, moved), _ = (one() for one in calls)
    np.testing.assert_array_equal(host_of(out), np.sort(host))
    np.testing.assert_array_equal(host_of(moved), np.argsort(host, kind="stable"))


def test_a_warm_call_launches_and_allocates_its_result_alone() -> None:
    host = sample("u4", 50)
    x = on_card("torch", host)
    for _ in range(2):
        fake_cupy.log.clear()
        call["sort"](x)
    assert not [line for line in fake_cupy.log if not line.startswith(("launch", "alloc", "graph"))]


def test_a_warm_call_takes_its_scratch_from_the_callers_library() -> None:
    host = sample("i4", 50)
    x = on_card("torch", host)[::2]  # which is packed first
    for _ in range(3):  # launched one by one, recorded, and as a graph
        fake_cupy.log.clear()
        with fake_torch.stream(88):
            np.testing.assert_array_equal(host_of(call["sort"](x)), np.sort(host[::2]))
    assert not [line for line in fake_cupy.log if line.startswith("alloc")]
    assert fake_cupy.log[0] in ("stream 88", "graph on 88")


@pytest.mark.parametrize("step", [1, 2])
def test_kernels_scratch_comes_after_all_that_is_given(step: int) -> None:
    """As it is handed in, and packed first."""
    host = sample("u1", 300)
    x = on_card("cupy", host)[::step]
    radix = Radix(RadixPolicy(digit_bits=4, group_size=32, items=4, count_group=32))
    for _ in range(3):  # launched one by one, recorded, and as a graph
        np.testing.assert_array_equal(host_of(gpusort.sort(x, algorithm=radix)), np.sort(host[::step]))


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("is_little", [True, False])
def test_a_little_scratch_is_kept_for_the_default_stream_alone(
    is_little: bool, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another stream still works with would be the default stream's."""
    if not is_little:
        monkeypatch.setattr(step_calls, "_LITTLE", 100)
    x = on_card("cupy", sample("u4", 50))[::step]
    radix = Radix(RadixPolicy(digit_bits=4, group_size=32, items=4, count_group=32))
    for stream, kept in ((88, False), (0, False), (0, True), (88, False), (88, False), (0, True)):
        fake_cupy.log.clear()
        with fake_cupy.Stream(stream):
            gpusort.sort(x, algorithm=radix)
        assert len([line for line in fake_cupy.log if line.startswith("alloc")]) == (not (kept and is_little))


def test_a_planned_call_holds_no_more_memory_with_each_run() -> None:
    x = on_card("cupy", sample("u4", 50))[::2]  # packed into scratch first, which the call has of its own
    planned: Any = gpusort.plan(gpusort.sort, x)
    steps = vars(planned.plan)["_new"]
    for _ in range(3):
        fake_cupy.log.clear()
        np.testing.assert_array_equal(host_of(planned(x)), np.sort(host_of(x)))
        assert not [line for line in fake_cupy.log if line.startswith("alloc")]
    assert vars(steps)["_kept"] is not None
    assert not vars(steps)["_free"]


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_warm_results_go_into_arrays_of_any_place(library: str) -> None:
    host = sample("u4", 50)
    for _ in range(3):
        x, out = on_card(library, host), on_card(library, np.zeros_like(host))
        assert call["sort"](x, out=out) is out
        np.testing.assert_array_equal(host_of(out), np.sort(host))
        np.testing.assert_array_equal(host_of(x), host)
        call["sort"](x, out=x)
        np.testing.assert_array_equal(host_of(x), np.sort(host))
        x = on_card(library, host)
        call["sort"](x[:-8], out=x[8:])  # which lie partly in the same memory, and are packed
        np.testing.assert_array_equal(host_of(x[8:]), np.sort(host[:-8]))
        wide = on_card(library, np.zeros((50, 2), host.dtype))
        call["sort"](on_card(library, host), out=wide[:, 1])
        np.testing.assert_array_equal(host_of(wide), np.stack([np.zeros_like(host), np.sort(host)], 1))
        for wrong in (on_card(library, np.zeros(49, np.uint32)), on_card(library, np.zeros(50, np.int32))):
            with pytest.raises(gpusort.InvalidArgumentError, match=r"^out: expected shape \(50,\) and dtype uint32"):
                call["sort"](on_card(library, host), out=wrong)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^out: expected an array on CUDA device 0, "):
        call["sort"](on_card(library, host), out=on_card(library, host, device=1))


OVERLAPPING: dict[str, Callable[[Any], tuple[Any, Any]]] = {  # of 1200 elements
    "by the last element": lambda held: (held[:600], held[599:1199]),
    "by the first element": lambda held: (held[599:1199], held[:600]),
    "from one place on, with gaps in x": lambda held: (held[:1200:2], held[:600]),
    "from one place on, with gaps in out": lambda held: (held[:600], held[:1200:2]),
    "with gaps in x, behind it": lambda held: (held[:1200:2], held[400:1000]),
    "backwards": lambda held: (held[599::-1], held[:600]),
    "turned": lambda held: (held[:576].reshape(24, 24).transpose(1, 0), held[:576].reshape(24, 24)),
}


@pytest.mark.parametrize("lie", OVERLAPPING)
@pytest.mark.parametrize("is_planned", [False, True])
def test_an_out_that_overlaps_x_is_written_when_all_is_read(lie: str, is_planned: bool) -> None:
    host = sample("u4", 1200)
    x, out = OVERLAPPING[lie](host.copy())
    expected = host.copy()
    OVERLAPPING[lie](expected)[1][...] = np.sort(x)
    held = on_card("cupy", host)
    for _ in range(2):
        held.host[...] = host
        x, out = OVERLAPPING[lie](held)
        if is_planned:
            gpusort.plan(gpusort.sort, x, out=out, algorithm=Bitonic())(x)
        else:
            call["sort"](x, out=out, algorithm=Bitonic())
        np.testing.assert_array_equal(host_of(held), expected)


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize(("first", "other"), [(0, 20), (20, 0), (0, 19), (19, 0)])
def test_an_out_beside_x_takes_no_temporary_array(library: str, first: int, other: int) -> None:
    """One that has an element of x does, in whatever order a card reads and writes."""
    held = on_card(library, sample("u4", 40))
    fake_cupy.log.clear()
    call["sort"](held[first : first + 20], out=held[other : other + 20])
    assert (fake_cupy.log == ["launch"]) == (abs(first - other) == 20)


@pytest.mark.parametrize("which", [0, 1])
def test_a_planned_call_takes_its_own_results(which: int) -> None:
    """As either of two arrays, each of which is apart from the other result."""
    host = sample("u4", 600), sample("u4", 600) % 1000
    given = [on_card("cupy", array) for array in host]
    planned = cast(Any, gpusort.plan(cast(Any, gpusort.sort_by_key), *given))
    expected = [array.copy() for array in host]
    for _ in range(3):
        order = np.argsort(expected[0], kind="stable")
        results = planned(*given)
        fresh = [array[order] for array in expected]
        for found, wanted in zip(results, fresh, strict=True):
            np.testing.assert_array_equal(host_of(found), wanted)
        given[which], expected[which] = results[which], fresh[which]


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_a_planned_call_is_recorded_into_the_callers_graph(library: str) -> None:
    host, reverse = sample("i4", 50), sample("i4", 50)[::-1].copy() // 2
    x, other = on_card(library, host)[::2], on_card(library, reverse)[::2]  # which are packed first
    fake_cupy.log.clear()
    call = gpusort.plan(gpusort.sort, x)
    found = [call(x) for _ in range(3)]
    scratch = [line for line in fake_cupy.log if line.startswith("alloc")]
    assert len(scratch) == (library == "cupy"), "once, and by the caller's library"
    assert found[0] is found[2]
    fake_cupy.log.clear()
    fake_cupy.recording.append([])  # as a caller's stream that records is seen
    with fake_torch.stream(88), fake_cupy.Stream(88):
        assert call(other) is found[0]
    launches = fake_cupy.recording.pop()
    assert fake_cupy.log == []
    np.testing.assert_array_equal(host_of(found[0]), np.sort(host[::2]))
    for launch in launches:
        launch()
    np.testing.assert_array_equal(host_of(found[0]), np.sort(reverse[::2]))
    with pytest.raises(gpusort.InvalidArgumentError, match="expected such as were planned for"):
        call(x[1:])


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_planned_call_holds_the_scratch_that_it_keeps(library: str, first: int) -> None:
    """Also if its `out` begins elsewhere in a word than results of its own."""
    host, radix = sample("u4", 300), Radix(RadixPolicy(digit_bits=4, group_size=32, items=4, count_group=32))
    x, out = on_card(library, host), on_card(library, np.zeros(301, "u4"))[first : first + 300]
    planned = gpusort.plan(gpusort.sort, x, out=out, algorithm=radix)
    planned(x)
    fake_cupy.log.clear()
    for _ in range(2):
        planned(x)  # of what a kernel takes the stand-in asks whether anybody holds it
    assert not [line for line in fake_cupy.log if line.startswith("alloc")]
    np.testing.assert_array_equal(host_of(out), np.sort(host))


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("device", [0, 1])
def test_a_planned_call_writes_again_what_follows_from_the_shape(library: str, device: int) -> None:
    host = np.zeros((3, 0), "f4")
    x = on_card(library, host, device)
    for name in ("sum", "prod", "all"):
        planned: Any = gpusort.plan(getattr(gpusort, name), x, axis=1)
        expected = getattr(np, name)(host, axis=1)
        for _ in range(2):
            found = planned(x)
            np.testing.assert_array_equal(host_of(found), expected)
            (found if library == "cupy" else found.inside).host[...] = 7  # as callers may
    assert host_of(gpusort.plan(gpusort.sort, x)(x)).shape == (3, 0)


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_a_planned_call_is_for_arrays_as_aligned(library: str) -> None:
    host = sample("i2", 64)
    x = on_card(library, host)
    strided = gpusort.plan(gpusort.sort, x[:40:2])  # packed by a copy of several neighbours at a time
    words = gpusort.plan(gpusort.max, x[:40])
    copied = gpusort.plan(gpusort.sort, x[:40], algorithm=Bitonic())  # which sorts in place, what is copied likewise
    merged = gpusort.plan(gpusort.merge, x[:40], x[:0])
    for call, *other in ((strided, x[1:41:2]), (words, x[1:41]), (copied, x[1:41]), (merged, x[1:41], x[:0])):
        with pytest.raises(gpusort.InvalidArgumentError, match=r"found int16 .*, 2 bytes behind an aligned address"):
            call(*other)
    behind = gpusort.plan(gpusort.sort, x[1:41:2])  # a copy, whose places are told from the aligned address before
    with pytest.raises(gpusort.InvalidArgumentError, match=r"2 bytes behind an aligned address, found int16 .*\(4,\)$"):
        behind(x[:40:2])
    assert int(host_of(words(x[2:42]))) == host[2:42].max()
    np.testing.assert_array_equal(host_of(gpusort.plan(gpusort.sort, x[:40])(x[1:41])), np.sort(host[1:41]))
    assert int(host_of(gpusort.plan(gpusort.max, x[1:41])(x[:40]))) == host[:40].max()


@pytest.mark.parametrize("first", [0, 1])
def test_sums_of_halves(first: int) -> None:
    """By pairs where memory begins with a word; by the card's own instructions, which round as NumPy does."""
    host = np.array([1, -0.0, 2049, 0.5, -3, 1024, 2**-24, 6550, -0.25, 7] * 4, np.float16)
    host[-2:] = -np.inf, np.nan
    x, wide = on_card("cupy", host)[first : first + 30], host[first : first + 30].astype(np.float32)
    assert host_of(call["sum"](x)) == wide.sum().astype(np.float16)
    rows = host_of(call["sum"](x.reshape(15, 2), axis=1))
    np.testing.assert_array_equal(rows, wide.reshape(15, 2).sum(axis=1).astype(np.float16))
    columns = host_of(call["cumsum"](on_card("cupy", host.reshape(20, 2)), axis=1))
    np.testing.assert_array_equal(columns, host.reshape(20, 2).astype("f4").cumsum(axis=1).astype(np.float16))


def test_what_does_not_go_together_is_refused() -> None:
    x, tensor = on_card("cupy", sample("u4", 9)), on_card("torch", sample("u4", 9))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^out: expected an array of the same kind as x"):
        call["sort"](x, out=tensor)
    on_the_host = fake_torch.Tensor(sample("u4", 9))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"same kind as x, Tensor on cuda:0, found Tensor on cpu$"):
        call["sort"](tensor, out=on_the_host)
    with pytest.raises(gpusort.InvalidArgumentError, match="'cpu' works in host memory"):
        call["sort"](tensor, target="cpu")
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^x: "):
        call["sort"](fake_torch.Tensor(tensor.inside, dtype=fake_torch.BFLOAT16))


def test_a_warm_call_refuses_what_torch_has_put_off() -> None:
    """The memory has other numbers than the tensor: they are negated or conjugated when they are read."""
    keys, values = on_card("torch", sample("u4", 9)), on_card("torch", np.arange(9) + 1j)
    by_key: Any = gpusort.sort_by_key
    planned: Any = gpusort.plan(by_key, keys, values)
    by_key(keys, values)
    negated, conjugated = fake_torch.Tensor(values.inside, neg=True), fake_torch.Tensor(values.inside, conj=True)
    for lazy, instead in ((negated, "resolve_neg"), (conjugated, "resolve_conj")):
        for function in (by_key, planned):
            with pytest.raises(gpusort.UnsupportedTypeError, match=rf"^values: .*{instead}\(\)"):
                function(keys, lazy)


def test_torch_is_told_which_tensors_were_written_to() -> None:
    host = sample("f4", 50)
    x, out = on_card("torch", host), on_card("torch", host)
    assert call["sort"](x, out=out) is out
    sort_inplace = cast("Callable[..., Any]", gpusort.sort_inplace)
    sort_inplace(out)
    prepared = gpusort.plan(gpusort.sort, x)
    prepared(x)
    found: Any = prepared(x)
    into = gpusort.plan(gpusort.sort, x, out=out)
    into(x)
    assert (x.version, out.version, found.version) == (0, 3, 2)
    out.requires_grad = True
    for wrong in (lambda: call["sort"](x, out=out), lambda: sort_inplace(out), lambda: into(x)):
        with pytest.raises(gpusort.InvalidArgumentError, match=r"^(x|out): .* found one that requires grad"):
            wrong()
    assert out.version == 3


LAYOUTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {  # how it is held, and how that is looked at
    "turned": (lambda host: host.transpose(2, 1, 0), lambda x: x.transpose(2, 1, 0)),
    "backwards": (lambda host: host[::-1, :, ::-1], lambda x: x[::-1, :, ::-1]),
    "with gaps": (lambda host: np.repeat(host, 2, axis=2), lambda x: x[:, :, ::2]),
}


@pytest.mark.parametrize(
    ("layout", "axis"), [("turned", 0), ("turned", 2), ("backwards", 1), ("with gaps", 0), ("with gaps", None)]
)
def test_warm_calls_pack_and_put_back_by_kernels_alone(layout: str, axis: int | None) -> None:
    hold, look = LAYOUTS[layout]
    host = sample("i4", (3, 4, 5)) % 1000
    expected = np.sort(host, axis=axis)
    x = look(on_card("cupy", np.ascontiguousarray(hold(host))))
    found: Any = None
    for function in ("sort", "sum"):
        for _ in range(2):
            fake_cupy.log.clear()
            found = call[function](x, axis=axis)
        np.testing.assert_array_equal(host_of(found), getattr(np, function)(host, axis=axis))
        assert not [line for line in fake_cupy.log if not line.startswith(("launch", "alloc", "graph"))]
    if axis is not None:
        out = look(on_card("cupy", np.ascontiguousarray(hold(host * 0))))
        assert call["sort"](x, axis=axis, out=out) is out
        np.testing.assert_array_equal(host_of(out), expected)
        call["sort"](x, axis=axis, out=x)
        np.testing.assert_array_equal(host_of(x), expected)


def test_one_element_again_and_again_is_read_where_it_is() -> None:
    host = sample("i4", (5, 1))
    held = on_card("cupy", host)
    x = fake_cupy.ndarray((5, 4), host.dtype, held.data, (4, 0))
    for axis in (0, 1):
        np.testing.assert_array_equal(host_of(call["sort"](x, axis=axis)), np.sort(np.repeat(host, 4, 1), axis=axis))


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("axis", [0, 1])
def test_states_of_several_fields_come_as_numpys(library: str, axis: int) -> None:
    host, monoid = sample("u4", (6, 20)), ArgMin(gpusort.key_for("u4"))
    reduce, scan = cast(Any, gpusort.reduce), cast(Any, gpusort.scan)
    x = on_card(library, host)
    for found, expected in (
        (reduce(x, monoid, axis=axis), gpusort.reduce(host, monoid, axis=axis)),
        (scan(x, monoid, axis=axis), gpusort.scan(host, monoid, axis=axis)),
    ):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("size", [0, 20])
def test_one_state_of_several_fields_is_numpys_scalar(library: str, size: int) -> None:
    host, monoid = sample("u4", size), ArgMin(gpusort.key_for("u4"))
    found, expected = cast(Any, gpusort.reduce)(on_card(library, host), monoid), gpusort.reduce(host, monoid)
    assert type(found) is type(expected) is np.void
    assert found == expected


@attrs.frozen
class StatesAndGreatest(Operation):
    """Two results, of which the first has several fields."""

    axis: int

    @property
    def both(self) -> tuple[Operation, Operation]:
        return Fold(self.axis, of=ArgMin(gpusort.key_for("u4"))), Reduce(self.axis, reducer=Reducer.MAX)

    def axes(self, given: Spec) -> tuple[int, ...]:
        return (self.axis,)

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return tuple(output for one in self.both for output in one.outputs(*given))

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        first, second = (one.works(given, info) for one in self.both)
        return Works((*first.within((0, 1), 3), *second.within((0, 2), 3)))


@pytest.mark.parametrize("axis", [0, 1])
def test_states_come_as_numpys_beside_other_results(axis: int) -> None:
    host = sample("u4", (6, 20))
    for _ in range(2):
        states, greatest = cast(Any, front.call(StatesAndGreatest, (axis,), "auto", on_card("cupy", host)))
        np.testing.assert_array_equal(states, gpusort.reduce(host, ArgMin(gpusort.key_for("u4")), axis=axis))
        np.testing.assert_array_equal(host_of(greatest), host.max(axis))


@attrs.frozen
class Numbered(Operation):
    """A result that follows from the shape."""

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return (Output((3, 4), INDEX, ()),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        raise AssertionError

    def answer(self, *given: Spec) -> tuple[Any, ...]:
        return (np.arange(12).reshape(3, 4),)


def test_what_follows_from_the_shape_goes_into_an_out_of_any_layout() -> None:
    x, layouts = on_card("cupy", np.zeros(0, "f4")), [np.zeros((3, 4), np.int64), np.zeros((4, 3), np.int64)]
    for host in (*layouts, np.zeros((3, 8), np.int64)):
        whole = on_card("cupy", host)
        out = whole.transpose(1, 0) if host.shape == (4, 3) else whole[:, : 2 * 4 : host.shape[1] // 4]
        assert front.call_with(Numbered, (), "auto", (x,), out) is out
        np.testing.assert_array_equal(host_of(out), np.arange(12).reshape(3, 4))


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_elements_that_lie_between_words_are_moved_by_bytes(library: str) -> None:
    host = sample("f4", 40)
    held = fake_cupy.on_card(np.concatenate([np.zeros(1, "u1"), host.view("u1")]))
    inside = fake_cupy.ndarray((40,), host.dtype, fake_cupy.MemoryPointer(held.data.mem, 1), None)
    x = inside if library == "cupy" else fake_torch.Tensor(inside)
    for _ in range(2):
        np.testing.assert_array_equal(host_of(call["sort"](x)), np.sort(host))
        np.testing.assert_array_equal(host_of(call["max"](x)), host.max())
    out = on_card(library, np.zeros(40, "f4"))
    call["sort"](x, out=out)
    np.testing.assert_array_equal(host_of(out), np.sort(host))
    call["sort"](out[::-1], out=x)
    np.testing.assert_array_equal(host_of(x), np.sort(host))
    call["sort"](x, out=x, descending=True)
    np.testing.assert_array_equal(host_of(x), gpusort.sort(host, descending=True))


def test_arrays_of_many_axes_are_packed_by_several_launches() -> None:
    host = sample("i4", (2, 2, 2, 3, 2)) % 1000
    x = on_card("cupy", host).transpose(4, 3, 2, 1, 0)
    np.testing.assert_array_equal(host_of(call["sort"](x, axis=1)), np.sort(host.T, axis=1))


@pytest.mark.parametrize("function", ["sort", "sum", "cumsum"])
def test_a_permuted_array_takes_the_launches_of_a_packed_one(function: str) -> None:
    host = sample("i4", (3, 5, 4)) % 1000
    for order in ((0, 2, 1), (1, 2, 0), (2, 1, 0)):
        launches: list[int] = []
        for x, axis in ((host, 1), (host.transpose(order), order.index(1))):
            own = on_card("cupy", host) if x is host else on_card("cupy", host).transpose(*order)
            fake_cupy.log.clear()
            np.testing.assert_array_equal(host_of(call[function](own, axis=axis)), getattr(np, function)(x, axis=axis))
            launches.append(len([line for line in fake_cupy.log if line.startswith("launch")]))
        assert launches[0] == launches[1]


@pytest.mark.parametrize("order", [(1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2), (2, 0, 3, 1)])
@pytest.mark.parametrize("axis", [0, 3])
def test_results_lie_in_the_order_of_the_axes_that_are_left(order: tuple[int, ...], axis: int) -> None:
    host = sample("i4", (2, 3, 4, 5)) % 1000
    x = on_card("cupy", host).transpose(*order)
    for function in ("sum", "sort"):
        found, expected = call[function](x, axis=axis), getattr(np, function)(host.transpose(order), axis=axis)
        np.testing.assert_array_equal(host_of(found), expected)
        assert np.argsort(found.strides).tolist() == np.argsort(expected.strides).tolist()


@pytest.mark.parametrize("step", [2, -2])
def test_what_reaches_further_than_an_index_is_moved_in_pieces(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(step_calls, "LARGEST_U32", 150)
    host = sample("i4", (7, 120)) % 1000
    x = on_card("cupy", host)[::-1, ::step]
    fake_cupy.log.clear()
    np.testing.assert_array_equal(host_of(call["sort"](x, axis=0)), np.sort(host[::-1, ::step], axis=0))
    assert len([line for line in fake_cupy.log if line.startswith("launch")]) > 7
    strange = on_card("cupy", sample("u1", 1200))[1:1001].view("i4")  # between words
    np.testing.assert_array_equal(host_of(call["sort"](strange)), np.sort(strange.host))


def test_elements_are_taken_by_their_places_on_the_card() -> None:
    key: Any = key_cases.Absolute()
    host = np.random.default_rng(6).integers(-99, 99, (3, 8)).astype("i4")
    x, by_key = on_card("cupy", host), cast(Any, gpusort.sort_by_key)
    np.testing.assert_array_equal(host_of(call["sort"](x, axis=0, key=key)), gpusort.sort(host, axis=0, key=key))
    np.testing.assert_array_equal(host_of(call["max"](x, axis=0, key=key)), gpusort.max(host, axis=0, key=key))
    values = np.arange(8) + 1j
    keys, moved = by_key(on_card("cupy", host[0]), on_card("cupy", values))
    np.testing.assert_array_equal(host_of(keys), np.sort(host[0]))
    np.testing.assert_array_equal(host_of(moved), values[np.argsort(host[0], kind="stable")])


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_of_two_cards_do_not_meet(library: str) -> None:
    keys, values = on_card(library, sample("u4", 9)), on_card(library, sample("u4", 9), device=1)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^values: expected an array on CUDA device 0, as keys is"):
        cast(Any, gpusort.sort_by_key)(keys, values)


class Foreign:
    """An array of a library that nobody knows, with work queued on a stream."""

    def __init__(self, inside: fake_cupy.ndarray, stream: int | None = None) -> None:
        self.inside = inside
        self.__cuda_array_interface__ = {**inside.__cuda_array_interface__, "stream": stream}


@pytest.mark.parametrize("is_planned", [False, True])
@pytest.mark.parametrize("goes", ["beside", "out"])
def test_every_array_is_kept_in_the_order_of_its_stream(goes: str, is_planned: bool) -> None:
    host = sample("u4", 20)
    x, other = (Foreign(fake_cupy.on_card(host, device=1), stream) for stream in (None, 99))
    arrays, out = ((x, other), {}) if goes == "beside" else ((x,), {"out": other})
    function: Any = gpusort.sort_by_key if goes == "beside" else gpusort.sort
    prepared = gpusort.plan(function, *arrays, **out) if is_planned else None
    for _ in range(2):
        fake_cupy.log.clear()
        found: Any = prepared(*arrays) if prepared else function(*arrays, **out)
        assert fake_cupy.log[0] == "stream 0 waits for stream 99"
        assert fake_cupy.log[-1] == "stream 99 waits for stream 0"
        np.testing.assert_array_equal(host_of(found[0] if goes == "beside" else other.inside), np.sort(host))


def test_arrays_of_two_streams_in_one_call() -> None:
    host = sample("u4", 20)
    x, other = (Foreign(fake_cupy.on_card(host), stream) for stream in (88, 99))
    fake_cupy.log.clear()
    cast(Any, gpusort.merge)(x, other)
    assert set(fake_cupy.log[:2]) == {f"stream 0 waits for stream {number}" for number in (88, 99)}
    assert set(fake_cupy.log[-2:]) == {f"stream {number} waits for stream 0" for number in (88, 99)}
    fake_cupy.log.clear()
    cast(Any, gpusort.sort_inplace)(x)
    assert [line for line in fake_cupy.log if "waits" in line] == [
        "stream 0 waits for stream 88", "stream 88 waits for stream 0",
    ]  # fmt: skip
    other = Foreign(fake_cupy.on_card(host, device=1), 99)
    for pair in ((x, other), (other, x)):
        with pytest.raises(gpusort.InvalidArgumentError, match=r"^y: expected an array on CUDA device"):
            cast(Any, gpusort.merge)(*pair)


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_a_new_thread_has_the_driver_s_context_made_current(library: str) -> None:
    host = sample("f4", 500)
    x = on_card(library, host)
    found = [call["sort"](x)]
    for _ in range(3):  # one thread after another, none of which has used the runtime
        thread = threading.Thread(target=lambda: found.append(call["sort"](x)))
        thread.start()
        thread.join()
    assert len(found) == 4
    for one in found:
        np.testing.assert_array_equal(host_of(one), np.sort(host))
