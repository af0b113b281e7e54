"""A program in C sorts by exported SPIR-V, with Vulkan and nothing of ours: built and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpusort.export import naga
from tests.exported import WEB, node
from tests.reference import Array, sample, sorted_by_numpy

EXAMPLE = Path(__file__).parent.parent / "examples" / "vulkan"
HEADER = Path("/usr/include/vulkan/vulkan.h")


@pytest.fixture(scope="module", name="program")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for needed in ("make", "cc"):
        if shutil.which(needed) is None:
            pytest.skip(f"`{needed}` is not here")
    if not HEADER.is_file():
        pytest.skip(f"{HEADER} is not here; install libvulkan-dev")
    node()
    folder = tmp_path_factory.mktemp("vulkan")
    variables = {**os.environ, naga.VARIABLE: str(WEB / "node_modules" / "naga-wasm")}
    flags = "CFLAGS=-O1 -Wall -Wextra -Wpedantic -Werror"
    command = ["make", "-C", str(EXAMPLE), f"PYTHON={sys.executable}", f"BUILD={folder}", flags]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "sort"


def sorted_by(program: Path, x: Array, *more: str) -> Array:
    given, sorted = program.with_name("given"), program.with_name("sorted")
    given.write_bytes(x.tobytes())
    command = [str(program), f"{x.dtype.kind}32", str(given), str(sorted), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    if "no Vulkan device" in done.stderr:
        pytest.skip("no Vulkan device is here; install mesa-vulkan-drivers")
    assert done.returncode == 0, done.stderr
    return np.fromfile(sorted, x.dtype)


@pytest.mark.parametrize(("dtype", "length"), [("u4", 0), ("u4", 1), ("u4", 3585), ("f4", 3584), ("f4", 50_000)])
def test_it_sorts(program: Path, dtype: str, length: int) -> None:
    x = sample(dtype, length, seed=length)
    np.testing.assert_array_equal(sorted_by(program, x), sorted_by_numpy(x))
    if length == 3584:
        np.testing.assert_array_equal(sorted_by(program, x, "descending"), sorted_by_numpy(x, descending=True))


@pytest.mark.parametrize("arguments", [[], ["u64", "a", "b"], ["u32", "no such file", "b"]])
def test_it_says_what_is_wrong(program: Path, arguments: list[str]) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("sort: ")
