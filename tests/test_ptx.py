"""Every kernel compiles to PTX for every key, with no card at all: NVVM needs none.

Not each of them for all: the kernels, and the forms in which one comes (the passes of a radix sort, a monoid and its
mirror image), take turns among three groups of keys. In each group there are keys of every width, signed, unsigned and
floats, so that is what every form is compiled for. With `--whole` each key has all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import attrs
import numpy as np
import pytest

from gpusort.algos.batch import Batch
from gpusort.algos.bitonic import bitonic_sort
from gpusort.algos.layout import Layout
from gpusort.algos.merge import merge
from gpusort.algos.partition import partition
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.reduce_axis import reduce_axis, reduce_rows
from gpusort.algos.reduce_pairs import Reduced
from gpusort.algos.scan import scan_axis, scan_in_turn, scan_rows
from gpusort.algos.select import (
    ArgsortAndTake,
    SelectByDigits,
    SelectByLanes,
    SelectByParts,
    SelectBySamples,
    top_k,
)
from gpusort.algos.select_digits import DigitsPolicy
from gpusort.algos.select_rows import PartPolicy
from gpusort.algos.select_sampled import SampledPolicy
from gpusort.algos.sort_parts import argsort_parts
from gpusort.algos.sorts import BitonicRows, Radix, RadixRows
from gpusort.algos.ties import restore_ties
from gpusort.kernel.launch import Launch, Schedule, kind_of
from gpusort.kernel.specialise import specialise
from gpusort.show import launches_for
from gpusort.targets.cuda.compile import compile_ptx
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.elements import WORD_BYTES
from gpusort.types.errors import UnsupportedTypeError
from gpusort.types.finishes import finish_of
from gpusort.types.indices import Placement, ScanKind, SortOrder
from gpusort.types.keys import FloatKey, RankKey
from gpusort.types.monoids import (
    AllTrue,
    AnyTrue,
    Count,
    Maximum,
    Minimum,
    MinMax,
    Monoid,
    Product,
    RunningSum,
    Sum,
)
from gpusort.types.params import BitonicPolicy, MergePolicy, RadixPolicy, ReducePolicy, ScanPolicy, Totals
from gpusort.types.scalars import U32, U64
from gpusort.types.searches import ArgMax, ArgMin
from tests.plain_launches import chosen_indices, take_rows, widened

DTYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "M8[s]"]
RADIX = RadixPolicy(digit_bits=4, group_size=64, items=2)  # short code compiles fast, and has all statements
ASCENDING = SortOrder.ASCENDING


def sorts(dtype: str) -> Iterator[Schedule]:
    key, bits = key_for(dtype), 8  # two passes of four bits: a first and a last
    yield bitonic_sort(key, 1, 5000, ASCENDING, BitonicPolicy(tile=256, group_size=64, fused_passes=2))
    for policy in (RADIX, attrs.evolve(RADIX, sweeps=True)):
        yield radix_sort(Batch(key, 1, 5000, ASCENDING), policy, bits)
        yield radix_sort(Batch(RankKey(key), 1, 5000, ASCENDING, places=U64), policy, bits)
        yield radix_sort(Batch(key, 1, 5000, ASCENDING, value=U64), policy, bits)
    yield radix_sort(Batch(key, 1, 1 << 20, ASCENDING), RADIX, bits)  # with prefix sums over its many tiles
    for values in (None, U64):
        yield merge(key, 3000, 2000, ASCENDING, MergePolicy(64, 3), values)
    yield merge(key, 3000, 2000, ASCENDING, MergePolicy(1, 9), U64)
    yield partition(key, 3000, 3000, ASCENDING, ScanPolicy(64, 7, subgroups=True))
    network = BitonicPolicy(tile=256, group_size=64, fused_passes=2)
    yield argsort_parts(RankKey(key), (2048, 2048), ASCENDING, network, (Radix(RADIX), None))
    yield take_rows(np.dtype(dtype).itemsize, 1, 2048, 5, 0)
    yield RadixRows(items=2, least_group=64, digit_bits=4).schedule(key, 3, 100, ASCENDING, Placement.ELSEWHERE)


def reductions(dtype: str, whole: bool) -> Iterator[Schedule]:
    policy = ReducePolicy(group_size=64, items=2, groups=4, subgroups=True, totals=Totals.ONE)
    key = key_for(dtype)
    monoids: list[Monoid[Any, Any]] = [Minimum(key), Maximum(key), ArgMin(key), ArgMax(key), AnyTrue(key), AllTrue(key)]
    try:
        number = number_for(dtype)
    except UnsupportedTypeError:
        pass
    else:
        monoids += Sum(number), Product(number)
    for place, monoid in enumerate((MinMax(key), *monoids)):
        if whole or place % len(GROUPS) in turns(dtype):
            yield reduce_rows(monoid, 1, 5000, policy)
    if np.dtype(dtype).itemsize < WORD_BYTES:
        for layout in (Layout.rows(1, 5000), Layout(1, 100, 5000, 0, 5000, 1)):
            for monoid in (Maximum(key), Sum(number_for(dtype))):
                of = Reduced(monoid, finish_of(monoid), layout).by_words()
                yield reduce_axis(of.monoid, of.layout, policy, of.finish)


def kernels(schedules: Iterable[Schedule]) -> list[Launch]:
    """A launch of each kernel in each of its forms, of which none is read yet."""
    launches = [launch for schedule in schedules for launch in schedule.launches]
    return list(
        {
            (launch.kernel.name, launch.grid.group_size, *map(kind_of, launch.arguments)): launch for launch in launches
        }.values()
    )


def names_of(launches: Iterable[Launch]) -> set[str]:
    return {launch.kernel.name for launch in launches}


GROUPS = (("u1", "i2", "f4", "u8"), ("i1", "f2", "u4", "i8"), ("u1", "u2", "i4", "f8", "M8[s]"))


def turns(dtype: str) -> list[int]:
    return [number for number, group in enumerate(GROUPS) if dtype in group]


def by_turns(dtype: str, found: list[Launch]) -> list[Launch]:
    """Those forms of all kernels whose turn it is."""
    forms: dict[str, list[Launch]] = defaultdict(list)
    for launch in found:
        forms[launch.kernel.name].append(launch)
    return [
        form
        for rank, same in enumerate(forms.values())
        for number, form in enumerate(same)
        if (rank + number) % len(GROUPS) in turns(dtype)
    ]


def check(found: Iterable[Launch]) -> None:
    for program in {specialise(launch).program: None for launch in found}:
        ptx = compile_ptx(program)
        assert f".entry gpusort_{program.name}(" in ptx
        assert f".maxntid {program.group_size}" in ptx
        assert ".local" not in ptx, f"{program.name} keeps something on a stack"
        assert "fma." not in ptx, f"{program.name} fuses a product into a sum, which rounds differently"


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--whole"))


def test_every_group_has_every_width_and_kind() -> None:
    assert {dtype for group in GROUPS for dtype in group} == {*DTYPES}
    for group in GROUPS:
        assert {np.dtype(dtype).itemsize for dtype in group} == {1, 2, 4, 8}
        assert {np.dtype(dtype).kind for dtype in group} >= {*"uif"}


@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
def test_what_calls_launch_compiles(dtype: str) -> None:
    """So that a new function's kernels do, which no list below has."""
    check(launches_for(dtype).values())


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorts_compile(dtype: str, whole: bool) -> None:
    found = kernels(sorts(dtype))
    assert names_of(found) - {"find_unordered_ties"} == {
        "bitonic_step", "bitonic_registers", "bitonic_tile", "radix_count", "radix_add_up",
        "radix_scatter", "sweep_clear", "sweep_histograms", "sweep_starts", "sweep",
        "radix_rows", "find_cuts", "merge_tiles", "serial_merge", "part_elements", "place_words",
        "place_sorted_part", "bitonic_across", "take_places", "take_elements",
    }  # fmt: skip
    assert ("find_unordered_ties" in names_of(found)) == (np.dtype(dtype).kind == "f")
    check(found if whole else by_turns(dtype, found))


