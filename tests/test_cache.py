"""The cache directory: refused where others may write, done without where it fails, and no file believed unproven."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusort.disk_cache import cache
from gpusort.disk_cache.cache import read_sealed, write_sealed
from tests.new_process import end_well_side_by_side

CONTENT = bytes(range(256)) * 9


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "kept"
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(here))
    return here


def kept() -> bool:
    """Whether something can be kept and read again."""
    return write_sealed("cpu", "a", CONTENT) and read_sealed("cpu", "a") == CONTENT


# -- where it lies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "base", "home", "expected"),
    [
        ("/a/b", "/c", "/h", "/a/b"),
        ("", "/c", "/h", "/c/gpusort"),
        ("  ", "", "/h", "/h/.cache/gpusort"),
        ("", "relative", "/h", "/h/.cache/gpusort"),
        ("", "", "relative", None),
        ("kept", "/c", "/h", "kept"),
        ("~/kept", "/c", "/h", "/h/kept"),  # as where no shell has put the home directory in its place
        ("~", "/c", "/h", "/h"),
        ("~/kept", "/c", "", None),
        ("~nobody-of-this-name/kept", "/c", "/h", None),  # not a folder of that name in the current one
    ],
)
def test_the_environment_says_where(
    own: str, base: str, home: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("GPUSORT_CACHE_DIR", own), ("XDG_CACHE_HOME", base), ("HOME", home), ("USERPROFILE", home)):
        monkeypatch.setenv(name, value)
    assert cache.cache_directory() == expected


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in (("GPUSORT_CACHE_DIR", ""), ("XDG_CACHE_HOME", ""), ("HOME", ""), ("USERPROFILE", "")):
        monkeypatch.setenv(name, value)
    assert not kept()
    assert not any(tmp_path.iterdir())


# -- whom it is refused to --------------------------------------------------------------------------------


def test_a_refused_directory_is_warned_of_once_and_left_alone(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert kept()
    key = (place / "key").read_bytes()
    place.chmod(0o777)
    with caplog.at_level(logging.DEBUG, cache.LOGGER):
        assert not kept()
        assert cache.read("cpu", "a") is None
        assert cache.write("tuned", "b", b"") is None
        cache.remove("cpu", "a")
        assert (place / "cpu" / "a").exists()
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("gpusort", "WARNING")
    assert str(place) in record.getMessage()
    assert "can be written by everybody (mode 777)" in record.getMessage()
    place.chmod(0o700)
    assert read_sealed("cpu", "a") is None, "once refused, it stays so as long as the process lives"
    assert sorted(path.name for path in place.iterdir()) == ["cpu", "key"]
    assert (place / "key").read_bytes() == key


def test_one_that_cannot_be_made_is_told_of_once_and_quietly(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    place.write_text("")
    with caplog.at_level(logging.DEBUG, cache.LOGGER):
        assert not kept()
        assert not kept()
    (record,) = caplog.records
    assert (record.levelname, record.getMessage().split(":")[0]) == (
        "INFO",
        f"the cache directory {place} cannot be used",
    )


def test_of_many_threads_one_warns(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    threads = [threading.Thread(target=kept) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(caplog.records) == 1


def test_a_planted_key_is_not_believed(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a directory that was open to all, somebody may have left a key that he knows, and files under its seal."""
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(tmp_path / "his"))
    assert kept()
    (tmp_path / "his").rename(place)
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(place))
    place.chmod(0o777)
    assert read_sealed("cpu", "a") is None


# -- what fails -------------------------------------------------------------------------------------------


_CODES = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.ENOENT, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))
_CALLS: tuple[tuple[Any, str], ...] = (
    (os, "mkdir"), (os, "lstat"), (os, "open"), (os, "fstat"), (os, "replace"), (os, "unlink"), (os, "scandir"),
    (os, "getcwd"), (tempfile, "mkstemp"), (os, "fdopen"),
)  # fmt: skip


