"""Tables measured on the user's machine: what is taken, what is kept, and what is never believed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort import cli
from gpusort.__main__ import main as command
from gpusort.algos import tuned
from gpusort.algos.choice import choose_sort
from gpusort.algos.host_sort import HostSort, HostSortPolicy
from gpusort.algos.rules import SortRule
from gpusort.algos.sorts import Bitonic, Radix, SortAlgorithm
from gpusort.algos.table import SORTS
from gpusort.kernel.launch import Schedule, Step
from gpusort.machine import Capability, Limits, TargetInfo
from gpusort.targets.cpu.host import partition_sort
from gpusort.targets.cpu.host import tuning as cpu_tuning
from gpusort.targets.cpu.target import CpuTarget
from gpusort.tuning import forget_tuning, tune
from gpusort.types.dtypes import key_for
from gpusort.types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError
from gpusort.types.params import RadixPolicy

WANTED = Radix(RadixPolicy(8, 384, 14, 32))
INFO = TargetInfo(
    "wgsl", "a card of the test's", "none", Limits(1024, 49152, 1 << 20, 1 << 31, 8, 32),
    frozenset({Capability.SUBGROUPS, Capability.FORWARD_PROGRESS}),
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(tmp_path))
    yield
    forget_tuning("cpu")
    tuned.forget(INFO.name, INFO.adapter)


@attrs.define
class Timed:
    """Sorts with NumPy, and is quickest where workgroups have 384 invocations and tiles of 14 elements each."""

    lies: bool = False  # whether what is quickest does not sort
    info: TargetInfo = INFO

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        raise NotImplementedError

    def source(self, step: Step) -> str:
        raise NotImplementedError

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, npt.NDArray[np.unsignedinteger]]) -> float:
        arrays.get("results", arrays["data"])[...] = np.sort(arrays["data"])
        length = len(arrays["data"])
        tiles = {launch.grid.groups for launch in schedule.launches if launch.grid.group_size == 384}
        scatters = any(launch.kernel.name == "radix_scatter" for launch in schedule.launches)
        if -(-length // (384 * 14)) not in tiles or not scatters:
            return 1.0
        if self.lies:
            arrays["results"][0] += 1
        return 0.5


def sorts_of(dtype: str, length: int) -> object:
    return choose_sort(INFO, key_for(dtype), 1, length)


def test_the_quickest_is_taken_kept_and_forgotten(tmp_path: Path) -> None:
    before = sorts_of("u4", 1 << 14)
    assert before != WANTED
    said: list[str] = []
    tune(Timed(), largest=1 << 14, report=said.append)
    for dtype in ("u1", "f2", "u4", "f4", "i8", "f8"):
        assert sorts_of(dtype, 1 << 14) == WANTED
        assert sorts_of(dtype, 1 << 20) == WANTED  # the longest that was tried stands for all beyond
    assert choose_sort(INFO, key_for("u4"), 7, 1 << 14) != WANTED, "of many rows nothing was measured"
    (kept,) = (tmp_path / "tuned").iterdir()
    assert said[-1] == f"wgsl: kept in {kept}"
    assert any("500000.0 us" in line for line in said)
    forget_tuning(Timed())
    assert sorts_of("u4", 1 << 14) == before
    assert not kept.exists()


def test_what_does_not_sort_is_never_taken() -> None:
    before = sorts_of("u4", 1 << 14)
    tune(Timed(lies=True), largest=cast(int, np.int64(1 << 14)), report=None)  # NumPy's ints have no bit_length
    assert sorts_of("u4", 1 << 14) == before


def test_what_one_launch_does_not_hold_is_never_tried() -> None:
    limits = attrs.evolve(INFO.limits, groups=256)
    small = attrs.evolve(INFO, limits=limits)

    @attrs.define
    class Small(Timed):
        info: TargetInfo = small

        def device_seconds(self, schedule: Schedule, arrays: Mapping[str, npt.NDArray[np.unsignedinteger]]) -> float:
            assert all(launch.grid.groups <= limits.groups for launch in schedule.launches)
            return super().device_seconds(schedule, arrays)

    said: list[str] = []
    tune(Small(), largest=1 << 18, report=said.append)
    tried = [line.split(":")[0] for line in said if ": bitonic " in line]  # which has an invocation for each pair
    assert tried == [f"wgsl {dtype} {1 << log}" for dtype in ("u4", "u8") for log in (12, 14, 16)]


def test_other_adapters_and_damaged_files_do_not_count(tmp_path: Path) -> None:
    path = tuned.keep_sorts(INFO, [SortRule("wgsl", frozenset(), (32,), range(1 << 20), range(1, 2), WANTED)])
    assert path is not None
    assert sorts_of("u4", 999) == WANTED
    other = attrs.evolve(INFO, adapter="another")
    assert choose_sort(other, key_for("u4"), 1, 999) != WANTED
    content = json.loads(path.read_text())
    for damaged in (
        "", "[]", "{", json.dumps({**content, "format": 0}), json.dumps({**content, "adapter": "another"}),
        json.dumps({**content, "sorts": [{"bits": [32]}]}), json.dumps({**content, "sorts": 7}), "[" * 100_000,
        json.dumps({**content, "sorts": [{**content["sorts"][0], "lengths": [0, float("inf")]}]}),
        json.dumps({**content, "sorts": [{**content["sorts"][0], "algorithm": "Radix"}]}),
        *(json.dumps({**content, "sorts": [{**content["sorts"][0], "algorithm": wrong_radix(field, value)}]})
          for field, value in (("items", 0), ("items", "14"), ("group_size", 100), ("strand", 1 << 40), ("sweeps", 1))),
        json.dumps({**content, "sorts": [{**content["sorts"][0], "algorithm": {"name": "Bogo", "policy": {}}}]}),
        json.dumps({**content, "sorts": ["?"]}), "\udcff", "9" * 9999,
    ):  # fmt: skip
        tuned.forget(INFO.name, INFO.adapter)
        path.write_text(damaged, errors="surrogateescape")
        assert sorts_of("u4", 999) != WANTED, damaged


def test_an_adapter_that_has_less_than_was_measured_goes_by_the_table() -> None:
    tuned.keep_sorts(INFO, [SortRule("wgsl", frozenset(), (32,), range(1 << 20), range(1, 2), WANTED)])
    assert sorts_of("u4", 999) == WANTED
    assert choose_sort(attrs.evolve(INFO, capabilities=frozenset()), key_for("u4"), 1, 999) != WANTED


def test_where_nothing_is_kept_the_process_has_its_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")
    said: list[str] = []
    tune(Timed(), largest=1 << 12, report=said.append)
    assert said[-1] == "wgsl: kept for this process alone: there is no cache directory to use"
    assert sorts_of("u4", 1 << 12) == WANTED
    forget_tuning(Timed())
    assert sorts_of("u4", 1 << 12) != WANTED
    tuned.forget(INFO.name, INFO.adapter)  # a second time is as once


def keep_policy(policy: object) -> None:
    """As a file of the host's own sort would have it."""
    line = {"lengths": [0, 1 << 62], "bits": [32], "algorithm": {"name": "HostSort", "policy": policy}}
    info = CpuTarget().info
    assert tuned.write(info.name, info.adapter, {"sorts": [line]})


