"""What kernels become for CUDA: source, PTX and machine code. No card is needed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cuda.pathfinder import DynamicLibNotFoundError, LoadedDL

from gpusort.algos.bitonic import bitonic_sort
from gpusort.kernel import ir
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.kernel.specialise import specialise
from gpusort.targets.cuda import compile as cuda_compile
from gpusort.targets.cuda.text import kernel_text
from gpusort.types.errors import TargetUnavailableError
from gpusort.types.indices import SortOrder
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.params import BitonicPolicy
from gpusort.types.scalars import F32, F64, U32
from tests.cuda_cases import WORDS, N, lanes_case, memories_case, products, schedule_of, wait_for_flag
from tests.new_process import printed


def program_of(schedule: Schedule) -> ir.Program:
    return specialise(schedule.launches[0]).program


def entry(ptx: str) -> str:
    return ptx[ptx.index(".visible .entry") :]


def test_a_kernel_takes_pointers_lengths_and_scalars() -> None:
    schedule, _, _ = memories_case(N)
    text = kernel_text(program_of(schedule))
    assert "def kernel(data, out, flags, length_of_data, limit, step):" in text.source
    pointers = "u4*, u4*, u1*"
    assert f'SIGNATURE = "void({pointers}, u4, u4, u4)"' in text.source
    assert [memory.name for memory in text.lengths] == ["data"]
    ptx = cuda_compile.compile_ptx(program_of(schedule), (9, 0))
    assert re.findall(r"\.param \.(\w+) gpusort_through_memories_param_\d", ptx) == ["u64"] * 3 + ["u32"] * 3
    assert ".maxntid 48, 1, 1" in ptx
    assert ".target sm_90" in ptx


@kernel
def nothing(cx: Invocation, data: Storage[U32]) -> None:
    """Has no statement at all."""


def test_a_kernel_may_do_nothing() -> None:
    launch = nothing.launch(Grid(1, 32), Buffer("data", U32, 32, Role.INOUT))
    assert "ret;" in entry(cuda_compile.compile_ptx(specialise(launch).program))


def test_workgroup_memory_beyond_48_kilobytes_is_asked_for_at_the_launch() -> None:
    small, large = (kernel_text(program_of(memories_case(tile)[0])) for tile in (N, 7000))
    assert small.dynamic_bytes == 0
    assert "tile = cuda.shared.array(48, u8)" in small.source
    assert large.dynamic_bytes == 56000 + 48
    assert "tile = cuda.shared.array(0, u8)" in large.source
    assert "store_workgroup(more, u4_56000, local_id, u1(flags_at))" in large.source
    assert ".extern .shared" in cuda_compile.compile_ptx(program_of(memories_case(7000)[0]))


def test_masks_name_the_lanes_there_are() -> None:
    sources = {n: kernel_text(program_of(lanes_case(n)[0])).source for n in (7, 48, 64)}
    assert "u4(127)" in sources[7]
    assert "lanes = select(local_id < u4(32), u4(4294967295), u4(65535))" in sources[48]
    assert "lanes = " not in sources[64]


def test_lanes_meet_in_single_instructions() -> None:
    ptx = entry(cuda_compile.compile_ptx(program_of(lanes_case(64)[0])))
    assert len(re.findall(r"\bvote\.sync\.ballot\.b32", ptx)) == 1 + 3, "a ballot, and one for each of three bits"
    assert len(re.findall(r"\bmatch\.any\.sync\.b32", ptx)) == 1
    for way in ("idx", "up", "down", "bfly"):
        assert f"shfl.sync.{way}.b32" in ptx
    assert len(re.findall(r"shfl\.sync\.bfly", ptx)) == 2, "a 64-bit value goes in two words"


def test_a_waiting_loop_reads_anew_each_time() -> None:
    flags, out = Buffer("flags", U32, 2, Role.INOUT), Buffer("out", U32, 2, Role.OUTPUT)
    schedule = schedule_of(wait_for_flag.launch(Grid(2, 1), flags, out))
    ptx = entry(cuda_compile.compile_ptx(program_of(schedule), (9, 0)))
    labels = {m.group(1): m.start() for m in re.finditer(r"^(\$\w+):", ptx, re.MULTILINE)}
    backwards = [
        ptx[labels[m.group(1)] : m.start()]
        for m in re.finditer(r"bra\S* +\t?(\$\w+);", ptx)
        if labels[m.group(1)] < m.start()
    ]
    assert any("ld.relaxed.gpu.global.u32" in loop for loop in backwards)
    assert "st.relaxed.gpu.global.u32" in ptx


def test_products_are_rounded_before_they_are_added() -> None:
    singles, doubles = Buffer("singles", F32, 34, Role.INOUT), Buffer("doubles", F64, 34, Role.INOUT)
    schedule = schedule_of(products.launch(Grid(1, 32), singles, doubles))
    ptx = entry(cuda_compile.compile_ptx(program_of(schedule), (9, 0)))
    assert "fma." not in ptx
    assert "mul.rn.f32" in ptx
    assert "mul.rn.f64" in ptx
    assert ".ftz" not in ptx


def test_kernels_stay_in_registers() -> None:
    for launch in bitonic_sort(WORDS, 1, 1 << 16, SortOrder.ASCENDING, BitonicPolicy()).launches:
        ptx = cuda_compile.compile_ptx(specialise(launch).program)
        machine_code, said = cuda_compile.assemble(ptx, cuda_compile.DEFAULT_CAPABILITY)
        assert machine_code[:4] == b"\x7fELF"
        assert re.search(r"[Uu]sed \d+ registers", said), said
        assert not cuda_compile.spills(said), said


SAID = (
    "ptxas  .  {} bytes stack frame, {} bytes spill stores, 44 bytes spill loads\nptxas info: Used 56 registers",
    "info    : used 56 registers, used 1 barriers, {} stack, 1024 bytes smem, 604 bytes cmem[0], 0 bytes lmem",
    "info    : used 56 registers, used 1 barriers, 0 stack, 1024 bytes smem, 604 bytes cmem[0], {} bytes lmem",
)


@pytest.mark.parametrize("said", SAID)
def test_every_assembler_is_understood(said: str) -> None:
    assert cuda_compile.spills(said.format(48, 48))
    assert not cuda_compile.spills(said.format(0, 0))


@pytest.mark.parametrize("said", SAID)
def test_fewer_registers_are_asked_for_where_more_workgroups_fit(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    asked: list[str] = []

    def assemble(ptx: str, _: object) -> tuple[bytes, str]:
        asked.extend(re.findall(r"\.minnctapersm \d+", ptx))
        return ptx.encode(), said.format(*(2 * [8 if ".minnctapersm 8" in ptx else 0]))

    monkeypatch.setattr(cuda_compile, "assemble", assemble)
    program = program_of(memories_case(N)[0])
    ptx = f".maxntid {program.group_size}, 1, 1"

    def occupancies(*_: int) -> range:
        return range(8, 5, -1)

    monkeypatch.setattr(cuda_compile, "occupancies", occupancies)
    code = cuda_compile.assemble_for_occupancy(ptx, cuda_compile.DEFAULT_CAPABILITY, program)
    assert asked == [".minnctapersm 8", ".minnctapersm 7"]
    assert b".minnctapersm 7" in code


def test_compiled_kernels_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(tmp_path))
    program = program_of(memories_case(N)[0])
    first = cuda_compile.compile_machine_code(program, (9, 0))

    def refuse(*_: object) -> str:
        raise AssertionError("compiled again")

    monkeypatch.setattr(cuda_compile, "compile_uncached", refuse)
    monkeypatch.setattr(cuda_compile, "assemble", refuse)
    again = cuda_compile.compile_machine_code(program, (9, 0))
    assert first == again
    assert cuda_compile.entry_name(program) == "gpusort_through_memories"
    with pytest.raises(AssertionError, match="compiled again"):
        cuda_compile.compile_ptx(program, (8, 0))


def test_without_nvvm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(tmp_path))
    program = program_of(memories_case(N)[0])

    def nowhere(name: str) -> LoadedDL:
        raise DynamicLibNotFoundError(name)

    with monkeypatch.context() as patch:
        patch.setattr("cuda.pathfinder.load_nvidia_dynamic_lib", nowhere)
        cuda_compile.folder_of_nvvm.cache_clear()
        with pytest.raises(TargetUnavailableError, match=r"NVVM is not installed or does not load: .*gpusort\[cuda\]"):
            cuda_compile.compile_ptx(program, (9, 0))

    def version_of(name: str) -> None:
        return None

    monkeypatch.setattr(cuda_compile, "version_of", version_of)
    with pytest.raises(TargetUnavailableError, match=r"cuda-bindings is not installed: .*gpusort\[cuda\]"):
        cuda_compile.compile_ptx(program, (9, 0))


def test_the_device_library_is_found_as_toolkits_have_it(tmp_path: Path) -> None:
    """And as conda and packages do: beside the folder of the compiler, or in one of the folder above."""
    for folder, library in (("a/nvvm/lib64", "a/nvvm/libdevice"), ("b/lib", "b/nvvm/libdevice")):
        for made in (folder, library):
            (tmp_path / made).mkdir(parents=True)
        (tmp_path / library / "libdevice.10.bc").write_bytes(folder.encode())
        assert cuda_compile.device_library(tmp_path / folder) == folder.encode()
    with pytest.raises(TargetUnavailableError, match="no libdevice"):
        cuda_compile.device_library(tmp_path / "c" / "lib")


def test_no_numba_is_loaded_until_a_kernel_is_compiled() -> None:
    check = "import sys, gpusort.targets.cuda.target; print({'numba', 'llvmlite', 'cupy'} & set(sys.modules))"
    assert printed(check) == "set()"
