"""What the front asks of arrays on a CUDA device, on stand-ins for cupy and torch: no card is needed."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import gpusort
from gpusort.arrays import cuda
from gpusort.arrays.kinds import IN_SCOPE, Device, Kind, Viewed, scope_of_all
from gpusort.arrays.registry import recognised
from gpusort.types.dtypes import key_for
from gpusort.types.errors import TargetUnavailableError, UnsupportedTypeError
from gpusort.types.monoids import MinMax
from gpusort.types.specs import Memory
from tests import fake_cupy, fake_torch
from tests.array_classes import forget_classes
from tests.plan_keys import located, signature_of

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture(name="cp")
def cupy_without_a_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = fake_cupy.module()
    monkeypatch.setitem(sys.modules, "cupy", made)
    yield from _with_nothing_known(made)


@pytest.fixture(name="torch")
def torch_without_a_card(monkeypatch: pytest.MonkeyPatch, cp: Any) -> ModuleType:
    made = fake_torch.module()
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


def _with_nothing_known(made: ModuleType) -> Iterator[Any]:
    fake_cupy.forget()
    forget_classes()
    cuda.device_count.cache_clear()
    yield made
    forget_classes()
    cuda.device_count.cache_clear()
    assert fake_cupy.current_device == [0]
    assert not fake_cupy.entered


class Foreign:
    """An array of a library that nobody knows."""

    def __init__(self, inside: fake_cupy.ndarray, *, read_only: bool = False, **more: object) -> None:
        self.inside = inside
        self.__cuda_array_interface__ = {
            **inside.__cuda_array_interface__,
            "data": (inside.data.ptr, read_only),
            "stream": None,
            **more,
        }


class Numbas(Foreign):
    """Numba's."""


def as_cuda_array(values: Any, sync: bool) -> Numbas:
    assert not sync, "nothing is waited for"
    return Numbas(values)


def class_of(x: Any) -> Any:
    return cast(Any, type(x))


class TorchsStream:
    """As torch shows one."""

    def __init__(self, device: int) -> None:
        self.cuda_stream = 70 + device


Numbas.__module__ = "numba.cuda.cudadrv.devicearray"


def made_by(library: str, host: np.ndarray[Any, Any], device: int = 0) -> Any:
    inside = fake_cupy.on_card(host, device)
    match library:
        case "cupy":
            return inside
        case "torch":
            return fake_torch.Tensor(inside)
        case "numba":
            return Numbas(inside)
        case _:
            return Foreign(inside)


def part_of(array: Any, index: Any) -> Any:
    """A view of one."""
    if isinstance(array, Foreign):
        return type(array)(array.inside[index])
    return array[index]


