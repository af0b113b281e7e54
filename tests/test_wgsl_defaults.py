"""The WGSL target on a device with WebGPU's default limits and no features: what is chosen there fits, and is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.batch import Batch
from gpusort.algos.choice import choose_pairs, choose_sort
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.sorts import Bitonic, BitonicRows, Radix, RadixRows
from gpusort.kernel import ir
from gpusort.kernel.launch import Schedule, Step
from gpusort.kernel.passes.overlay import overlaid
from gpusort.kernel.specialise import specialise
from gpusort.machine import Capability, Limits, TargetInfo
from gpusort.targets.wgsl import device
from gpusort.targets.wgsl.defaults import DEFAULT_LIMITS, DEFAULTS
from gpusort.targets.wgsl.legalize import legalize
from gpusort.targets.wgsl.target import WgslTarget
from gpusort.tuning import tune
from gpusort.types.dtypes import key_for
from gpusort.types.errors import CapabilityError, TargetUnavailableError
from gpusort.types.indices import SortOrder
from gpusort.types.keys import RankKey
from gpusort.types.params import RadixPolicy
from tests.covering import few_cases
from tests.opened import or_skip
from tests.reference import Array, assert_same_bits, sample, sorted_by_numpy

SMALL = TargetInfo("wgsl", "any device", "none", DEFAULTS, frozenset())
OVERRUN = 1  # a binding that Mesa's software driver takes beside a kernel's own


@pytest.fixture(scope="module", name="small")
def small_device() -> Iterator[WgslTarget]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(device.LIMITS_VARIABLE, "defaults")
        yield or_skip(WgslTarget)


def test_the_device_has_no_more_than_it_was_asked_for(small: WgslTarget) -> None:
    limits = small.info.limits
    known = attrs.evolve(limits, storage_buffers=8, most_subgroup_size=1, register_bytes=DEFAULTS.register_bytes)
    assert known == DEFAULTS
    assert limits.storage_buffers >= 8 - OVERRUN
    assert limits.register_bytes <= DEFAULTS.register_bytes
    assert Capability.SUBGROUPS not in small.info.capabilities


def test_limits_are_the_default_ones_or_the_adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(device.LIMITS_VARIABLE, "some")
    monkeypatch.setattr(device, "choose_adapter", lambda: None)
    with pytest.raises(TargetUnavailableError, match=r"GPUSORT_WGSL_LIMITS: expected 'defaults' or nothing"):
        device.open_device()


# -- what is chosen ---------------------------------------------------------------------------------------

CARD = Limits(1024, 48 << 10, 1 << 31, 1 << 32, 16, 32, 32)
SWEEPS = frozenset({Capability.SUBGROUPS, Capability.FORWARD_PROGRESS})


@pytest.mark.parametrize("capabilities", [frozenset[Capability](), frozenset({Capability.SUBGROUPS})])
@pytest.mark.parametrize(("dtype", "first"), [("u1", 1 << 14), ("f2", 1 << 15), ("f4", 1 << 16), ("i8", 1 << 17)])
def test_long_arrays_are_sorted_by_digits_on_any_device(
    capabilities: frozenset[Capability], dtype: str, first: int
) -> None:
    lanes = 32 if capabilities else 1
    limits = attrs.evolve(DEFAULTS, subgroup_size=lanes, most_subgroup_size=lanes)
    info = TargetInfo("wgsl", "a device", "none", limits, capabilities)
    key = key_for(dtype)
    assert isinstance(choose_sort(info, key, 1, first - 1), Bitonic)
    for rows, length in ((1, first), (1, 1 << 24), (64, 1 << 15)):
        for found in (choose_sort(info, key, rows, length), choose_pairs(info, key, rows, max(length, 1 << 17), 4)):
            assert isinstance(found, Radix)
            assert found.policy.subgroups is bool(capabilities)
            assert not found.policy.sweeps
            assert found.policy.group_size <= 256
    assert isinstance(choose_sort(info, key, 1 << 12, 64), BitonicRows if capabilities else Bitonic)


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "i8"])
@pytest.mark.parametrize("nbytes", [16 << 10, 32 << 10, 48 << 10])
@pytest.mark.parametrize("lanes", [1, 4, 8, 32, 64])
def test_short_rows_stay_in_a_workgroup_by_digits_that_are_not_too_narrow(dtype: str, nbytes: int, lanes: int) -> None:
    """Of rows whose tile leaves no room for counters, the network is faster than many passes."""
    capabilities = frozenset({Capability.SUBGROUPS}) if lanes > 1 else frozenset[Capability]()
    limits = attrs.evolve(DEFAULTS, workgroup_bytes=nbytes, subgroup_size=lanes, most_subgroup_size=lanes)
    info = TargetInfo("wgsl", "a device", "none", limits, capabilities)
    narrow = 8 * np.dtype(dtype).itemsize <= 32
    for length in (17, 256, 257, 512, 513, 999, 1000, 1024, 1536, 1537, 2048, 3072, 4096, 6144, 8192):
        for found, held in zip(both_for(info, dtype, length), (4, 8), strict=True):
            if isinstance(found, RadixRows):
                assert length in range(1025 if held == 4 else 600, nbytes // held)
                assert found.digit_bits >= (3 if lanes == 4 else 4)
            else:
                most = 1024 if narrow and held == 4 else 512
                assert isinstance(found, BitonicRows) is (length <= min(most, 32 * min(lanes, 32)))
    assert isinstance(both_for(info, "f4", 1025)[0], RadixRows)
    assert isinstance(both_for(info, dtype, 1024)[1], RadixRows) is (narrow or nbytes > 16 << 10)


def both_for(info: TargetInfo, dtype: str, length: int) -> tuple[object, object]:
    """What is chosen for a sort and an argsort of some rows."""
    key = key_for(dtype)
    return choose_sort(info, key, 20, length, with_tuned=False), choose_pairs(info, RankKey(key), 20, length, 4)


def test_devices_with_lines_of_their_own_keep_them() -> None:
    """Where these leave something to the network, other devices' lines do not take it."""
    for capabilities in (SWEEPS, SWEEPS | {Capability.FLOAT64}):
        info = TargetInfo("wgsl", "a card", "none", CARD, capabilities)
        assert isinstance(choose_sort(info, key_for("u4"), 20, (1 << 13) + 1), Bitonic)
        assert isinstance(choose_sort(info, key_for("u8"), 1, 5000), Bitonic)
        assert choose_pairs(info, key_for("u4"), 20, 1 << 13, 4) is None
    no_subgroups = TargetInfo("wgsl", "a card", "none", CARD, frozenset({Capability.FORWARD_PROGRESS}))
    found = choose_sort(no_subgroups, key_for("u4"), 1, 1 << 20)
    assert isinstance(found, Radix)
    assert not found.policy.subgroups