@pytest.mark.parametrize("code", _CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize(("owner", "call"), _CALLS, ids=[call for _, call in _CALLS])
@pytest.mark.parametrize("before", [True, False], ids=["warm", "cold"])
def test_any_call_may_fail(
    owner: Any, call: str, code: int, before: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if before:
        assert kept()

    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(owner, call, fail)
        written = write_sealed("cpu", "b", CONTENT)
        found = read_sealed("cpu", "b")
        cache.remove("cpu", "b")
    assert found in (None, CONTENT)
    harmless = ("unlink", "scandir", "getcwd", *(["mkdir"] if before else []))
    assert call in harmless or not (written and found)
    assert kept(), "and once it works again, all is kept"


def test_a_file_system_without_links_has_a_key_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", fail)
    assert kept()


def test_a_damaged_file_is_not_read_however_long_it_is(place: Path) -> None:
    assert kept()
    os.truncate(place / "cpu" / "a", 1 << 40)  # by far more than there is memory
    assert read_sealed("cpu", "a") is None
    assert kept()


def test_a_directory_that_goes_away_is_made_again(place: Path) -> None:
    assert kept()
    for path in (place / "cpu" / "a", place / "key"):
        path.unlink()
    (place / "cpu").rmdir()
    place.rmdir()
    assert read_sealed("cpu", "a") is None
    assert kept()


def test_a_disk_that_fills_up(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real one where it can be mounted, else files that may not grow."""
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(disk / "kept"))
    try:
        assert kept()
        if mounted:
            large = bytes(60 << 10)
            assert not write_sealed("cpu", "large", large)
        else:
            resource: Any = pytest.importorskip("resource")
            import signal

            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
            try:
                assert not write_sealed("cpu", "large", bytes(60 << 10))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
                signal.signal(signal.SIGXFSZ, handler)
        assert sorted(path.name for path in (disk / "kept" / "cpu").iterdir()) == ["a"], "nothing half written stays"
        assert read_sealed("cpu", "a") == CONTENT
        assert kept()
    finally:
        if mounted:
            subprocess.run(["umount", str(disk)], check=True)


def test_what_was_left_half_written_is_swept_in_time(place: Path) -> None:
    assert kept()
    old, new, other = (place / "cpu" / name for name in ("b.tmp", "c.tmp", "d"))
    for path in (old, new, other):
        path.write_bytes(b"")
    for path in (old, other):
        long_ago = time.time() - 7200
        os.utime(path, (long_ago, long_ago))
    cache._sweep.cache_clear()
    assert kept()
    assert sorted(path.name for path in (place / "cpu").iterdir()) == ["a", "c.tmp", "d"]


# -- what is believed -------------------------------------------------------------------------------------


def _planted_link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def _planted_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _planted_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _opened(path: Path) -> None:
    path.chmod(0o602)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="links and modes are other things on this system")
@pytest.mark.parametrize("plant", [_planted_link, _planted_pipe, _planted_directory, _opened])
@pytest.mark.parametrize("name", ["cpu/a", "key"])
def test_what_is_no_file_of_ours_is_not_read(plant: Callable[[Path], None], name: str, place: Path) -> None:
    assert kept()
    plant(place / name)
    assert read_sealed("cpu", "a") is None
    assert kept() or plant is _planted_directory


@pytest.mark.parametrize("damage", ["cut", "longer", "flipped", "empty", "head", "another's"])
def test_damaged_files_are_not_believed(damage: str, place: Path) -> None:
    assert kept()
    path = place / "cpu" / "a"
    good = path.read_bytes()
    spots = range(0, len(good), 37)
    broken = {
        "cut": [good[:length] for length in spots],
        "longer": [good + b"\0", b"\0" + good],
        "flipped": [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in spots],
        "empty": [b""],
        "head": [good[: len(good) - len(CONTENT)]],
        "another's": [good.replace(b"sealed 1", b"sealed 2"), bytes(49) + CONTENT],
    }
    for content in broken[damage]:
        path.write_bytes(content)
        assert read_sealed("cpu", "a") is None
    path.write_bytes(good)
    assert read_sealed("cpu", "a") == CONTENT


def test_swapped_files_are_not_believed(place: Path) -> None:
    for kind, name in (("cpu", "a"), ("cpu", "b"), ("cuda", "a")):
        assert write_sealed(kind, name, f"{kind} {name}".encode())
    for one, other in (("cpu/a", "cpu/b"), ("cpu/a", "cuda/a")):
        contents = [(place / name).read_bytes() for name in (one, other)]
        for name, content in zip((other, one), contents, strict=True):
            (place / name).write_bytes(content)
        assert read_sealed(*one.split("/")) is None
        assert read_sealed(*other.split("/")) is None
        for name, content in zip((one, other), contents, strict=True):
            (place / name).write_bytes(content)
    assert read_sealed("cpu", "a") == b"cpu a"


@pytest.mark.parametrize("damage", ["short", "other", "gone", "open", "readable"])
def test_a_key_that_is_none_is_made_anew(damage: str, place: Path) -> None:
    assert kept()
    key = place / "key"
    before = key.read_bytes()
    match damage:
        case "short":
            key.write_bytes(before[:5])
        case "other":
            key.write_bytes(bytes(32))
        case "gone":
            key.unlink()
        case "readable":
            key.chmod(0o644)
        case _:
            key.chmod(0o666)
    if damage in ("open", "readable") and not hasattr(os, "geteuid"):
        pytest.skip("modes say nothing on this system")
    assert read_sealed("cpu", "a") is None
    assert kept()
    assert key.read_bytes() != before
    assert len(key.read_bytes()) == 32


def test_files_and_keys_are_the_users_alone_whatever_the_umask(place: Path) -> None:
    before = os.umask(0)
    try:
        assert kept()
        assert cache.write("tuned", "b", b"")
    finally:
        os.umask(before)
    if hasattr(os, "geteuid"):
        for path in (place, *place.rglob("*")):
            assert not path.stat().st_mode & 0o077, path


_TOGETHER = """
import sys
from gpusort.disk_cache.cache import read_sealed, write_sealed
sys.stdin.readline()
for number in range(30):
    write_sealed("cpu", f"all-{number}", b"x" * number)
    found = read_sealed("cpu", f"all-{number}")
    assert found == b"x" * number, (number, found)
"""


def test_processes_that_start_at_once_share_one_key(place: Path) -> None:
    command = [sys.executable, "-c", _TOGETHER]
    end_well_side_by_side(command, 6, timeout=60)
    assert all(read_sealed("cpu", f"all-{number}") == b"x" * number for number in range(30))
    assert sorted(path.name for path in place.iterdir()) == ["cpu", "key"]


def test_a_file_has_its_name_once_all_of_it_is_written(tmp_path: Path) -> None:
    """A process that is killed as it gives the name leaves nothing that is half written."""
    content, seen = b"a few bytes, which a buffer holds", list[bytes]()

    def place(temporary: str, path: str) -> None:
        seen.append(Path(temporary).read_bytes())
        os.replace(temporary, path)

    assert cache.write_file(str(tmp_path / "kept"), content, place)
    assert seen == [content]
    assert (tmp_path / "kept").read_bytes() == content