def test_a_policy_that_was_measured_counts() -> None:
    keep_policy({"count_bytes_from": 9})
    assert CpuTarget().policy == HostSortPolicy(count_bytes_from=9)


@pytest.mark.parametrize(
    "policy", [7, [], {"block": 0, "count_bytes_from": 0}, {"count_bytes_from": "9", "?": 3, "part_bytes_from": 1e300}]
)
def test_a_policy_that_nobody_measured_does_not_count(policy: object) -> None:
    keep_policy(policy)
    assert CpuTarget().policy == HostSortPolicy()


def wrong_radix(field: str, value: object) -> dict[str, object]:
    return {"name": "Radix", "policy": {**attrs.asdict(WANTED.policy), field: value}}


def test_a_kept_sort_is_fitted_to_the_adapter() -> None:
    wide = Radix(RadixPolicy(8, 1024, 200, 32, sweeps=True))
    tuned.keep_sorts(INFO, [SortRule("wgsl", frozenset(), (32,), range(1 << 20), range(1, 2), wide)])
    found = sorts_of("u4", 999)
    assert isinstance(found, Radix)
    assert found == Radix(attrs.evolve(wide.policy, items=3))


@pytest.mark.parametrize("wrong", [{"chunk": 0}, {"block": -1}, {"sample": "x"}, {"most_share": 7}, {"none": 1}, 7])
def test_wrong_thresholds_do_not_count(wrong: object) -> None:
    keep_policy(wrong)
    assert CpuTarget().policy == HostSortPolicy()


