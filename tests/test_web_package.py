"""The npm package: what `make web` packs is small, complete, and sorts where it is installed."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from pathlib import Path

import pytest

from tests.exported import compiled, node, run_program
from web.pack import MODULES, packed, write_package


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node()
    folder = tmp_path_factory.mktemp("npm") / "package"
    write_package(folder)
    return packed(folder)


@pytest.fixture(scope="module")
def place(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of a user's, with the package installed."""
    project = tmp_path_factory.mktemp("project")
    installed = project / "node_modules" / "gpusort"
    with tarfile.open(archive) as held:
        held.extraction_filter = getattr(tarfile, "data_filter", None)  # which Python has from 3.11.4 on
        held.extractall(project / "node_modules")
    (project / "node_modules" / "package").rename(installed)
    (project / "package.json").write_text('{"type": "module"}', "utf-8")
    return project


def test_it_holds_what_it_says(place: Path) -> None:
    installed = place / "node_modules" / "gpusort"
    files = {file.name for file in installed.iterdir()}
    modules = {f"{name}{ending}" for name in MODULES for ending in (".js", ".d.ts")}
    assert files == modules | {"package.json", "README.md", "LICENSE"}
    for entry in json.loads((installed / "package.json").read_text("utf-8"))["exports"].values():
        assert {Path(file).name for file in entry.values()} <= files


def test_the_sort_alone_is_small(place: Path) -> None:
    text = (place / "node_modules" / "gpusort" / "gpusort.js").read_bytes()
    assert len(text) < 40_000
    assert len(gzip.compress(text)) < 10_000


def test_the_readme_is_true(place: Path) -> None:
    text = (place / "node_modules" / "gpusort" / "README.md").read_text("utf-8")
    (program,) = re.findall(r"^```js\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    (expected,) = re.findall(r"console\.log.*// (.*)$", program, flags=re.MULTILINE)
    (place / "readme.mjs").write_text(program, "utf-8")
    assert run_program(place / "readme.mjs") == f"{expected}\n"


def test_all_of_it_in_one_program(place: Path) -> None:
    program = """
import { argsortArray, reduceArray, scanArray, sortArray } from "gpusort/all";
const device = await (await navigator.gpu.requestAdapter()).requestDevice();
const x = Float32Array.from({ length: 10000 }, (_, i) => (i * 7919) % 101 - 40);
const want = x.slice().sort();
const same = (found, expected) => found.length === expected.length && found.every((value, i) => value === expected[i]);
const { keys, values } = await sortArray(device, x, { values: Uint32Array.from(x.keys()) });
console.log(same(keys, want), same(Float32Array.from(values, (i) => x[i]), want));
console.log(same(Float32Array.from(await argsortArray(device, x), (i) => x[i]), want));
console.log(await reduceArray(device, x, { operation: "min" }), want[0]);
console.log(await reduceArray(device, x, { operation: "sum" }), x.reduce((a, b) => a + b));
console.log((await scanArray(device, x)).at(-1), x[await reduceArray(device, x, { operation: "argmax" })], want.at(-1));
"""
    (place / "all.mjs").write_text(program, "utf-8")
    lines = run_program(place / "all.mjs").splitlines()
    x = [(i * 7919) % 101 - 40 for i in range(10000)]
    assert lines[:2] == ["true true", "true"]
    assert lines[2:] == [f"{min(x)} {min(x)}", f"{sum(x)} {sum(x)}", f"{sum(x)} {max(x)} {max(x)}"]


def test_typescript_finds_its_types(place: Path) -> None:
    good = 'import { sortArray } from "gpusort";\nexport const sorted = (device: GPUDevice) =>\n'
    bad = f'{good}  sortArray(device, "abc");\n'
    assert "TS2345" in compiled(place, f"{good}  sortArray(device, new Float32Array(3));\n", bad)
