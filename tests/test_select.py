"""Top-k schedules, compared with the first k of NumPy's stable argsort exactly, on every target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.algos import select_sampled as sampling
from gpusort.algos.candidates import DIGITS
from gpusort.algos.choice import choose_top_k
from gpusort.algos.select import (
    ArgsortAndTake,
    SelectByDigits,
    SelectByLanes,
    SelectByParts,
    SelectBySamples,
    Selection,
    known_buffers,
    state_bytes,
    top_k,
)
from gpusort.algos.select_digits import DigitsPolicy
from gpusort.algos.select_long import Plan, select_sampled
from gpusort.algos.select_rows import PartPolicy
from gpusort.algos.select_sampled import SampledPolicy
from gpusort.algos.sorts import BitonicRows, Radix
from gpusort.kernel.launch import Buffer, Launch, Schedule
from gpusort.kernel.passes.overlay import packed_bytes
from gpusort.kernel.specialise import specialise
from gpusort.machine import Capability, Limits, TargetInfo
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import ArrayKey, key_for
from gpusort.types.elements import bytes_held, dtype_of
from gpusort.types.indices import SortOrder
from gpusort.types.memory import Workgroup
from gpusort.types.params import BitonicPolicy, RadixPolicy
from tests.covering import few_cases
from tests.plain_launches import chosen_indices
from tests.reference import DTYPES, Array, assert_same_bits, sample
from tests.test_argsort import stable_order


class Selects(Protocol):
    def schedule(self, key: ArrayKey, rows: int, length: int, k: int, order: SortOrder, /) -> Schedule: ...


def selected(target: str, selection: Selects, x: Array, k: int, largest: bool) -> tuple[Array, npt.NDArray[np.int64]]:
    """What a target makes of rows of x."""
    key, (rows, length) = key_for(x.dtype), x.shape
    order = SortOrder.DESCENDING if largest else SortOrder.ASCENDING
    values = np.zeros((rows, k), x.dtype)
    indices = np.full((rows, k), -1, np.int64)
    schedule = selection.schedule(key, rows, length, k, order)
    element = dtype_of(key.element)
    arrays = {
        "data": x.reshape(-1).view(element), "values": values.reshape(-1).view(element),
        "indices": indices.reshape(-1).view(np.uint64),
    }  # fmt: skip
    target_of(target).run(schedule, arrays)
    return values, indices


def check(target: str, selection: Selects, x: Array, k: int, largest: bool) -> None:
    before = x.copy()
    values, indices = selected(target, selection, x, k, largest)
    expected = np.stack([stable_order(row, largest)[:k] for row in x])
    np.testing.assert_array_equal(indices, expected)
    assert_same_bits(values, np.take_along_axis(x, expected, axis=1))
    assert_same_bits(x, before)


# -- each form, cut up so small that short rows have all of it -----------------------------------------------

PARTS = SelectByParts(PartPolicy(group_size=16, items=2, sets=8, kept=12))
NETWORK = BitonicPolicy(tile=32, group_size=16, fused_passes=2)
SAMPLED = SampledPolicy(
    samples=16, group_size=16, ranked=4, filter_group=16, items=4, groups=6, staged=5, few=16, sorted_from=10,
    network=NETWORK,
)  # fmt: skip
FORMS: dict[str, Selection] = {
    "argsort": ArgsortAndTake(network=NETWORK), "parts": PARTS, "samples": SelectBySamples(SAMPLED),
    "radix": ArgsortAndTake(Radix(RadixPolicy(4, 16, 2, 16, subgroups=False))),
    "digits": SelectByDigits(ArgsortAndTake(network=NETWORK), DigitsPolicy(16, 3, digit_bits=4, copies=2)),
    "rows": ArgsortAndTake(BitonicRows(lanes=8, items=2, most_items=16, group_size=16)),
}  # fmt: skip


@attrs.frozen
class Planned:
    """Samples that are taken for what they are not."""

    plan: Plan
    policy: SampledPolicy = SAMPLED

    def schedule(self, key: ArrayKey, rows: int, length: int, k: int, order: SortOrder, /) -> Schedule:
        return select_sampled(
            key, rows, length, k, order, known_buffers(key, rows, length, k), self.plan, self.policy
        )  # fmt: skip


@pytest.mark.parametrize("k", [7, 60])
def test_more_candidates_than_one_workgroup_has(target: str, k: int) -> None:
    """Ranked below ten, sorted from there on."""
    if target == "python":
        pytest.skip("takes too long there")
    check(target, Planned(Plan(5, 2000, 0)), sample("f4", 2 * 3000, seed=k).reshape(2, 3000), k, largest=True)


def test_a_row_of_which_every_element_is_a_sample_has_a_threshold() -> None:
    """The simulator would see one read that nobody wrote."""
    check("simulator", Planned(Plan(5, 90, 0)), sample("f4", SAMPLED.samples, seed=1).reshape(1, -1), 3, largest=True)


@pytest.mark.parametrize(("k", "capacity", "misses"), [(6, 6, 0), (7, 90, 1), (5, 5, 1), (6, 90, 0), (1, 6, 0)])
def test_a_row_is_read_again_only_where_its_threshold_failed(
    k: int, capacity: int, misses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six candidates pass the threshold of rank five, for every element is a sample."""
    anew: list[None] = []
    by_radix: Callable[..., Any] = vars(sampling)["kth_of"]

    def counted(cx: Any, *given: Any) -> Any:
        if cx.local_id == 0:
            anew.append(None)
        return by_radix(cx, *given)

    monkeypatch.setattr(sampling, "kth_of", counted)
    x = np.random.default_rng(2).permutation(SAMPLED.samples).astype("u4").reshape(1, -1)
    values, _ = selected("python", Planned(Plan(5, capacity, 0)), x, k, False)
    assert values.tolist() == [[*range(k)]]
    assert len(anew) == misses


