"""Which launches share a program: those whose arguments are of the same kinds, and the same ones."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import product
from weakref import ref

import attrs
import numpy as np
import pytest

from gpusort.kernel import specialise as specialise_module
from gpusort.kernel.ir import Program
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.kernel.passes.overlay import packed_bytes
from gpusort.kernel.passes.walk import writers_in
from gpusort.kernel.specialise import specialise
from gpusort.targets.cpu.writer import asks
from gpusort.targets.registry import target
from gpusort.types.bounded import Bounded
from gpusort.types.errors import TargetUnavailableError
from gpusort.types.indices import SortOrder
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import F32, U32

NAMES = ("x", "y", "z")


@kernel
def three_in_one(cx: Invocation, a: Storage[U32], b: Storage[U32], c: Storage[U32], least: U32) -> None:
    c[0] = a[0] + 10 * b[0] + least


def test_buffers_that_are_one_are_one_memory_of_the_program() -> None:
    """Whichever of the arguments these are."""
    buffers = {name: Buffer(name, U32, 1, Role.INOUT) for name in NAMES}
    programs = dict[tuple[int, ...], object]()
    for names in product(NAMES, repeat=3):
        a, b, c = (buffers[name] for name in names)
        launch = three_in_one.launch(Grid(1, 1), a, b, c, U32(3))
        step = specialise(launch)
        assert [buffer.name for buffer in step.buffers.values()] == [*dict.fromkeys(names)]
        assert len(step.program.storage) == len({*names})
        pattern = tuple(names.index(name) for name in names)
        assert programs.setdefault(pattern, step.program) is step.program
        arrays = {name: np.array([at + 1], np.uint32) for at, name in enumerate(NAMES) if name in names}
        expected = arrays[names[0]][0] + 10 * arrays[names[1]][0] + 3
        target("simulator").run(Schedule(tuple(buffers[name] for name in arrays), (launch,)), arrays)
        assert arrays[names[2]] == [expected]
    assert len({*map(id, programs.values())}) == len(programs) == 5


@attrs.frozen
class Held:
    scale: F32


@kernel
def filled(cx: Invocation, data: Storage[F32], numbers: tuple[U32, ...], held: tuple[Held, int]) -> None:
    first, second = numbers
    data[cx.global_id] = F32(first + second) / held[0].scale


def test_tuples_are_compile_time_values_with_all_that_is_in_them() -> None:
    found: list[float] = []
    buffer, data = Buffer("data", F32, 1, Role.OUTPUT), np.zeros(1, np.float32)
    for first, scale in ((1, 1.0), (2, 1.0), (1, 0.0), (1, -0.0)):
        launch = filled.launch(Grid(1, 1), buffer, (U32(first), U32(2)), (Held(F32(scale)), 0))
        target("simulator").run(Schedule((buffer,), (launch,)), {"data": data})
        found.append(float(data[0]))
    assert found == [3, 4, np.inf, -np.inf]


@attrs.frozen
class Turn:
    order: SortOrder


@attrs.frozen
class Turned:
    by: U32
    turn: Turn
    order: SortOrder


@kernel
def turned(cx: Invocation, data: Storage[U32], given: Turned, beside: tuple[Turned, int]) -> None:
    data[0] = given.by + U32(given.turn.order.value) * 10 + U32(given.order.value) * 100
    data[0] = data[0] + U32(beside[0].order.value) * 1000


def test_an_enum_beside_scalars_is_a_number_at_run_time_and_one_program_takes_any_member() -> None:
    """In a struct without scalars, or in a tuple, it is a compile-time value."""
    buffer, data, programs = Buffer("data", U32, 1, Role.OUTPUT), np.zeros(1, np.uint32), dict[object, set[int]]()
    for first, second, third in product(SortOrder, repeat=3):
        given = Turned(U32(5), Turn(first), second)
        launch = turned.launch(Grid(1, 1), buffer, given, (attrs.evolve(given, order=third), 0))
        target("simulator").run(Schedule((buffer,), (launch,)), {"data": data})
        assert data == [5 + 10 * first.value + 100 * second.value + 1000 * third.value]
        programs.setdefault((first, third), set()).add(id(specialise(launch).program))
    assert [len(of_both) for of_both in programs.values()] == [1] * 4
    assert len(set[int]().union(*programs.values())) == 4


@kernel
def filled_with(cx: Invocation, data: Storage[F32], number: float) -> None:
    data[cx.global_id] = F32(number)


@pytest.mark.parametrize("of", [float, np.float64])
def test_zeros_of_both_signs_and_nan_are_compile_time_values_of_their_own(of: Callable[[float], float]) -> None:
    """To Python one zero equals the other, and NaN not itself; NumPy's float64 is a Python float too."""
    buffer = Buffer("data", F32, 1, Role.OUTPUT)
    programs = [
        specialise(filled_with.launch(Grid(1, 1), buffer, of(number))).program
        for number in (0.0, -0.0, float("nan"), float("nan"))
    ]
    assert len({*programs}) == 3
    assert programs[2] is programs[3]


@pytest.mark.parametrize("name", ["simulator", "cpu", "wgsl"])
def test_what_a_function_defines_anew_in_each_call_is_let_go_of(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what targets compiled of it."""
    try:
        runs = target(name)
    except TargetUnavailableError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(specialise_module, "_programs", Bounded[object, object](4))
    buffer, seen = Buffer("data", U32, 1, Role.INOUT), list[ref[Program]]()
    for number in range(9):

        @kernel
        def adds(cx: Invocation, data: Storage[U32], number: int) -> None:
            data[0] = data[0] + number

        launch = adds.launch(Grid(1, 1), buffer, number)
        runs.run(Schedule((buffer,), (launch,)), {"data": np.zeros(1, np.uint32)})
        seen.append(ref(specialise(launch).program))
    for of_the_last in (writers_in, packed_bytes, asks):
        of_the_last.cache_clear()
    gc.collect()
    assert [at for at, program in enumerate(seen) if program() is not None] == [8]
