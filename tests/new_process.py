"""Python code run in a process of its own, which must end in time.

A new interpreter takes a fifth of a second to import NumPy and attrs, before it comes to anything of ours. So code runs
in the child of an interpreter that has imported these, and nothing else, but where it says that it wants a fresh one.
What only sorts, and is not about imports, asks for the child of one that has imported what sorts of arrays and of files
take, and what compiles kernels for the CPU: half a second less.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

_PYTHON = [sys.executable, "-W", "ignore::DeprecationWarning", "-c"]
# What a sort of an array, a file or a mapped array imports on the CPU, by way of these.
_SORTING = (
    "gpusort.api.sorting", "gpusort.api.files", "gpusort.algos.choice", "gpusort.targets.cpu.target",
    "gpusort.targets.cpu.kernels", "llvmlite.binding",
)  # fmt: skip
# For each line, which says what to run: a line with the child's number, and one with what became of it.
_SERVER = """
import importlib, json, os, signal, sys
import attr, numpy
for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    given = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, path in enumerate((os.devnull, *given["streams"])):
            opened = os.open(path, os.O_RDWR | os.O_CREAT)
            os.dup2(opened, number)
            os.close(opened)
        os.chdir(given["cwd"])
        os.environ.clear()
        os.environ.update(given["environment"])
        sys.argv = ["-c", *given["arguments"]]
        code = compile(given["code"], "<string>", "exec")
        for name in [name for name in globals() if not name.startswith("__") and name != "code"]:
            del globals()[name]
        exec(globals().pop("code"))
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class _Server:
    """The interpreter whose children run code, one after another."""

    def __init__(self, modules: Sequence[str]) -> None:
        """Which modules it imports for all of them."""
        command = [*_PYTHON, _SERVER, *modules]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def run(
        self, code: str, arguments: Sequence[str], cwd: Path, timeout: float, environment: Mapping[str, str],
        interrupt: float | None = None,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        assert self.process.stdin is not None
        with TemporaryDirectory(prefix="gpusort-new-") as folder:
            streams = [Path(folder) / name for name in ("out", "err")]
            given = {"code": code, "arguments": [*arguments], "cwd": str(cwd), "environment": dict(environment)}
            line = json.dumps({**given, "streams": [*map(str, streams)]})
            self.process.stdin.write(line.encode() + b"\n")
            child = self._answer(time.monotonic() + 60)
            assert child is not None, "no child of the interpreter that was to have one"
            until, status = time.monotonic() + timeout, None
            if interrupt is not None:
                while not (streams[0].exists() and streams[0].stat().st_size) and time.monotonic() < until:
                    time.sleep(0.001)
                status = self._answer(time.monotonic() + interrupt)
                if status is None:
                    _send(child, signal.SIGINT)
            if status is None:
                status = self._answer(until)
            if status is None:
                _send(child, signal.SIGKILL)
                self._answer(time.monotonic() + 60)
            found = [stream.read_text() if stream.exists() else "" for stream in streams]
        if status is None:
            raise subprocess.TimeoutExpired(code, timeout, *found)
        return subprocess.CompletedProcess(code, status, *found)

    def _answer(self, until: float) -> int | None:
        """The next line, if it comes in time."""
        assert self.process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
                return None
            part = self.process.stdout.read(1)
            assert part, "the interpreter whose children run code has ended"
            line += part
        return int(line)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _send(child: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it has come to its end by itself
        os.kill(child, number)


_servers: dict[tuple[int, bool], _Server] = {}  # by the process that started it: a forked one takes its own


def _server(*, sorts: bool) -> _Server:
    key = os.getpid(), sorts
    found = _servers.get(key)
    if found is None:
        for theirs in [other for other in _servers if other[0] != key[0]]:
            del _servers[theirs]
        found = _servers[key] = _Server(_SORTING if sorts else ())
        atexit.register(found.end)
    return found


def run_new(
    code: str, *arguments: str, cwd: Path | None = None, timeout: float = 300, fresh: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What it printed, and how it ended: by an error, by a signal, or never. `fresh`: in an interpreter that has
    imported nothing, as it has to be where the environment is to say something to the interpreter itself."""
    new = {**os.environ, **environment}
    fresh = fresh or any(name.startswith("PYTHON") for name in environment)
    if not fresh and hasattr(os, "fork"):
        return _server(sorts=False).run(code, arguments, cwd or Path.cwd(), timeout, new)
    return subprocess.run(
        [*_PYTHON, code, *arguments], cwd=cwd, env=new, capture_output=True, text=True, timeout=timeout, check=False
    )


def run_sort(
    code: str, *arguments: str, cwd: Path | None = None, timeout: float = 120, interrupt: float | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Likewise, of code that sorts and is not about what it imports for that. `interrupt`: so many seconds after it has
    printed something, it gets what Ctrl-C sends. It is killed after `timeout`, which raises TimeoutExpired."""
    new = {**os.environ, **environment}
    if not hasattr(os, "fork"):
        assert interrupt is None
        return run_new(code, *arguments, cwd=cwd, timeout=timeout, fresh=False, **environment)
    return _server(sorts=True).run(code, arguments, cwd or Path.cwd(), timeout, new, interrupt)


_OF_DRIVERS = (
    "Unable to find extension: VK_", "VK_EXT_memory_budget is not available", "error: XDG_RUNTIME_DIR is invalid",
    "No windowing system present", "No config found!",
)  # fmt: skip


def complaints(said: str) -> str:
    """What a process said on stderr, less what wgpu before 0.32 says of Mesa's drivers wherever there is no display."""
    return "".join(line for line in said.splitlines(keepends=True) if not line.startswith(_OF_DRIVERS))


def printed(code: str, *, timeout: float = 300, fresh: bool = False, sorts: bool = False, **environment: str) -> str:
    """What a process printed that ended well and complained of nothing. `sorts`: as of `run_sort`."""
    if sorts:
        done = run_sort(code, cwd=None, timeout=timeout, interrupt=None, **environment)
    else:
        done = run_new(code, cwd=None, timeout=timeout, fresh=fresh, **environment)
    assert (done.returncode, complaints(done.stderr)) == (0, ""), done.stderr[-2000:]
    return done.stdout.strip()


def end_well_side_by_side(command: Sequence[str], count: int, *, timeout: float) -> None:
    """Starts so many processes, which wait for a line, lets them go at once, and sees that none complains."""
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
        for _ in range(count)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        _, said = process.communicate(timeout=timeout)
        assert (process.returncode, said) == (0, "")


# What such code ends with, to print the bytes that were resident at most, less what is of libraries' files now: kernels
# map as much of these as they like, so that the same code has 30 MiB of LLVM under one and 80 under another.
PRINT_PEAK = """
def peak():
    libraries, mapped = 0, ""
    with open("/proc/self/smaps") as lines:
        for line in lines:
            if line.startswith("Rss:"):
                libraries += int(line.split()[1]) if ".so" in mapped else 0
            elif not line.split()[0].endswith(":"):
                mapped = line
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) - libraries << 10
print(peak())
"""

# What such code forks by.
IN_A_CHILD = """
import os
import time

def child(work, seconds=200):
    '''How a forked child ends that does some work.'''
    number = os.fork()
    if number == 0:
        try:
            os._exit(work() or 0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(99)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(number, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(number, 9)
    os.waitpid(number, 0)
    return "hangs"
"""