@attrs.define
class Watched:
    """Runs nothing; keeps what it was to run."""

    info: TargetInfo = SMALL
    programs: dict[ir.Program, str] = attrs.field(factory=dict[ir.Program, str])

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        for step in map(specialise, schedule.launches):
            assert step.groups <= self.info.limits.groups
            assert all(buffer.nbytes <= self.info.limits.storage_bytes for buffer in step.buffers.values())
            self.programs[step.program] = step.program.name

    def source(self, step: Step) -> str:
        raise NotImplementedError

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, Array]) -> float:
        self.run(schedule, arrays)
        arrays.get("results", arrays["data"])[...] = np.sort(arrays["data"])
        return 1.0

    def require_fits(self) -> None:
        """Every kernel keeps to the limits, as its IR has them once it is made for 32-bit words."""
        limits = self.info.limits
        for program, name in self.programs.items():
            legal = overlaid(legalize(program).program)
            words = sum(memory.length or 0 for memory in legal.memories if memory.space is ir.Space.WORKGROUP)
            assert legal.group_size <= limits.group_size, name
            assert 4 * words <= limits.workgroup_bytes, name
            assert len(legal.storage) + OVERRUN <= limits.storage_buffers, name
            assert not any(needs.lanes or needs.forward_progress for needs in program.needs), name


def usual_calls(x: Array, target: Watched) -> None:
    """Every kind of call, on rows and on columns, that a dtype allows."""
    asked: Any = gpusort
    for axis in range(x.ndim):
        asked.sort(x, axis=axis, stable=True, target=target)
        asked.argsort(x, axis=axis, target=target)
        asked.max(x, axis=axis, target=target)
        asked.argmin(x, axis=axis, target=target)
        if x.dtype != np.float64:
            asked.sum(x, axis=axis, target=target)
            asked.cumsum(x, axis=axis, target=target)
    if x.ndim == 1:
        asked.sort_by_key(x, np.zeros(x.shape, np.uint32), target=target)
    for k in (3, 100, 3000):
        asked.top_k(x, min(k, x.shape[-1]), target=target)


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_every_kernel_of_the_usual_calls_fits_any_device(dtype: str) -> None:
    watched = Watched()
    for shape in ((200,), (5000,), (200_000,), (300, 40), (40, 9000)):
        usual_calls(np.zeros(shape, dtype), watched)
    names = set(watched.programs.values())
    assert {"radix_scatter", "bitonic_tile", "reduce_columns", "select_below"} <= names
    watched.require_fits()


