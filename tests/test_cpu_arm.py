"""What the CPU's compiler writes for ARM, on whatever machine: code that calls nothing but the C library, keeps the
order in which threads see each other's writes, and rounds as plain Python does."""

from __future__ import annotations

import re
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from gpusort.targets.cpu import crew
from gpusort.targets.cpu.compiler import loading, machine
from gpusort.targets.cpu.compiler.function import llvm_text
from gpusort.targets.cpu.compiler.machine import Machine
from gpusort.targets.cpu.host import partition, partition_sort
from gpusort.targets.cpu.loops import Kernel, compiled
from tests.test_golden import GOLDEN

_TRIPLE = "aarch64-unknown-linux-gnu"
_C_LIBRARY = {"free", "malloc", "memcpy", "memmove", "memset"}
# Which orders what threads see: a load that acquires, a store that releases, or an addition that does both.
_ACQUIRES, _RELEASES, _BOTH = r"\bldax?rb?\b", r"\bstlx?rb?\b", r"\bldaddal\b"
_SCALABLE = r"\b(?:z\d+\.[bhsd]|p\d+/[mz]|cnt[bhwd])\b"
_FUSED = r"\bf(?:n?m(?:add|sub)|ml[as])\b"  # a * b + c, rounded once


@pytest.fixture(scope="module")
def arm() -> Machine:
    """The least of them, whose atomics are loops."""
    return _machine("generic", "")


def _machine(cpu: str, features: str) -> Machine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return Machine(machine.target_for(_TRIPLE, cpu, features), machine.machine().engine, features, "")


def assembly(arm: Machine, text: str, name: str = "kernel") -> str:
    translated = llvm_text(text, name, is_opaque=arm.is_opaque, compresses=arm.compresses)
    assert "x86" not in translated
    found = arm.target.emit_assembly(arm.optimised(translated, 3))
    assert set(re.findall(r"\bbl\s+(\S+)", found)) <= _C_LIBRARY
    return found


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The texts of loops that are asked for, which are not compiled."""
    found: dict[str, str] = {}

    def keep(name: str, text: str, *, is_serial: bool) -> Kernel:
        found[name] = text
        return Kernel(lambda: 0, 0, False, None)

    monkeypatch.setattr(loading, "load_kernel", keep)
    return found


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.cpu.txt")), ids=lambda path: path.name.partition(".")[0])
def test_kernels_are_compiled_for_arm(path: Path, arm: Machine) -> None:
    assert not re.search(_FUSED, assembly(arm, path.read_text("utf-8")))


def test_threads_see_what_others_have_written(arm: Machine, texts: dict[str, str]) -> None:
    """x86-64 keeps the order of most writes, whatever code says; ARM keeps none that it is not told to."""
    for loop in (crew.serve, crew.lead, crew.take_slices, partition_sort.sort_parts):
        loop.__wrapped__()
    partition.part_in_turn.__wrapped__(np.dtype(np.uint32))
    assert {*texts} == {"serve", "lead", "take_slices", "sort_parts", "part_in_turn"}
    later = _machine("generic", "+lse")
    for name, text in texts.items():
        additions = text.count("fetch_add(")
        by_loops, by_one = assembly(arm, text, name), assembly(later, text, name)
        for order in (_ACQUIRES, _RELEASES):
            assert len(re.findall(order, by_loops)) >= additions > 0, name
        assert len(re.findall(_BOTH, by_one)) >= additions, name
        assert not re.search(r"\bldadd(?!al\b)", by_one), name
        assert ("load_acquire" not in text) or re.search(r"\bldar\b", by_one), name


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("sum", ["x[i] * y[i] + z[i]", "z[i] - x[i] * y[i]"])
def test_products_are_rounded_before_they_are_added(kind: str, sum: str, arm: Machine, texts: dict[str, str]) -> None:
    """Of vectors, and of what is left over."""
    takes = ", ".join(f"{name}: {kind}[]" for name in "xyz")
    compiled("sums", takes, f"    for i in range(len(x)):\n        z[i] = {sum}")
    found = assembly(arm, texts["sums"])
    assert "fmul" in found
    assert not re.search(_FUSED, found)


_V2 = ("bf16", "dotprod", "f32mm", "i8mm", "neon", "sve", "sve-aes", "sve2", "sve2-bitperm", "sme", "ssve-fp8fma")


@pytest.mark.parametrize("said", [{"neon": True}, {"neon": True, "sve": False}, dict.fromkeys(_V2, True)])
@pytest.mark.parametrize("cpu", ["neoverse-v1", "neoverse-v2", "a64fx"])
def test_no_scalable_vectors_are_used(
    cpu: str, said: dict[str, bool], texts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A processor's name promises them to LLVM, of which 15 hears nothing of a system that hides them. With them LLVM
    22 makes wrong sums of bytes."""
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: llvm.FeatureMap(said))
    loop = "    found = {kind}(0)\n    for i in range(len(x)):\n        found = add_in_any_order(found, {kind}(x[i]))\n"
    taken = _machine(cpu, machine.features_here(_TRIPLE))
    for kind in ("u4", "u8"):
        compiled("sum", f"x: u1[], y: {kind}[]", loop.format(kind=kind) + "    y[0] = found")
        assert not re.search(_SCALABLE, assembly(taken, texts["sum"]))
    assert re.search(_SCALABLE, assembly(_machine(cpu, "+sve"), texts["sum"])), "nothing is shown"


def test_other_processors_have_what_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: llvm.FeatureMap(avx2=True, sse=False))
    assert machine.features_here("x86_64-unknown-linux-gnu") == "+avx2,-sse"