@pytest.mark.parametrize(
    ("rows", "length", "plan", "k", "groups"),
    [(1, 3000, Plan(5, 90, 0), 7, [4, 6, 1, 23]), (2, 3000, Plan(5, 90, 0), 9, [8, 6, 2, 46]),
     (1, 65, Plan(5, 90, 0), 7, [4, 2, 1, 23]), (1, 64, Plan(5, 89, 0), 7, [4, 1, 1, 23]),
     (1, 64, Plan(5, 88, 0), 7, [4, 1, 1, 22]), (9, 3000, Plan(5, 90, 0), 7, [36, 9, 9, 207]),
     (1, 3000, Plan(5, 90, 40), 7, [4, 6, 4, 3, 1, 10]), (2, 3000, Plan(5, 999, 40), 7, [8, 6, 8, 6, 2, 20])],
)  # fmt: skip
def test_no_workgroup_is_without_work(rows: int, length: int, plan: Plan, k: int, groups: list[int]) -> None:
    """Samples by fours, tiles of 64 elements or of 32 candidates, a workgroup for each row's fallback, candidates by
    fours: where there are fewer than six workgroups a row."""
    key = key_for("f4")
    schedule = Planned(plan).schedule(key, rows, length, k, SortOrder.ASCENDING)
    assert [launch.grid.groups for launch in schedule.launches] == groups


def dtypes_for(target: str) -> tuple[str, ...]:
    """Each kernel compiles for seconds on some."""
    match target:
        case "simulator":
            return DTYPES
        case "cpu":
            return ("f4",)
        case "python":
            return ("i2", "f8")
        case _:
            return ("u1", "f4", "f8")


def is_quick(case: Mapping[str, object]) -> bool:
    """What takes too long, or has no subgroups, is left out; the CPU's part in samples is below."""
    target, form, dtype = str(case["target"]), str(case["form"]), str(case["dtype"])
    if target in ("python", "cpu") and form in ("samples", "radix", "rows"):
        return False
    return dtype in dtypes_for(target) and bool(cases(target, form, dtype))


@few_cases(can=is_quick, pairs=False)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_forms(target: str, form: str, dtype: str) -> None:
    """Of every dtype, in one direction or the other; of floats in both."""
    if not is_quick({"target": target, "form": form, "dtype": dtype}):
        pytest.skip("takes too long there, or has no subgroups")
    for largest in (False, True) if dtype == "f4" else (DTYPES.index(dtype) % 2 == 0,):
        for selection, rows, length, k in cases(target, form, dtype):
            check(target, selection, sample(dtype, (rows, length), seed=k), k, largest)


def cases(target: str, form: str, dtype: str) -> list[tuple[Selection, int, int, int]]:
    """Rows, their length, and k; where an invocation is a thread, few of them."""
    match target, form:
        case "python", "parts":
            return [(SelectByParts(PartPolicy(4, 2, 4, 5)), 2, 9, 3)]
        case "python", _:
            return [(FORMS[form], 2, 9, 3)]
        case _, "radix":  # whose own tests have every dtype
            return [(FORMS[form], 1, 100, 9)] if dtype in ("f4", "i8") else []
        case _, "samples":
            return [(FORMS[form], 2, 400, 1)]
        case "cpu", _:
            return [(FORMS[form], 2, 32, 3)]
        case _:
            shapes = ((1, 1, 1), (2, 100, 8), (2, 32, 3), (1, 33, 8)) if dtype == "f4" else ((2, 40, 8),)
            return [(FORMS[form], *shape) for shape in shapes]


