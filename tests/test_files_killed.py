"""What is left of a sort that does not come to its end: killed, interrupted, failed, without room, or two at once."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.api.engine import OwnEngine
from gpusort.external import direct, journal, scratch
from gpusort.external.pipeline import slots_for
from gpusort.external.plans import Plan
from tests.covering import few_cases
from tests.new_process import PRINT_PEAK, run_new, run_sort
from tests.reference import Array, sample
from tests.test_files import FLOATS

COUNT = 30_000
MEMORY = 1 << 16
FEW = 1_500  # rows of a table, which makes a dozen runs: cutting them takes the square of their number
SORT = attrs.evolve(FLOATS, engine=OwnEngine.for_files("cpu", MEMORY))
RUNS = -(-COUNT // Plan.within(MEMORY, COUNT, SORT).run)
STEPS = 2 * RUNS
ON_THEIR_WAY = slots_for(SORT.engine.workers)  # pieces that are reported before they are written

# Kills itself at a step, without a chance to clean up.
KILLED = """
import os, signal, sys
import gpusort
at, resume, call, by = int(sys.argv[1]), sys.argv[2] == "True", sys.argv[3], sys.argv[4:]
steps = []
def count(progress):
    steps.append(progress)
    if len(steps) == at:
        os.kill(os.getpid(), signal.SIGKILL)