def test_all_kinds_of_algorithms_come_back_as_they_were() -> None:
    host = HostSort(HostSortPolicy(part_bytes_from=77))
    algorithms: tuple[SortAlgorithm, ...] = (WANTED, Radix(RadixPolicy(lookback=2, sweeps=True)), Bitonic(), host)
    lines = [
        SortRule("wgsl", tuned.needs_of(algorithm), (32,), range(k, k + 1), range(1, 2), algorithm)
        for k, algorithm in enumerate(algorithms)
    ]
    tuned.keep_sorts(INFO, lines)
    assert tuned.tuned_rules(INFO.name, INFO.adapter) == tuple(lines)


def test_the_cpus_thresholds_are_kept() -> None:
    said: list[str] = []
    tune("cpu", largest=1 << 15, report=said.append)
    kept, here = CpuTarget().policy, gpusort.target("cpu")
    assert isinstance(here, CpuTarget)
    assert kept == here.policy
    assert [line.split()[1] for line in said[:-1]] == ["u1", "u1"]
    assert attrs.evolve(kept, count_bytes_from=HostSortPolicy().count_bytes_from) == HostSortPolicy()
    x = np.random.default_rng(1).integers(0, 256, 40_000, np.uint8)
    np.testing.assert_array_equal(gpusort.sort(x), np.sort(x))


def test_numpy_alone_is_what_the_cpus_thresholds_are_measured_against(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a lower threshold is meant for the processor at hand: slow sorts of 16 bits, and many cores."""
    measured: list[str] = []

    def sides(never: HostSortPolicy, always: HostSortPolicy, x: npt.NDArray[np.generic]) -> tuple[float, float]:
        measured.append(x.dtype.str[1:])
        assert partition_sort.part_from(x.dtype, always, 8) <= x.size < partition_sort.part_from(x.dtype, never, 8)
        return 1.0, 1.0

    monkeypatch.setattr(cpu_tuning, "_side_by_side", sides)
    monkeypatch.setattr(partition_sort, "radix_sorts_sooner", lambda: True)
    monkeypatch.setattr(partition_sort, "threads_to_sort", lambda dtype, nbytes, policy: policy.crew_for(nbytes, 8, 8))
    assert cpu_tuning.tuned_policy(1 << 20, lambda line: None) == HostSortPolicy()
    assert {*measured} == {"u1", "u2", "u4"}


def test_wrong_uses() -> None:
    with pytest.raises(InvalidArgumentError, match="largest: expected a length of at least 4096, found 7"):
        tune("cpu", largest=7)
    with pytest.raises(UnsupportedTypeError, match="largest: expected an int, found array"):
        tune("cpu", largest=cast(int, np.array([4096, 5000])))
    with pytest.raises(CapabilityError, match="'simulator' has no clock"):
        tune("simulator")


def test_the_table_has_no_line_of_the_tests() -> None:
    assert WANTED not in {line.algorithm for line in SORTS}


def test_all_that_are_here_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command line, too."""
    names: list[str] = []

    def noted(name: str, adapter: str) -> bool:
        names.append(name)
        return False

    monkeypatch.setattr(tuned, "forget", noted)
    here = {info.name for info in gpusort.targets() if isinstance(info, TargetInfo)}
    forget_tuning()
    assert set(names) == here & {"cpu", "wgsl", "cuda"}
    names.clear()
    assert cli.main(["tune", "--forget", "--target", "cpu"]) == 0
    assert names == ["cpu"]


def test_ctrl_c_ends_the_command_as_a_signal_would(monkeypatch: pytest.MonkeyPatch) -> None:
    def struck(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gpusort.tuning.tune", struck)
    monkeypatch.setattr("sys.argv", ["gpusort", "tune"])
    assert command() == 130