def adverse(dtype: str, length: int) -> dict[str, Array]:
    """What a guess at a threshold may be wrong about."""
    ramp = np.sort(sample(dtype, length, seed=5))
    columns = np.zeros(length, dtype)
    columns[5::8] = np.arange(len(columns[5::8])) % 120 + 1
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], "f8") if ramp.dtype.kind == "f" else ramp[:3]
    return {
        "constant": np.full(length, 7, dtype), "ascending": ramp, "descending": ramp[::-1].copy(),
        "ten values": (np.arange(length) * 7919 % 10).astype(dtype), "columns": columns,
        "greatest": np.full(length, np.inf if ramp.dtype.kind == "f" else np.iinfo(dtype).max, dtype),
        "special": np.resize(special, length).astype(dtype), "any": sample(dtype, length, seed=6),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["u1", "u4", "f4", "i8", "f8"])
def test_parts_of_adverse_rows(target: str, dtype: str) -> None:
    if target in ("python", "cpu") or dtype not in dtypes_for(target):
        pytest.skip("takes too long there")
    rows = np.stack([*adverse(dtype, 100).values()])
    for k in (1, 7, 8):
        check(target, PARTS, rows, k, largest=True)


@few_cases(can=lambda case: case["dtype"] in dtypes_for(str(case["target"])), pairs=False)
@pytest.mark.parametrize("dtype", ["u1", "u4", "f4", "i8", "f8"])
@pytest.mark.parametrize("length", [47, 48, 49, 97])
def test_digits_of_adverse_rows(target: str, dtype: str, length: int) -> None:
    """Tiles are of 48 elements: what ties lies in several of them, and is taken in part."""
    if target in ("python", "cpu") or dtype not in dtypes_for(target):
        pytest.skip("takes too long there")
    rows = np.stack([*adverse(dtype, length).values()])
    for k in (1, 7, length // 2, length - 1, length):
        check(target, FORMS["digits"], rows, k, largest=k % 2 == 0)


@pytest.mark.parametrize(("digit_bits", "group_size"), [(1, 2), (3, 8), (5, 32), (8, 256), (9, 512)])
def test_digits_of_any_width_end_with_the_lowest_bit(digit_bits: int, group_size: int) -> None:
    """Words of 8 bits have one digit of 8 or 9 bits, two of 5, three of 3, and eight."""
    by_digits = SelectByDigits(ArgsortAndTake(network=NETWORK), DigitsPolicy(group_size, 2, digit_bits=digit_bits))
    x = np.random.default_rng(digit_bits).integers(0, 256, (2, 300)).astype("u1")
    for k in (1, 150, 299):
        check("simulator", by_digits, x, k, largest=False)


# The rank of the threshold, and room for candidates of one filter and of two.
PLANS = [
    Plan(0, 60, 0), Plan(15, 60, 0), Plan(6, 300, 0), Plan(0, 60, 60), Plan(15, 60, 60), Plan(6, 300, 17),
    Plan(6, 300, 60), Plan(15, 300, 300),
]  # fmt: skip


@few_cases(
    can=lambda case: case["target"] == "simulator" or case["plan"] in PLANS[:: 7 if case["target"] == "cpu" else 3]
)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_thresholds_that_miss(target: str, plan: Plan) -> None:
    """Too few candidates, or too many, of the first filter or of the second; by ranks, and by the network."""
    if target == "python" or (target == "cpu" and plan is not PLANS[0]):
        pytest.skip("takes too long there")
    rows = np.stack([*adverse("f4", 300).values()])
    check(target, Planned(plan), rows, 7, largest=True)
    if target != "cpu":
        check(target, Planned(plan), rows, 14, largest=False)


@pytest.mark.parametrize("plan", [Plan(0, 60, 0), Plan(15, 60, 60), Plan(6, 300, 0)], ids=str)
def test_an_invocation_alone_selects(plan: Plan) -> None:
    """In workgroups of one: of samples, of parts, and where the threshold failed."""
    rows = np.stack([*adverse("f4", 60).values()])
    alone = attrs.evolve(SAMPLED, group_size=1, ranked=1, filter_group=1)
    for k in (7, 12):
        check("simulator", Planned(plan, alone), rows, k, largest=True)
    check("simulator", SelectByParts(PartPolicy(group_size=1, items=8, sets=1, kept=2)), rows, 1, largest=True)


@pytest.mark.parametrize("is_second", [False, True])
def test_candidates_around_the_room_for_them(is_second: bool) -> None:
    """All of a row pass; the last of them are those that workgroups have staged."""
    x = np.full((1, 100), 7, "f4")
    for room in (40, 91, *range(94, 102)):
        check("simulator", Planned(Plan(15, 100, room) if is_second else Plan(15, room, 0)), x, 7, largest=True)


def test_edges_of_k() -> None:
    key = key_for("f4")
    assert top_k(key, 3, 5, 0, SortOrder.ASCENDING, PARTS).launches == ()
    assert top_k(key, 0, 5, 2, SortOrder.ASCENDING, PARTS).launches == ()
    for k in (-1, 6):
        with pytest.raises(gpusort.InvalidArgumentError, match=r"k: expected 0 to the 5 elements of a row"):
            top_k(key, 3, 5, k, SortOrder.ASCENDING, PARTS)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"k: expected at most 8, as SelectByParts"):
        top_k(key, 3, 50, 9, SortOrder.ASCENDING, PARTS)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"k: 20 of 50 elements are too many"):
        top_k(key, 3, 50, 20, SortOrder.ASCENDING, SelectBySamples(SAMPLED))
    assert SelectBySamples(SAMPLED).most_rows(key, 50, 20, CARD.limits) == 0
    assert SelectBySamples(SAMPLED).most_rows(key, 400, 1, CARD.limits) > 0