getattr(gpusort, call)("source.npy", "target.npy", by=by or None, memory={memory}, resume=resume, progress=count)
print(len(steps), steps[0].done if steps else "all")
"""


class Stopped(Exception):
    """Raised by a report."""


def killed(
    folder: Path, at: int, *, resume: bool, call: str = "sort_file", by: str = "", first: str = ""
) -> tuple[int, str]:
    code = first + KILLED.replace("{memory}", str(MEMORY))
    done = run_sort(code, str(at), str(resume), call, *([by] if by else []), cwd=folder)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout


@pytest.fixture
def x(tmp_path: Path) -> Array:
    elements = sample("f4", COUNT, 1)
    np.save(tmp_path / "source.npy", elements)
    return elements


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_sorted(folder: Path, x: Array) -> None:
    assert names(folder) == ["source.npy", "target.npy"]
    np.testing.assert_array_equal(np.load(folder / "source.npy"), x)
    np.testing.assert_array_equal(np.load(folder / "target.npy"), np.sort(x))


@pytest.mark.parametrize("at", [1, 7, RUNS, RUNS + 9, STEPS])
def test_killed_at_a_step_and_resumed(at: int, x: Array, tmp_path: Path) -> None:
    before = (tmp_path / "source.npy").read_bytes()
    assert killed(tmp_path, at, resume=False)[0] == -signal.SIGKILL
    assert (tmp_path / "source.npy").read_bytes() == before
    assert names(tmp_path) == ["source.npy", "target.npy.part", "target.npy.sorting"]  # nothing under the target's name
    code, printed = killed(tmp_path, 0, resume=True)
    assert code == 0
    steps, first = printed.split()
    assert int(steps) <= STEPS - max(0, at - 1 - ON_THEIR_WAY)  # what was written is not done again
    if first == "all":  # the last two pieces came to their end while the one before was reported
        assert at == STEPS
    else:
        assert at < 4 or int(first) >= 4 * 4 * COUNT // RUNS // 2
    assert_sorted(tmp_path, x)


def test_killed_again_and_again(x: Array, tmp_path: Path) -> None:
    """Each call comes a few steps further."""
    code, calls = -signal.SIGKILL, 0
    while code:
        code, _ = killed(tmp_path, 25, resume=True)
        calls += 1
        assert calls < STEPS
    assert calls > STEPS // 25
    assert_sorted(tmp_path, x)


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """By another process, so anywhere: in a read, a write, or the journal; four times in one sort."""
    numbers = random.Random(time.time_ns())
    x = sample("f8", 150_000, 2)
    expected = np.sort(x, kind="stable").tobytes()
    np.save(tmp_path / "source.npy", x)
    code = "import gpusort; gpusort.sort_file('source.npy', 'target.npy', stable=True, memory=1 << 18, resume=True)"
    kills = 0
    for seconds in (*(numbers.uniform(0.0, 0.2) for _ in range(4)), 120):
        try:
            done = run_sort(code, cwd=tmp_path, timeout=seconds)
        except subprocess.TimeoutExpired:  # for which it was killed
            assert seconds < 120
            kills += 1
        else:
            assert (done.returncode, done.stderr) == (0, "")
            assert (tmp_path / "target.npy").exists()
        if (tmp_path / "target.npy").exists():  # killed after it was renamed, too: whole
            assert np.load(tmp_path / "target.npy").tobytes() == expected
    assert kills > 0
    assert names(tmp_path) == ["source.npy", "target.npy"]
    assert np.load(tmp_path / "source.npy").tobytes() == x.tobytes()


def test_places_and_records_are_resumed_too(tmp_path: Path) -> None:
    records = np.zeros(COUNT, [("key", "u1"), ("place", "i4")])
    records["key"] = np.random.default_rng(1).integers(0, 5, COUNT)
    records["place"] = np.arange(COUNT)
    np.save(tmp_path / "source.npy", records)
    expected = np.argsort(records["key"], kind="stable")
    for call, result in (("argsort_file", expected), ("sort_file", records[expected])):
        for at in (5,):
            assert killed(tmp_path, at, resume=True, call=call, by="key")[0] == -signal.SIGKILL
        assert killed(tmp_path, 0, resume=True, call=call, by="key")[0] == 0
        np.testing.assert_array_equal(np.load(tmp_path / "target.npy"), result)


def test_elements_in_the_last_page_of_a_long_header_are_resumed_too(tmp_path: Path) -> None:
    """NumPy reads no header that is longer than 10,000 bytes, which are no whole pages."""
    records = np.zeros(FEW, [("key", "i4"), *((f"{number:030}", "u1") for number in range(205))])
    records["key"] = np.random.default_rng(2).permutation(FEW)
    np.save(tmp_path / "source.npy", records)

    def stop(progress: gpusort.Progress) -> None:
        if progress.fraction > 0.7:
            raise Stopped

    with pytest.raises(Stopped):
        sort_again(tmp_path, stop, by="key")
    sort_again(tmp_path, by="key")
    assert np.load(tmp_path / "target.npy").tobytes() == records[np.argsort(records["key"])].tobytes()


def test_killed_between_its_name_and_its_end(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(path: Path, ignore_errors: bool) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", stop)
        with pytest.raises(SystemExit):
            gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", memory=MEMORY)
    assert "target.npy.sorting" in names(tmp_path)
    steps: list[gpusort.Progress] = []
    gpusort.sort_file(
        tmp_path / "source.npy", tmp_path / "target.npy", memory=MEMORY, resume=True, progress=steps.append
    )
    assert steps == []
    assert_sorted(tmp_path, x)


def left_by_a_sort_that_ended(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which the folder alone could not be removed."""
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
        gpusort.sort_file(source, target, memory=MEMORY, resume=True)
    assert f"{target.name}.sorting" in names(target.parent)