@pytest.fixture(name="library", params=["cupy", "torch", "numba", "nobody's"])
def any_library(request: pytest.FixtureRequest, torch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> str:
    numba_cuda = ModuleType("numba.cuda")
    vars(numba_cuda)["as_cuda_array"] = as_cuda_array
    monkeypatch.setitem(sys.modules, "numba.cuda", numba_cuda)
    return str(request.param)


LAYOUTS: dict[str, Any] = {
    "packed": ...,
    "strided": np.s_[:, ::2, 1:],
    "one row": np.s_[1, 2],
    "shifted": np.s_[0, 0, 1:],
    "none": np.s_[:0],
}


def placed(kind: Kind, x: Any) -> tuple[Device[Any], Any]:
    """Where an array lies, and as what plans work on it."""
    found, seen = located(kind, x)
    return found.placed(seen), seen


def inside_of(x: Any) -> fake_cupy.ndarray:
    return cast(fake_cupy.ndarray, x if isinstance(x, fake_cupy.ndarray) else x.inside)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_are_seen_where_they_lie(library: str, layout: str) -> None:
    host = HOST[LAYOUTS[layout]]
    x = part_of(made_by(library, HOST), LAYOUTS[layout])
    kind, array = recognised("x", x)
    assert array is x
    spec, (device, seen) = kind.spec("x", x), placed(kind, x)
    assert (spec.shape, spec.dtype, spec.memory, spec.is_aligned) == (host.shape, host.dtype, Memory.CUDA, True)
    assert (spec.strides is None) == host.flags.c_contiguous
    assert spec.strides in (None, inside_of(x).strides)
    np.testing.assert_array_equal(inside_of(seen).host, host)
    if host.size:
        assert device.address(seen) == device.handle(seen) == inside_of(x).data.ptr
        inside_of(seen).fill(7)
        assert (inside_of(x).host == 7).all(), "it is the same memory"


def test_elements_that_lie_between_words_are_told(library: str) -> None:
    x = part_of(made_by(library, np.arange(25, dtype=np.uint8)), np.s_[1:])
    kind, _ = recognised("x", x)
    assert kind.spec("x", x).is_aligned, "bytes lie anywhere"
    across = fake_cupy.ndarray((6,), np.dtype("f4"), inside_of(x).data, (4,))
    x = across if library == "cupy" else fake_torch.Tensor(across) if library == "torch" else Foreign(across)
    kind, _ = recognised("x", x)
    assert not kind.spec("x", x).is_aligned


def test_signatures_tell_apart_what_plans_depend_on(library: str) -> None:
    x = made_by(library, HOST)
    kind, _ = recognised("x", x)
    others = [
        made_by(library, HOST.astype(np.float64)),
        made_by(library, HOST.reshape(3, 2, 4)),
        made_by(library, HOST, device=1),
        part_of(made_by(library, np.repeat(HOST, 2, axis=2)), np.s_[:, :, ::2]),
        part_of(made_by(library, np.repeat(HOST, 3, axis=2)), np.s_[:, :, ::3]),
        part_of(made_by(library, np.arange(25, dtype=np.float32)), np.s_[1:]),
    ]
    signatures = [signature_of(kind, array) for array in (x, *others)]
    assert len(set(signatures)) == len(signatures)
    assert signature_of(kind, made_by(library, HOST + 1)) == signatures[0]


@pytest.mark.parametrize("device", [0, 1])
def test_results_are_of_the_callers_kind_on_its_device(library: str, device: int) -> None:
    x = made_by(library, HOST, device)
    kind, _ = recognised("x", x)
    expected = fake_cupy.ndarray if library == "nobody's" else class_of(x)
    scope = kind.scope(x)
    assert (scope is IN_SCOPE) == (device == 0)
    with scope:
        where, _ = placed(kind, x)
        assert where.stream() == 0
        turned = (8, 16, 80)  # bytes from one element to the next along each axis
        empty = where.empty((2, 5, 3), np.dtype(np.int64), None)(), where.empty((2, 5, 3), np.dtype(np.int64), turned)()
        made = [*empty, where.from_host(HOST)]
        results: list[Any] = [kind.result(array, x) for array in made]
        np.testing.assert_array_equal(where.to_host(made[2]), HOST)
    assert inside_of(made[1]).strides == turned
    for found, array, dtype in zip(results, made, ("i8", "i8", "f4"), strict=True):
        assert type(found) is expected
        its_kind, _ = recognised("x", found)
        its_spec, (its_place, seen) = its_kind.spec("x", found), placed(its_kind, found)
        assert (its_spec.shape, its_spec.dtype) == (inside_of(array).shape, np.dtype(dtype))
        assert its_place.address(seen) == where.address(array), "it is the same memory"
        assert its_place.device(seen) == device


def test_nothing_goes_through_the_host_or_waits(library: str) -> None:
    x = made_by(library, HOST)
    kind, _ = recognised("x", x)
    fake_cupy.log.clear()
    signature_of(kind, x)
    kind.spec("x", x)
    if isinstance(kind, Viewed):
        kind.given_back(kind.view(x), x)
    placed(kind, x)[0].empty((3,), np.dtype(np.int32), None)()
    assert kind.scope(x) is IN_SCOPE
    assert fake_cupy.log == []


# -- streams ----------------------------------------------------------------------------------------------


def launch_within(kind: Kind, x: object) -> list[str]:
    """What happens around a launch on an array."""
    fake_cupy.log.clear()
    with kind.scope(x):
        fake_cupy.log.append(f"launch on {fake_cupy.module().cuda.get_current_stream().ptr}")
    return fake_cupy.log


def fail_within(kind: Kind, x: object) -> None:
    fake_cupy.log.clear()
    with kind.scope(x):
        raise ZeroDivisionError


def test_torchs_current_stream_is_worked_on(torch: ModuleType) -> None:
    x = made_by("torch", HOST)
    kind, _ = recognised("x", x)
    assert launch_within(kind, x) == ["launch on 0"]
    with fake_torch.stream(77):
        assert launch_within(kind, x) == ["launch on 77"]
        with fake_cupy.Stream(77):
            assert kind.scope(x) is IN_SCOPE
    with fake_cupy.Stream(5):
        assert launch_within(kind, x) == ["launch on 0"]


def test_an_early_torch_is_asked_in_public(torch: Any) -> None:
    del torch._C
    torch.cuda = SimpleNamespace(current_stream=TorchsStream)
    x = made_by("torch", HOST, device=1)
    kind, _ = recognised("x", x)
    assert launch_within(kind, x) == ["launch on 71"]


def test_streams_of_others_are_kept_in_order(cp: Any) -> None:
    inside = fake_cupy.on_card(HOST)
    for stream, expected in (
        (99, ["stream 0 waits for stream 99", "launch on 0", "stream 99 waits for stream 0"]),
        (1, ["launch on 0"]),  # the default stream, as the interface writes it
        (None, ["launch on 0"]),
    ):
        x = Foreign(inside, stream=stream)
        kind, _ = recognised("x", x)
        assert launch_within(kind, x) == expected
    x = Foreign(inside, stream=99)
    kind, _ = recognised("x", x)
    with pytest.raises(ZeroDivisionError):
        fail_within(kind, x)
    assert fake_cupy.log == ["stream 0 waits for stream 99", "stream 99 waits for stream 0"]


# -- what is refused --------------------------------------------------------------------------------------


def test_what_may_only_be_read_says_so(cp: Any) -> None:
    for read_only in (False, True):
        x = Foreign(fake_cupy.on_card(HOST), read_only=read_only)
        kind, _ = recognised("x", x)
        assert kind.is_read_only(x) == read_only


def test_the_address_of_no_elements_tells_of_no_device(cp: Any) -> None:
    """It may be null, or one past the end, where another device's memory begins."""
    beside = fake_cupy.on_card(HOST, 1)
    for address in (None, 0, beside.data.ptr):
        x = Foreign(fake_cupy.on_card(HOST[:0]), data=(address, False))
        kind, _ = recognised("x", x)
        assert isinstance(kind, Viewed)
        assert kind.view(x).data.device_id == 0
        with kind.scope(x):
            assert fake_cupy.current_device == [0]


def test_foreign_arrays_that_fit_no_kernel_are_refused(cp: Any) -> None:
    inside = fake_cupy.on_card(HOST)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"typestr": ">f4"}, "native byte order"),
        ({"typestr": "|V4"}, "expected numbers"),
        ({"mask": inside}, "masked arrays"),
    )
    for more, expected in cases:
        x = Foreign(inside, **more)
        kind, _ = recognised("x", x)
        with pytest.raises(UnsupportedTypeError, match=f"^x: .*{expected}"):
            kind.spec("x", x)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_tensors_that_fit_no_kernel_are_refused(torch: Any, where: str) -> None:
    inside = fake_cupy.on_card(HOST) if where == "cuda" else HOST.copy()
    for x, expected in (
        (fake_torch.Tensor(inside, dtype=fake_torch.BFLOAT16), "bfloat16"),
        (fake_torch.Tensor(inside, neg=True), "resolve_neg"),
        (fake_torch.Tensor(inside, conj=True), "resolve_conj"),
        (fake_torch.Tensor(inside, freed=True), "no memory"),
    ):
        kind, _ = recognised("x", x)
        with pytest.raises(UnsupportedTypeError, match=f"^x: expected a dense torch tensor .* on {where}.*") as error:
            kind.spec("x", x)
        assert expected in str(error.value)


