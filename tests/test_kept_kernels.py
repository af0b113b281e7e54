"""Compiled loops in the cache: what others planted is never run, and what does not fit is compiled again."""

from __future__ import annotations

import logging
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import numba
import numpy as np
import pytest

import gpusort
from gpusort.targets.cuda import compile as cuda_compile
from gpusort.targets.cuda import host_keeping as keeping
from tests.kept_text import load_kernel
from tests.new_process import end_well_side_by_side

ROOT = Path(__file__).parent.parent
SOURCES = Path(gpusort.__file__).parent

TEXT = """
import numpy as np
from numba import i8, njit

SIGNATURE = "void(i8[::1])"


@njit(nogil=True)
def kernel(data):
    data[0] = {number}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    here = tmp_path / "kept"
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(here))
    keeping.stamp.cache_clear()
    yield here
    keeping.stamp.cache_clear()


@attrs.frozen
class Bomb:
    """A pickle that, once it is read, leaves a mark."""

    mark: Path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return open, (str(self.mark), "w")


def bomb(mark: Path) -> bytes:
    """The pickle, tried out: it goes off where it is read."""
    content = pickle.dumps(numba.__version__) + pickle.dumps(Bomb(mark))
    pickle.loads(pickle.dumps(Bomb(mark))).close()
    assert mark.exists()
    mark.unlink()
    return content


def run(number: int, *, again: bool) -> None:
    """Loads a kernel as a new process would and runs it. `again`: whether it is found compiled."""
    kernel = load_kernel(TEXT.format(number=number))
    data = np.zeros(1, np.int64)
    kernel(data)
    assert data[0] == number
    assert sum(kernel.stats.cache_hits.values()) == again


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


@pytest.mark.parametrize(
    ("owner", "name"),
    [("numba", "__version__"), ("llvmlite", "__version__"), ("numpy", "__version__"), ("sys", "version"),
     ("numba.core.config", "BOUNDSCHECK"), ("numba.core.config", "OPT")],
)  # fmt: skip
def test_kernels_of_another_version_or_setting_are_not_found(
    owner: str, name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(1, again=False)
    loop = load_kernel(TEXT.format(number=1))
    with monkeypatch.context() as other:
        other.setattr(f"{owner}.{name}", "another")
        keeping.stamp.cache_clear()
        assert keeping.Keeper(run, "").cache_path is None
        names = {keeping.Keeper(loop.py_func, "").name("sig", Codegen())}
    keeping.stamp.cache_clear()
    names.add(keeping.Keeper(loop.py_func, "").name("sig", Codegen()))
    assert len(names) == 2
    run(1, again=True)


class Codegen:
    """Says for which processor it compiles."""

    def __init__(self, processor: str = "this") -> None:
        self.processor = processor

    def magic_tuple(self) -> tuple[str, str, str]:
        return ("triple", self.processor, "features")


def test_a_files_name_tells_all_that_its_code_depends_on() -> None:
    def one() -> int:
        return 1

    def two() -> int:
        return [2][0]

    name = keeping.Keeper(one, "source").name("sig", Codegen())
    others = [
        keeping.Keeper(two, "source").name("sig", Codegen()),
        keeping.Keeper(one, "source 2").name("sig", Codegen()),
        keeping.Keeper(one, "source").name("sig 2", Codegen()),
        keeping.Keeper(one, "source").name("sig", Codegen("another")),
    ]
    assert len({name, *others}) == 5
    assert name == keeping.Keeper(one, "source").name("sig", Codegen())


def test_every_file_that_loops_are_compiled_from_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = SOURCES / "targets" / "cuda"
    uses = re.compile(r"^(@njit|@inner|@intrinsic|\w+ = intrinsic)", re.MULTILINE)
    compiled = [str(path.relative_to(here)) for path in sorted(here.rglob("*.py")) if uses.search(path.read_text())]
    assert "pinned_copies.py" in compiled
    copy = tmp_path / "copy"
    shutil.copytree(here, copy)
    monkeypatch.setattr(keeping, "_HERE", copy)
    (copy / "policy.py").write_text("SIZE = 3\n")
    (tmp_path / "above.py").write_text("SIZE = 3\n")
    with (copy / "pinned_copies.py").open("a") as file:
        file.write("from .policy import SIZE\nfrom ..above import SIZE\n")
    stamps = {keeping.stamp()}
    (copy / "pool.py").write_text("# no part of any loop\n")
    keeping.stamp.cache_clear()
    assert {keeping.stamp()} == stamps
    compiled += ["policy.py", "../above.py"]
    for name in compiled:
        with (copy / name).open("a") as file:
            file.write("# changed\n")
        keeping.stamp.cache_clear()
        stamps.add(keeping.stamp())
    assert len(stamps) == 1 + len(compiled)


def test_nothing_is_left_to_numbas_own_cache() -> None:
    assert [path for path in SOURCES.rglob("*.py") if "cache=True" in path.read_text()] == []


# -- planted files, and processes of their own ------------------------------------------------------------

_NUMBERS = """
import numpy as np
from gpusort.targets.cuda.pinned_copies import send
none = np.zeros(5, np.uint64)
assert send(none, np.zeros((0, 3), np.uint64), 0, 1, 0, 0, none, 0) == 0
print(sum(send.stats.cache_hits.values()))
"""
_PLANTS = """
import pathlib, sys
from numba.core.caching import FunctionCache
from gpusort.targets.cuda import pinned_copies
content = pathlib.Path(sys.argv[1]).read_bytes()
for loop in vars(pinned_copies).values():
    if hasattr(loop, "py_func"):
        file = pathlib.Path(FunctionCache(loop.py_func)._cache_file._index_path)
        file.write_bytes(content)
        file.with_name(file.name.replace(".nbi", ".1.nbc")).write_bytes(content)
        planted = file
print(planted)
"""


def in_a_process(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "typings"), "GPUSORT_THREADS": "2", **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def test_planted_pickles_never_run(place: Path, tmp_path: Path) -> None:
    """Everywhere Numba would look for its index, and under every name of our own files."""
    mark, content = tmp_path / "mark", tmp_path / "content"
    content.write_bytes(bomb(mark))
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    (tmp_path / "numba").mkdir()
    planted = in_a_process(_PLANTS + _NUMBERS, str(content), **environment).stdout.split()
    assert planted[0].startswith(environment["NUMBA_CACHE_DIR"])
    assert not mark.exists()
    kept = sorted((place / "cpu").iterdir())
    assert len(kept) == 1
    for path in kept:
        path.write_bytes(content.read_bytes())
    assert in_a_process(_NUMBERS, **environment).stdout.split() == ["0"]
    assert not mark.exists()
    assert sorted((place / "cpu").iterdir()) == kept
    assert all(path.read_bytes() != content.read_bytes() for path in kept)


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
from tests.kept_text import load_kernel
text = sys.argv[1]
sys.stdin.readline()
for number in range(2):
    data = np.zeros(1, np.int64)
    kernel = load_kernel(text.replace("NUMBER", str(number)))
    kernel(data)
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