def test_what_parts_of_rows_left_is_found_in_the_rows() -> None:
    """Two parts of 100 elements, of which each left four."""
    x = np.random.default_rng(4).permutation(600).astype(np.uint32).reshape(3, 200)
    left = np.argsort(x.reshape(3, 2, 100), axis=2)[:, :, :4]  # as the parts number their elements
    values = np.take_along_axis(x.reshape(3, 2, 100), left, axis=2).reshape(3, 8)
    chosen, indices = np.argsort(values, axis=1)[:, :3].astype(np.uint64), np.zeros(9, np.uint64)
    arrays = {"candidates": left.astype(np.uint64).ravel(), "chosen": chosen.ravel(), "indices": indices}
    target_of("simulator").run(chosen_indices(3, 3, 8, 4, 100), arrays)
    np.testing.assert_array_equal(indices.reshape(3, 3), np.argsort(x, axis=1)[:, :3])


@few_cases(can=lambda case: case["target"] == "simulator" or case["length"] in (97, 131, 513))
@pytest.mark.parametrize("length", [97, 98, 129, 131, 135, 136, 513, 520, 650])
def test_a_last_part_of_fewer_than_k_elements_is_passed_on(target: str, length: int) -> None:
    """Alone, to launches that find its padding where they look for k elements."""
    if target in ("python", "cpu") and length != 131:
        pytest.skip("takes too long there")
    check(target, PARTS, sample("f4", (2, length), seed=length), 8, largest=True)


@pytest.mark.parametrize(
    ("policy", "most"),
    [
        (PartPolicy(8, 4, 3, 9), 3),
        (PartPolicy(8, 4, 8, 5), 5),
        (PartPolicy(8, 1, 8, 9), 4),
        (PartPolicy(2, 3, 2, 2), 2),
    ],
)
def test_a_part_gives_as_many_as_it_has_sets_and_room_and_is_halved(policy: PartPolicy, most: int) -> None:
    check("simulator", SelectByParts(policy), sample("i2", (2, 50), seed=most), most, largest=False)
    with pytest.raises(gpusort.InvalidArgumentError, match=f"k: expected at most {most}, as SelectByParts"):
        top_k(key_for("i2"), 2, 50, most + 1, SortOrder.ASCENDING, SelectByParts(policy))


@pytest.mark.parametrize(("held", "message"), [(1, "too little workgroup memory"), (2, "k: 1 of 400 elements are too")])
def test_samples_take_memory_for_two(held: int, message: str) -> None:
    """With less there is none to rank; with little more than that, too few for any k."""
    key = key_for("f4")
    limits = Limits(64, 4 * (DIGITS + 1) + held * state_bytes(key), 65535, 128 << 20, 8, 1, 1)
    with pytest.raises(gpusort.CapabilityError, match=message):
        SelectBySamples(SAMPLED).fitted(key, 400, 1, TargetInfo("wgsl", "tiny", "none", limits, frozenset()))


