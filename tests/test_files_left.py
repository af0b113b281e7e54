"""Files of which a sort in place, of a memory-mapped array, was killed: no call takes them for whole."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.external import direct, left, maps
from gpusort.external.scratch import Scratch
from gpusort.types.monoids import Sum
from tests.new_process import run_sort
from tests.reference import Array, assert_same_bits
from tests.test_files_mapped import COUNT, KILLED, names

REFUSED = r"a process that sorted .* in place was killed, or still sorts it, and its elements are in"


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_MEMORY", "64K")


@pytest.fixture
def x() -> Array:
    return np.random.default_rng(3).random(COUNT)


def folders(within: Path, *given: str) -> list[Path]:
    made = [within / name for name in given]
    for folder in made:
        folder.mkdir()
    return made


def half_written(folder: Path, x: Array, scratch: Path | None = None) -> maps.Mapped:
    np.save(folder / "x.npy", x)
    where = "" if scratch is None else str(scratch)
    assert run_sort(KILLED, "3", cwd=folder, GPUSORT_SCRATCH=where).returncode == -signal.SIGKILL
    held = np.load(folder / "x.npy", mmap_mode="r+")
    assert isinstance(held, np.memmap)
    assert not np.array_equal(np.sort(held), np.sort(x))
    return held


class Plain(np.ndarray[tuple[int], np.dtype[np.int64]]):
    """No map, but of no plain array's kind either."""


def in_place(x: Array, axis: int = -1) -> None:
    gpusort.sort_inplace(x, axis=axis, stable=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: gpusort.sort_inplace(x, algorithm=gpusort.Radix()),
        lambda x: gpusort.sort(x, out=x, algorithm=gpusort.Bitonic()),
        gpusort.sort,
        lambda x: gpusort.sort(x, axis=None),
        gpusort.argsort,
        lambda x: gpusort.top_k(x, 3),
        lambda x: gpusort.sort_by_key(x, np.arange(x.size)),
        lambda x: gpusort.sort_by_key(np.arange(x.size).view(Plain), x),
        lambda x: gpusort.merge(x, x),
        lambda x: gpusort.merge(x, np.zeros(3)),
        gpusort.sum,
        gpusort.argmin,
        gpusort.any,
        gpusort.cumsum,
        lambda x: gpusort.min(x.reshape(2, -1), axis=0),
        lambda x: gpusort.max(x[::-1], target="simulator"),
        lambda x: gpusort.reduce(x, Sum(gpusort.number_for(x.dtype))),
        lambda x: gpusort.sort(x, out=np.empty_like(x, subok=False)),
        lambda x: gpusort.multi.sort([x, x]),
        lambda x: gpusort.sort(np.memmap(x.filename, x.dtype, "c", x.offset, x.shape)),
        lambda x: gpusort.plan(gpusort.sort, x, out=x),
        lambda x: gpusort.plan(gpusort.sort, x),
        lambda x: gpusort.sum(x[:8]),
        lambda x: in_place(x[:8]),
        lambda x: in_place(x[100:]),
        lambda x: in_place(x[:-100]),
        lambda x: in_place(x[::-1]),
        lambda x: in_place(x[:100]),
        lambda x: gpusort.sum(x[5:9]),
        lambda x: gpusort.max(np.memmap(x.filename, x.dtype, "r", x.offset + 8 * 64, 100)),
        lambda x: in_place(x.reshape(2, -1)),
        lambda x: in_place(x.reshape(40, -1)),
        lambda x: in_place(x.reshape(2, -1), axis=0),
        lambda x: gpusort.sort_file(x.filename, "other.npy"),
        lambda x: gpusort.sort_file(x.filename, x.filename),
        lambda x: gpusort.argsort_file(x.filename, "other.npy"),
    ],
)
def test_every_call_that_would_miss_elements_is_refused(
    call: Callable[[maps.Mapped], object], x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = half_written(tmp_path, x)
    monkeypatch.chdir(tmp_path)
    left, folder = (tmp_path / "x.npy").read_bytes(), tmp_path / "x.npy@128.sorting"
    for memory in ("64K", "1G", ""):
        monkeypatch.setenv("GPUSORT_MEMORY", memory)
        with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED) as error:
            call(held)
        assert f"or remove {folder} to sort" in str(error.value)
    assert (tmp_path / "x.npy").read_bytes() == left
    assert names(tmp_path) == ["x.npy", "x.npy@128.sorting"]
    in_place(held)
    assert_same_bits(np.load(tmp_path / "x.npy"), np.sort(x))
    call(held)


