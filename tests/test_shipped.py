"""The PTX that comes with the package: of all usual kernels, as they are now, and what NVVM writes of them."""

from __future__ import annotations

import re
from itertools import cycle
from pathlib import Path
from zipfile import ZipFile

import pytest

from benchmarks.ptx import DTYPES, usual_programs
from gpusort.algos.batch import Batch
from gpusort.algos.radix_sorts import radix_sort
from gpusort.kernel.ir import Program
from gpusort.kernel.specialise import specialise
from gpusort.targets.cuda import compile as cuda_compile
from gpusort.targets.cuda import shipped
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from gpusort.types.params import RadixPolicy

_ANEW = "run `make ptx`, and commit the archive"


_SOME = ("f4", "u8")  # of which all kernels are read; of the others, with --whole


def usual_kernel(name: str) -> Program:
    return next(program for program in usual_programs(("u4",)) if program.name == name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_usual_kernel_is_there(dtype: str, request: pytest.FixtureRequest) -> None:
    if dtype not in _SOME and not request.config.getoption("--whole"):
        pytest.skip("read with --whole: what is changed in a kernel is so for every dtype, or for nearly all")
    with ZipFile(shipped.ARCHIVE) as archive:
        names = set(archive.namelist())
    programs = usual_programs((dtype,))
    missing = [p.name for p in programs if shipped.entry_of(p, cuda_compile.text_of(p)) not in names]
    assert not missing, f"{len(missing)} kernels were changed: {_ANEW}"


def test_it_is_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the card's name, also for a later card."""
    program = usual_kernel("sweep_histograms")
    found = cuda_compile.compile_ptx(program, (9, 0))
    anew = cuda_compile.compile_uncached(program, (9, 0))
    assert ".target sm_80" in found
    assert ".target sm_90" in anew

    def refuse(program: Program, capability: tuple[int, int]) -> str:
        raise AssertionError

    monkeypatch.setattr(cuda_compile, "compile_uncached", refuse)
    assert cuda_compile.compile_ptx(program, (8, 0)) == found
    if _plain(found) != _plain(anew) and _release(found) != _release(anew):
        pytest.skip(f"NVVM {_release(anew)}, not that of constraints.txt, compiles otherwise than {_release(found)}")
    assert _plain(found) == _plain(anew)


def _release(ptx: str) -> str:
    return ptx.partition("tools, release ")[2].partition(",")[0]


def _plain(ptx: str) -> str:
    return re.sub(r"sm_\d+|^\.version .*$|^//.*$", "", ptx, flags=re.MULTILINE)


def test_any_assembler_that_knows_the_cards_takes_it() -> None:
    with ZipFile(shipped.ARCHIVE) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert all(re.findall(r"^\.version (.*)$", text, re.MULTILINE) == ["7.0"] for text in texts.values())
    for name, capability in zip(sorted(texts)[::40], cycle((shipped.SHIPPED_FOR, (9, 0), (12, 0))), strict=False):
        assert cuda_compile.assemble(texts[name], capability)[0]


def test_other_kernels_older_cards_and_no_archive_are_compiled_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiled: list[str] = []

    def compile_uncached(program: Program, capability: tuple[int, int]) -> str:
        compiled.append(program.name)
        return "compiled"

    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cuda_compile, "compile_uncached", compile_uncached)
    usual = usual_kernel("sweep_clear")
    schedule = radix_sort(Batch(key_for("u4"), 1, 999, SortOrder.ASCENDING), RadixPolicy(5, 64, 3), 32)
    other = specialise(schedule.launches[0]).program
    assert cuda_compile.compile_ptx(usual, (9, 0)) != "compiled"
    assert cuda_compile.compile_ptx(usual, (7, 5)) == cuda_compile.compile_ptx(other, (9, 0)) == "compiled"
    for archive in (tmp_path / "none.zip", tmp_path / "broken.zip"):
        if archive.name == "broken.zip":
            archive.write_bytes(b"nothing")
        monkeypatch.setattr(shipped, "ARCHIVE", archive)
        compiled.clear()
        cuda_compile.compile_ptx(usual, (8, 6) if archive.name == "broken.zip" else (9, 0))
        assert compiled == ["sweep_clear"]
