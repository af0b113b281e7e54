"""Compiled loops in the cache: what others planted is never run, and what does not fit is compiled again."""

from __future__ import annotations

import logging
import os
import pickle
import py_compile
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.targets.cpu.compiler import loading
from gpusort.targets.cpu.compiler.machine import machine
from gpusort.targets.cuda import compile as cuda_compile
from gpusort.targets.package_stamp import stamp_of_package
from tests.kept_text import load_anew
from tests.new_process import end_well_side_by_side, run_new

ROOT = Path(__file__).parent.parent
SOURCES = Path(gpusort.__file__).parent

TEXT = """
SIGNATURE = "void(i8[::1])"


def kernel(data):
    data[0] = {number}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "kept"
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(here))
    return here


@attrs.frozen
class Bomb:
    """A pickle that, once it is read, leaves a mark."""

    mark: Path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return open, (str(self.mark), "w")


def bomb(mark: Path) -> bytes:
    """The pickle, tried out: it goes off where it is read."""
    content = pickle.dumps(Bomb(mark))
    pickle.loads(content).close()
    assert mark.exists()
    mark.unlink()
    return content


def run(number: int, *, again: bool) -> None:
    """Loads a kernel as a new process would and runs it. `again`: whether it is found compiled."""
    kernel = load_anew(TEXT.format(number=number))
    data = np.zeros(1, np.int64)
    kernel(data.ctypes.data, data.size)
    assert data[0] == number
    assert kernel.was_kept == again


def test_a_kernel_is_found_compiled_and_only_under_its_seal(place: Path) -> None:
    run(1, again=False)
    run(1, again=True)
    assert sorted(path.name for path in place.iterdir()) == ["cpu", "key"], "no text lies there to be swapped"
    (kept,) = (place / "cpu").iterdir()
    good = kept.read_bytes()
    mark = place / "mark"
    for content in (bomb(mark), good[:-1], good[: len(good) // 2], b"", good[:49] + bomb(mark)):
        kept.write_bytes(content)
        run(1, again=False)
        assert not mark.exists()
        assert kept.read_bytes()[:17] == good[:17]
        run(1, again=True)


def test_swapped_kernels_are_compiled_again(place: Path) -> None:
    run(1, again=False)
    run(2, again=False)
    one, two = (place / "cpu").iterdir()
    contents = one.read_bytes(), two.read_bytes()
    two.write_bytes(contents[0])
    one.write_bytes(contents[1])
    for number in (1, 2):
        run(number, again=False)
        run(number, again=True)


@pytest.mark.parametrize("what", ["compiler", "machine"])
def test_kernels_of_another_compiler_or_machine_are_not_found(
    what: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(1, again=False)
    with monkeypatch.context() as other:
        if what == "compiler":
            other.setattr(loading, "stamp", lambda: "another")
        else:
            other.setattr(type(machine()), "about", "another")
        run(1, again=False)
    run(1, again=True)


def test_the_stamp_is_of_all_the_compilers_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(loading.__file__).parent
    names = [path.name for path in here.glob("*.py")]
    for name in names:
        (tmp_path / name).write_bytes((here / name).read_bytes())
    monkeypatch.setattr(loading, "__file__", str(tmp_path / "loading.py"))
    stamps = {loading.stamp.__wrapped__()}
    for name in names:
        with (tmp_path / name).open("a") as file:
            file.write("# changed\n")
        stamps.add(loading.stamp.__wrapped__())
    assert len(stamps) == 1 + len(names)


@pytest.mark.parametrize("kind", ["archive", "compiled modules"])
def test_a_stamp_is_of_all_modules_also_where_there_are_no_files(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamps: list[str] = []
    for number, changed in enumerate(["", "", "__init__", "added", "calls"]):
        root = tmp_path / f"{number}.zip"
        folder = root / "stamped" if kind == "compiled modules" else tmp_path / str(number)
        folder.mkdir(parents=True)
        for name in ("__init__", "calls"):
            (folder / f"{name}.py").write_text(f"x = 1{number if name == changed else 0}")
        if changed == "added":
            (folder / "added.py").write_text("x = 1")
        if kind == "archive":
            with ZipFile(root, "w") as archive:
                for file in folder.iterdir():
                    archive.write(file, f"stamped/{file.name}")
        else:
            for file in list(folder.iterdir()):
                py_compile.compile(str(file), str(file.with_suffix(".pyc")), dfile=file.name)
                file.unlink()
        with monkeypatch.context() as here:
            here.syspath_prepend(root)
            stamps.append(stamp_of_package("stamped", str(root / "stamped" / "calls.py")))
        del sys.modules["stamped"]
    assert len(set(stamps)) == len(stamps) - (stamps[0] == stamps[1])
    assert (stamps[0] == stamps[1]) == (kind == "compiled modules")  # as code from an archive names its place


# -- planted files, and processes of their own ------------------------------------------------------------

_NUMBERS = """
import numpy as np
from gpusort.targets.cpu.compiler.loading import loaded
from gpusort.targets.cuda import pinned_copies
from tests.fake_cupy import CONTEXT, Driver
driver = Driver()
pinned_copies.driver_functions = lambda: driver.functions
said = np.ones(1, np.int64)
move = pinned_copies.moving("send", said, np.zeros((0, 3), np.int64), CONTEXT, 0, 0)
move(0, 0, *np.zeros((2, 1), np.int64))
assert not said.any()
print(sum(kernel.was_kept for kernel in loaded.values()))
"""


def in_a_process(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = run_new(code, *arguments, cwd=None, timeout=300, fresh=False, **{"GPUSORT_THREADS": "2", **environment})
    assert done.returncode == 0, done.stderr
    return done


def test_planted_pickles_never_run(place: Path, tmp_path: Path) -> None:
    """Under every name of our own files."""
    mark = tmp_path / "mark"
    content = bomb(mark)
    assert in_a_process(_NUMBERS).stdout.split() == ["0"]
    kept = sorted((place / "cpu").iterdir())
    assert len(kept) == 1
    for path in kept:
        path.write_bytes(content)
    assert in_a_process(_NUMBERS).stdout.split() == ["0"]
    assert not mark.exists()
    assert sorted((place / "cpu").iterdir()) == kept
    assert all(path.read_bytes() != content for path in kept)
    assert in_a_process(_NUMBERS).stdout.split() == ["1"]


_FORKS = """
import os
if hasattr(os, "fork"):
    if not os.fork():
        raise SystemExit
    os.wait()