def test_a_prepared_call_asks_each_time(x: Array, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(COUNT))
    held = np.load(tmp_path / "x.npy", mmap_mode="r")
    keys = np.arange(COUNT).view(Plain)
    least, placed = gpusort.plan(gpusort.min, held), gpusort.plan(gpusort.sort_by_key, keys, held)
    assert least(held) == 0
    left = half_written(tmp_path, x)
    with pytest.raises(gpusort.InvalidArgumentError, match=f"^x: {REFUSED}"):
        least(left)
    with pytest.raises(gpusort.InvalidArgumentError, match=f"^values: {REFUSED}"):
        placed(keys, left)


def test_a_folder_is_listed_again_once_it_has_changed(
    x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, listdir = list[str](), os.listdir
    np.save(tmp_path / "x.npy", x)
    held: Any = np.load(tmp_path / "x.npy", mmap_mode="r")

    def noted(folder: str) -> list[str]:
        seen.append(folder)
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", noted)
    for listed in (1, 2):  # its time may be that of a change to come, too
        gpusort.sum(held)
        assert seen == listed * [str(tmp_path)]
    long_ago = time.time() - 60
    os.utime(tmp_path, (long_ago, long_ago))
    for _ in range(3):
        gpusort.sum(held)
    assert seen == 3 * [str(tmp_path)]
    left = half_written(tmp_path, x)
    with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED):
        gpusort.sum(left)


def test_a_map_stays_whose_folder_is_gone(x: Array, tmp_path: Path) -> None:
    (folder,) = folders(tmp_path, "data")
    np.save(folder / "x.npy", x)
    held: Any = np.load(folder / "x.npy", mmap_mode="r")
    shutil.rmtree(folder)
    assert gpusort.min(held) == x.min()
    folder.touch()  # a file of that name
    assert gpusort.min(held) == x.min()


def test_what_is_written_over_need_not_be_whole(x: Array, tmp_path: Path) -> None:
    held = half_written(tmp_path, x)
    gpusort.sort(-x, out=held)
    gpusort.plan(gpusort.sort, x, out=held)(x)
    assert_same_bits(np.asarray(held), np.sort(x))


