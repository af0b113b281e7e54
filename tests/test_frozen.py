"""What PyInstaller's hook names: all modules, their sources, and what lies beside them."""

from __future__ import annotations

import pkgutil
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.documents import ROOT

SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def hook() -> dict[str, Any]:
    """As PyInstaller finds it: by the package's entry point."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["pyinstaller40"]
    (folder,) = pkgutil.resolve_name(points["hook-dirs"])()
    return runpy.run_path(str(Path(folder) / "hook-gpusort.py"))


def test_all_modules_are_taken(hook: dict[str, Any]) -> None:
    """Those of dask with a program that imports them; nothing sees the others, which are imported by name."""
    files = [file.relative_to(SOURCE).with_suffix("") for file in SOURCE.rglob("*.py")]
    names = {".".join(("gpusort", *file.parts)).removesuffix(".__init__") for file in files}
    inner = {name for name in names if not name.startswith(("gpusort.dask", "gpusort.__pyinstaller"))}
    assert set(hook["hiddenimports"]) == inner - {"gpusort"}


def test_sources_are_taken_too(hook: dict[str, Any]) -> None:
    assert hook["module_collection_mode"] == {"gpusort": "pyz+py"}


def test_other_files_come_to_their_place(hook: dict[str, Any]) -> None:
    """The PTX of usual kernels, and what exports are made of."""
    places = {Path(place) / Path(file).name for file, place in hook["datas"]}
    others = [file for file in SOURCE.rglob("*") if file.is_file() and file.suffix not in (".py", ".pyc", ".typed")]
    assert places == {Path("gpusort") / file.relative_to(SOURCE) for file in others}
    assert Path("gpusort/targets/cuda/shipped.zip") in places
