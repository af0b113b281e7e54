"""Installed as users do: a wheel or the sources, in clean environments, on every Python that is here, with the oldest
and the newest of what it depends on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.packed import ROOT, built_wheel, copy_into, uv

_OLDEST = "3.11"
_NEWER = ("3.12", "3.13", "3.14", "3.14t", "3.15")  # for which there is Numba
_USED = """
import sys
import numpy as np
import gpusort

x = np.random.default_rng(1).standard_normal(300, dtype=np.float32)
for state in gpusort.targets():
    if isinstance(state, gpusort.TargetInfo):
        keys = x[:20] if state.name == "python" else x  # a thread for each
        assert (gpusort.sort(keys, algorithm=gpusort.Bitonic(), target=state.name) == np.sort(keys)).all(), state
        print(state.name, end=" ")
assert gpusort.sum(x) == x.sum()
print(np.__version__)
"""
_VERSION = """
import sys, sysconfig
print(*sys.version_info[:2], sep=".", end="t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "")
"""


def _sources(folder: Path) -> Path:
    checkout = copy_into(folder)
    (checkout / "tests").mkdir()
    (checkout / "tests" / "test_alone.py").touch()  # which setuptools takes along, but not what tests share
    code = "from setuptools import build_meta; build_meta.build_sdist('sources')"
    subprocess.run([sys.executable, "-c", code], cwd=checkout, check=True, capture_output=True)
    return next((checkout / "sources").glob("*.tar.gz"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wheel, and the sources."""
    return built_wheel(tmp_path_factory), _sources(tmp_path_factory.mktemp("built"))


@cache
def _python(version: str) -> Path:
    """An interpreter of this version, wherever it is usual to keep several."""
    found = shutil.which(f"python{version}")
    if found is not None and _runs(Path(found), version):
        return Path(found)
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for folder in sorted(kept.glob(f"{version.rstrip('t')}.*")):
        if _runs(folder / "bin" / "python", version):
            return folder / "bin" / "python"
    pytest.skip(f"python{version} is not here")


def _runs(python: Path, version: str) -> bool:
    done = subprocess.run([python, "-I", "-c", _VERSION], capture_output=True, text=True, check=False)
    return done.stdout == version


def _oldest() -> list[str]:
    """What gpusort depends on, by name, so that the lowest bounds are taken."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    return [str(name) for name in project["dependencies"]]


def _installed(folder: Path, python: Path, *what: str | Path) -> Path:
    """The interpreter of an environment that has nothing else."""
    _uv("venv", "--python", python, folder)
    _uv("pip", "install", "--python", folder / "bin" / "python", *what)
    return folder / "bin" / "python"


def _uv(*arguments: str | Path) -> None:
    done = uv(*arguments)
    if "are you offline" in done.stderr:
        pytest.skip(f"no index of packages is reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def _used(python: Path) -> list[str]:
    """The targets that sorted there, and NumPy's version."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("COV_CORE", "COVERAGE"))}
    done = subprocess.run([python, "-I", "-c", _USED], env=plain, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_sources_hold_all_that_a_wheel_does(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        held = [member.name for member in archive if member.isfile()]
    assert [name for name in held if "/tests/" in name] == []
    names = [name.partition("/typings/on-path/")[2] for name in held]
    ours = {file.relative_to(ROOT / "src").as_posix() for file in (ROOT / "src").rglob("*") if file.is_file()}
    expected = {f"gpusort/{name}" for name in ours if "__pycache__" not in name}
    assert {name for name in names if name.startswith("gpusort/")} == expected


@pytest.mark.parametrize("version", _NEWER)
def test_it_works_where_it_is_installed(built: tuple[Path, Path], version: str, tmp_path: Path) -> None:
    """With the newest of all that it depends on; from the sources on one of the Pythons. The oldest Python has newer
    versions wherever these tests run."""
    python = _python(version)
    found = _used(_installed(tmp_path / "venv", python, built[1] if version == "3.12" else built[0]))
    assert {"cpu", "simulator", "python"} <= set(found)


def test_the_oldest_versions_do(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Those that pyproject.toml names, on the oldest Python."""
    what: list[str | Path] = ["--resolution", "lowest-direct", built[0], *_oldest()]
    found = _used(_installed(tmp_path / "venv", _python(_OLDEST), *what))
    assert {"cpu", "simulator", "python"} <= set(found)
    assert found[-1].startswith("2.1.")