@pytest.mark.parametrize(
    "out",
    [
        lambda both: both.reshape(-1)[::2],
        lambda both: both[0][::-1],
        lambda both: both[0].view(">f8"),
        lambda both: both[0][np.newaxis],
        lambda both: both.reshape(-1)[1 : COUNT + 1],
        lambda both: np.memmap(both.filename, both.dtype, "r", both.offset, COUNT),
    ],
)
def test_what_begins_where_the_array_does_is_not_the_array(
    out: Callable[[maps.Mapped], Array], x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the sort goes by a copy, of what is there now, or is refused anyway."""
    np.save(tmp_path / "x.npy", np.stack([x, -x]))
    code = KILLED.replace('mmap_mode="r+")', 'mmap_mode="r+")[0]')
    assert run_sort(code, "3", cwd=tmp_path).returncode == -signal.SIGKILL
    left = (tmp_path / "x.npy").read_bytes()
    held, again = (np.load(tmp_path / "x.npy", mmap_mode="r+") for _ in range(2))
    for memory in ("64K", "1G", ""):
        monkeypatch.setenv("GPUSORT_MEMORY", memory)
        for both in (held, again):
            with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED):
                gpusort.sort(held[0], out=out(both), stable=True)
    assert (tmp_path / "x.npy").read_bytes() == left
    assert gpusort.sort(held[0], out=again[0], stable=True) is not None
    assert_same_bits(np.load(tmp_path / "x.npy"), np.stack([np.sort(x), -x]))


def test_other_parts_of_the_file_and_other_files_are_sorted(x: Array, tmp_path: Path) -> None:
    """What was killed is one row, so the other is whole; a file of that name that came since is, too."""
    both = np.stack([x, -x])
    for name in ("x.npy@", "x.npy@notes.txt", "x.npy@²"):  # nobody's
        (tmp_path / name).touch()
    np.save(tmp_path / "x.npy", both)
    code = KILLED.replace('mmap_mode="r+")', 'mmap_mode="r+")[0]')
    assert run_sort(code, "3", cwd=tmp_path).returncode == -signal.SIGKILL
    held = np.load(tmp_path / "x.npy", mmap_mode="r+")
    assert_same_bits(np.asarray(gpusort.sort(held[1])), np.sort(-x))
    in_place(held[1])
    for missing in (held, held[::-1], held[::-1, ::-1]):
        with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED):
            gpusort.sort(missing)
    in_place(held)
    assert_same_bits(np.load(tmp_path / "x.npy"), np.sort(both))
    half_written(tmp_path, x)
    np.save(tmp_path / "new.npy", x)
    (tmp_path / "new.npy").replace(tmp_path / "x.npy")
    gpusort.sort_file(tmp_path / "x.npy", tmp_path / "sorted.npy")
    assert_same_bits(np.load(tmp_path / "sorted.npy"), np.sort(x))


@pytest.mark.parametrize("had", ["a", None])
@pytest.mark.parametrize("has", ["b", None])
def test_the_folder_for_runs_is_found_whatever_this_call_would_choose(
    had: str | None, has: str | None, x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders(tmp_path, "a", "b", "data")
    held = half_written(tmp_path / "data", x, None if had is None else tmp_path / had)
    if has is not None:
        monkeypatch.setenv("GPUSORT_SCRATCH", str(tmp_path / has))
    with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED):
        gpusort.sort(held)
    in_place(held)
    assert_same_bits(np.load(tmp_path / "data" / "x.npy"), np.sort(x))
    assert [names(tmp_path / name) for name in ("a", "b", "data")] == [[], [], ["x.npy"]]


def test_a_map_by_way_of_a_link_to_the_file(x: Array, tmp_path: Path) -> None:
    """What is left lies beside the file, not beside the link."""
    data, links = folders(tmp_path, "data", "links")
    half_written(data, x)
    (links / "y.npy").symlink_to(data / "x.npy")
    # By a text, which NumPy does not resolve as it does a Path.
    held = np.load(str(links / "y.npy"), mmap_mode="r+")
    with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED):
        gpusort.sort(held)
    in_place(held)
    assert_same_bits(np.load(data / "x.npy"), np.sort(x))
    assert names(links) == ["y.npy"]


def test_a_link_that_leads_elsewhere_since(x: Array, tmp_path: Path) -> None:
    one, other = folders(tmp_path, "one", "other")
    half_written(one, x)
    np.save(other / "x.npy", x)
    link = tmp_path / "link.npy"
    link.symlink_to(one / "x.npy")
    held: Any = np.load(str(link), mmap_mode="r+")
    for leads in (one, other):  # what is mapped is the file that was
        link.unlink()
        link.symlink_to(leads / "x.npy")
        with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED):
            gpusort.sum(held)
    assert np.isclose(gpusort.sum(np.load(str(link), mmap_mode="r")), x.sum())


def test_a_folder_without_a_link_to_it_is_found_by_the_setting(
    x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where nothing can be written beside the file."""
    scratch, data = folders(tmp_path, "scratch", "data")
    held = half_written(data, x, scratch)
    (data / "x.npy@128.sorting").unlink()
    monkeypatch.setenv("GPUSORT_SCRATCH", str(scratch))
    for call in (gpusort.sort, lambda x: in_place(x[100:])):
        with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED):
            call(held)

    def fail(*given: object) -> None:
        raise PermissionError(errno.EACCES, "permission denied")

    monkeypatch.setattr(Path, "symlink_to", fail)
    in_place(held)
    assert_same_bits(np.load(data / "x.npy"), np.sort(x))
    assert [names(data), names(scratch)] == [["x.npy"], []]


