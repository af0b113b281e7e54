"""JAX's arrays and those of libraries that nobody knows, by way of DLPack."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import gpusort
from gpusort.arrays.host import HOST as HOST_MEMORY
from gpusort.arrays.kinds import IN_SCOPE, Viewed
from gpusort.arrays.registry import recognised
from gpusort.types.errors import UnsupportedTypeError
from gpusort.types.searches import ArgMin
from gpusort.types.specs import Memory
from tests import fake_cupy
from tests.array_classes import forget_classes
from tests.new_process import printed
from tests.plan_keys import layout_of, signature_of
from tests.striking import events, strike

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


class Array:
    """Of a small library: NumPy's memory, or the fake cupy's."""

    __module__ = "shelf.core"

    def __init__(self, inside: Any, kind: int | None = None) -> None:
        self.inside = inside
        self.kind = kind or (2 if isinstance(inside, fake_cupy.ndarray) else 1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, self.inside.data.device_id if self.kind == 2 else 0

    def __dlpack__(self, **more: Any) -> Any:
        if self.kind == 2:
            fake_cupy.log.append(f"stream {more['stream']} waits for the shelf")
            return self.inside
        return self.inside.__dlpack__(**more)


class Broken:
    """Something that has no dtype of NumPy's."""

    def __dlpack__(self, **more: object) -> int:
        return 0


class Bare(Array):
    """Of one that takes over no memory."""

    __module__ = "bare"


class JaxArray(Array):
    """JAX's, as far as it is asked."""

    __module__ = "jaxlib"
    dtype = property(lambda self: self.inside.dtype)
    shape = property(lambda self: self.inside.shape)
    ndim = property(lambda self: self.inside.ndim)
    sharding = property(lambda self: self.__dlpack_device__())
    committed = False

    def devices(self) -> list[Any]:
        return [SimpleNamespace(platform={1: "cpu", 2: "gpu", 99: "tpu"}[self.kind])]


class Spread(JaxArray):
    def devices(self) -> Any:
        return range(4)


class Tracer(JaxArray):
    pass


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    shelf, bare = ModuleType("shelf"), ModuleType("bare")
    vars(shelf)["from_dlpack"] = Array
    monkeypatch.setitem(sys.modules, "shelf", shelf)
    monkeypatch.setitem(sys.modules, "bare", bare)
    forget_classes()
    yield
    forget_classes()


@pytest.fixture(name="cp")
def cupy_without_a_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = fake_cupy.module()
    monkeypatch.setitem(sys.modules, "cupy", made)
    fake_cupy.forget()
    yield made
    assert fake_cupy.current_device == [0]


@pytest.fixture(name="jax")
def jax_or_its_stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    jax = ModuleType("jax")
    vars(jax).update(
        Array=JaxArray, core=SimpleNamespace(Tracer=Tracer), dlpack=SimpleNamespace(from_dlpack=JaxArray),
        numpy=SimpleNamespace(array=JaxArray), device_put=JaxArray, config=SimpleNamespace(jax_enable_x64=True),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "jax", jax)
    return jax


@pytest.mark.parametrize("memory", [1, 3])  # plain, and pinned
@pytest.mark.parametrize("index", [..., np.s_[:, ::2], np.s_[::-1], np.s_[1, 2, 3], np.s_[:0]])
def test_arrays_on_the_host_are_seen_where_they_lie(index: Any, memory: int) -> None:
    x = Array(np.asarray(HOST.copy()[index]), memory)
    kind, array = recognised("x", x)
    assert array is x
    assert kind.is_host
    assert isinstance(kind, Viewed)
    spec, view = kind.spec("x", x), kind.view(x)
    assert (spec.shape, spec.dtype, spec.memory) == (x.inside.shape, x.inside.dtype, Memory.HOST)
    assert (spec.strides is None) == x.inside.flags.c_contiguous
    assert view.size == 0 or np.shares_memory(view, x.inside)
    assert layout_of(kind, x) == layout_of(kind, Array(x.inside))


def test_layouts_tell_apart_what_plans_depend_on() -> None:
    others = [HOST, HOST.astype("f8"), HOST.reshape(3, 2, 4), HOST[:, ::2], HOST[:, 1:]]
    kind, _ = recognised("x", Array(HOST))
    assert len({layout_of(kind, Array(other)) for other in others}) == len(others)


