"""Small kernels give on every target what they give under CPython, and what is written beside them."""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import pytest

from gpusort.kernel import ir, source
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.kernel.passes.walk import statements_in
from gpusort.kernel.span import KernelError
from gpusort.kernel.specialise import specialise
from gpusort.targets import registry
from gpusort.targets.cuda.compile import compile_uncached
from gpusort.types.errors import CapabilityError, InvalidArgumentError
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import F32, U32
from tests.loading import load
from tests.reader_kernels import WORKS, SmallKernel

for more in ("structs", "operators", "tables", "paths"):
    importlib.import_module(f"tests.reader_{more}")  # whose kernels join the list


@pytest.mark.parametrize(("subject", "expected"), WORKS, ids=[subject.name for subject, _expected in WORKS])
def test_small_kernels(subject: SmallKernel, expected: list[int], target: str) -> None:
    data, out = Buffer("data", U32, 4, Role.INOUT), Buffer("out", U32, 4, Role.INOUT)
    schedule = Schedule((data, out), (subject.launch(Grid(1, 4), data, out),))
    found = np.zeros(4, np.uint32)
    registry.target(target).run(schedule, {"data": np.arange(4, dtype=np.uint32), "out": found})
    np.testing.assert_array_equal(found, expected)


def test_nvvm_takes_small_kernels() -> None:
    """Without a card."""
    pytest.importorskip("cuda.bindings")
    data, out = Buffer("data", U32, 4, Role.INOUT), Buffer("out", U32, 4, Role.INOUT)
    for subject, _ in WORKS:
        program = specialise(subject.launch(Grid(1, 4), data, out)).program
        assert ".visible .entry" in compile_uncached(program, (9, 0)), subject.name


@kernel
def number_that_changes(cx: Invocation, data: Storage[U32]) -> None:
    number = data[cx.global_id]
    if number > 5:
        number = number * 2 + 1
    data[cx.global_id] = number


def test_a_number_that_changes_is_one_variable() -> None:
    """A struct's fields are all read before any is written; of one number no copy is made."""
    program = specialise(number_that_changes.launch(Grid(1, 4), Buffer("data", U32, 4, Role.INOUT))).program
    variables = [s.variable for s in statements_in(program.body) if isinstance(s, ir.Assign)]
    numbers = [variable for variable in variables if variable.name == "number"]
    assert len(numbers) == 2
    assert numbers[0] is numbers[1]


def stepped(x: U32, by: int = 3) -> U32:
    return x + U32(by)