def test_what_may_not_be_looked_into(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of another user, whose sort was killed, is not taken for none. One may map a file in a folder that one
    may not list."""
    held, stat = half_written(tmp_path, x), os.stat

    def stat_of_mine(path: Any, **named: Any) -> os.stat_result:
        if str(path).endswith("@128.sorting/journal"):
            raise PermissionError(errno.EACCES, "permission denied", str(path))
        return stat(path, **named)

    def no_list(path: Any) -> list[str]:
        raise PermissionError(errno.EACCES, "permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stat_of_mine)
        patch.setattr(Path, "is_file", os.path.isfile)  # as from Python 3.14 on
        for call in (gpusort.sort, in_place):
            with pytest.raises(PermissionError, match=r"@128\.sorting/journal"):
                call(held)
    in_place(held)
    assert_same_bits(np.load(tmp_path / "x.npy"), np.sort(x))
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", no_list)
        assert_same_bits(np.asarray(gpusort.sort(held)), np.sort(x))


def test_a_folder_for_runs_that_is_gone_is_missed(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of a disk that is not mounted: elements are there alone."""
    scratch, data = folders(tmp_path, "scratch", "data")
    held = half_written(data, x, scratch)
    scratch.rename(tmp_path / "gone")
    for call in (in_place, gpusort.sort):
        with pytest.raises(gpusort.InvalidArgumentError, match=f"in {scratch}/x.npy@128.*, which is not there, or"):
            call(held)
    (tmp_path / "gone").rename(scratch)
    data.rename(tmp_path / "moved")  # then the folder is of a file that is not here
    moved = np.load(tmp_path / "moved" / "x.npy", mmap_mode="r+")
    with pytest.raises(gpusort.InvalidArgumentError, match=r"of a file elsewhere: bring both back, or remove .* and"):
        in_place(moved)
    (tmp_path / "moved").rename(data)
    shutil.rmtree(scratch)
    (data / "x.npy@128.sorting").unlink()
    left = np.sort(np.asarray(held))
    in_place(held)
    assert_same_bits(np.asarray(held), left)


@pytest.mark.parametrize("at", [0, 2])
def test_an_interrupt_leaves_no_link(at: int, x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch, data = folders(tmp_path, "scratch", "data")
    np.save(data / "x.npy", x)
    monkeypatch.setenv("GPUSORT_SCRATCH", str(scratch))
    held = np.load(data / "x.npy", mmap_mode="r+")
    seen: list[list[str]] = []
    write = maps.ArrayEndpoint.write

    def stop(self: maps.ArrayEndpoint, *given: object) -> None:
        seen.append(names(data))
        if len(seen) > at:
            raise KeyboardInterrupt
        write(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(maps.ArrayEndpoint, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        in_place(held)
    assert seen[0] == ["x.npy", "x.npy@128.sorting"]
    assert [names(data), names(scratch)] == [["x.npy"], []]
    assert_same_bits(np.sort(np.asarray(held)), np.sort(x))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_name_too_long_for_a_folder_beside_it(
    elsewhere: bool, x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left then; by as many bytes less it is sorted."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if elsewhere:
        monkeypatch.setenv("GPUSORT_SCRATCH", str(scratch))

    def sort_file(path: Path) -> None:
        gpusort.sort_file(path, path, memory="64K", scratch=scratch if elsewhere else None)

    for call in (sort_file, lambda path: gpusort.sort_inplace(np.load(path, mmap_mode="r+"))):
        path = tmp_path / f"{'é' * 125}a.npy"  # 255 bytes
        np.save(path, x)
        with pytest.raises(
            gpusort.InvalidArgumentError, match=r"name too long for the folder .* bytes shorter"
        ) as error:
            call(path)
        assert names(tmp_path) == ["scratch", path.name]
        beyond = int(str(error.value).split()[-3])
        shorter = tmp_path / f"{'a' * (251 - beyond)}.npy"
        path.rename(shorter)
        call(shorter)
        assert_same_bits(np.load(shorter), np.sort(x))
        assert names(tmp_path) == [shorter.name, "scratch"]
        assert not names(scratch)
        shorter.unlink()


def test_any_name_will_do_for_a_copy(x: Array, tmp_path: Path) -> None:
    paths = [tmp_path / f"{letter * 251}.npy" for letter in "ab"]
    np.save(paths[0], x)
    held = np.load(paths[0], mmap_mode="r")
    assert_same_bits(np.asarray(gpusort.sort(held)), np.sort(x))
    out = np.lib.format.open_memmap(paths[1], "w+", x.dtype, x.shape)
    gpusort.sort(held, out=out)
    assert_same_bits(np.load(paths[1]), np.sort(x))


def test_two_sorts_in_place_of_parts_that_overlap(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused, wherever its scratch folder is, before either has written anything; what does not overlap
    is sorted."""
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "scratch").mkdir()
    held = np.load(tmp_path / "x.npy", mmap_mode="r+")
    read, refused, others = maps.ArrayEndpoint.read, list[str](), list[Array]()

    def again(self: maps.ArrayEndpoint, *given: object) -> direct.Bytes:
        monkeypatch.setattr(maps.ArrayEndpoint, "read", read)
        for where in ("", str(tmp_path / "scratch")):
            monkeypatch.setenv("GPUSORT_SCRATCH", where)
            for part in (held[:20_000], held[19_000:], held[10_000:]):
                with pytest.raises(gpusort.InvalidArgumentError, match=rf"{REFUSED}|is being sorted already") as error:
                    in_place(part)
                refused.append(str(error.value))
        in_place(held[20_000:])
        return read(self, *given)  # type: ignore[arg-type]

    for scratch in ("", str(tmp_path / "scratch")):
        held[:] = x
        monkeypatch.setenv("GPUSORT_SCRATCH", scratch)
        monkeypatch.setattr(maps.ArrayEndpoint, "read", again)
        in_place(held[:20_000])
        others.append(np.array(held))
    assert len(refused) == 12
    for found in others:
        assert_same_bits(found, np.concatenate([np.sort(x[:20_000]), np.sort(x[20_000:])]))
    assert names(tmp_path) == ["scratch", "x.npy"]
    assert not names(tmp_path / "scratch")


@pytest.mark.parametrize("second_is_beside", [False, True])
def test_two_at_once_that_would_have_scratch_folders_in_different_places(
    second_is_beside: bool, x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither has made its link, or its folder beside the file, when the other looks: the second is refused, and the
    link stays, by which the first is found."""
    folders(tmp_path, "a", "b", "data")
    data = tmp_path / "data"
    np.save(data / "x.npy", x)
    held, link, made = np.load(data / "x.npy", mmap_mode="r+"), maps.MapSort._link, list[str]()
    beside = data / "x.npy@128.sorting"

    def second(scratch: Scratch) -> None:
        monkeypatch.setattr(maps.MapSort, "_link", staticmethod(link))
        other = tmp_path / "a" / "x.npy@128.other.sorting"
        if second_is_beside:
            beside.mkdir()
        else:
            beside.symlink_to(other)
        made.extend(names(data))
        link(scratch)

    monkeypatch.setenv("GPUSORT_SCRATCH", str(tmp_path / "b"))
    monkeypatch.setattr(maps.MapSort, "_link", staticmethod(second))
    with pytest.raises(gpusort.InvalidArgumentError, match=rf"x: {beside} is in the way, of another sort in place"):
        in_place(held)
    assert names(data) == made == ["x.npy", beside.name]
    assert not names(tmp_path / "b")
    assert_same_bits(np.load(data / "x.npy"), x)


def test_a_call_that_fails_as_it_begins_leaves_no_link_of_a_killed_one(
    x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was killed had written nothing: no elements are missed with its folder."""
    scratch, data = folders(tmp_path, "scratch", "data")
    np.save(data / "x.npy", x)
    code = (
        KILLED.replace("maps.ArrayEndpoint.write", "maps.ArrayEndpoint.read")
        .replace("def half(self, buffer, nbytes, offset):", "def half(self, buffer, offset, nbytes):")
        .replace("write(self, buffer, nbytes, offset)", "return write(self, buffer, offset, nbytes)")
        .replace("write(self, buffer, nbytes // 2, offset)", "pass")
    )
    assert run_sort(code, "3", cwd=data, GPUSORT_SCRATCH=str(scratch)).returncode == -signal.SIGKILL
    assert names(data) == ["x.npy", "x.npy@128.sorting"]
    held = np.load(data / "x.npy", mmap_mode="r+")
    assert_same_bits(np.asarray(gpusort.sort(held)), np.sort(x))

    def fail(*given: object, **named: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(maps, "DirectFile", fail)
        with pytest.raises(OSError, match="too many open files"):
            in_place(held)
    assert [names(data), names(scratch)] == [["x.npy"], []]
    in_place(held)
    assert_same_bits(np.load(data / "x.npy"), np.sort(x))


@pytest.mark.parametrize("leads", ["elsewhere/x.sorting", "x.npy@128.sorting", "/nowhere/x.sorting"])
def test_a_link_that_no_call_made_is_refused(leads: str, x: Array, tmp_path: Path) -> None:
    """Also one in a circle, or one that leads from the folder that it is in."""
    np.save(tmp_path / "x.npy", x)
    link, held = tmp_path / "x.npy@128.sorting", np.load(tmp_path / "x.npy", mmap_mode="r+")
    link.symlink_to(leads)
    for call in (in_place, gpusort.sort):
        with pytest.raises(gpusort.InvalidArgumentError, match=f"in {tmp_path / leads}, which is not there"):
            call(held)
    assert names(tmp_path) == ["x.npy", link.name]
    assert_same_bits(np.load(tmp_path / "x.npy"), x)


@pytest.mark.parametrize("spelled", ["../scratch", "link"])
def test_a_scratch_folder_by_a_relative_path_or_a_link(
    spelled: str, x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls from elsewhere find it."""
    scratch, data = folders(tmp_path, "scratch", "data")
    (data / "link").symlink_to("../scratch")
    held = half_written(data, x, Path(spelled))
    monkeypatch.chdir("/")
    assert (data / "x.npy@128.sorting").readlink().parent == scratch
    in_place(held)
    assert_same_bits(np.load(data / "x.npy"), np.sort(x))
    assert [names(data), names(scratch)] == [["link", "x.npy"], []]


def test_what_is_removed_meanwhile(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a sort that comes to its end as it is looked at; the file's own."""
    data = tmp_path / "data"
    data.mkdir()
    held = half_written(data, x)
    found_in = left.found_in

    def look(scratch: Scratch, *given: Any) -> left.Left:
        shutil.rmtree(scratch.folder)
        return found_in(scratch, *given)

    monkeypatch.setenv("GPUSORT_MEMORY", "1G")
    monkeypatch.setattr(left, "found_in", look)
    assert_same_bits(np.asarray(gpusort.sort(held)), np.sort(np.asarray(held)))
    assert names(data) == ["x.npy"]
    assert not left.Left(data / "x.npy", 0, 1, data / "gone", None, has_begun=False).is_under_way
    shutil.rmtree(data)
    assert_same_bits(np.asarray(gpusort.sort(held)), np.sort(np.asarray(held)))


def test_a_sort_elsewhere_in_the_file_that_ends_or_begins_meanwhile(
    x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its link comes or goes between looks at it: nothing is missed with it."""
    np.save(tmp_path / "x.npy", np.stack([x, x]))
    held, link = np.load(tmp_path / "x.npy", mmap_mode="r+"), tmp_path / "x.npy@128.sorting"
    scratch_of = left.scratch_of
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("GPUSORT_SCRATCH", str(tmp_path / "scratch"))

    def look(*given: object) -> Scratch:
        had = link.is_symlink()
        if had and ends:
            link.unlink()
        found = scratch_of(*given)  # type: ignore[arg-type]
        if not had:
            link.symlink_to("/nowhere/x.sorting")
        return found

    for ends in (True, False):
        if ends:
            link.symlink_to("/nowhere/x.sorting")
        else:
            (tmp_path / "x.npy@128").touch()  # so that this part is looked at
        monkeypatch.setattr(left, "scratch_of", look)
        assert_same_bits(np.asarray(gpusort.sort(held[1])), np.sort(x))
        assert link.is_symlink() is not ends
        monkeypatch.setattr(left, "scratch_of", scratch_of)


def test_one_that_is_killed_as_another_begins(x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has not begun when the other looks first."""
    np.save(tmp_path / "x.npy", x)
    held = np.load(tmp_path / "x.npy", mmap_mode="r+")
    scratch_of, code = left.scratch_of, KILLED.replace('mmap_mode="r+")', 'mmap_mode="r+")[100:]')

    def kill(*given: Any) -> Scratch:
        monkeypatch.setattr(maps, "scratch_of", scratch_of)
        assert run_sort(code, "3", cwd=tmp_path).returncode == -signal.SIGKILL
        return scratch_of(*given)

    monkeypatch.setattr(maps, "scratch_of", kill)
    with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED):
        in_place(held)
    assert names(tmp_path) == ["x.npy", "x.npy@928.sorting"]
    in_place(held[100:])
    assert_same_bits(np.load(tmp_path / "x.npy"), np.concatenate([x[:100], np.sort(x[100:])]))


def test_a_sort_can_be_found_before_it_looks_for_others(
    x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two that begin at once would both go on."""
    folders(tmp_path, "a", "b", "data")
    np.save(tmp_path / "data" / "x.npy", x)
    held = np.load(tmp_path / "data" / "x.npy", mmap_mode="r+")
    look, refused = maps.MapSort._require_alone, list[str]()

    def second(self: maps.MapSort, *given: Any) -> None:
        monkeypatch.setattr(maps.MapSort, "_require_alone", look)
        monkeypatch.setenv("GPUSORT_SCRATCH", str(tmp_path / "b"))
        look(self, *given)
        with pytest.raises(gpusort.InvalidArgumentError, match=REFUSED) as error:
            in_place(held[100:])
        refused.append(str(error.value))

    monkeypatch.setenv("GPUSORT_SCRATCH", str(tmp_path / "a"))
    monkeypatch.setattr(maps.MapSort, "_require_alone", second)
    in_place(held)
    assert refused
    assert_same_bits(np.load(tmp_path / "data" / "x.npy"), np.sort(x))
    assert [names(tmp_path / name) for name in ("a", "b", "data")] == [[], [], ["x.npy"]]


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "3", '{"of": {"bytes": "many", "inode": 1}}', '{"of": []}\nrun'])
def test_one_that_was_killed_as_it_began(text: str, x: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its journal tells nothing: no elements are missed, and a call in place takes it away."""
    np.save(tmp_path / "x.npy", x)
    folder, held = tmp_path / "x.npy@128.sorting", np.load(tmp_path / "x.npy", mmap_mode="r+")
    folder.mkdir()
    (folder / "journal").write_text(text)
    assert_same_bits(np.asarray(gpusort.sort(held)), np.sort(x))
    assert folder.exists()
    monkeypatch.setenv("GPUSORT_MEMORY", "1G")
    in_place(held)
    assert_same_bits(np.load(tmp_path / "x.npy"), np.sort(x))
    assert names(tmp_path) == ["x.npy"]