@pytest.mark.parametrize("library", [Array, Bare, JaxArray])
def test_results_are_taken_over_by_the_arrays_own_library(library: Any, jax: Any) -> None:
    x = library(HOST.copy())
    kind, _ = recognised("x", x)
    assert isinstance(kind, Viewed)
    for shape, dtype in (((2, 5), "i8"), ((), "f4"), ((3, 0), "u1"), ((1 << 22,), "f8")):
        made = HOST_MEMORY.empty(shape, np.dtype(dtype), None)()
        made[...] = 7
        assert made.nbytes < 1 << 24 or made.ctypes.data % 64 == 0, "XLA takes over no other without a copy"
        found: Any = kind.given_back(made, x)
        assert type(found) is (np.ndarray if library is Bare else library)
        view = found if library is Bare else kind.view(found)
        assert (view.shape, view.dtype) == (shape, np.dtype(dtype))
        assert (view == 7).all()
        assert view.size == 0 or np.shares_memory(view, made)


def test_states_of_several_fields_are_numpys() -> None:
    host, reduce = np.arange(12, dtype="u4").reshape(3, 4), cast(Any, gpusort.reduce)
    found = reduce(Array(host), ArgMin(gpusort.key_for("u4")), axis=1)
    assert type(found) is np.ndarray
    assert found.dtype.names is not None
    np.testing.assert_array_equal(found, reduce(host, ArgMin(gpusort.key_for("u4")), axis=1))


def test_what_may_only_be_read_says_so(jax: Any) -> None:
    x = JaxArray(HOST)
    assert recognised("x", x)[0].is_read_only(x)
    other = Array(HOST.copy())
    assert recognised("x", other)[0].is_read_only(other) == (not np.from_dlpack(HOST.copy()).flags.writeable)


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("library", [Array, Bare, JaxArray])
def test_arrays_on_a_card_stay_there(library: Any, device: int, cp: Any, jax: Any) -> None:
    x = library(fake_cupy.on_card(HOST, device))
    kind, _ = recognised("x", x)
    assert not kind.is_host
    scope = kind.scope(x)
    assert (scope is IN_SCOPE) == (device == 0)
    with scope:
        fake_cupy.log.clear()
        assert isinstance(kind, Viewed)
        seen = kind.view(x)
        assert "stream 1 waits for the shelf" in fake_cupy.log
        assert seen is x.inside
        made = kind.base.placed(seen).empty((7,), np.dtype("i4"), None)()
        found: Any = kind.given_back(made, x)
    assert type(found) is (fake_cupy.ndarray if library is Bare else library)
    assert getattr(found, "inside", found) is made
    assert made.data.device_id == device
    spec = kind.spec("x", x)
    assert (spec.shape, spec.dtype, spec.memory) == (HOST.shape, HOST.dtype, Memory.CUDA)
    assert signature_of(kind, x) != signature_of(kind, library(fake_cupy.on_card(HOST, 1 - device)))
    assert not any(line.startswith("copy") for line in fake_cupy.log)


def test_what_lies_elsewhere_is_refused(jax: Any) -> None:
    for x, expected in (
        (Array(HOST, kind=10), "kind 10"),
        (JaxArray(HOST, kind=99), "on the CPU or a CUDA device"),
        (Spread(HOST), "on 4 devices"),
        (Tracer(HOST), "traced"),
    ):
        with pytest.raises(UnsupportedTypeError, match=f"^x: .*{expected}"):
            recognised("x", x)


def test_what_lies_elsewhere_is_named_also_where_its_class_is_known() -> None:
    x, other = Array(HOST.reshape(-1).copy()), Array(HOST.reshape(-1).copy(), 99)
    by_key, sort = cast(Any, gpusort.sort_by_key), cast(Any, gpusort.sort)
    for _ in range(2):
        by_key(x, x)
        with pytest.raises(UnsupportedTypeError, match=r"^values: expected .* memory of DLPack's kind 99"):
            by_key(x, other)
        with pytest.raises(UnsupportedTypeError, match=r"^out: expected .* memory of DLPack's kind 99"):
            sort(x, out=other)


def test_dtypes_that_numpy_has_not_are_refused(jax: Any) -> None:
    x = Array(Broken())
    kind, _ = recognised("x", x)
    with pytest.raises(UnsupportedTypeError, match=r"^x: expected a dense array .* found Array"):
        kind.spec("x", x)


# -- the real one, where it is installed ------------------------------------------------------------------


