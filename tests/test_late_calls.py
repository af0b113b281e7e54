"""Calls from where Python code may run unasked, as in a `__del__`: in the midst of an import, and at the interpreter's
end."""

from __future__ import annotations

import _imp
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import gpusort
from gpusort.targets import registry
from gpusort.targets.uninterrupted import run_uninterrupted
from gpusort.types.calls import uninterrupted
from gpusort.types.errors import UnsupportedTypeError
from gpusort.types.import_lock import release_import_lock
from tests.new_process import printed, run_new
from tests.opened import or_skip


class _Finder:
    """Finds nothing, and calls us meanwhile, as a `__del__` may that Python runs then."""

    def __init__(self) -> None:
        self.ran: list[int] = []

    def find_spec(self, name: str, *_: object) -> None:
        if name == "nothing_of_the_kind":
            assert _imp.lock_held()
            with pytest.raises(UnsupportedTypeError):
                gpusort.sort(np.zeros(3, complex))
            run_uninterrupted(lambda: self.ran.append(len(importlib.import_module("this_package").__name__)))
            uninterrupted(lambda: self.ran.append(2))


def test_the_lock_of_an_import_that_is_under_way_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "this_package.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    finder = _Finder()
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("nothing_of_the_kind")
    assert finder.ran == [12, 2]
    assert not _imp.lock_held()


def test_a_lock_that_an_interrupt_left_is_released() -> None:
    _imp.acquire_lock()
    _imp.acquire_lock()
    assert release_import_lock()
    assert not _imp.lock_held()


_IN_THE_FIRST_CALL = """
import sys
import threading
import numpy as np
import gpusort

x = np.arange(40, dtype=np.uint32)[::-1].copy()
sys.modules.pop("queue", None)  # as where nobody has imported it yet

class Handler:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1] and threading.current_thread() is threading.main_thread():
            assert int(gpusort.sort(x)[0]) == 0

sys.meta_path.insert(0, Handler())
print(int(gpusort.sort(x)[0]))
"""


@pytest.mark.parametrize("imported", ["queue", "gpusort.targets.cpu.limits"])
def test_a_signal_handlers_call_finds_no_half_of_what_the_first_call_imports(imported: str) -> None:
    done = run_new(_IN_THE_FIRST_CALL, imported)
    assert (done.stdout, done.stderr) == ("0\n", "")


# What `works` gives, and gives again when all modules are gone.
_LATE = """
class Late:
    def __del__(self):
        print(works(), flush=True)

print(works())
sys.modules["late"] = Late()
"""

_AT_THE_END = """
import sys
import numpy as np
import gpusort
from gpusort import TargetUnavailableError

x = np.arange(40, dtype=np.uint32)[::-1].copy()

def works():
    try:
        assert int(gpusort.sort(x, target=TARGET)[0]) == 0
        return "sorted"
    except TargetUnavailableError as error:
        assert "shutting down" in str(error)
        return "refused"
"""


@pytest.mark.parametrize("name", ["cpu", "simulator", "python", "wgsl"])
def test_a_call_at_the_interpreters_end_does_not_wait_for_threads_that_are_gone(name: str) -> None:
    or_skip(registry.target, name)
    said = printed(_AT_THE_END.replace("TARGET", repr(name)) + _LATE, timeout=60)
    assert said == ("sorted\nrefused" if name in ("wgsl", "python") else "sorted\nsorted")


_KERNELS_AT_THE_END = """
import sys
import numpy as np
import gpusort
from gpusort.targets.cpu.job import run_stoppable

x = np.arange(4000, dtype=np.uint32)[::-1].copy()
prepared = gpusort.plan(gpusort.sort, x, algorithm=gpusort.Radix(), target="cpu")
out = np.empty_like(x)

def works():
    seen, both = [], x.repeat(30)
    run_stoppable(lambda stop: seen.append(stop.is_set()))
    for found in (
        gpusort.sort(x, out=out, algorithm=gpusort.Radix(), target="cpu"),
        gpusort.sort(both[:-1], out=both[1:], target="cpu"),
        prepared(x),
    ):
        seen.append(bool((found[:-1] <= found[1:]).all()))
    return seen
"""


def test_kernels_run_at_the_interpreters_end_too() -> None:
    """NumPy imports what `ctypes` of an array is, and threads that have done such work before are gone."""
    assert printed(_KERNELS_AT_THE_END + _LATE, timeout=60) == "\n".join(["[False, True, True, True]"] * 2)


_MAPS_AT_THE_END = """
import pathlib
import sys
import numpy as np
import gpusort

x = np.arange(4000, dtype=np.uint32)[::-1].copy()
given, out = (np.memmap(FOLDER + name, "u4", "w+", shape=4000) for name in ("/given", "/out"))
prepared = gpusort.plan(gpusort.sort, given, out=out)

def refuse(*_):
    raise ImportError("as Python 3.12 does then")

def works():
    pathlib.Path.__new__ = refuse
    seen = []
    for sorts, into in (
        (lambda: gpusort.sort(given, out=out), out), (lambda: prepared(given), out),
        (lambda: gpusort.sort(given, out=given), given), (lambda: gpusort.sort_inplace(given), given),
    ):
        given[:], out[:] = x, 0
        sorts()
        seen.append(bool((into == x[::-1]).all()))
    return seen
"""


def test_maps_are_sorted_at_the_interpreters_end_too(tmp_path: Path) -> None:
    found = printed(_MAPS_AT_THE_END.replace("FOLDER", repr(str(tmp_path))) + _LATE, timeout=60)
    assert found == "\n".join(["[True, True, True, True]"] * 2)


_COLUMNS_AT_THE_END = """
import sys
import numpy as np
import gpusort
LIBRARY = __import__(NAME)

x = LIBRARY.MAKE([3, 1, 2])

def works():
    found = gpusort.sort(x), gpusort.cumsum(x), gpusort.top_k(x, 2)[0]
    return [type(one) is type(x) for one in found], int(np.asarray(gpusort.sum(x)))
"""


@pytest.mark.parametrize(("name", "make"), [("pandas", "Series"), ("polars", "Series"), ("pyarrow", "array")])
def test_columns_are_taken_at_the_interpreters_end_too(name: str, make: str) -> None:
    pytest.importorskip(name)
    code = _COLUMNS_AT_THE_END.replace("NAME", repr(name)).replace("MAKE", make)
    assert printed(code + _LATE, timeout=60) == "\n".join(["([True, True, True], 6)"] * 2)