INSIDE = RadixRows(items=2, least_group=64, digit_bits=4)
SWEEPS = attrs.evolve(RADIX, sweeps=True, portion=1000)
OF_ROWS: dict[str, Callable[[], Schedule]] = {
    "argsort": lambda: radix_sort(Batch(RankKey(key_for("f4")), 3, 500, ASCENDING, places=U64), SWEEPS, 8),
    "counted": lambda: radix_sort(Batch(key_for("u1"), 3, 500, ASCENDING), RADIX, 4),
    "portions": lambda: radix_sort(Batch(key_for("u1"), 1, 5000, ASCENDING), SWEEPS, 4),
    "short argsort": lambda: INSIDE.sort(Batch(RankKey(key_for("f4")), 3, 100, ASCENDING, places=U64)),
    "places in registers": lambda: BitonicRows(items=2).sort(
        Batch(RankKey(key_for("f4")), 3, 100, ASCENDING, places=U64)
    ),
    "first in registers": lambda: top_k(key_for("f4"), 3, 100, 9, ASCENDING, ArgsortAndTake(BitonicRows(items=2))),
    "first in lanes": lambda: top_k(key_for("f4"), 3, 100, 8, ASCENDING, SelectByLanes()),
    "short first": lambda: top_k(key_for("i8"), 3, 100, 9, ASCENDING, ArgsortAndTake(INSIDE)),
    "pairs in registers": lambda: BitonicRows(items=2).sort(Batch(key_for("u8"), 3, 100, ASCENDING, value=U64)),
    "wider indices": lambda: widened(300),
    "short pairs": lambda: INSIDE.sort(Batch(key_for("u8"), 3, 100, ASCENDING, value=U64)),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_sorts_of_rows_and_of_portions_compile(name: str) -> None:
    check(kernels([OF_ROWS[name]()]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_compile(dtype: str, whole: bool) -> None:
    check(kernels(reductions(dtype, whole)))


def along_axes(dtype: str) -> Iterator[Schedule]:
    """One of each finish; every arrangement and both launches once."""
    policy = ReducePolicy(64, 2, 1, subgroups=True, short=100, strand=32, totals=Totals.ONE)
    key = key_for(dtype)
    down, strands, rows = Layout(1, 5000, 3, 0, 3, 1), Layout.rows(30, 9), Layout.rows(1, 5000)
    yield reduce_axis(Minimum(key), down, policy, finish_of(Minimum(key)))
    yield reduce_axis(ArgMax(key), strands, policy, finish_of(ArgMax(key)))
    yield reduce_rows(Maximum(key), 1, 5000, policy, finish_of(Maximum(key)))
    yield reduce_axis(Maximum(key), Layout.rows(30, 2), ReducePolicy(64, 2, alone=True), finish_of(Maximum(key)))
    if dtype == "i4":
        yield reduce_rows(ArgMin(key), 1, 5000, policy, finish_of(ArgMin(key)))
        yield reduce_axis(AllTrue(key), down, attrs.evolve(policy, groups=64), finish_of(AllTrue(key)))
    if dtype in ("f2", "i4"):
        for layout in (down, strands, rows):
            yield reduce_axis(Sum(number_for(dtype)), layout, policy, finish_of(Sum(number_for(dtype))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_along_axes_compile(dtype: str, whole: bool) -> None:
    found = kernels(along_axes(dtype))
    assert names_of(found) == {"reduce_columns"}
    check(found if whole else by_turns(dtype, found))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_what_makes_a_sort_stable_compiles(dtype: str) -> None:
    policy, key = ScanPolicy(64, 3, subgroups=True), cast("FloatKey[U32, U32]", key_for(dtype))
    found = kernels(restore_ties(key, rows, 5000, SortOrder.DESCENDING, policy) for rows in (1, 5000))
    assert names_of(found) == {"count_ties", "restore_long", "restore_short"}
    check(found)


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if "M" not in dtype])
def test_scans_compile(dtype: str, whole: bool) -> None:
    policy, number = ScanPolicy(64, 3, subgroups=True), number_for(dtype)
    total = RunningSum(number)
    schedules = [scan_rows(Sum(number), 1, 5000, kind, policy) for kind in ScanKind]
    schedules.append(scan_in_turn(total, 1, 5000, 1, ScanKind.INCLUSIVE, policy, finish_of(total)))
    found = kernels(schedules)
    check(found if whole else by_turns(dtype, found))


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "i8"])
def test_scans_along_axes_compile(dtype: str) -> None:
    policy, total = ScanPolicy(64, 3), RunningSum(number_for(dtype))
    columns = scan_axis(total, Layout(1, 5000, 3, 0, 3, 1), ScanKind.INCLUSIVE, policy, finish_of(total))
    rows = scan_axis(total, Layout.rows(3, 50), ScanKind.INCLUSIVE, policy, finish_of(total))
    short = scan_axis(total, Layout.rows(30, 3), ScanKind.INCLUSIVE, ScanPolicy(64, 4, alone=True), finish_of(total))
    few = [scan_rows(total, 30, 90, kind, ScanPolicy(64, 4, subgroups=True, strand=8)) for kind in ScanKind]
    found = kernels([columns, rows, short, *few])
    names = {"scan_totals", "scan_shares"}
    assert names_of(found) == names
    check(found)


SELECTED = SampledPolicy(samples=64, group_size=64, ranked=32, filter_group=64, items=2, few=64, sorted_from=10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_selections_compile(dtype: str) -> None:
    """The filter of every dtype; all kernels of one, and the large ones of 64 bits too."""
    key, parts, samples = key_for(dtype), SelectByParts(PartPolicy(64, 2, 32, 40)), SelectBySamples(SELECTED)
    schedules = [top_k(key, 1, 5000, k, ASCENDING, selection) for selection, k in ((parts, 8), (samples, 3))]
    schedules.append(top_k(key, 1, 5000, 20, ASCENDING, samples))  # by the network
    schedules.append(top_k(key, 3, 5000, 20, ASCENDING, SelectByDigits(policy=DigitsPolicy(256, 4, subgroups=True))))
    schedules.append(chosen_indices(1, 8, 60, 32, 5000))
    found = kernels(schedules)
    assert names_of(found) >= {
        "select_from_parts", "select_threshold", "select_below", "select_anew", "select_ranked",
        "select_padded", "select_sorted", "place_chosen", "select_by_digits", "take_chosen",
    }  # fmt: skip
    reading = {"i8": {"select_from_parts", "select_threshold", "select_anew", "select_by_digits"}}
    check([one for one in found if dtype == "f4" or one.kernel.name in reading.get(dtype, {"select_below"})])


def test_a_scan_to_a_struct_compiles() -> None:
    policy = ScanPolicy(group_size=64, items=2)
    check(kernels(scan_rows(Count(), 1, 5000, kind, policy) for kind in ScanKind))