@pytest.mark.parametrize(
    ("policy", "length"),
    [(SAMPLED, 400), (attrs.evolve(SAMPLED, ranked=2), 400),
     (attrs.evolve(SAMPLED, samples=256, group_size=64, few=256, ranked=2), 1100)],
    ids=["candidates", "more candidates", "samples"],
)  # fmt: skip
def test_as_many_rows_are_sampled_at_once_as_workgroups_buffers_and_32_bits_allow(
    policy: SampledPolicy, length: int
) -> None:
    """And not one more."""
    key, selection = key_for("f4"), SelectBySamples(policy)
    plan = Plan.of(length, 1, policy)
    assert plan is not None
    assert (plan.capacity < policy.samples) == (length == 1100)

    def most(rows: int) -> tuple[int, int, int]:
        schedule = selection.schedule(key, rows, length, 1, SortOrder.ASCENDING)
        buffers = schedule.buffers
        return (
            max(launch.grid.groups for launch in schedule.launches), max(buffer.nbytes for buffer in buffers),
            max(buffer.count for buffer in buffers),
        )  # fmt: skip

    limits = Limits(64, 1 << 14, (1 << 32) - 1, 1 << 60, 8, 1, 1)
    for found, limit, at in (
        (attrs.evolve(limits, groups=9999), 9999, 0), (attrs.evolve(limits, storage_bytes=99_999), 99_999, 1),
        (limits, (1 << 32) - 1, 2),
    ):  # fmt: skip
        rows = selection.most_rows(key, length, 1, found)
        assert most(rows)[at] <= limit
        if at < 2:
            assert most(rows + 1)[at] > limit
        else:
            assert (rows + 1) * max(length, plan.capacity) > limit


# -- which is taken ------------------------------------------------------------------------------------------

CARD = TargetInfo(
    "cuda", "a card", "none", Limits(1024, 227 << 10, (1 << 31) - 1, 1 << 40, 64, 32, 32),
    frozenset({Capability.SUBGROUPS, Capability.FORWARD_PROGRESS, Capability.FLOAT64}),
)  # fmt: skip
BROWSER = TargetInfo("wgsl", "a browser", "none", Limits(256, 16 << 10, 65535, 128 << 20, 8, 1, 1), frozenset())
SMALL = TargetInfo("wgsl", "a small device", "none", Limits(64, 4 << 10, 65535, 128 << 20, 8, 1, 1), frozenset())


def shared_bytes(launch: Launch) -> int:
    """What a workgroup's memories take."""
    shared = [cast("Workgroup[object]", a) for a in launch.arguments if isinstance(a, Workgroup)]
    return sum(len(memory.items) * bytes_held(memory.element) for memory in shared)


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
@pytest.mark.parametrize("info", [CARD, BROWSER, SMALL], ids=lambda info: info.adapter)
def test_what_is_taken_fits_every_size(info: TargetInfo, dtype: str) -> None:
    key = key_for(dtype)
    taken: set[type[Selection]] = set()
    for rows, length in (
        (1, 1),
        (1, 1000),
        (1000, 1),
        (1000, 100),
        (1000, 300),
        (1 << 26, 3),
        (1 << 20, 60),
        (1, 1 << 20),
        (1, 1 << 24),
        (65536, 1024),
        (64, 1 << 20),
        (1, (1 << 31) - 1),
    ):
        for k in (1, 8, 64, 256, 2048, 1 << 16, length):
            if k > length or length * 16 > info.limits.storage_bytes:
                continue
            found = choose_top_k(info, key, rows, length, k)
            taken.add(type(found))
            together = min(rows, found.most_rows(key, length, k, info.limits))
            assert together > 0, (rows, length, k, found)
            schedule = top_k(key, together, length, k, SortOrder.DESCENDING, found)
            for launch in schedule.launches:
                held = shared_bytes(launch)
                if held > info.limits.workgroup_bytes:  # some of it may never be in use with the rest
                    held = packed_bytes(specialise(launch).program)
                assert held <= info.limits.workgroup_bytes
                assert launch.grid.group_size <= info.limits.group_size
                assert launch.grid.groups <= info.limits.groups
                assert sum(isinstance(a, Buffer) for a in launch.arguments) <= info.limits.storage_buffers
            largest = max(schedule.buffers, key=lambda buffer: buffer.nbytes)
            assert largest.nbytes <= info.limits.storage_bytes, (found, rows, length, k, largest)
    on_card: set[type[Selection]] = {SelectByDigits, SelectByLanes} if info is CARD else set()
    assert taken == {ArgsortAndTake, SelectByParts, SelectBySamples} | on_card


@pytest.mark.parametrize("k", [3, 40, 300])
def test_what_is_taken_where_it_is(target: str, k: int) -> None:
    if target in ("python", "cpu"):
        pytest.skip("takes too long there")
    info = target_of(target).info
    x = sample("f4", (2, 1500), seed=k)
    check(target, choose_top_k(info, key_for("f4"), 2, 1500, k), x, k, largest=True)
