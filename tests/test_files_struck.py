"""File sorts and their pipeline under exceptions that strike the caller anywhere: nothing goes on, nothing is left."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.external import maps
from gpusort.external.crew import Crew
from gpusort.external.direct import Bytes, DirectFile
from gpusort.external.pipeline import run_pipeline
from gpusort.external.scratch import Scratch
from gpusort.types.calls import uninterrupted
from tests.new_process import run_new, run_sort
from tests.reference import sample
from tests.striking import elements_of, events, places, soon, strike, threads

BELOW = "external"
CREW = "external/crew.py"
CALLS = "types/calls.py"
COUNT = 20_000
MEMORY = 1 << 16


@attrs.define
class Stages:
    """A pipeline's stages, whose beginnings and ends are seen."""

    begun: list[str] = attrs.field(factory=list[str])
    ended: list[str] = attrs.field(factory=list[str])

    def stage(self, name: str, piece: int, *_: object) -> None:
        self.begun.append(f"{name} {piece}")
        time.sleep(0.0005)
        self.ended.append(f"{name} {piece}")

    def run(self, workers: int) -> None:
        load, work, keep = (partial(self.stage, name) for name in ("load", "work", "keep"))
        run_pipeline(range(4), load, work, keep, workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_no_stage_goes_on_when_its_pipeline_was_struck(workers: int) -> None:
    before = threads()
    struck = 0
    for place in places(events(lambda: Stages().run(workers), BELOW), 150):
        stages = Stages()
        came = strike(partial(stages.run, workers), place, BELOW)
        struck += came
        begun, ended = len(stages.begun), len(stages.ended)
        # The caller's own stage may have been struck in the middle.
        assert begun - ended in (0, int(came)), f"a thread is at work, struck at {place}"
        assert came or ended == 3 * 4
        time.sleep(0.001)
        assert (len(stages.begun), len(stages.ended)) == (begun, ended), f"a thread went on, struck at {place}"
    assert struck
    assert soon(lambda: threads() <= before), "threads are left"


def test_a_call_is_made_once_wherever_its_caller_is_struck() -> None:
    """By a thread that may start, and be waited for, before or after the strike."""
    before = threads()
    for through in uninterrupted, partial(uninterrupted, always=True):
        made: list[None] = []
        call = partial(through, partial(made.append, None))
        for place in places(events(call, CALLS), 300):
            made.clear()
            came = strike(call, place, CALLS)
            found = len(made)
            assert found <= 1
            assert found or came
            time.sleep(0.0005)
            assert len(made) == found, f"made when its caller had returned, struck at {place}"
    assert soon(lambda: threads() <= before), "threads are left"


def test_what_an_uninterrupted_call_raises_is_raised() -> None:
    def fail() -> None:
        raise OSError("no room")

    for through in uninterrupted, partial(uninterrupted, always=True):
        with pytest.raises(OSError, match="no room"):
            through(fail)


def test_what_interrupts_a_crews_end_is_raised_when_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    crew, ends, before = Crew(1), [KeyboardInterrupt, None], threads()
    close = Crew._close  # pyright: ignore[reportPrivateUsage]

    def struck(self: Crew) -> None:
        if (error := ends.pop(0)) is not None:
            raise error
        close(self)

    monkeypatch.setattr(Crew, "_close", struck)
    assert crew.submit(threads).result()
    with pytest.raises(KeyboardInterrupt):
        crew.close()
    assert not ends
    assert soon(lambda: threads() <= before)


def test_signals_leave_no_thread_of_a_pipeline_at_work() -> None:
    """As `concurrent.futures` would: an interrupt leaks the locks of its futures and threads."""
    command = [sys.executable, "-m", "tests.pipeline_storm", "120"]
    done = subprocess.run(
        command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.split(": ") for line in done.stdout.splitlines())
    assert int(told.pop("struck")) > 60
    assert told == {"at work": "0", "other errors": "0", "threads": "1"}


def test_a_stage_may_import_where_an_interrupted_import_has_left_its_lock() -> None:
    code = """
import _imp, importlib
from gpusort.external.pipeline import run_pipeline
_imp.acquire_lock()
run_pipeline(range(2), lambda piece, slot: importlib.import_module("colorsys"), lambda *_: 0, lambda *_: 0, workers=2)
print(_imp.lock_held())
"""
    done = run_new(code)
    assert done.stdout == "False\n", done.stderr


def open_below(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    found: list[str] = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:  # the one that lists them
            continue
    return [name for name in found if name.startswith(str(folder)) and not name.endswith("source.npy")]


@pytest.mark.parametrize("count", [300, COUNT], ids=["in memory", "in runs"])
@pytest.mark.parametrize("file", ["external/scratch.py", "external/journal.py"])
def test_what_strikes_the_folders_own_code_leaves_nothing(file: str, count: int, tmp_path: Path) -> None:
    """Not even as it is left, before the code that removes it has begun."""
    x = sample("f4", count, 1)
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    np.save(source, x)
    call = partial(gpusort.sort_file, source, target, memory=MEMORY)
    struck = 0
    for place in places(events(call, file), 120):
        struck += strike(call, place, file)
        assert {path.name for path in tmp_path.iterdir()} <= {"source.npy", "target.npy"}, f"struck at {place}"
    assert struck
    assert not open_below(tmp_path)
    gpusort.sort_file(source, target, memory=MEMORY)
    np.testing.assert_array_equal(np.load(target), np.sort(x))


@pytest.mark.parametrize(("module", "name"), [(fcntl, "flock"), (os, "replace"), (shutil, "rmtree")])
def test_ctrl_c_while_the_folder_is_made_or_removed_leaves_nothing(
    module: object, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the folder, nor its lock: the next sort of this process is not refused."""
    x = sample("f4", COUNT, 1)
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    np.save(source, x)
    real = getattr(module, name)

    def with_ctrl_c(*given: object, **more: object) -> object:
        signal.raise_signal(signal.SIGINT)
        return real(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(module, name, with_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            gpusort.sort_file(source, target, memory=MEMORY)
    assert {path.name for path in tmp_path.iterdir()} <= {"source.npy", "target.npy"}
    assert not open_below(tmp_path)
    gpusort.sort_file(source, target, memory=MEMORY)
    np.testing.assert_array_equal(np.load(target), np.sort(x))


def test_ctrl_c_as_a_sort_is_resumed_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = sample("f4", COUNT, 1)
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    np.save(source, x)
    steps: list[gpusort.Progress] = []

    def stop(progress: gpusort.Progress) -> None:
        steps.append(progress)
        if len(steps) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gpusort.sort_file(source, target, memory=MEMORY, resume=True, progress=stop)

    def strike_here(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Scratch, "claim", strike_here)
        with pytest.raises(KeyboardInterrupt):
            gpusort.sort_file(source, target, memory=MEMORY, resume=True)
    rest: list[gpusort.Progress] = []
    gpusort.sort_file(source, target, memory=MEMORY, resume=True, progress=rest.append)
    assert rest[0].done > steps[1].done
    np.testing.assert_array_equal(np.load(target), np.sort(x))


def test_killed_as_it_begins_anew_a_sort_does_not_believe_the_old_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = sample("f4", COUNT, 1)
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    np.save(source, x)

    def stop(progress: gpusort.Progress) -> None:
        if progress.step == "buckets":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gpusort.sort_file(source, target, memory=MEMORY, resume=True, progress=stop)
    left = shutil.copytree(tmp_path / "target.npy.sorting", tmp_path / "left")

    class Killed(BaseException):
        """As if by SIGKILL: what is left then is put back."""

    unlink = Path.unlink

    def kill(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        if path.name == "runs":
            shutil.rmtree(left)
            shutil.copytree(path.parent, left)
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", kill)
        with pytest.raises(Killed):
            gpusort.sort_file(source, target, memory=MEMORY)
    left.rename(tmp_path / "target.npy.sorting")
    gpusort.sort_file(source, target, memory=MEMORY, resume=True)
    np.testing.assert_array_equal(np.load(target), np.sort(x))


KILLED = """
import os, signal
import numpy as np, gpusort
from gpusort.external import maps
write, calls = maps.ArrayEndpoint.write, []
def kill(self, *rest):
    calls.append(rest)
    if len(calls) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, *rest)
maps.ArrayEndpoint.write = kill
gpusort.sort_inplace(np.load({path!r}, mmap_mode="r+"))
"""


def test_what_a_killed_sort_has_left_outlives_a_strike_on_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an array in place: its elements may lie in the runs alone."""
    monkeypatch.setenv("GPUSORT_MEMORY", "64K")
    x = sample("f4", COUNT, 1)
    path = tmp_path / "x.npy"
    np.save(path, x)
    done = run_sort(KILLED.replace("{path!r}", repr(str(path))))
    assert done.returncode == -signal.SIGKILL, done.stderr

    def strike_here(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(maps, "require_disk_space", strike_here)
        with pytest.raises(KeyboardInterrupt):
            gpusort.sort_inplace(np.load(path, mmap_mode="r+"))
    gpusort.sort_inplace(np.load(path, mmap_mode="r+"))
    np.testing.assert_array_equal(np.load(path), np.sort(x))
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.npy"]


def test_what_is_put_back_is_put_back_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, and once more while the elements are put back."""
    monkeypatch.setenv("GPUSORT_MEMORY", "64K")
    x = sample("f4", COUNT, 1)
    path = tmp_path / "x.npy"
    np.save(path, x)
    read, write = DirectFile.copied, maps.InPlaceEndpoint.write
    written: list[int] = []

    def interrupted(end: maps.InPlaceEndpoint, buffer: Bytes, nbytes: int, offset: int) -> None:
        written.append(offset)
        if len(written) == 5:
            raise KeyboardInterrupt
        write(end, buffer, nbytes, offset)

    def once_more(file: DirectFile, start: int, stop: int) -> Bytes:
        if written[4:]:
            signal.raise_signal(signal.SIGINT)
        return read(file, start, stop)

    monkeypatch.setattr(maps.InPlaceEndpoint, "write", interrupted)
    monkeypatch.setattr(DirectFile, "copied", once_more)
    mapped = np.load(path, mmap_mode="r+")
    with pytest.raises(KeyboardInterrupt):
        gpusort.sort_inplace(mapped)
    assert written[4:]
    np.testing.assert_array_equal(elements_of(np.load(path)), elements_of(x))
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.npy"]
