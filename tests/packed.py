"""The package as a user gets it: a wheel, built of a copy of what an install reads."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def uv(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """As pip, by the same hooks of the build, which take a second here and four by way of pip."""
    plain = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    command = [sys.executable, "-m", "uv", "--quiet", "--no-config", *arguments]
    return subprocess.run(command, env=plain, capture_output=True, text=True, check=False)


def done_by_uv(*arguments: str | Path) -> None:
    done = uv(*arguments)
    assert done.returncode == 0, done.stderr


def copy_into(folder: Path) -> Path:
    """What an install reads: a build leaves folders behind, whose contents get into the next wheel."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "typings" / "on-path", folder / "typings" / "on-path", symlinks=True)
    for name in ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def built_wheel(factory: pytest.TempPathFactory) -> Path:
    """The wheel of these sources, which all test processes build once together."""
    together = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        together = together.parent
    with (together / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        found = list(together.glob("wheel-of-all/wheels/*.whl"))
        return found[0] if found else _wheel_of(copy_into(together / "wheel-of-all"))


def _wheel_of(checkout: Path) -> Path:
    done_by_uv(
        "build",
        "--wheel",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "--out-dir",
        checkout / "wheels",
        checkout,
    )
    (wheel,) = (checkout / "wheels").glob("gpusort-*.whl")
    return wheel