@kernel
def steps_once(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = stepped(data[cx.global_id])


@kernel
def steps_later(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = stepped(data[cx.global_id])


def test_defaults_are_those_that_a_helper_has_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a helper takes is looked up once, and again once it takes something else."""
    data, found = Buffer("data", U32, 4, Role.INOUT), np.zeros(4, np.uint32)
    for step, default, sums in ((steps_once, 3, 3), (steps_later, 5, 8)):
        monkeypatch.setattr(stepped, "__defaults__", (default,))
        registry.target("simulator").run(Schedule((data,), (step.launch(Grid(1, 4), data),)), {"data": found})
        assert found.tolist() == [sums] * 4


_EDITED = """
import math
from gpusort.kernel.kernel import kernel
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import U32

def made(more):
    @kernel
    def adds(cx: Invocation, data: Storage[U32]) -> None:
        data[cx.global_id] = data[cx.global_id] + U32(math.gcd(more, 6)) + 2

    return adds

adds = made(3)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [("+ 2", "+ 2"), (") + 2", ")+2"), (") + 2", ") + 4"), ("def made", "\n\ndef made"),
     ("return adds", "return None"), (_EDITED, "")],
)  # fmt: skip
def test_a_kernel_whose_file_was_edited_is_what_it_was_or_refused(before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text(_EDITED)
    module = load(file)
    file.write_text(_EDITED.replace(before, after))
    os.utime(file, (time.time() + 9, time.time() + 9))
    data, found = Buffer("data", U32, 4, Role.INOUT), np.zeros(4, np.uint32)
    run = partial(registry.target("simulator").run, Schedule((data,), (module.adds.launch(Grid(1, 4), data),)))
    if after in (") + 4", "\n\ndef made", ""):
        with pytest.raises(KernelError, match=r"edited\.py:\d+: expected 'adds' as it was imported, but its"):
            run({"data": found})
    else:
        run({"data": found})
        assert found.tolist() == [5] * 4


_OWN_NAMES = """
from collections.abc import Callable

import attrs

from gpusort.kernel.language import F32, U32, Invocation, Storage, bitcast, kernel, sqrt

def __half(x: F32) -> F32:
    return x * 0.0

def _Area__half(x: F32) -> F32:
    return x / 2.0

@attrs.frozen
class Area:
    size: F32

    def sqrt(self) -> F32:
        return self.__of(__twice=self.size * 2.0)

    def __of(self, __twice: F32) -> F32:
        __size = halved(__twice)
        return sqrt(__size)

    @staticmethod
    def __halving() -> Callable[[F32], F32]:
        def around(__x: F32) -> F32:
            return __half(__x)

        return around

    halved = __halving()

halved = Area.halved

def power(x: U32, times: int) -> U32:
    return x * power(x, times - 1) if times > 0 else U32(1)

@kernel
def side(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = power(bitcast(U32, Area(F32(4.0)).sqrt()) >> 29, 3)
"""


def test_a_function_of_a_new_file_may_use_its_own_name(tmp_path: Path) -> None:
    """As another's, or to call itself a known number of times: what is compiled is compared with what was imported. In
    a class, what begins with two underscores has a longer name."""
    file = tmp_path / "own_names.py"
    file.write_text(_OWN_NAMES)
    os.utime(file, (time.time() + 9, time.time() + 9))
    data, found = Buffer("data", U32, 2, Role.INOUT), np.zeros(2, np.uint32)
    launch = vars(load(file))["side"].launch(Grid(1, 2), data)
    registry.target("simulator").run(Schedule((data,), (launch,)), {"data": found})
    assert found.tolist() == [8, 8]


def test_a_kernel_without_its_file_says_what_a_program_of_compiled_modules_needs(tmp_path: Path) -> None:
    file = tmp_path / "compiled.py"
    file.write_text(_EDITED)
    module = load(file)
    file.unlink()
    schedule = Schedule((data := Buffer("data", U32, 4, Role.INOUT),), (module.adds.launch(Grid(1, 4), data),))
    with pytest.raises(KernelError, match=r"compiled\.py:9: .*this file is not there.*module_collection_mode=\{'"):
        registry.target("simulator").run(schedule, {"data": np.zeros(4, np.uint32)})
    found = np.zeros(4, np.uint32)
    registry.target("python").run(schedule, {"data": found})
    assert found.tolist() == [5] * 4


twice: Callable[[U32], U32] = lambda x: x + x  # noqa: E731 -- it is what is refused


@kernel
def calls_a_lambda(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = twice(data[cx.global_id])


@pytest.mark.parametrize("imported_at", [0, math.inf])
def test_a_lambda_is_refused_as_a_helper_at_its_own_line(imported_at: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its file is newer than what has imported it."""
    monkeypatch.setattr(source, "IMPORTED_AT", imported_at)
    launch = calls_a_lambda.launch(Grid(1, 4), Buffer("data", U32, 4, Role.INOUT))
    with pytest.raises(KernelError, match=r"test_reader\.py:\d+: expected a plain function, .*\n.*twice: Callable"):
        specialise(launch)


@kernel
def shares(cx: Invocation, data: Storage[U32], shared: Workgroup[U32]) -> None:
    shared[cx.local_id] = data[cx.local_id]
    cx.barrier()
    data[cx.local_id] = shared[cx.group_size - 1 - cx.local_id]


_OTHER_LETTERS = """
import attrs

from gpusort.kernel.language import F32, U32, Invocation, Storage, Workgroup, dynamic_range, kernel

@attrs.frozen
class Größe:
    länge: U32
    π: F32

@kernel
def größer(cx: Invocation, daten: Storage[U32], größe: Größe, повтор: Workgroup[U32]) -> None:
    повтор[cx.local_id] = daten[cx.local_id] * größe.länge
    for ñ in dynamic_range(U32(0), U32(3)):
        повтор[cx.local_id] += ñ + U32(größe.π > 3.0)
    daten[cx.local_id] = повтор[cx.local_id]
"""


@pytest.fixture
def in_other_letters(tmp_path: Path) -> Launch:
    file = tmp_path / "letters.py"
    file.write_text(_OTHER_LETTERS, encoding="utf-8")
    module = load(file)
    data, size = Buffer("größte", U32, 4, Role.INOUT), vars(module)["Größe"](U32(10), F32(3.5))
    launch: Launch = vars(module)["größer"].launch(Grid(1, 4), data, size, Workgroup(U32, 4))
    return launch


def test_names_may_be_of_any_language(in_other_letters: Launch, target: str) -> None:
    found = np.arange(4, dtype=np.uint32)
    schedule = Schedule((Buffer("größte", U32, 4, Role.INOUT),), (in_other_letters,))
    registry.target(target).run(schedule, {"größte": found})
    assert found.tolist() == [6, 16, 26, 36]


_LONG = """
from gpusort.kernel.language import F32, U32, Invocation, Storage, bitcast, kernel

@kernel
def long(cx: Invocation, data: Storage[U32]) -> None:
    x, y = data[cx.global_id], F32(data[cx.global_id])
    if x != 1 and {sum} == 600:
        data[cx.global_id] = bitcast(U32, {product})
"""


def test_a_sum_may_be_of_hundreds(target: str, tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text(_LONG.format(sum=" + ".join("x" * 300), product=" * ".join("y" * 300)))
    data, found = Buffer("data", U32, 4, Role.INOUT), np.arange(4, dtype=np.uint32)
    launch = vars(load(file))["long"].launch(Grid(1, 4), data)
    registry.target(target).run(Schedule((data,), (launch,)), {"data": found})
    assert found.tolist() == [0, 1, 0x7F800000, 3]


@attrs.frozen
class Sizes:
    n: U32
    m_k: U32


@kernel
def partition(
    cx: Invocation,
    data: Storage[U32],
    registers_2: Workgroup[U32],
    p: Sizes,
    p_n: U32,
    p_n_: U32,
    p_m_k: U32,
    p_n_2: U32,
) -> None:
    """WGSL reserves this name, and the others are those of fields and registers in the IR."""
    own: Registers[U32] = Registers(U32, 1)
    own[0] = p_n * 10
    registers_2[cx.local_id] = p.n
    partition = registers_2[cx.local_id] + own[0] if data[0] == 0 else p.m_k
    if data[1] == 0:
        partition = partition + p_m_k * 100
    data[cx.local_id] = partition + p_n_ * 1000 + p_n_2 * 10000


def test_parameters_may_have_names_that_others_have_in_the_ir(target: str) -> None:
    data, found = Buffer("data", U32, 2, Role.INOUT), np.zeros(2, np.uint32)
    arguments = Workgroup(U32, 1), Sizes(U32(1), U32(9)), U32(2), U32(4), U32(3), U32(5)
    registry.target(target).run(Schedule((data,), (partition.launch(Grid(1, 1), data, *arguments),)), {"data": found})
    assert found.tolist() == [54321, 0]


def test_ptx_has_names_in_ascii(in_other_letters: Launch) -> None:
    pytest.importorskip("cuda.bindings")
    ptx = compile_uncached(specialise(in_other_letters).program, (9, 0))
    assert ".entry gpusort_gr__er(" in ptx
    assert ptx.isascii()


def test_workgroup_memory_has_a_limit_on_every_target(target: str) -> None:
    data = Buffer("data", U32, 4, Role.INOUT)
    schedule = Schedule((data,), (shares.launch(Grid(1, 4), data, Workgroup(U32, 1 << 20)),))
    with pytest.raises(CapabilityError, match=r"asks for 4194304 bytes of workgroup memory, .* has \d+"):
        registry.target(target).run(schedule, {"data": np.zeros(4, np.uint32)})


def test_registers_have_a_limit_under_cpython() -> None:
    with pytest.raises(InvalidArgumentError, match="at most 2048 of this class in an array, found 2049"):
        Registers(U32, 2049)


DEEP = """
from gpusort.kernel.language import *

@kernel
def subject(cx: Invocation, data: Storage[U32]) -> None:
    x, y = data[cx.global_id], bitcast(I32, data[cx.global_id])
    data[cx.global_id] = {sum} + U32({negated})
    if {either}:
        data[cx.global_id] += 1
"""


def deep(terms: int) -> str:
    negated = "-(y >> x) - (" * (terms // 2) + "y" + ")" * (terms // 2)
    either = " or ".join(f"x == {k}" for k in range(2, terms))
    return DEEP.format(sum=" + ".join(["x"] * terms), negated=negated, either=either)


def test_expressions_nest_as_deep_as_in_python(target: str, tmp_path: Path) -> None:
    """The text for the CPU came to the end of Python's own parser, which reads it."""
    path = tmp_path / "deep.py"
    path.write_text(deep(300))
    data = Buffer("data", U32, 4, Role.INOUT)
    launch = load(path).subject.launch(Grid(1, 4), data)
    found = {name: np.arange(4, dtype=np.uint32) for name in (target, "python")}
    for name, values in found.items():
        registry.target(name).run(Schedule((data,), (launch,)), {"data": values})
    assert found[target].tolist() == found["python"].tolist()


def test_what_no_reader_takes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deeper.py"
    path.write_text(deep(20).replace(" + U32", " + x" * 1500 + " + U32"))
    with pytest.raises(
        KernelError, match="expected fewer calls, branches and operators inside each other than 'subject'"
    ):
        specialise(load(path).subject.launch(Grid(1, 1), Buffer("data", U32, 4, Role.INOUT)))


COMPILE_TIME_BRANCHES = """
from gpusort.kernel.language import *

def chosen(x: U32, mode: int) -> U32:
    if mode == -1:
        return x
{branches}
    return x

@kernel
def subject(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = chosen(data[cx.global_id], 77)
"""


def test_branches_at_compile_time_are_none_inside_each_other(tmp_path: Path) -> None:
    path = tmp_path / "modes.py"
    branches = "\n".join(f"    elif mode == {mode}:\n        return x + {mode}" for mode in range(100))
    path.write_text(COMPILE_TIME_BRANCHES.format(branches=branches))
    data, found = Buffer("data", U32, 4, Role.INOUT), np.arange(4, dtype=np.uint32)
    launch = load(path).subject.launch(Grid(1, 4), data)
    registry.target("simulator").run(Schedule((data,), (launch,)), {"data": found})
    assert found.tolist() == [77, 78, 79, 80]


def test_branches_nest_as_deep_as_all_drivers_take_them(tmp_path: Path) -> None:
    """Mesa's takes a wrong one from 80 on."""
    lines = [f"{'    ' * k}if data[cx.global_id] != {k}:" for k in range(1, 70)]
    head, path = DEEP.partition("    x, y")[0], tmp_path / "branches.py"
    path.write_text("\n".join([head, *lines, f"{'    ' * 70}data[0] = U32(0)\n"]))
    launch = load(path).subject.launch(Grid(1, 1), Buffer("data", U32, 4, Role.INOUT))
    with pytest.raises(KernelError, match="expected branches and loops at most 64 deep"):
        specialise(launch)