@pytest.mark.parametrize("change", ["source", "arguments", "target"])
def test_what_has_changed_since_it_had_its_name_is_sorted_anew(
    change: str, x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    left_by_a_sort_that_ended(source, target, monkeypatch)
    if change == "source":
        np.save(source, x[: COUNT // 2])
    elif change == "target":
        written_into(target)
    gpusort.sort_file(source, target, memory=MEMORY, resume=True, descending=change == "arguments")
    expected = gpusort.sort(np.load(source), descending=change == "arguments")
    np.testing.assert_array_equal(np.load(target), expected)
    assert names(tmp_path) == ["source.npy", "target.npy"]


def test_what_is_written_to_a_file_after_it_was_sorted_over_itself_is_sorted(
    x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source.npy"
    left_by_a_sort_that_ended(source, source, monkeypatch)
    written_into(source)
    changed = np.load(source)
    gpusort.sort_file(source, source, memory=MEMORY, resume=True)
    np.testing.assert_array_equal(np.load(source), np.sort(changed))
    assert names(tmp_path) == ["source.npy"]


def test_stopped_when_it_has_its_name(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also over itself: the source is gone by then, and nothing is to be done again."""
    source, sync = tmp_path / "source.npy", scratch.fsync_path

    def stop(path: Path) -> None:
        if path == tmp_path:
            raise KeyboardInterrupt
        sync(path)

    with monkeypatch.context() as patched:
        patched.setattr(scratch, "fsync_path", stop)
        with pytest.raises(KeyboardInterrupt):
            gpusort.sort_file(source, source, memory=MEMORY, resume=True)
    assert names(tmp_path) == ["source.npy", "source.npy.sorting"]
    gpusort.sort_file(source, source, memory=MEMORY, resume=True)
    assert names(tmp_path) == ["source.npy"]
    np.testing.assert_array_equal(np.load(source), np.sort(x))


@pytest.mark.parametrize(("seconds", "is_synced"), [("'inf'", False), (-1, True)])
def test_after_a_loss_of_power_only_what_was_synced_is_believed(
    seconds: str | float, is_synced: bool, x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = f"from gpusort.external import journal\njournal._SECONDS = float({seconds})"  # however long a step takes
    assert killed(tmp_path, 7, resume=True, first=first)[0] == -signal.SIGKILL
    if BOOT.exists():
        assert BOOT.read_text().strip() in (tmp_path / "target.npy.sorting" / "journal").read_text()
    monkeypatch.setattr(journal, "_boot", lambda: "another")
    steps: list[gpusort.Progress] = []
    gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", resume=True, progress=steps.append)
    assert len(steps) < STEPS if is_synced else len(steps) == STEPS
    assert_sorted(tmp_path, x)


def test_lines_above_the_last_sync() -> None:
    above: Callable[[str, list[str]], list[str]] = journal._before_last  # pyright: ignore[reportPrivateUsage]
    assert above("synced", []) == above("synced", ["run 1"]) == []
    assert above("synced", ["run 1", "synced", "run 2", "synced", "run 3"]) == ["run 1", "synced", "run 2"]


def test_a_line_that_is_not_whole_is_not_believed(x: Array, tmp_path: Path) -> None:
    assert killed(tmp_path, RUNS + 9, resume=True)[0] == -signal.SIGKILL
    journal = tmp_path / "target.npy.sorting" / "journal"
    written = journal.read_text().rpartition("\nbucket ")  # a line that tells of an fsync may follow
    assert written[1]
    journal.write_text("".join(written[:2]) + written[2].splitlines()[0][:-1])
    gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", resume=True)
    assert_sorted(tmp_path, x)


def test_what_was_left_by_another_sort(x: Array, tmp_path: Path) -> None:
    """It is not gone on from; without resume it goes."""
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    assert killed(tmp_path, RUNS + 9, resume=True)[0] == -signal.SIGKILL
    left = names(tmp_path)
    with pytest.raises(
        gpusort.InvalidArgumentError, match=r"resume: .* was left by a sort of other data, or with other"
    ):
        gpusort.sort_file(source, target, descending=True, resume=True)
    written_to_and_dated_back(source)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"resume: .* was left by a sort of other data"):
        gpusort.sort_file(source, target, resume=True)
    assert names(tmp_path) == left
    np.save(source, x)
    gpusort.sort_file(source, target, memory=MEMORY)
    assert_sorted(tmp_path, x)


@pytest.mark.parametrize("text", [b"no\nx\n", b"\xff\n", b"[]\n"])
def test_a_journal_that_cannot_be_read(text: bytes, x: Array, tmp_path: Path) -> None:
    folder = tmp_path / "target.npy.sorting"
    folder.mkdir()
    (folder / "journal").write_bytes(text)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"resume: .* has no journal that can be read"):
        gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", memory=MEMORY, resume=True)
    gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", memory=MEMORY)
    assert_sorted(tmp_path, x)


def test_a_part_that_is_gone_is_written_again(x: Array, tmp_path: Path) -> None:
    assert killed(tmp_path, RUNS + 9, resume=True)[0] == -signal.SIGKILL
    (tmp_path / "target.npy.part").unlink()
    gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", resume=True)
    assert_sorted(tmp_path, x)


def test_a_part_that_is_made_again_is_not_for_more_users_than_the_target(x: Array, tmp_path: Path) -> None:
    target = tmp_path / "target.npy"
    target.touch(0o600)
    assert killed(tmp_path, RUNS + 9, resume=True)[0] == -signal.SIGKILL
    (tmp_path / "target.npy.part").unlink()
    modes: set[int] = set()

    def look(progress: gpusort.Progress) -> None:
        modes.add((tmp_path / "target.npy.part").stat().st_mode & 0o777)

    gpusort.sort_file(tmp_path / "source.npy", target, resume=True, progress=look)
    assert modes == {0o600}
    assert_sorted(tmp_path, x)


def written_into(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 10)
        file.write(b"\x7f" * 64)


BOOT = Path("/proc/sys/kernel/random/boot_id")
DAMAGES: dict[str, Callable[[Path], object]] = {
    "written to": written_into,
    "cut off": lambda path: os.truncate(path, 4096),
    "removed": Path.unlink,
}


@few_cases()
@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("at", [9, RUNS + 9])
@pytest.mark.parametrize("file", ["target.npy.sorting/runs", "target.npy.part"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.usefixtures("x")
def test_work_that_somebody_damaged_is_not_gone_on_from(
    damage: str, file: str, at: int, is_killed: bool, tmp_path: Path
) -> None:
    """Files that are too short are seen in any case, others if the sort was stopped by an exception: how it left them
    is in the journal. Without resume all goes."""
    if is_killed:
        assert killed(tmp_path, at, resume=True)[0] == -signal.SIGKILL
    else:
        steps: list[gpusort.Progress] = []

        def stop(progress: gpusort.Progress) -> None:
            steps.append(progress)
            if len(steps) == at:
                raise Stopped

        with pytest.raises(Stopped):
            sort_again(tmp_path, progress=stop)
    DAMAGES[damage](tmp_path / file)
    is_part = file.endswith("part")
    if is_part and (damage == "removed" or (is_killed and at < RUNS)):
        sort_again(tmp_path)  # it is made anew
    elif damage == "written to" and (is_killed or not BOOT.exists()):
        return  # which nothing tells of
    else:
        for _ in range(2):
            with pytest.raises(gpusort.FileChangedError, match=f"{file} was written to, cut off or removed after an"):
                sort_again(tmp_path)
        gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", memory=MEMORY)
    assert_sorted(tmp_path, np.load(tmp_path / "source.npy"))


def sort_again(
    folder: Path, progress: Callable[[gpusort.Progress], object] | None = None, by: str | None = None
) -> None:
    gpusort.sort_file(
        folder / "source.npy", folder / "target.npy", by=by, memory=MEMORY, resume=True, progress=progress
    )


def test_runs_of_a_table_that_are_cut_off_are_named(tmp_path: Path, x: Array) -> None:
    source = tmp_path / "source.parquet"
    save_table(source, {"x": x[:FEW], "y": x[:FEW]})
    code = KILLED.replace("{memory}", str(MEMORY)).replace(".npy", ".parquet")
    assert run_sort(code, "9", "True", "sort_file", "x", cwd=tmp_path).returncode == -signal.SIGKILL
    runs = tmp_path / "target.parquet.sorting" / "runs"
    os.truncate(runs, 1000)
    with pytest.raises(gpusort.FileChangedError, match="runs was written to, cut off or removed"):
        gpusort.sort_file(source, tmp_path / "target.parquet", by="x", resume=True)


# -- interrupted, failed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stopped])
@pytest.mark.parametrize("at", [1, 9, RUNS + 9])
def test_what_is_interrupted_leaves_nothing(error: type[BaseException], at: int, x: Array, tmp_path: Path) -> None:
    """With resume it keeps what is done, and goes on from there."""
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    target.write_text("as it was")
    steps: list[gpusort.Progress] = []

    def stop(progress: gpusort.Progress) -> None:
        steps.append(progress)
        if len(steps) == at:
            raise error

    with pytest.raises(error) as raised:
        gpusort.sort_file(source, target, memory=MEMORY, progress=stop)
    assert raised.value.__context__ is None  # a traceback is of what the caller raised, and of nothing else
    assert names(tmp_path) == ["source.npy", "target.npy"]
    assert target.read_text() == "as it was"
    steps.clear()
    with pytest.raises(error):
        gpusort.sort_file(source, target, memory=MEMORY, progress=stop, resume=True)
    assert target.read_text() == "as it was"
    steps.clear()
    at = 0
    gpusort.sort_file(source, target, memory=MEMORY, progress=stop, resume=True)
    assert 0 < len(steps) <= STEPS
    assert_sorted(tmp_path, x)


def test_ctrl_c(tmp_path: Path) -> None:
    """As a terminal sends it, at any moment: it ends soon, by KeyboardInterrupt, and nothing is left."""
    np.save(tmp_path / "source.npy", sample("f8", 400_000, 2))
    code = "import gpusort; print('ready', flush=True); gpusort.sort_file('source.npy', 'target.npy', memory=1 << 18)"
    for delay in (0.0, 0.1, 0.2):
        done = run_sort(code, cwd=tmp_path, timeout=60, interrupt=delay)
        # 1, where another thread runs text meanwhile, as imports do: CPython then forgets what it was that ended it.
        assert done.returncode in (0, 1, -signal.SIGINT), done.stderr
        assert done.returncode != 1 or done.stderr.rstrip().endswith("KeyboardInterrupt"), done.stderr
        is_done = (tmp_path / "target.npy").exists()  # an interpreter that ends is ended without a word
        assert done.returncode == 0 or is_done or "KeyboardInterrupt" in done.stderr
        assert not [name for name in names(tmp_path) if name.startswith("target.npy.")]
        (tmp_path / "target.npy").unlink(missing_ok=True)


@pytest.mark.usefixtures("x")
def test_two_at_once(tmp_path: Path) -> None:
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    refused: list[gpusort.GpusortError] = []

    def again(progress: gpusort.Progress) -> None:
        if not refused:
            with pytest.raises(
                gpusort.InvalidArgumentError, match=r"target: .* is being sorted already, by this process or another"
            ) as e:
                gpusort.sort_file(source, target)
            refused.append(e.value)

    gpusort.sort_file(source, target, memory=MEMORY, progress=again)
    assert refused
    assert names(tmp_path) == ["source.npy", "target.npy"]


def sortable(folder: Path, suffix: str, x: Array) -> tuple[Path, Path, str | None]:
    """A source, a target and what the source, if it is a table, is sorted by."""
    source, target = folder / f"source.{suffix}", folder / f"target.{suffix}"
    if suffix == "npy":  # which the fixture has saved
        return source, target, None
    save_table(source, {"x": x[:FEW], "y": x[:FEW]})
    return source, target, "x"


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_two_at_once_with_scratch_files_in_different_folders(suffix: str, tmp_path: Path, x: Array) -> None:
    """Neither sees the other's lock; both would write to one part."""
    source, target, by = sortable(tmp_path, suffix, x)
    other = tmp_path / "other"
    other.mkdir()
    refused: list[str] = []

    def again(progress: gpusort.Progress) -> None:
        if not refused:
            refused.append(progress.step)
            with pytest.raises(
                gpusort.InvalidArgumentError, match=r"part is in the way, .* elsewhere, name their folder"
            ):
                gpusort.sort_file(source, target, by=by, scratch=other)

    gpusort.sort_file(source, target, by=by, memory=MEMORY, progress=again)
    assert refused == ["runs"]
    assert not names(other)


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_two_at_once_where_one_finds_what_an_earlier_call_left_elsewhere(suffix: str, tmp_path: Path, x: Array) -> None:
    """To which it would take the other's part."""
    source, target, by = sortable(tmp_path, suffix, x)
    other = tmp_path / "other"
    other.mkdir()

    def fail(progress: gpusort.Progress) -> None:
        if progress.step == "buckets":
            raise KeyboardInterrupt

    refused: list[str] = []

    def again(progress: gpusort.Progress) -> None:
        if progress.step not in refused:
            refused.append(progress.step)
            shutil.copytree(left, other / left.name)
            for resume in (True, False):
                with pytest.raises(gpusort.InvalidArgumentError, match=r"target: .* is being sorted already"):
                    gpusort.sort_file(source, target, by=by, memory=MEMORY, scratch=other, resume=resume)

    with pytest.raises(KeyboardInterrupt):
        gpusort.sort_file(source, target, by=by, memory=MEMORY, scratch=other, resume=True, progress=fail)
    (tmp_path / f"target.{suffix}.part").unlink()
    (folder,) = other.iterdir()
    left = folder.rename(tmp_path / folder.name)
    gpusort.sort_file(source, target, by=by, memory=MEMORY, progress=again)
    assert refused == ["runs", "buckets"]
    assert not names(other)
    if suffix == "npy":
        np.testing.assert_array_equal(np.load(target), np.sort(x))


def test_a_part_that_is_to_be_sorted_itself_is_not_removed(x: Array, tmp_path: Path) -> None:
    assert killed(tmp_path, RUNS + 9, resume=True)[0] == -signal.SIGKILL
    part = tmp_path / "target.npy.part"
    before = part.read_bytes()
    with pytest.raises(gpusort.InvalidArgumentError, match=r"target: .*part is in the way"):
        gpusort.sort_file(part, tmp_path / "target.npy", memory=MEMORY, dtype="f4")
    assert part.read_bytes() == before


@pytest.mark.usefixtures("x")
def test_where_files_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some network file systems: nobody else is said to have the file."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    said = r"target: .*journal cannot be locked: have scratch files elsewhere .*: .* locks"
    with pytest.raises(gpusort.InvalidArgumentError, match=said):
        gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy")
    assert names(tmp_path) == ["source.npy"]


# -- room -------------------------------------------------------------------------------------------------


def test_a_full_disk_is_found_before_the_first_byte(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target.npy"

    def little(path: Path) -> SimpleNamespace:
        return SimpleNamespace(free=100_000)

    monkeypatch.setattr(shutil, "disk_usage", little)
    with pytest.raises(gpusort.DiskFullError, match=r"sorting takes 24\d,\d+ bytes more in .*, where 100,000 are free"):
        gpusort.sort_file(tmp_path / "source.npy", target, memory=MEMORY)
    assert names(tmp_path) == ["source.npy"]


def test_a_disk_that_fills_while_it_is_taken(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else took it in between: by the system's own error."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(gpusort.DiskFullError, match="sorting takes"):
        gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", memory=MEMORY)
    assert names(tmp_path) == ["source.npy"]


def test_a_file_system_of_its_own_that_is_full(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", mount], capture_output=True, check=False
    ).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        x = sample("f8", 100_000, 1)
        np.save(tmp_path / "x.npy", x)
        elsewhere = r"bytes more in {}, where \S+ are free; scratch files may lie elsewhere"
        with pytest.raises(gpusort.DiskFullError, match=elsewhere.format(mount)):
            gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy", memory=1 << 18, scratch=mount)
        assert list(mount.iterdir()) == []
        with pytest.raises(gpusort.DiskFullError, match=elsewhere.format(mount)):
            gpusort.sort_file(tmp_path / "x.npy", mount / "y.npy", memory=1 << 18)
        assert list(mount.iterdir()) == []
        for memory in (1 << 18, 1 << 30):  # what the result takes alone
            with pytest.raises(gpusort.DiskFullError, match=f"more in {mount}, where .* are free$"):
                gpusort.sort_file(tmp_path / "x.npy", mount / "y.npy", memory=memory, scratch=tmp_path)
            assert list(mount.iterdir()) == []
        with pytest.raises(gpusort.DiskFullError, match=f"more in {mount}, where .* are free$"):
            gpusort.sort_file(tmp_path / "x.npy", mount / "y.npy", memory=1 << 30)
        assert list(mount.iterdir()) == []
        np.save(tmp_path / "x.npy", x[:50_000])
        gpusort.sort_file(tmp_path / "x.npy", mount / "y.npy", memory=1 << 18, scratch=tmp_path)
        np.testing.assert_array_equal(np.load(mount / "y.npy"), np.sort(x[:50_000]))
    finally:
        subprocess.run(["umount", mount], check=True)


def test_without_direct_access(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems that refuse it when a file is opened, or at the first read."""
    opened, read = os.open, os.preadv

    def refuse_to_open(path: Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & direct._DIRECT:  # pyright: ignore[reportPrivateUsage]
            raise OSError(22, "Invalid argument")
        return opened(path, flags, mode, dir_fd=dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse_to_open)
        gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", memory=MEMORY)
    assert_sorted(tmp_path, x)
    refused: list[int] = []

    def refuse_once(fd: int, buffers: list[memoryview], offset: int) -> int:
        if fd not in refused:
            refused.append(fd)
            raise OSError(22, "Invalid argument")
        return read(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", refuse_once)
    gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", memory=MEMORY)
    assert refused
    assert_sorted(tmp_path, x)


@pytest.mark.usefixtures("x")
def test_a_source_that_becomes_shorter(tmp_path: Path) -> None:
    source = tmp_path / "source.npy"

    def cut(progress: gpusort.Progress) -> None:
        os.truncate(source, 1000)

    with pytest.raises(
        gpusort.FileChangedError, match="was written to, replaced or removed while it was being sorted"
    ) as e:
        gpusort.sort_file(source, tmp_path / "target.npy", memory=MEMORY, progress=cut)
    assert (e.value.__cause__, e.value.__suppress_context__) == (None, True)  # the reader's own words would be the same
    assert names(tmp_path) == ["source.npy"]


def written_to(source: Path) -> None:
    with source.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\0")


def written_to_and_dated_back(source: Path) -> None:
    """As programs do that copy into a file and keep its time."""
    before = source.stat()
    written_to(source)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert source.stat().st_mtime_ns == before.st_mtime_ns


def replaced(source: Path) -> None:
    shutil.copy(source, source.with_name("other"))
    os.replace(source.with_name("other"), source)


CHANGES: dict[str, Callable[[Path], object]] = {
    "written to": written_to,
    "dated back": written_to_and_dated_back,
    "truncated": lambda source: os.truncate(source, 1000),
    "replaced": replaced,
    "removed": Path.unlink,
}


@few_cases()
@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".arrow"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_source_that_changes_is_never_half_of_a_result(
    change: str, suffix: str, resume: bool, tmp_path: Path, x: Array
) -> None:
    source, target, seen = tmp_path / f"source{suffix}", tmp_path / f"target{suffix}", list[float]()
    if suffix != ".npy":
        save_table(source, {"x": x[:FEW], "y": x[:FEW]})

    def once(progress: gpusort.Progress) -> None:
        if not seen:
            CHANGES[change](source)
        seen.append(progress.done)

    by = None if suffix == ".npy" else "x"
    with pytest.raises(gpusort.FileChangedError, match=r"written to, replaced or removed|has become shorter"):
        gpusort.sort_file(source, target, by=by, memory=MEMORY, progress=once, resume=resume)
    assert not target.exists()
    assert names(tmp_path) == [name for name in names(tmp_path) if name.startswith("source")]


@pytest.mark.parametrize("call", [gpusort.sort_file, gpusort.argsort_file])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_table_of_which_much_is_left_to_read_becomes_shorter(
    suffix: str, columns: int, call: Callable[..., None], tmp_path: Path
) -> None:
    """Which pyarrow takes for a damaged file, or for its end."""
    source, target = tmp_path / f"source{suffix}", tmp_path / ("target" + (suffix if call is gpusort.sort_file else ""))
    rows = np.random.default_rng(0).random(600_000)
    save_table(source, {"x": rows, "y": rows} if columns == 2 else {"x": rows}, 20_000)
    seen = list[float]()

    def once(progress: gpusort.Progress) -> None:
        if not seen:
            os.truncate(source, 0)
        seen.append(progress.done)

    with pytest.raises(gpusort.FileChangedError, match="written to, replaced or removed"):
        call(source, target, by="x", memory="1M", progress=once)
    assert names(tmp_path) == [source.name]


def save_table(path: Path, columns: Mapping[str, Array], rows: int = 200) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table(dict(columns))
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=rows)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, rows)


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".indices"])
@pytest.mark.parametrize("which", [".part", ".sorting"])
def test_what_somebody_removes_is_named(which: str, suffix: str, tmp_path: Path, x: Array) -> None:
    """Not of what a sort reads, but of what it writes."""
    is_table = suffix != ".npy"
    source = tmp_path / ("source.parquet" if is_table else "source.npy")
    target = tmp_path / f"target{suffix}"
    if is_table:
        save_table(source, {"x": x[:FEW], "y": x[:FEW]})

    def remove(progress: gpusort.Progress) -> None:
        if progress.step == "buckets":
            found = target.with_name(target.name + which)
            shutil.rmtree(found, ignore_errors=True)
            found.unlink(missing_ok=True)

    call = gpusort.argsort_file if suffix == ".indices" else gpusort.sort_file
    with pytest.raises(gpusort.FileChangedError, match=f"{which} was removed while"):
        call(source, target, by="x" if is_table else None, memory=MEMORY, progress=remove)
    assert not target.exists()


@pytest.mark.parametrize("at", [2, 3])
def test_runs_of_a_table_that_somebody_removes_are_missed(at: int, tmp_path: Path) -> None:
    """Though others are written to a file of the same name, where the first were."""
    source, seen = tmp_path / "source.parquet", list[float]()
    save_table(source, {"x": np.random.default_rng(0).random(600_000), "y": np.arange(600_000)}, 100_000)

    def remove(progress: gpusort.Progress) -> None:
        seen.append(progress.done)
        if len(seen) == at:
            for runs in tmp_path.glob("*.sorting/runs"):
                runs.unlink()

    with pytest.raises(gpusort.FileChangedError, match="runs was removed while it was being written: sort anew"):
        gpusort.sort_file(source, tmp_path / "target.parquet", by="x", memory="1M", progress=remove)
    assert names(tmp_path) == [source.name]


# -- memory -----------------------------------------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.parametrize("call", ["sort_file", "argsort_file"])
@pytest.mark.parametrize(("memory", "is_parted"), [(32, False), (20, True)])
def test_what_is_resident_keeps_to_the_memory(call: str, memory: int, is_parted: bool, tmp_path: Path) -> None:
    """In a process of its own: what there may be above it, the interpreter included, is less than two more copies of
    the 32 MiB of elements. Partitioned, parts differ in length, so that each bucket takes other memory than the one
    before."""
    x = np.random.default_rng(1).standard_normal(1 << 23, np.float32)
    np.save(tmp_path / "source.npy", x)
    parted = "from gpusort.api import engine; from gpusort.external import sort;"
    parted += "engine._LITTLE = sort._WORTH_PARTING = 0;"
    done = run_new(
        f"import os; os.chdir({str(tmp_path)!r}); import gpusort; {parted if is_parted else ''}"
        f"gpusort.{call}('source.npy', 'target.npy', memory={memory << 20})" + PRINT_PEAK
    )
    assert done.returncode == 0, done.stderr
    above = (int(done.stdout) >> 20) - memory
    assert above < 60
    found = np.load(tmp_path / "target.npy", mmap_mode="r")
    ordered = x[found] if call == "argsort_file" else found
    assert np.array_equal(ordered, np.sort(x))