def test_a_tensor_that_requires_grad_is_asked_once(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's refusal takes as long as ten calls."""
    asked: list[bool] = []
    numpy = fake_torch.Tensor.numpy

    def noted(self: fake_torch.Tensor) -> Any:
        asked.append(self.requires_grad)
        return numpy(self)

    monkeypatch.setattr(fake_torch.Tensor, "numpy", noted)
    x = fake_torch.Tensor(HOST.copy(), requires_grad=True)
    np.testing.assert_array_equal(cast(Any, gpusort.sort)(x).inside, np.sort(HOST))
    assert asked == [False]


def test_what_torch_has_no_dtype_for_is_left_in_numpys_array(torch: Any) -> None:
    found = cast(Any, gpusort.scan)(fake_torch.Tensor(HOST.reshape(-1)), MinMax(key_for(HOST.dtype)))
    assert type(found) is np.ndarray
    assert found.dtype.names is not None
    assert found.shape == (24,)


def test_a_warm_call_refuses_a_tensor_without_memory(torch: Any) -> None:
    """torch gives the CPU and the device meta one number, -1."""
    cast(Any, gpusort.sort)(fake_torch.Tensor(HOST.copy()))
    with pytest.raises(UnsupportedTypeError, match=r"^x: expected a dense torch tensor .* on meta"):
        cast(Any, gpusort.sort)(fake_torch.Tensor(HOST.copy(), elsewhere="meta"))


def test_without_cupy_an_array_on_a_device_is_told_what_to_install(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, foreign = made_by("torch", HOST), Foreign(fake_cupy.on_card(HOST))
    monkeypatch.setitem(sys.modules, "cupy", None)
    for array in (x, foreign):
        with pytest.raises(TargetUnavailableError, match="cupy is not installed"):
            recognised("x", array)


def test_of_several_arrays_the_first_ones_stream_is_the_current_one() -> None:
    """It is made current last, and left first."""
    entered = list[str]()

    @contextmanager
    def scope(name: str) -> Generator[None]:
        entered.append(name)
        yield
        assert entered.pop() == name

    def of(name: str) -> AbstractContextManager[object]:
        return IN_SCOPE if name == "in scope" else scope(name)

    kind = cast(Kind, SimpleNamespace(scope=of))
    first, other = "first", "other"
    for given in ((first, other), (first, "in scope", other), (first, other, first)):
        with scope_of_all([(kind, x) for x in given]):
            assert entered == [other, first]
        assert not entered
    assert scope_of_all([(kind, "in scope")]) is IN_SCOPE