"""


def test_a_directory_that_others_may_write_is_neither_read_nor_written(place: Path, tmp_path: Path) -> None:
    """Even where all in it bears a good seal; and nothing is put in its place that would stay behind."""
    in_a_process(_NUMBERS)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    place.chmod(0o777)
    done = in_a_process(_NUMBERS + _FORKS, TMPDIR=str(temporary))
    if hasattr(os, "geteuid"):
        assert done.stdout.split()[0] == "0"
        assert done.stderr.count("the cache directory") == 1
        assert f"{place} can be written by everybody" in done.stderr
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert not any(temporary.iterdir())


_COLD = """
import sys
import numpy as np
from tests.kept_text import load_anew
text = sys.argv[1]
sys.stdin.readline()
for number in range(2):
    data = np.zeros(1, np.int64)
    kernel = load_anew(text.replace("NUMBER", str(number)))
    kernel(data.ctypes.data, data.size)
    assert data[0] == number
"""


def test_processes_that_start_cold_at_once_are_right(place: Path) -> None:
    command = [sys.executable, "-c", _COLD, TEXT.format(number="NUMBER")]
    end_well_side_by_side(command, 4, timeout=120)
    assert len(list((place / "cpu").iterdir())) == 2
    for number in range(2):
        run(number, again=True)


def test_a_cache_that_goes_while_it_is_used_is_done_without(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(1, again=False)
    for path in sorted(place.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    place.rmdir()
    place.write_text("a file where the directory was")
    run(1, again=False)
    place.unlink()
    run(1, again=False)
    run(1, again=True)
    with caplog.at_level(logging.WARNING):
        place.chmod(0o777)
        run(1, again=not hasattr(os, "geteuid"))
    assert len(caplog.records) == hasattr(os, "geteuid")


# -- CUDA's files -----------------------------------------------------------------------------------------


def test_cudas_files_are_believed_under_their_seal_alone(place: Path) -> None:
    made: list[str] = []

    def get(name: str) -> bytes:
        def make() -> bytes:
            made.append(name)
            return name.encode() * 100

        return cuda_compile.cached(name, make)

    for _ in range(2):
        assert [get(name) for name in ("a.ptx", "b.cubin")] == [b"a.ptx" * 100, b"b.cubin" * 100]
    assert made == ["a.ptx", "b.cubin"]
    one, two = place / "cuda" / "a.ptx", place / "cuda" / "b.cubin"
    contents = one.read_bytes(), two.read_bytes()
    one.write_bytes(contents[1])
    two.write_bytes(contents[1][:-7])
    assert [get("a.ptx"), get("b.cubin")] == [b"a.ptx" * 100, b"b.cubin" * 100]
    assert made == ["a.ptx", "b.cubin"] * 2
    assert (one.read_bytes(), two.read_bytes()) == contents


def test_cudas_stamp_is_of_all_files_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = SOURCES / "targets" / "cuda"
    names = [path.name for path in here.glob("*.py")]
    for name in names:
        (tmp_path / name).write_bytes((here / name).read_bytes())
    monkeypatch.setattr(cuda_compile, "__file__", str(tmp_path / "compile.py"))
    stamps: set[str] = set()
    for name in (*names, "added.py"):
        cuda_compile.own_stamp.cache_clear()
        stamps.add(cuda_compile.own_stamp())
        with (tmp_path / name).open("a") as file:
            file.write("# changed\n")
    cuda_compile.own_stamp.cache_clear()
    assert len(stamps | {cuda_compile.own_stamp()}) == len(names) + 2
    cuda_compile.own_stamp.cache_clear()
