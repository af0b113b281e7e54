"""Which directories are believed: none in which anybody but the user or root could change what lies there."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gpusort.disk_cache import trust
from gpusort.disk_cache.trust import Untrusted, trusted_directory

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users have no numbers on this system")

ANOTHER = 12345


def give_to_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a file another user's. Only root can; anybody else becomes another user, as far as is asked."""
    if os.geteuid() == 0:
        os.lchown(path, ANOTHER, -1)
    else:
        us = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: us + 1)


def as_plain_user(check: Callable[[Path], bool]) -> bool:
    """Asks in a directory of the user's own, as somebody who is not root."""
    place = Path(tempfile.mkdtemp(prefix="gpusort-test-"))
    try:
        if os.geteuid():
            return check(place)
        os.chown(place, ANOTHER, -1)
        child = os.fork()
        if child == 0:
            answer = False
            try:
                os.setuid(ANOTHER)
                answer = check(place)
            finally:
                os._exit(0 if answer else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        shutil.rmtree(place)


def let_groups_be(monkeypatch: pytest.MonkeyPatch, name: str, members: list[str], primary: int | None = None) -> None:
    """Every group has this name and these members; everybody is `me`, of the process's group or another."""
    gid = os.getegid()
    user = pwd.struct_passwd(("me", "x", os.geteuid(), gid if primary is None else primary, "", "/", "/bin/sh"))

    def user_of(number: int) -> pwd.struct_passwd:
        return user

    def group_of(number: int) -> grp.struct_group:
        return grp.struct_group((name, "x", number, members))

    monkeypatch.setattr(pwd, "getpwuid", user_of)
    monkeypatch.setattr(grp, "getgrgid", group_of)


@pytest.fixture(autouse=True)
def groups_have_members(monkeypatch: pytest.MonkeyPatch) -> None:
    let_groups_be(monkeypatch, "me", ["me", "somebody"])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    here = tmp_path / "above" / "cache"
    here.mkdir(parents=True, mode=0o700)
    here.parent.chmod(0o700)
    return here


def refused(path: Path | str, *, make: bool = True) -> str:
    with pytest.raises(Untrusted) as raised:
        trusted_directory(str(path), "cpu", make=make)
    return str(raised.value)


def test_a_private_directory_is_believed_and_made(place: Path) -> None:
    assert trusted_directory(str(place), "cpu", make=True) == str(place / "cpu")
    assert trusted_directory(str(place), "cpu", make=False) == str(place / "cpu")
    with pytest.raises(FileNotFoundError):
        trusted_directory(str(place), "cuda", make=False)


@pytest.mark.parametrize("mode", [0o770, 0o775, 0o720, 0o702, 0o777, 0o1777])
def test_others_may_write_into_it(place: Path, mode: int) -> None:
    place.chmod(mode)
    assert f"{place} can be written by " in refused(place)
    assert not any(place.iterdir())


@pytest.mark.parametrize(
    ("name", "members", "primary", "is_private"),
    [("me", [], None, True), ("me", ["me"], None, True), ("me", ["me", "you"], None, False),
     ("staff", [], None, False), ("me", [], 54321, False)],
)  # fmt: skip
def test_a_group_of_ones_own_is_nobody_else(
    place: Path, name: str, members: list[str], primary: int | None, is_private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_groups_be(monkeypatch, name, members, primary)
    place.parent.chmod(0o775)
    place.chmod(0o770)
    if is_private:
        assert trusted_directory(str(place), "cpu", make=True) == str(place / "cpu")
        place.chmod(0o777)
        assert "can be written by everybody" in refused(place)
    else:
        assert "can be written by its group" in refused(place)


def test_a_group_that_nobody_knows_is_others(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(group: int) -> grp.struct_group:
        raise KeyError(group)

    monkeypatch.setattr(grp, "getgrgid", unknown)
    place.chmod(0o770)
    assert "can be written by its group" in refused(place)


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o702])
def test_others_may_write_above_or_below_it(place: Path, mode: int) -> None:
    place.parent.chmod(mode)
    assert f"{place.parent} can be written by " in refused(place)
    assert f"{place.parent} can be written by " in refused(place / "new")
    place.parent.chmod(0o700)
    (place / "cpu").mkdir()
    (place / "cpu").chmod(mode)
    assert f"{place / 'cpu'} can be written by " in refused(place)


def test_above_it_a_sticky_directory_will_do(place: Path) -> None:
    place.parent.chmod(0o1777)
    assert trusted_directory(str(place), make=True) == str(place)


@pytest.mark.parametrize("which", ["above", "above/cache", "above/cache/cpu"])
def test_it_belongs_to_another(place: Path, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "cpu").mkdir()
    place.parent.chmod(0o1777)
    give_to_another(place.parent.parent / which, monkeypatch)
    assert "belongs to another user" in refused(place)


def test_a_link_is_followed_by_the_same_rules(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    above = place.parent
    link = above / "link"
    link.symlink_to("../above/./cache")
    assert trusted_directory(str(link), "cpu", make=True) == str(place / "cpu")
    opened = above / "open"
    opened.mkdir()
    opened.chmod(0o777)
    (opened / "cache").mkdir(mode=0o700)
    for target in (opened, opened / "cache", opened / "new", above / "open/../cache"):
        other = above / f"to-{len(list(above.iterdir()))}"
        other.symlink_to(target)
        assert f"{opened} can be written by everybody" in refused(other)
        assert f"{opened} can be written by everybody" in refused(target)
    give_to_another(link, monkeypatch)
    assert "belongs to another user" in refused(link)


def test_what_is_no_directory_or_leads_nowhere(place: Path) -> None:
    file, loop = place / "file", place / "loop"
    file.write_text("")
    loop.symlink_to("loop")
    for path in (file, loop, file / "below"):
        with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
            trusted_directory(str(path), "cpu", make=True)


def test_the_umask_opens_nothing(place: Path) -> None:
    before = os.umask(0)
    try:
        made = trusted_directory(str(place / "a" / "b"), "cpu", make=True)
    finally:
        os.umask(before)
    for path in (Path(made), Path(made).parent, place / "a"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_relative_path_starts_where_the_process_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.parent)
    assert trusted_directory("cache", "cpu", make=True) == str(place / "cpu")
    place.parent.chmod(0o777)
    assert "can be written by everybody" in refused("cache")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_somebody_who_is_not_root_believes_root_and_himself() -> None:
    def check(place: Path) -> bool:
        made = trusted_directory(str(place / "cache"), "cpu", make=True)
        place.chmod(0o777)
        try:
            trusted_directory(str(place / "cache"), "cpu", make=True)
        except Untrusted:
            return os.path.isdir(made)
        return False

    assert as_plain_user(check)


def test_where_users_have_no_numbers_modes_say_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_HAS_OWNERS", False)
    place.chmod(0o777)
    assert trusted_directory(str(place), "cpu", make=True) == str(place / "cpu")
    file = place / "file"
    file.write_text("")
    file.chmod(0o666)
    assert trust.is_trusted_file(file.stat())
    assert trust.is_secret_file(file.stat())
    with pytest.raises(OSError, match="file"):
        trusted_directory(str(file), make=True)


@pytest.fixture
def file(place: Path) -> Path:
    path = place / "kernel"
    path.write_text("")
    path.chmod(0o600)
    assert trust.is_secret_file(path.stat())
    return path


@pytest.mark.parametrize(("mode", "trusted"), [(0o640, True), (0o604, True), (0o620, False), (0o602, False)])
def test_files_are_ours_or_nobodys(file: Path, mode: int, trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(mode)
    assert trust.is_trusted_file(file.stat()) == trusted
    assert not trust.is_secret_file(file.stat())
    file.chmod(0o600)
    give_to_another(file, monkeypatch)
    assert not trust.is_trusted_file(file.stat())
    assert not trust.is_secret_file(file.stat())
    assert not trust.is_trusted_file(file.parent.stat())


def test_the_root_is_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container's image that was unpacked without care."""
    usual = os.lstat

    def lstat(path: str) -> os.stat_result:
        found = usual(path)
        return os.stat_result((found.st_mode | stat.S_IWOTH, *found[1:])) if path == os.sep else found

    assert trusted_directory(str(tmp_path), make=False)
    monkeypatch.setattr(os, "lstat", lstat)
    with pytest.raises(Untrusted, match=r"^/ can be written by everybody"):
        trusted_directory(str(tmp_path), make=False)


def test_another_process_may_be_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = os.mkdir

    def mkdir(path: str, mode: int) -> None:
        usual(path, mode)
        usual(path, mode)  # which raises that it is there

    monkeypatch.setattr(os, "mkdir", mkdir)
    assert trusted_directory(str(tmp_path / "new"), "cpu", make=True) == str(tmp_path.resolve() / "new" / "cpu")