def test_what_tuning_tries_fits_too(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(tmp_path))
    watched = Watched()
    tune(watched, largest=1 << 14, report=None)
    assert "radix_scatter" in watched.programs.values()
    watched.require_fits()


# -- what comes of it -------------------------------------------------------------------------------------

TILE = 128 * 28
LENGTHS = (0, 2, TILE + 1, 40_000)


def _sort(x: Array, target: WgslTarget) -> None:
    assert_same_bits(gpusort.sort(x, target=target, stable=True), sorted_by_numpy(x))


def _argsort(x: Array, target: WgslTarget) -> None:
    assert_same_bits(gpusort.argsort(x, target=target), np.argsort(x, kind="stable"))


def _rows(x: Array, target: WgslTarget) -> None:
    rows = np.concatenate([x, x[::-1], x])[: x.size * 2].reshape(2, -1)
    assert_same_bits(gpusort.sort(rows, axis=0, target=target, stable=True), sorted_by_numpy(rows, axis=0))
    assert_same_bits(gpusort.sort(rows, target=target, stable=True), sorted_by_numpy(rows))


def _pairs(x: Array, target: WgslTarget) -> None:
    _, moved = gpusort.sort_by_key(x, np.arange(x.size, dtype=np.uint32), target=target)
    if x.dtype.kind == "f":  # -0.0 comes before 0.0 here
        np.testing.assert_array_equal(x[moved], np.sort(x))
    else:
        np.testing.assert_array_equal(moved, np.argsort(x, kind="stable"))


def _top_k(x: Array, target: WgslTarget) -> None:
    k = min(x.size, 9)
    if k:
        found = gpusort.top_k(x, k, target=target)
        np.testing.assert_array_equal(found[0], sorted_by_numpy(x, descending=True)[:k])


def _reductions(x: Array, target: WgslTarget) -> None:
    if x.size:
        np.testing.assert_array_equal(gpusort.min(x, target=target), np.min(x))
        assert gpusort.argmax(x, target=target) == np.argmax(x)
    if x.dtype.kind != "f":
        assert gpusort.sum(x, target=target) == np.sum(x)


def _scan(x: Array, target: WgslTarget) -> None:
    if x.dtype.kind != "f":
        np.testing.assert_array_equal(gpusort.cumsum(x, target=target), np.cumsum(x))


_WAYS: tuple[Callable[[Array, WgslTarget], None], ...] = (_sort, _argsort, _rows, _pairs, _top_k, _reductions, _scan)


@few_cases(pairs=False)
@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "u8"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_results_are_numpys(small: WgslTarget, way: Callable[..., None], dtype: str, length: int) -> None:
    way(sample(dtype, length, seed=length), small)


@pytest.mark.parametrize("dtype", ["u1", "f4", "u8"])
@pytest.mark.parametrize("length", [1, 17, 32, 33, 700, 1100, 2500])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_short_rows_are_numpys(small: WgslTarget, dtype: str, length: int) -> None:
    x = sample(dtype, (70 if length < 100 else 5, length), seed=length)
    assert_same_bits(gpusort.sort(x, target=small, stable=True), sorted_by_numpy(x))
    assert_same_bits(gpusort.argsort(x, target=small), np.argsort(x, kind="stable"))


def test_what_cannot_fit_says_so(small: WgslTarget) -> None:
    """A row longer than a binding, by a sort that was named; and schedules made for another device."""
    longest = DEFAULT_LIMITS["max-storage-buffer-binding-size"]
    x = np.broadcast_to(np.uint8(1), longest + 4)
    message = rf"x: a row of {longest + 4} elements of 1 bytes .* of target 'wgsl': at most {longest} elements; with no"
    with pytest.raises(CapabilityError, match=message):
        gpusort.sort(x, algorithm=Bitonic(), target=small)
    arrays = {"data": np.zeros(9999, np.uint32), "results": np.zeros(9999, np.uint32)}
    policies = [
        (RadixPolicy(subgroups=False), r"radix_scatter.* asks for 18432 bytes of workgroup memory, .* has 16384"),
        (RadixPolicy(items=8), "uses subgroup operations, which adapter .* lacks"),
    ]
    if Capability.FORWARD_PROGRESS not in small.info.capabilities:
        sweeps = RadixPolicy(7, 256, 4, subgroups=False, sweeps=True)
        policies.append((sweeps, "needs forward progress between workgroups"))
    for policy, message in policies:
        with pytest.raises(CapabilityError, match=message):
            small.run(radix_sort(Batch(key_for("u4"), 1, 9999, SortOrder.ASCENDING), policy, 32), arrays)
    assert not arrays["results"].any()
