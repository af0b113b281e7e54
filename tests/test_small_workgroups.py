"""Devices with workgroups of fewer than 256 invocations, as WebGPU's compatibility mode allows: every launch has no
more, and results are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.batch import PairsAlgorithm
from gpusort.algos.copy import copy_strided, take_rows
from gpusort.algos.radix_sorts import numbered, widened
from gpusort.algos.select import ArgsortAndTake, SelectByDigits, SelectByLanes, SelectByParts, SelectBySamples
from gpusort.algos.select_digits import DigitsPolicy
from gpusort.algos.select_rows import PartPolicy
from gpusort.algos.select_sampled import SampledPolicy
from gpusort.kernel import ir
from gpusort.kernel.launch import Schedule
from gpusort.kernel.specialise import specialise
from gpusort.machine import Capability, Limits
from gpusort.targets.simulator.target import Simulator
from gpusort.targets.wgsl.defaults import DEFAULTS
from gpusort.targets.wgsl.legalize import legalize
from gpusort.types.dtypes import key_for
from gpusort.types.elements import dtype_of
from gpusort.types.indices import Placement, SortOrder
from gpusort.types.params import BitonicPolicy, RadixPolicy, RowsPolicy
from gpusort.types.scalars import U32
from tests.reference import Array, assert_same_bits, sample, sorted_by_numpy
from tests.test_copy import strided
from tests.test_wgsl_defaults import SMALL, Watched, usual_calls

SIZES = (128, 100, 16)  # of workgroups


def with_limits(**limits: int) -> Simulator:
    """The simulator with other limits."""
    small = Simulator()
    small.info = attrs.evolve(small.info, limits=attrs.evolve(small.info.limits, **limits))
    return small


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["u1", "f8"])
def test_every_kernel_of_the_usual_calls_fits(dtype: str, size: int) -> None:
    watched = Watched(attrs.evolve(SMALL, limits=attrs.evolve(DEFAULTS, group_size=size)))
    for shape in ((200,), (5000,), (300, 40), (40, 9000)):
        usual_calls(np.zeros(shape, dtype), watched)
    watched.require_fits()


@pytest.mark.parametrize("dtype", ["u4", "u8"])
@pytest.mark.parametrize(
    "algorithm",
    [
        gpusort.Radix(RadixPolicy(items=200)),
        gpusort.RadixRows(items=200, least_group=16, most_group=16, digit_bits=4),
        gpusort.BitonicRows(lanes=8, items=256, most_items=256),
        SelectByParts(PartPolicy(items=200)),
        SelectByLanes(RowsPolicy(8, 64, 64)),
        SelectBySamples(SampledPolicy(items=32)),
        SelectByDigits(ArgsortAndTake(None, BitonicPolicy()), DigitsPolicy(items=200)),
    ],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_arrays_of_registers_are_as_long_as_a_device_has_them(algorithm: Any, dtype: str) -> None:
    """Of more bytes than these llvmpipe compiles for minutes."""
    most, key, length = 128, key_for(dtype), 1 << 20
    limits = attrs.evolve(DEFAULTS, workgroup_bytes=1 << 20, register_bytes=most, subgroup_size=8, most_subgroup_size=8)
    info = attrs.evolve(SMALL, limits=limits, capabilities=frozenset({Capability.SUBGROUPS}))
    if isinstance(algorithm, PairsAlgorithm):
        fitted = algorithm.fitted(key, 120, info)
        if isinstance(fitted, gpusort.RadixRows):
            assert fitted.items == most // dtype_of(key.word).itemsize
        schedule = fitted.schedule(key, 1, 120, SortOrder.ASCENDING, Placement.ELSEWHERE)
    else:
        schedule = algorithm.fitted(key, length, 2, info).schedule(key, 1, length, 2, SortOrder.ASCENDING)
    registers = [
        4 * (memory.length or 0)
        for step in map(specialise, schedule.launches)
        for memory in legalize(step.program).program.memories
        if memory.space is ir.Space.REGISTERS
    ]
    assert registers
    assert max(registers) <= most


Call: TypeAlias = Callable[[Array, Any], tuple[Any, Any]]  # results, and NumPy's
CALLS: dict[str, Call] = {
    "stable": lambda x, to: (gpusort.sort(x, stable=True, target=to), sorted_by_numpy(x)),
    "argsort": lambda x, to: (gpusort.argsort(x, target=to), np.argsort(x, kind="stable")),
    "pairs": lambda x, to: (gpusort.sort_by_key(np.abs(x), x.copy(), target=to)[0], np.sort(np.abs(x))),
    "permuted": lambda x, to: (gpusort.sort(x[:900].reshape(30, 30), axis=0, target=to, stable=True),
                               sorted_by_numpy(x[:900].reshape(30, 30), axis=0)),
}  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("called", CALLS)
def test_results_are_numpys(called: str, size: int) -> None:
    found, expected = CALLS[called](sample("i4", 2000, seed=size), with_limits(group_size=size))
    assert_same_bits(np.asarray(found), expected)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_chosen_in_pieces_is_numpys(size: int) -> None:
    x = np.random.default_rng(size).permutation(5000).astype(np.uint32)
    values, places = gpusort.top_k(x, 5, target=with_limits(group_size=size, storage_bytes=8192))
    assert values.tolist() == [4999, 4998, 4997, 4996, 4995]
    assert x[places].tolist() == values.tolist()


def _copied(source: Array, whole: Array, limits: Limits, kernel: str) -> None:
    found = np.zeros_like(source, order="C")
    schedule = copy_strided(U32, source.shape, strided(source, whole), strided(found, found), limits=limits)
    assert [launch.kernel.name for launch in schedule.launches] == [kernel]
    _run(schedule, limits, source=whole.reshape(-1), target=found.reshape(-1))
    np.testing.assert_array_equal(found, source)


def _run(schedule: Schedule, limits: Limits, **arrays: Array) -> None:
    target = with_limits(group_size=limits.group_size, groups=limits.groups)
    assert all(launch.grid.group_size >= limits.group_size // 2 for launch in schedule.launches), "nor far fewer"
    target.run(schedule, arrays)


@pytest.mark.parametrize(("size", "groups"), [*((size, 1 << 16) for size in SIZES), (256, 3), (16, 1)])
def test_copies_fit(size: int, groups: int) -> None:
    limits = attrs.evolve(DEFAULTS, group_size=size, groups=groups)
    whole = np.arange(90 * 100, dtype=np.uint32).reshape(90, 100)
    _copied(whole[::2, 3:95], whole, limits, "copy_elements")
    _copied(whole.T, whole, limits, "transpose_elements" if groups > 12 else "copy_elements")
    found = np.zeros(9000, np.uint32)
    some = np.random.default_rng(size).permutation(9000).astype(np.uint64)
    _run(take_rows(4, 1, 9000, 9000, limits=limits), limits, source=whole.reshape(-1), indices=some, target=found)
    np.testing.assert_array_equal(found, some)
    wide = np.zeros(9000, np.uint64)
    _run(widened(9000, limits=limits), limits, places=found, wide=wide)
    np.testing.assert_array_equal(wide, some)
    _run(numbered(9000, U32, limits=limits), limits, first=np.array([7], np.uint32), indices=found)
    np.testing.assert_array_equal(found, np.arange(7, 9007))
