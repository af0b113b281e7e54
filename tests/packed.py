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


def pip(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, capture_output=True)


def copy_into(folder: Path) -> Path:
    """What an install reads: a build leaves folders behind, whose contents get into the next wheel."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "typings" / "on-path", folder / "typings" / "on-path", symlinks=True)
    for name in ("LICENSE", "README.md", "pyproject.toml"):
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
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", checkout / "wheels", checkout)
    (wheel,) = (checkout / "wheels").glob("gpusort-*.whl")
    return wheel
