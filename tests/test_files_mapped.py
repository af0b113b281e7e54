"""Memory-mapped arrays handed to `sort` that are too much for memory: results, and what is left where one is killed."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.external import direct, journal, maps
from gpusort.external.maps import Mapping
from gpusort.external.sort import Passes
from tests.new_process import run_sort
from tests.reference import Array, assert_same_bits, sample, sorted_by_numpy

COUNT = 40_000


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_MEMORY", "64K")


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that runs were written to."""
    found: list[Path] = []
    opened = direct.DirectFile.__init__

    def open_(self: direct.DirectFile, path: Path, *, write: bool = False) -> None:
        found.append(path)
        opened(self, path, write=write)

    monkeypatch.setattr(direct.DirectFile, "__init__", open_)
    return found


def mapped(path: Path, x: Array, mode: Any = "r+") -> Array:
    np.save(path, x)
    found: Array = np.load(path, mmap_mode=mode)
    assert isinstance(found, np.memmap)
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("dtype", ["u1", "u2", "i8", "f4", "M8[ns]", ">f8"])
def test_every_dtype(dtype: str, tmp_path: Path, taken: list[Path]) -> None:
    """In place, into another map, into an array of the host, and into a new map."""
    x = sample(dtype, COUNT if dtype[-1] in "12" else COUNT // 2, seed=2)
    is_external = x.nbytes > 1 << 16
    for descending in (False, True):
        expected = sorted_by_numpy(x, descending=descending)
        held = mapped(tmp_path / "x.npy", x)
        new = gpusort.sort(held, descending=descending, stable=True)
        assert isinstance(new, np.memmap) or not is_external
        assert_same_bits(np.asarray(new), expected)
        host = np.empty_like(x)
        assert gpusort.sort(held, out=host, descending=descending, stable=True) is host
        assert_same_bits(host, expected)
        other = mapped(tmp_path / "y.npy", np.zeros_like(x))
        assert gpusort.sort(held, out=other, descending=descending, stable=True) is other
        assert_same_bits(np.load(tmp_path / "y.npy"), expected)
        assert_same_bits(np.load(tmp_path / "x.npy"), x)
        gpusort.sort_inplace(held, descending=descending, stable=True)
        assert_same_bits(np.load(tmp_path / "x.npy"), expected)
        assert names(tmp_path) == ["x.npy", "y.npy"]
    assert len(taken) == (8 if is_external else 0)


def test_floats_lie_by_their_bits_without_stable(tmp_path: Path) -> None:
    x = np.random.default_rng(5).choice(np.array([0.0, -0.0, 1.0, -np.inf]), COUNT)
    held = mapped(tmp_path / "x.npy", x)
    gpusort.sort_inplace(held)
    assert_same_bits(np.asarray(held), gpusort.sort(x))


def test_parts_of_a_map_and_raw_files(tmp_path: Path, taken: list[Path]) -> None:
    """Where in its file an array begins is told by its address; what lies about it stays."""
    x = sample("i4", COUNT, 3)
    x.tofile(tmp_path / "raw")
    held = np.memmap(tmp_path / "raw", "i4", "r+", offset=8 * 1024 + 4)
    part = held[1_001:30_000]
    gpusort.sort_inplace(part)
    expected = x.copy()
    expected[2049 + 1_001 : 2049 + 30_000].sort()
    assert_same_bits(np.fromfile(tmp_path / "raw", "i4"), expected)
    whole = np.memmap(tmp_path / "raw", "i4", "r+")
    again = np.memmap(tmp_path / "raw", "i4", "r+")
    assert gpusort.sort(whole, out=again) is again  # the same file mapped twice is in place, too
    assert [path.parent.name for path in taken] == ["raw@12200.sorting", "raw@0.sorting"]
    assert_same_bits(np.fromfile(tmp_path / "raw", "i4"), np.sort(x))


@pytest.mark.parametrize(("shape", "memory"), [((1 << 22,), "1G"), ((8, 1 << 19), "5M")])
def test_a_file_that_is_mapped_twice(
    shape: tuple[int, ...], memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose elements would be read when others have been written over them; under another name, too."""
    monkeypatch.setenv("GPUSORT_MEMORY", memory)
    x = np.random.default_rng(4).integers(0, 1 << 30, shape, "i4")
    x.tofile(tmp_path / "raw")
    os.link(tmp_path / "raw", tmp_path / "same")
    given = np.memmap(tmp_path / "raw", "i4", "r", shape=shape)
    made = np.memmap(tmp_path / "same", "i4", "r+", shape=shape)
    assert gpusort.sort(given, out=made) is made
    assert_same_bits(np.asarray(made), np.sort(x))
    plan = gpusort.plan(gpusort.sort, given, out=np.memmap(tmp_path / "other", "i4", "w+", shape=shape))
    assert_same_bits(np.asarray(plan(given)), np.sort(x))
    assert_same_bits(np.asarray(gpusort.plan(gpusort.sort, given)(given)), np.sort(x))  # into memory of its own
    with pytest.raises(gpusort.InvalidArgumentError, match="here a file is mapped twice"):
        gpusort.plan(gpusort.sort, given, out=made)(given)
    with pytest.raises(gpusort.InvalidArgumentError, match="here a file is mapped twice"):
        gpusort.plan(gpusort.sort, given[:2], out=made[1:3])(given[:2])
    spread = made.reshape(-1)[:8:2]  # which is longer, and begins as far before it as the other is long
    with pytest.raises(gpusort.InvalidArgumentError, match="here a file is mapped twice"):
        gpusort.plan(gpusort.sort, given.reshape(-1)[4:8], out=spread)(given.reshape(-1)[4:8])
    beside = np.sort(np.array(given.reshape(-1)[4:8]))
    result = gpusort.plan(gpusort.sort, given.reshape(-1)[4:8], out=made.reshape(-1)[:4])(given.reshape(-1)[4:8])
    assert_same_bits(np.asarray(result), beside)  # which ends where the other begins
    wanted = np.sort(np.array(given[:2]))
    assert_same_bits(np.asarray(gpusort.plan(gpusort.sort, given[:2], out=made[2:4])(given[:2])), wanted)
    x.tofile(tmp_path / "raw")
    if len(shape) == 1:  # a part of it
        gpusort.sort(given[:-5], out=made[5:])
        assert_same_bits(np.asarray(made), np.append(x[:5], np.sort(x[:-5])))


def test_a_file_that_is_mapped_twice_and_removed(tmp_path: Path) -> None:
    np.arange(100, dtype="i4").tofile(tmp_path / "raw")
    given, made = (np.memmap(tmp_path / "raw", "i4", "r+") for _ in range(2))
    (tmp_path / "raw").unlink()
    with pytest.raises(gpusort.InvalidArgumentError, match="here a file is mapped twice"):
        gpusort.plan(gpusort.sort, given, out=made)(given)


def test_rows(tmp_path: Path, taken: list[Path]) -> None:
    """Those that fit are sorted some at a time, one that does not in runs."""
    x = sample("f4", 120_000, 4)
    for shape, runs in (((400, 300), 0), ((4, 30_000), 4), ((2, 2, 30_000), 4), ((120_000, 1), 0), ((2, 200, 300), 0)):
        held = mapped(tmp_path / "x.npy", x.reshape(shape))
        taken.clear()
        new = gpusort.sort(held, stable=True)
        assert_same_bits(np.asarray(new), np.sort(np.asarray(held), axis=-1, kind="stable"))
        assert len(taken) == runs
    held = mapped(tmp_path / "x.npy", x.reshape(400, 300))
    flat = gpusort.sort(held, axis=None, stable=True)
    assert_same_bits(np.asarray(flat), np.sort(x, kind="stable"))
    columns = gpusort.sort(held, axis=0, stable=True)  # these do not lie one behind the other
    assert_same_bits(np.asarray(columns), np.sort(np.asarray(held), axis=0, kind="stable"))


def test_what_takes_the_usual_way(tmp_path: Path, taken: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps that fit, changes that no file sees, an algorithm that is asked for, and no map at all."""
    x = sample("u4", COUNT, 5)
    small = mapped(tmp_path / "small.npy", x[:10_000])
    gpusort.sort_inplace(small)
    assert_same_bits(np.asarray(small), np.sort(x[:10_000]))
    private = mapped(tmp_path / "x.npy", x, "c")
    gpusort.sort_inplace(private)
    assert_same_bits(np.asarray(private), np.sort(x))
    held = mapped(tmp_path / "x.npy", x)
    for found in (gpusort.sort(x), gpusort.sort(held, algorithm=gpusort.HostSort()), gpusort.sort(held[::-1])):
        assert_same_bits(np.asarray(found), np.sort(x))
    monkeypatch.delenv("GPUSORT_MEMORY")
    monkeypatch.setattr("gpusort.api.mapped._NOT_ASKED", 0)
    assert_same_bits(np.asarray(gpusort.sort(held)), np.sort(x))  # half of the free memory is enough
    assert taken == []


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = sample("f8", COUNT, 6)
    held = mapped(tmp_path / "x.npy", x, "r")
    with pytest.raises(gpusort.InvalidArgumentError, match="x: expected an array that can be written"):
        gpusort.sort_inplace(held)
    with pytest.raises(gpusort.InvalidArgumentError, match="out: expected an array that can be written"):
        gpusort.sort(held, out=held)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"out: expected shape \(40000,\) and dtype float64"):
        gpusort.sort(held, out=np.empty(COUNT, "f4"))
    with pytest.raises(gpusort.InvalidArgumentError, match=r"out: expected shape \(40000,\)"):  # as pyright says, too
        gpusort.sort(held, axis=None, out=np.empty((4, COUNT // 4)))  # pyright: ignore[reportArgumentType, reportCallIssue]
    for axis in (1, -2):
        with pytest.raises(np.exceptions.AxisError, match=f"axis {axis} is out of bounds"):
            gpusort.sort(held, axis=axis)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^target: expected 'auto'"):
        gpusort.sort(held, target="vulkan")
    rows = mapped(tmp_path / "x.npy", x.reshape(40, -1))
    again: Array = np.load(tmp_path / "x.npy", mmap_mode="r+")
    for source, out in ((rows[:-1], rows[1:]), (rows[:-1], again[1:]), (np.asarray(rows)[1:], rows[:-1])):
        with pytest.raises(gpusort.InvalidArgumentError, match="out: expected x itself, or an array apart from it"):
            gpusort.sort(source, out=out)
    assert_same_bits(np.asarray(rows).reshape(-1), x)
    row = again.reshape(-1)
    gpusort.sort(row[:-1], out=row[1:])  # all of one row is read before any is written
    assert_same_bits(np.asarray(row[1:]), gpusort.sort(x[:-1]))
    monkeypatch.setattr(os, "access", lambda *_: False)
    for call in (gpusort.sort, gpusort.sort_inplace):
        with pytest.raises(gpusort.InvalidArgumentError, match=r"GPUSORT_SCRATCH: .*cannot be written to: set it"):
            call(row)
    monkeypatch.undo()
    monkeypatch.setenv("GPUSORT_MEMORY", "64K")
    monkeypatch.setenv("GPUSORT_SCRATCH", str(tmp_path / "none"))
    with pytest.raises(gpusort.InvalidArgumentError, match="GPUSORT_SCRATCH: expected an existing folder"):
        gpusort.sort(held)
    monkeypatch.setenv("GPUSORT_SCRATCH", "n" * 300)
    with pytest.raises(
        gpusort.InvalidArgumentError, match=r"GPUSORT_SCRATCH: expected a path, found 'n+': File name too"
    ):
        gpusort.sort(held)
    monkeypatch.delenv("GPUSORT_SCRATCH")
    monkeypatch.setenv("GPUSORT_MEMORY", "much")
    with pytest.raises(gpusort.InvalidArgumentError, match="GPUSORT_MEMORY: expected a number of bytes"):
        gpusort.sort(held)
    assert names(tmp_path) == ["x.npy"]


def test_runs_lie_where_it_is_said(tmp_path: Path, taken: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("GPUSORT_SCRATCH", str(elsewhere))
    x = sample("f8", COUNT, 6)
    held = mapped(tmp_path / "x.npy", x)
    gpusort.sort(held, out=np.empty_like(x))
    gpusort.sort_inplace(held)
    assert all(elsewhere in path.parents for path in taken)
    assert len(taken) == 2
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GPUSORT_SCRATCH", "~/elsewhere")
    gpusort.sort(held, out=np.empty_like(x))
    assert elsewhere in taken[2].parents
    assert names(elsewhere) == []


def test_a_full_disk_is_found_before_the_first_byte(
    tmp_path: Path, taken: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new array takes as much as the runs; in place only these. Nothing is left."""
    x = sample("f8", COUNT, 6)
    held = mapped(tmp_path / "x.npy", x)
    for call, takes in ((gpusort.sort, 2 * x.nbytes), (gpusort.sort_inplace, x.nbytes)):

        def little(path: Path, free: int = takes - 1) -> SimpleNamespace:
            return SimpleNamespace(free=free)

        monkeypatch.setattr(shutil, "disk_usage", little)
        with pytest.raises(gpusort.DiskFullError, match="sorting takes"):
            call(held)
    assert names(tmp_path) == ["x.npy"]
    assert taken == []
    assert_same_bits(np.asarray(held), x)


def test_a_new_file_has_its_room_before_anything_is_written(
    tmp_path: Path, taken: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a page of it finds none as it is written, the system ends the process."""
    x = sample("f8", COUNT, 6)
    held, path = mapped(tmp_path / "x.npy", x), tmp_path / "out.npy"
    out = np.lib.format.open_memmap(path, "w+", x.dtype, x.shape)
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(gpusort.DiskFullError, match=f"sorting takes {x.nbytes:,} bytes more in {tmp_path}"):
            gpusort.sort(held, out=out)
    assert taken == []
    assert path.stat().st_blocks * 512 < x.nbytes
    run, found = Passes.run, list[int]()

    def run_and_tell(self: Passes) -> None:
        found.append(path.stat().st_blocks * 512)
        run(self)

    monkeypatch.setattr(Passes, "run", run_and_tell)
    for call in (lambda: gpusort.sort(held, out=out), lambda: gpusort.sort_inplace(out)):
        call()
        assert_same_bits(np.asarray(out), gpusort.sort(x))
    assert min(found) >= x.nbytes
    os.truncate(path, 1 << 10)  # or another file of its name: what is mapped is none of it
    mapping = Mapping.of(out)
    assert mapping is not None
    mapping.reserve()
    assert path.stat().st_size == 1 << 10


def test_a_map_whose_file_was_removed(tmp_path: Path, taken: list[Path]) -> None:
    """It has no name by which a sort in place could be gone on with; all else works."""
    x = sample("f8", COUNT, 6)
    held, other = mapped(tmp_path / "x.npy", x), mapped(tmp_path / "y.npy", np.zeros_like(x))
    (tmp_path / "x.npy").unlink()
    calls: list[Callable[[Any], object]] = [gpusort.sort_inplace, lambda x: gpusort.sort(x, out=x)]
    for call in calls:
        with pytest.raises(
            gpusort.InvalidArgumentError, match=r"^x: .*x\.npy, which it maps, was removed, .* sort\(x\)"
        ):
            call(held)
    for found in (gpusort.sort(held), gpusort.sort(held, out=other), gpusort.sort(other, out=held)):
        assert_same_bits(np.asarray(found), gpusort.sort(x))
    assert len(taken) == 3
    assert names(tmp_path) == ["y.npy"]


# -- in place, and not to its end -------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 5])
def test_an_exception_leaves_all_elements(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where some of the result was written."""
    x = sample("f8", COUNT, 7)
    held = mapped(tmp_path / "x.npy", x)
    kept: list[int] = []
    write = maps.ArrayEndpoint.write

    def stop(self: maps.ArrayEndpoint, buffer: direct.Bytes, nbytes: int, offset: int) -> None:
        if len(kept) == at:
            raise KeyboardInterrupt
        kept.append(offset)
        write(self, buffer, nbytes, offset)

    monkeypatch.setattr(maps.ArrayEndpoint, "write", stop)
    monkeypatch.setattr(maps, "_PIECE", 100_001)  # put back in some pieces, of whole elements
    with pytest.raises(KeyboardInterrupt):
        gpusort.sort_inplace(held, stable=True)
    assert names(tmp_path) == ["x.npy"]
    left = np.load(tmp_path / "x.npy")
    assert_same_bits(gpusort.sort(left), gpusort.sort(x))
    monkeypatch.setattr(maps.ArrayEndpoint, "write", write)
    gpusort.sort_inplace(held)
    assert_same_bits(np.asarray(held), gpusort.sort(x))


def test_an_exception_while_runs_are_made_leaves_the_array_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is copied back from runs that are not all there."""
    x = sample("f8", COUNT, 7)
    held = mapped(tmp_path / "x.npy", x)
    begun: list[int] = []
    read = maps.ArrayEndpoint.read

    def stop(self: maps.ArrayEndpoint, buffer: direct.Bytes, start: int, stop: int) -> direct.Bytes:
        if len(begun) == 5:
            raise KeyboardInterrupt
        begun.append(start)
        return read(self, buffer, start, stop)

    monkeypatch.setattr(maps.ArrayEndpoint, "read", stop)
    with pytest.raises(KeyboardInterrupt):
        gpusort.sort_inplace(held)
    assert names(tmp_path) == ["x.npy"]
    assert_same_bits(np.asarray(held), x)


# Kills itself as a piece of the result is written, when half of it is there.
KILLED = """
import os, signal, sys
import numpy as np
import gpusort
from gpusort.external import maps
at = int(sys.argv[1])
maps._AHEAD = 1  # so that what is not yet written is looked at
write, pieces = maps.ArrayEndpoint.write, []
def half(self, buffer, nbytes, offset):
    pieces.append(offset)
    if len(pieces) == at:
        write(self, buffer, nbytes // 2, offset)
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, buffer, nbytes, offset)
maps.ArrayEndpoint.write = half
gpusort.sort_inplace(np.load("x.npy", mmap_mode="r+"), stable=True)
print(len(pieces))
"""


def killed(folder: Path, at: int) -> subprocess.CompletedProcess[str]:
    return run_sort(KILLED, str(at), cwd=folder)


def test_killed_and_gone_on_with(tmp_path: Path) -> None:
    """What was half written is nowhere but in the runs."""
    x = sample("f8", COUNT, 8)
    np.save(tmp_path / "x.npy", x)
    for at in (2, 4, 1):
        assert killed(tmp_path, at).returncode == -signal.SIGKILL
        assert names(tmp_path) == ["x.npy", "x.npy@128.sorting"]
        assert not np.array_equal(np.sort(np.load(tmp_path / "x.npy")), np.sort(x), equal_nan=True)
    done = killed(tmp_path, 0)
    assert done.returncode == 0, done.stderr
    assert names(tmp_path) == ["x.npy"]
    assert_same_bits(np.load(tmp_path / "x.npy"), np.sort(x, kind="stable"))


@pytest.mark.parametrize("memory", ["1G", None])
@pytest.mark.parametrize("shape", [(COUNT,), (3, COUNT)])
def test_killed_and_gone_on_with_where_it_fits_into_memory(
    shape: tuple[int, ...], memory: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill for want of memory: there is more of it now, and part of the array is nowhere but in the runs."""
    x = np.random.default_rng(8).random(shape)
    np.save(tmp_path / "x.npy", x)
    assert killed(tmp_path, 12 if len(shape) > 1 else 3).returncode == -signal.SIGKILL
    held = np.load(tmp_path / "x.npy", mmap_mode="r+")
    assert not np.array_equal(np.sort(held), np.sort(x))
    if memory is None:
        monkeypatch.delenv("GPUSORT_MEMORY")
    else:
        monkeypatch.setenv("GPUSORT_MEMORY", memory)
    with pytest.raises(gpusort.InvalidArgumentError, match="sort it with the same arguments first"):
        gpusort.sort_inplace(held, descending=True)
    gpusort.sort_inplace(held, stable=True)
    assert_same_bits(np.load(tmp_path / "x.npy"), np.sort(x))
    assert names(tmp_path) == ["x.npy"]


# Keeps what has reached the disk, and kills itself when a checksum of a piece of the result is in the journal.
WITHOUT_POWER = """
import os, shutil, signal
import numpy as np
import gpusort
from gpusort.external import journal, maps
journal._SECONDS = -1  # however quick a step is
sync, write, pieces = maps.Mapping.sync, maps.InPlaceEndpoint.write, []
def synced(self):
    sync(self)
    shutil.copyfile("x.npy", "on disk")
def killed(self, *given):
    write(self, *given)
    pieces.append(given)
    if len(pieces) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
maps.Mapping.sync, maps.InPlaceEndpoint.write = synced, killed
gpusort.sort_inplace(np.load("x.npy", mmap_mode="r+"), stable=True)
"""


def test_after_a_loss_of_power_a_map_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checksums that are believed are of what has reached the disk: else the array were taken for one that somebody has
    written to."""
    x = sample("f8", COUNT, 8)
    np.save(tmp_path / "x.npy", x)
    assert run_sort(WITHOUT_POWER, cwd=tmp_path).returncode == -signal.SIGKILL
    with (tmp_path / "x.npy").open("r+b") as file:
        file.write((tmp_path / "on disk").read_bytes())
    monkeypatch.setattr(journal, "_boot", lambda: "another")
    held = np.load(tmp_path / "x.npy", mmap_mode="r+")
    gpusort.sort_inplace(held, stable=True)
    assert_same_bits(np.asarray(held), np.sort(x, kind="stable"))


def test_killed_and_written_to(tmp_path: Path) -> None:
    """Data that came since is not overwritten by what was there before; what was there is still to be had."""
    x = sample("i8", COUNT, 9)
    np.save(tmp_path / "x.npy", x)
    assert killed(tmp_path, 3).returncode == -signal.SIGKILL
    held = np.load(tmp_path / "x.npy", mmap_mode="r+")
    held[-1] += 1
    with pytest.raises(gpusort.InvalidArgumentError, match=r"x: .* was written to after a process .* was killed") as e:
        gpusort.sort_inplace(held, stable=True)
    runs = tmp_path / "x.npy@128.sorting" / "runs"
    assert str(runs) in str(e.value)
    assert_same_bits(np.sort(np.fromfile(runs, "i8", COUNT)), np.sort(x))
    with pytest.raises(
        gpusort.InvalidArgumentError, match=r"x: .* sort it with the same arguments first, or remove .*sorting to"
    ):
        gpusort.sort_inplace(held, descending=True)


def test_killed_and_replaced(tmp_path: Path) -> None:
    """By a file that has the same elements, even: only who replaced it knows what it is."""
    x = sample("i8", COUNT, 9)
    np.save(tmp_path / "x.npy", x)
    assert killed(tmp_path, 3).returncode == -signal.SIGKILL
    np.save(tmp_path / "new.npy", x)
    (tmp_path / "new.npy").replace(tmp_path / "x.npy")
    held, folder = np.load(tmp_path / "x.npy", mmap_mode="r+"), tmp_path / "x.npy@128.sorting"
    said = rf"x: .* was replaced after a process .* was killed\. Its .* in {folder}/runs: remove {folder} to sort the"
    for descending in (False, True):
        with pytest.raises(gpusort.InvalidArgumentError, match=said):
            gpusort.sort_inplace(held, stable=True, descending=descending)
    assert_same_bits(np.sort(np.fromfile(folder / "runs", "i8", COUNT)), np.sort(x))
    shutil.rmtree(folder)
    gpusort.sort_inplace(held, stable=True)
    assert_same_bits(np.asarray(held), np.sort(x))


def test_killed_and_its_runs_removed(tmp_path: Path) -> None:
    """Zeros are not taken for the elements that are lost."""
    np.save(tmp_path / "x.npy", sample("i8", COUNT, 9))
    assert killed(tmp_path, 3).returncode == -signal.SIGKILL
    left = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy@128.sorting" / "runs").unlink()
    held = np.load(tmp_path / "x.npy", mmap_mode="r+")
    with pytest.raises(
        gpusort.FileChangedError, match=r"/runs was written to, cut off or removed .* or remove .*sorting$"
    ):
        gpusort.sort_inplace(held, stable=True)
    assert (tmp_path / "x.npy").read_bytes() == left


def test_killed_before_anything_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs alone are of no use: the array has all that they have, and may have changed. So the next call begins anew,
    and leaves nothing if it is interrupted."""
    x = sample("i8", COUNT, 9)
    np.save(tmp_path / "x.npy", x)
    code = KILLED.replace(
        "maps.ArrayEndpoint.write = half", "maps.ArrayEndpoint.read = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert run_sort(code, "0", cwd=tmp_path).returncode == -signal.SIGKILL
    held = np.load(tmp_path / "x.npy", mmap_mode="r+")
    held[:100] = 5
    expected = np.sort(np.asarray(held))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    assert names(tmp_path) == ["x.npy", "x.npy@128.sorting"]
    with monkeypatch.context() as patched:
        patched.setattr(maps.ArrayEndpoint, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            gpusort.sort_inplace(held)
    assert names(tmp_path) == ["x.npy"]
    gpusort.sort_inplace(held)
    assert_same_bits(np.asarray(held), expected)
    assert names(tmp_path) == ["x.npy"]
