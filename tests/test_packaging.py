"""The package as laid out and shipped: what is listed, what is in the wheel, and what an import costs."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import TypedDict, cast

import pytest

from tests.new_process import printed
from tests.packed import ROOT, built_wheel, copy_into, done_by_uv


class Setuptools(TypedDict):
    packages: list[str]


class Tool(TypedDict):
    setuptools: Setuptools


class Pyproject(TypedDict):
    tool: Tool


def run_python(code: str, where: Path = ROOT) -> str:
    """What ``code`` prints in a fresh interpreter.

    Coverage's measuring of child processes is left out: it would be timed, and it imports modules of its own.
    """
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COV_CORE")}
    quiet.pop("COVERAGE_PROCESS_START", None)
    quiet.pop("COVERAGE_PROCESS_CONFIG", None)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=where, env=quiet, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def listed_packages() -> list[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return cast(Pyproject, tomllib.load(file))["tool"]["setuptools"]["packages"]


def packages_in_the_tree() -> list[str]:
    source = ROOT / "src"
    folders = {file.parent.relative_to(source) for file in source.rglob("*.py")}
    return sorted(".".join(("gpusort", *folder.parts)) for folder in folders)


def test_the_listed_packages_are_those_of_the_tree() -> None:
    assert sorted(listed_packages()) == packages_in_the_tree()


@pytest.mark.parametrize("package", packages_in_the_tree())
def test_every_package_has_an_init_file(package: str) -> None:
    assert (ROOT / "src" / Path(*package.split(".")[1:]) / "__init__.py").is_file()


@pytest.mark.parametrize(
    "folder",
    [
        "src/algos",
        "src/kernel",
        "src/targets",
        "src/types",
        "typings/cupy",
        "typings/numba",
        "typings/wgpu",
        "tests",
        "benchmarks",
        "examples",
        "docs",
    ],
)
def test_the_folders_exist(folder: str) -> None:
    assert (ROOT / folder).is_dir()


@pytest.mark.parametrize("link", ["typings/gpusort", "typings/on-path/gpusort"])
def test_checkers_and_installs_reach_the_source_by_its_import_name(link: str) -> None:
    assert (ROOT / link).is_symlink()
    assert not Path(os.readlink(ROOT / link)).is_absolute()
    assert (ROOT / link).resolve() == ROOT / "src"


def test_what_an_editable_install_puts_on_the_path_holds_nothing_else() -> None:
    """A folder of stubs beside it would be imported where the package itself is missing."""
    entries = (ROOT / "typings" / "on-path").iterdir()
    assert [entry.name for entry in entries if entry.suffix != ".egg-info"] == ["gpusort"]  # as a build leaves it


def test_no_kernel_is_written_in_another_language() -> None:
    foreign = {".cl", ".cu", ".cuh", ".ptx", ".wgsl"}
    ours = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ours.returncode != 0:
        pytest.skip("not a git checkout: there is no telling which files are ours")
    golden = Path("tests", "golden")
    written = [Path(name) for name in ours.stdout.splitlines()]
    assert [file for file in written if file.suffix in foreign and golden not in file.parents] == []


@pytest.mark.parametrize("elsewhere", ["/", "src"])
def test_the_package_is_found_from_any_folder(elsewhere: str) -> None:
    """From src/ too, where the folder types/ lies: only the installed name may lead there."""
    where = ROOT / elsewhere
    found = run_python("import sys; sys.path.remove(''); import gpusort; print(gpusort.__file__)", where)
    assert Path(found).resolve() == ROOT / "src" / "__init__.py"


def test_the_standard_types_module_is_not_hidden() -> None:
    found = run_python("import gpusort, types; print(types.SimpleNamespace.__name__, types.__file__)")
    assert found.startswith("SimpleNamespace")
    assert not Path(found.split()[1]).is_relative_to(ROOT / "src")


@pytest.mark.parametrize("heavy", ["numba", "llvmlite", "wgpu", "cupy", "cuda"])
def test_importing_gpusort_leaves_the_back_ends_alone(heavy: str) -> None:
    loaded = run_python("import sys, gpusort; print(*{name.partition('.')[0] for name in sys.modules})")
    assert "gpusort" in loaded.split()
    assert heavy not in loaded.split()


def test_a_first_kernel_on_the_cpu_reads_no_packages_metadata() -> None:
    """Which imports the standard library's of e-mails: 40 ms, for the version of llvmlite."""
    code = """
import sys, numpy as np, gpusort
gpusort.sort(np.arange(99), algorithm=gpusort.Bitonic(), target="cpu")
print(gpusort.target("cpu").info.driver, "importlib.metadata" in sys.modules)
"""
    assert re.fullmatch(r"llvmlite \d+\.\d+.*, \d+ threads? False", printed(code))


