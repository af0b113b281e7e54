"""What Windows lacks of POSIX's modules and functions is missed only where it is needed, and then in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.new_process import run_new

# Others than ours may go by POSIX where they are installed for it: they are imported first.
_HIDDEN = """
import mmap, os, signal, sys, tempfile
import asyncio, llvmlite.binding, multiprocessing.util, numpy as np, platform, shutil, subprocess
platform.uname()
hidden = {"fcntl", "grp", "pwd", "resource", "termios"}
sys.modules.update(dict.fromkeys(hidden))
lacking = {
    os: "fork register_at_fork geteuid getuid sysconf preadv pwritev pread pwrite posix_fallocate mkfifo fchmod fchown "
    "sched_getaffinity killpg getpgid fdatasync statvfs O_DIRECT O_CLOEXEC O_NOFOLLOW O_DIRECTORY O_NONBLOCK",
    signal: "setitimer SIGALRM SIGHUP SIGKILL SIGUSR1 SIGUSR2 SIGPIPE SIGCHLD pthread_kill pthread_sigmask alarm",
    mmap: "MADV_DONTNEED MADV_SEQUENTIAL MADV_WILLNEED MAP_SHARED MAP_PRIVATE PROT_READ PROT_WRITE",
}
for module, names in lacking.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.process_cpu_count = os.cpu_count  # which asks for what is hidden, from Python 3.13 on
import gpusort
"""

_ALL_MODULES = """
import importlib, pkgutil, traceback
ours = [found.name for found in pkgutil.walk_packages(gpusort.__path__, "gpusort.") if "__main__" not in found.name]
folder = os.path.realpath(gpusort.__path__[0])
for name in ours:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A library that is not here, or that goes by POSIX itself where it is.
        files = [os.path.realpath(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
        last = [file for file in files if "importlib" not in file][-1]
        assert error.name not in hidden or not last.startswith(folder), (name, error)
assert len(ours) > 300
"""

_CALLS = """
x = np.random.default_rng(0).random((300, 1000), np.float32)
for target in ("cpu", "simulator"):
    few = x[:3] if target == "simulator" else x
    assert (gpusort.sort(few, target=target) == np.sort(few)).all()
    assert (gpusort.argsort(few, axis=0, target=target) == np.argsort(few, axis=0, kind="stable")).all()
    assert (gpusort.top_k(few, 3, target=target)[0] == -np.sort(-few)[:, :3]).all()
    assert (gpusort.max(few, axis=0, target=target) == few.max(0)).all()
    whole = few.view(np.int32)
    assert (gpusort.cumsum(whole, axis=1, target=target) == np.cumsum(whole, axis=1)).all()
"""

# More than is ever sorted by files unasked, and more than GPUSORT_MEMORY.
_MAPPED = """
path = os.path.join(sys.argv[1], "keys.npy")
given = np.lib.format.open_memmap(path, "w+", np.uint32, (1 << 20,))
given[:] = np.arange(given.size, dtype=np.uint32)[::-1]
gpusort.sort(given, out=given)
assert (given == np.arange(given.size)).all()
assert (gpusort.sort(given, descending=True) == given[::-1]).all()
try:
    gpusort.sort_file(path, path)
except gpusort.CapabilityError as error:
    print(error)
"""


@pytest.mark.parametrize("code", [_ALL_MODULES, _CALLS], ids=["modules", "calls"])
def test_what_needs_none_of_it_works(code: str) -> None:
    done = run_new(_HIDDEN + code, fresh=True)
    assert done.returncode == 0, done.stderr


def test_files_are_refused_and_mapped_arrays_are_sorted_in_memory(tmp_path: Path) -> None:
    done = run_new(_HIDDEN + _MAPPED, str(tmp_path), fresh=True, GPUSORT_MEMORY="1M")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("file sorts need Linux or macOS")
