"""Arrays on a card go in where they lie and come out as what they were: cupy's, torch's, numba's, anybody's."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gpusort
from gpusort.targets import registry
from tests.opened import or_skip
from tests.reference import Array, sample, sorted_by_numpy, whole_numbers

if TYPE_CHECKING:
    import cupy

DTYPES = ("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")


@pytest.fixture(scope="module", name="cp")
def cupy_with_a_card() -> ModuleType:
    or_skip(registry.target, "cuda")
    import cupy

    return cupy


def on_card(cp: Any, x: Array) -> cupy.ndarray:
    moved: cupy.ndarray = cp.asarray(x)
    return moved


def same_bits(found: cupy.ndarray, expected: Array) -> bool:
    host = found.get()
    return host.dtype == expected.dtype and host.shape == expected.shape and host.tobytes() == expected.tobytes()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cupy_arrays_sort_on_the_card(cp: Any, dtype: str, descending: bool) -> None:
    host = sample(dtype, 3000)
    x = on_card(cp, host)
    found = gpusort.sort(x, descending=descending, stable=True)
    assert type(found) is cp.ndarray
    assert same_bits(found, sorted_by_numpy(host, descending=descending))
    assert same_bits(x, host)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_every_layout_on_the_card_sorts(cp: Any, axis: int | None) -> None:
    base = sample("f4", (8, 12))
    for host, x in (
        (base.T, on_card(cp, base).transpose()),
        (base[::2, 1::3], on_card(cp, base)[::2, 1::3]),
        (base[::-1], on_card(cp, base)[::-1]),
        (base[:0], on_card(cp, base)[:0]),
    ):
        expected = np.sort(host, axis=axis, kind="stable")
        assert same_bits(gpusort.sort(x, axis=axis, stable=True), np.ascontiguousarray(expected))


def test_in_place_is_in_place_on_the_card(cp: Any) -> None:
    host = sample("f4", (5, 300))
    x = on_card(cp, host)
    address = x.data.ptr
    gpusort.sort_inplace(x, stable=True)
    assert x.data.ptr == address
    assert same_bits(x, sorted_by_numpy(host))
    gpusort.sort_inplace(x[:, ::2], axis=0)
    host = sorted_by_numpy(host)
    host[:, ::2].sort(axis=0)
    np.testing.assert_array_equal(x.get(), host)


def test_out_on_the_card(cp: Any) -> None:
    host = sample("u4", (4, 50))
    out = on_card(cp, np.zeros_like(host))
    assert gpusort.sort(on_card(cp, host), out=out) is out
    assert same_bits(out, np.sort(host))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^out: expected an array of the same kind as x"):
        gpusort.sort(host, out=out)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]  # the mistake that is tested


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(4, 50), (300, 4000), (3, 1_000_000)])
def test_out_may_lie_where_the_array_does(cp: Any, shape: tuple[int, int], axis: int) -> None:
    host = sample("u4", shape)
    x = on_card(cp, host)
    assert gpusort.sort(x, axis=axis, out=x) is x
    assert same_bits(x, np.sort(host, axis=axis))
    x = on_card(cp, host)
    gpusort.sort(x[:-1], axis=axis, out=x[1:])
    assert same_bits(cp.ascontiguousarray(x[1:]), np.sort(host[:-1], axis=axis))


@pytest.mark.parametrize("dtype", ["i4", "u1", "f4", "f8"])
def test_scans_stay_on_the_card(cp: Any, dtype: str) -> None:
    host = whole_numbers(dtype, 5000)
    found = gpusort.cumsum(on_card(cp, host))
    assert isinstance(found, cp.ndarray)
    assert found.dtype == np.cumsum(host).dtype
    np.testing.assert_array_equal(found.get(), np.cumsum(host))


@pytest.mark.parametrize("name", ["sum", "min", "max", "argmin", "argmax", "any", "all"])
def test_reductions_stay_on_the_card(cp: Any, name: str) -> None:
    host = whole_numbers("f4", (6, 500))
    x = on_card(cp, host)
    for axis in (None, 0, 1):
        found = getattr(gpusort, name)(x, axis=axis)
        expected = getattr(np, name)(host, axis=axis)
        assert type(found) is cp.ndarray
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.get(), expected)


def test_work_follows_the_callers_stream(cp: Any) -> None:
    host = sample("u4", 1 << 20)
    with cp.cuda.Stream(non_blocking=True) as stream:
        x = on_card(cp, host)
        found = gpusort.sort(x)
        assert same_bits(found, np.sort(host))
        stream.synchronize()


def test_an_array_on_a_card_does_not_go_to_the_cpu(cp: Any) -> None:
    x = on_card(cp, sample("u4", 4))
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^target: 'cpu' works in host memory, .* use 'cuda'"):
        gpusort.sort(x, target="cpu")


# What the checkers have no types for is called past them.
sort: Callable[..., Any] = gpusort.sort
sort_inplace: Callable[..., Any] = gpusort.sort_inplace
max_of: Callable[..., Any] = gpusort.max


class Foreign:
    """An array of a library that nobody knows."""

    def __init__(self, array: cupy.ndarray, read_only: bool) -> None:
        self._array = array
        address = array.data.ptr
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "data": (address, read_only)}


def test_any_cuda_array_interface_sorts(cp: Any) -> None:
    host = sample("i8", 777)
    x: Any = Foreign(on_card(cp, host), read_only=True)
    assert same_bits(sort(x), np.sort(host))
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^x: expected an array that can be written"):
        sort_inplace(x)


def test_numbas_arrays_stay_numbas(cp: Any) -> None:
    numba_cuda = pytest.importorskip("numba.cuda")
    host = sample("f8", 500)
    x = numba_cuda.as_cuda_array(on_card(cp, host))
    found = sort(x)
    assert type(found) is type(x)
    np.testing.assert_array_equal(found.copy_to_host(), np.sort(host))


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "u1", "?"])
def test_torchs_tensors_stay_torchs(cp: Any, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    host = sample(dtype, (7, 300))
    x = torch.from_numpy(host).cuda()
    found = sort(x, stable=True)
    assert type(found) is torch.Tensor
    assert found.device == x.device
    assert found.dtype == x.dtype
    assert found.cpu().numpy().tobytes() == sorted_by_numpy(host).tobytes()
    address = x.data_ptr()
    sort_inplace(x[:, ::3])
    sort_inplace(x)
    assert x.data_ptr() == address
    np.testing.assert_array_equal(x.cpu().numpy(), np.sort(host))
    total = max_of(x, axis=1)
    assert type(total) is torch.Tensor
    assert total.device == x.device
    np.testing.assert_array_equal(total.cpu().numpy(), np.max(host, axis=1))


def test_torch_works_on_its_own_stream(cp: Any) -> None:
    torch = pytest.importorskip("torch")
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.rand(1 << 20, device="cuda")
        np.testing.assert_array_equal(sort(x).cpu().numpy(), np.sort(x.cpu().numpy()))


def test_what_torch_has_and_we_have_not_is_refused(cp: Any) -> None:
    torch = pytest.importorskip("torch")
    for device in ("cpu", "cuda"):
        with pytest.raises(gpusort.UnsupportedTypeError, match=r"^x: "):
            sort(torch.zeros(3, dtype=torch.bfloat16, device=device))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_argsort_and_values_of_plain_arrays_are_those_of_any_layout(cp: Any, dtype: str, descending: bool) -> None:
    """Plain arrays take a short way."""
    for length in (1, 2, 1000, 70_001):
        host = sample(dtype, length, seed=length)
        padded = np.repeat(host, 2)
        plain, strided = on_card(cp, host), on_card(cp, padded)[::2]
        places: Any = gpusort.argsort(plain, descending=descending)
        expected: Any = gpusort.argsort(host, descending=descending)
        np.testing.assert_array_equal(places.get(), expected)
        np.testing.assert_array_equal(cp.asnumpy(gpusort.argsort(strided, descending=descending)), expected)
        for value in ("u1", "f2", "i4", "f8"):
            values = (np.arange(length) % 2001).astype(value)
            keys, moved = gpusort.sort_by_key(plain, on_card(cp, values), descending=descending)
            on_host = gpusort.sort_by_key(host, values, descending=descending)
            assert same_bits(keys, on_host[0])
            assert same_bits(moved, on_host[1])
        np.testing.assert_array_equal(plain.get(), host)


def test_rows_of_plain_arrays_argsort(cp: Any) -> None:
    host = sample("f4", (37, 1000))
    for shape in ((37, 1000), (1000, 37), (5, 7400)):
        x = host.reshape(shape)
        found: Any = gpusort.argsort(on_card(cp, x))
        np.testing.assert_array_equal(found.get(), np.argsort(x, kind="stable"))
        assert found.dtype == np.int64


def test_pairs_that_do_not_belong_together_are_refused(cp: Any) -> None:
    keys = cp.arange(10)
    with pytest.raises(gpusort.InvalidArgumentError, match="one for each key"):
        gpusort.sort_by_key(keys, cp.arange(9))
    with pytest.raises(gpusort.InvalidArgumentError, match="in one dimension"):
        gpusort.sort_by_key(keys.reshape(2, 5), keys.reshape(2, 5))
    with pytest.raises(gpusort.UnsupportedTypeError):
        gpusort.argsort(cp.zeros(9, np.complex64))


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "f2"])
def test_jaxs_arrays_stay_jaxs(cp: Any, dtype: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no CUDA device here")
    host = sample(dtype, (7, 300))
    x = jax.numpy.asarray(host)
    for axis in (0, 1):
        found = sort(x, axis=axis)
        assert isinstance(found, jax.Array)
        assert found.devices() == x.devices()
        np.testing.assert_array_equal(np.asarray(found), np.sort(host, axis=axis))
        np.testing.assert_array_equal(np.asarray(max_of(x, axis=axis)), np.max(host, axis=axis))
    np.testing.assert_array_equal(np.asarray(x), host)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^x: expected an array that can be written"):
        sort_inplace(x)


def test_what_a_library_does_before_and_after_is_in_order(cp: Any) -> None:
    torch = pytest.importorskip("torch")
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            for _ in range(20):
                x = torch.rand(1 << 22, device="cuda") * 2 - 1
                expected, found = torch.sort(x).values + 1, sort(x) + 1
                del x  # its memory may be given out anew at once
                torch.rand(1 << 22, device="cuda")
                assert torch.equal(found, expected)


def test_an_array_of_another_stream_is_waited_for(cp: Any) -> None:
    stream = cp.cuda.Stream(non_blocking=True)
    for _ in range(20):
        with stream:
            x = cp.random.rand(1 << 22)
            x += 1
            expected = cp.sort(x)
        foreign: Any = Foreign(x, read_only=False)
        foreign.__cuda_array_interface__["stream"] = stream.ptr
        found = sort(foreign)
        with stream:
            x.fill(0)  # behind the sort, which has read it
        stream.synchronize()
        assert same_bits(found, expected.get())


def test_a_warm_call_costs_little_of_the_host(cp: Any) -> None:
    """Printed, for whoever runs the tests on a card: the bar is 10 us."""
    torch = pytest.importorskip("torch")
    x = cp.arange(1000, dtype=cp.uint32)
    for name, array in (("cupy", x), ("torch", torch.rand(1000, device="cuda"))):
        for _ in range(50):
            sort(array)
        cp.cuda.runtime.deviceSynchronize()
        start = time.perf_counter()
        for _ in range(300):
            sort(array)
        print(f"{name}: {(time.perf_counter() - start) / 300 * 1e6:.1f} us a call")
        cp.cuda.runtime.deviceSynchronize()


def test_calls_are_recorded_into_graphs_of_torchs(cp: Any) -> None:
    """Prepared ones, and ordinary ones: torch has memory for what a graph allocates."""
    torch = pytest.importorskip("torch")
    plan: Any = gpusort.plan
    for function, length in (
        (gpusort.sort, 1000),
        (gpusort.sort, 100_000),
        (gpusort.argsort, 70_000),
        (gpusort.sum, 5000),
    ):
        x = torch.rand(length, device="cuda")
        prepared = plan(function, x)
        ordinary: Any = function
        for _ in range(3):
            prepared(x)
            ordinary(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = prepared(x), ordinary(x)
        for _ in range(3):
            x.copy_(torch.rand(length, device="cuda"))
            graph.replay()
            torch.cuda.synchronize()
            expected = ordinary(x.clone())
            for result in found:
                assert bool(torch.equal(result, expected))


def test_a_prepared_call_is_recorded_into_a_graph_of_cupys(cp: Any) -> None:
    x = cp.random.rand(100_000)
    plan: Any = gpusort.plan
    prepared = plan(gpusort.sort, x)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        found = prepared(x)
        graph = stream.end_capture()
        for _ in range(3):
            x[:] = cp.random.rand(100_000)
            graph.launch(stream)
            stream.synchronize()
            assert same_bits(found, np.sort(x.get()))