def seconds_to_import(module: str) -> float:
    return float(run_python(f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"))


def test_importing_gpusort_costs_under_one_and_a_half_times_numpy() -> None:
    """The quickest of several runs, taken in turns: noise only ever adds, and it may come and go."""
    numpy = gpusort = float("inf")
    for _ in range(20):
        numpy = min(numpy, seconds_to_import("numpy"))
        gpusort = min(gpusort, seconds_to_import("gpusort"))
        if gpusort < 1.4 * numpy:
            break
    assert gpusort < 1.5 * numpy


# -- as installed -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_into(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory)


def test_the_wheel_holds_the_package_and_its_type_marker(checkout: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    sources = [file.relative_to(checkout / "src").as_posix() for file in (checkout / "src").rglob("*.py")]
    parts = [file.relative_to(checkout / "src").as_posix() for file in (checkout / "src" / "export" / "web").iterdir()]
    shipped = [name for name in names if not name.startswith("gpusort-")]
    assert sorted(shipped) == sorted(
        f"gpusort/{name}" for name in (*sources, *parts, "py.typed", "export/naga.mjs", "targets/cuda/shipped.zip")
    )


class Environment:
    """A user's own: nothing of this checkout is in it but what was installed, and what that depends on."""

    def __init__(self, folder: Path, *install: str | Path) -> None:
        venv.create(folder, with_pip=False)
        self.python = folder / "bin" / "python"
        library = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        # A path only: what a .pth file there adds, as an editable install does, is not added here.
        (library / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
        # The environment has no setuptools but by that path, which is where the build finds it.
        done_by_uv("pip", "install", "--python", self.python, "--no-deps", "--no-build-isolation", *install)

    def prints(self, code: str) -> str:
        return self._output(self.python, "-I", "-c", code)

    def checked_by_mypy(self, file: Path) -> str:
        cache = file.parent / ".mypy_cache"
        strict = ("--strict", "--python-executable", self.python, "--cache-dir", cache, "--config-file", os.devnull)
        return self._output(sys.executable, "-m", "mypy", *strict, file)

    def checked_by_pyright(self, file: Path) -> str:
        return self._output(sys.executable, "-m", "pyright", "--pythonpath", self.python, "-p", file.parent)

    def _output(self, *command: str | Path) -> str:
        variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
        done = subprocess.run(command, cwd="/", env=variables, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


USERS_FILE = """
from typing import assert_type

import numpy as np

import gpusort

assert_type(gpusort.targets(), list[gpusort.TargetInfo | gpusort.Unavailable])


def mistaken(x: np.ndarray[tuple[int, int], np.dtype[np.int16]]) -> None:
    assert_type(gpusort.sort(x), np.ndarray[tuple[int, int], np.dtype[np.int16]])
    gpusort.sort(x, decending=True)  # the only mistake
"""


@pytest.fixture(scope="module")
def users_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    (folder / "users.py").write_text(USERS_FILE)
    return folder / "users.py"


def assert_one_mistake(users_file: Path, *said: str) -> None:
    """Checkers, strict, know what comes back, and find the one mistake."""
    line = 1 + USERS_FILE.splitlines().index("    gpusort.sort(x, decending=True)  # the only mistake")
    for found in said:
        errors = [text for text in found.splitlines() if "error" in text and "users.py:" in text]
        assert errors, found
        assert all(f"users.py:{line}:" in text for text in errors), found


def test_an_editable_install_is_typed_and_finds_new_modules(checkout: Path, users_file: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv", "--editable", checkout)
    assert_one_mistake(users_file, environment.checked_by_mypy(users_file), environment.checked_by_pyright(users_file))
    code = "import sys, types, gpusort.api.call as call; print(call.__file__, *sys.path, sep='\\n')"
    found = environment.prints(code)
    file, *paths = found.split("\n")
    assert Path(file) == checkout / "src" / "api" / "call.py"  # not by way of the link
    assert str(checkout / "typings" / "on-path") in paths
    assert str(checkout / "src") not in paths
    new = checkout / "src" / "types" / "brand_new.py"
    new.write_text("ANSWER = 42")
    assert environment.prints("from gpusort.types.brand_new import ANSWER; print(ANSWER)").strip() == "42"
    new.unlink()


def test_a_wheel_is_typed(wheel: Path, users_file: Path, tmp_path: Path) -> None:
    """To mypy, which takes nothing without the marker. What pyright is to follow is an editable install's path."""
    environment = Environment(tmp_path / "venv", wheel)
    assert_one_mistake(users_file, environment.checked_by_mypy(users_file))
    assert "site-packages" in environment.prints("import gpusort; print(gpusort.__file__)")