@pytest.fixture(name="jnp")
def real_jax() -> Iterator[Any]:
    """With arrays on the host, also where JAX has a card."""
    jax: Any = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.default_device(jax.devices("cpu")[0]):
        yield importlib.import_module("jax.numpy")


def traced(x: Any) -> Any:
    return recognised("x", x)[1]


def test_jaxs_own_arrays(jnp: Any) -> None:
    jax: Any = sys.modules["jax"]
    x = jnp.arange(1000, dtype=jnp.float32)[::-1]
    kind, _ = recognised("x", x)
    assert kind is recognised("x", jnp.ones(3))[0]
    assert isinstance(kind, Viewed)
    view = kind.view(x)
    assert view.ctypes.data == x.unsafe_buffer_pointer()
    made = HOST_MEMORY.empty((1 << 22,), np.dtype("f4"), None)()
    made[...] = 3
    found: Any = kind.given_back(made, x)
    assert isinstance(found, jax.Array)
    assert found.unsafe_buffer_pointer() == made.ctypes.data
    np.testing.assert_array_equal(gpusort.sort(x), jnp.sort(x))
    wider = r", and \.astype\('float32'\) has the same numbers"
    for refused, hint in (
        (jnp.ones(3, "bfloat16"), wider),
        (jnp.ones(3, jnp.float8_e5m2), wider),
        (jax.random.key(0), ""),
    ):
        kind, _ = recognised("x", refused)
        with pytest.raises(UnsupportedTypeError, match=rf"^x: .* \(it is of {refused.dtype}{hint}\)"):
            kind.spec("x", refused)
    with pytest.raises(UnsupportedTypeError, match=r"^x: found a traced array"):
        jax.jit(traced)(x)


def test_results_of_64_bits_keep_them_where_jax_has_none(jnp: Any) -> None:
    """A context allows 64 bits, and the arrays outlive it. JAX's own functions keep them."""
    jax: Any = sys.modules["jax"]
    with jax.enable_x64(True):
        for x in (jnp.array([2.0**-60 + 1, 0.1, -1e300]), jnp.array([1 << 40, -1, 3])):
            with jax.enable_x64(False):
                for given in (x, jax.device_put(x, jax.devices("cpu")[0])):
                    found = cast(Any, gpusort.sort)(given)
                    assert found.dtype == x.dtype
                    np.testing.assert_array_equal(np.asarray(found), np.sort(np.asarray(x)))


def test_no_interrupt_leaves_jax_with_64_bits(jnp: Any) -> None:
    """The context would last for good: JAX's settings are the thread's own."""
    jax: Any = sys.modules["jax"]
    with jax.enable_x64(True):
        x = jnp.array([0.5, 0.1])
    call = partial(cast(Any, gpusort.sum), x)
    for place in range(1, events(call) + 1):
        strike(call, place)
        assert not jax.config.jax_enable_x64, f"struck at {place}"
    assert call().dtype == np.float64


def test_dtypes_of_other_packages_are_told_from_numpys_of_the_same_kind() -> None:
    """float8_e5m2 says that it is of NumPy's kind "f"."""
    dtypes: Any = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    x = np.array([2, 1], dtypes.float8_e5m2)
    with pytest.raises(UnsupportedTypeError, match=r"^x: cannot order elements of dtype float8_e5m2"):
        gpusort.sort(x)
    assert gpusort.sort_by_key(np.array([2, 1]), x)[1].tolist() == [1, 2]


ON_DEVICES = """
import jax
import gpusort

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 3)
one, other = jax.devices()[1:]
for n in (5, 1 << 17, 1 << 23):
    free = jax.numpy.arange(n, dtype="float32")
    x = jax.device_put(free, other)
    for found in (gpusort.sort(x), gpusort.sum(x), *gpusort.top_k(x, 2)):
        assert found.devices() == {other} and found.committed, found.devices()
    found = gpusort.sort(free)
    assert not found.committed
    assert (found + jax.device_put(x, one)).devices() == {one}
    with jax.enable_x64(True):
        wide = jax.numpy.arange(float(n))
    with jax.default_device(other):
        found = gpusort.sort(wide)
    assert found.devices() == {other} and found.dtype == wide.dtype and not found.committed
print("as JAX does")
"""


def test_results_lie_on_the_arrays_own_device(jnp: Any) -> None:
    """Of several of the CPU's; one that JAX may move along may be moved still."""
    assert printed(ON_DEVICES).split("\n")[-1:] == ["as JAX does"]
