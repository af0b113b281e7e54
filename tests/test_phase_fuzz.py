"""Random kernels whose invocations work together, on every target as in the simulator: bit for bit."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.machine import Capability
from gpusort.targets import registry
from gpusort.targets.base import Target
from gpusort.targets.python.target import PlainPython
from gpusort.targets.simulator.target import Simulator
from gpusort.types.memory import Workgroup
from gpusort.types.scalars import F32, I64, U8, U16, U32, U64, Bool
from tests.covering import few_cases
from tests.expressions import load
from tests.phase_programs import PhaseWriter

_Arrays = dict[str, npt.NDArray[Any]]


def results_of(targets: list[Target], seed: int, lanes: int, folder: Path) -> tuple[list[_Arrays], str]:
    """What each target makes of one random kernel, launched with random data; and its text."""
    random, rng = Random(seed), np.random.default_rng(seed)
    text = PhaseWriter(random, lanes).module()
    module = load(text, folder)
    size, groups = lanes * random.randrange(1, 4), random.randrange(1, 3)
    buffers = (
        Buffer("bytes_", U8, size, Role.INPUT), Buffer("words", U64, size, Role.INPUT),
        Buffer("out", U32, size * groups, Role.OUTPUT), Buffer("cells_out", module.Cell, size * groups, Role.OUTPUT),
        Buffer("tinies", U8, size * groups, Role.INOUT), Buffer("halves", U16, size * groups, Role.INOUT),
        Buffer("flags", Bool, size * groups, Role.INOUT),
    )  # fmt: skip
    given: _Arrays = {
        "bytes_": rng.integers(0, 256, size, np.uint8), "words": rng.integers(0, 1 << 63, size, np.uint64),
        "out": np.zeros(size * groups, np.uint32), "cells_out": np.zeros(size * groups, buffers[3].dtype),
        "tinies": rng.integers(0, 256, size * groups, np.uint8),
        "halves": rng.integers(0, 1 << 16, size * groups, np.uint16), "flags": rng.random(size * groups) < 0.5,
    }  # fmt: skip
    mode, flag = random.choice([*module.Mode]), Bool(random.random() < 0.5)
    params = module.Params(U32(random.randrange(100)), mode, F32(0.5), flag)
    shared = (
        Workgroup(U32, size), Workgroup(module.Cell, size), Workgroup(U32, 4), Workgroup(Bool, size),
        Workgroup(U16, size), Workgroup(F32, size), Workgroup(I64, size),
    )  # fmt: skip
    launch = module.subject.launch(Grid(groups, size), *buffers, params, *shared)
    found: list[_Arrays] = []
    for target in targets:
        arrays = {name: array.copy() for name, array in given.items()}
        target.run(Schedule(buffers, (launch,)), arrays)
        found.append(arrays)
    return found, text


def require_same(found: list[_Arrays], text: str) -> None:
    """Of floats all NaNs are one: which of them an operation gives is not defined."""
    expected, *others = found
    for arrays in others:
        for name in ("out", "tinies", "halves", "flags"):
            np.testing.assert_array_equal(arrays[name], expected[name], err_msg=f"{name} of {text}")
        for field in expected["cells_out"].dtype.names or ():
            one, other = expected["cells_out"][field], arrays["cells_out"][field]
            np.testing.assert_array_equal(other, one, err_msg=f"{field} of {text}")


@few_cases(can=lambda case: int(str(case["seed"])) < 2)
@pytest.mark.parametrize("seed", range(60))
def test_every_target_agrees_with_the_simulator(seed: int, target: str, tmp_path: Path) -> None:
    device = registry.target(target)
    if Capability.SUBGROUPS not in device.info.capabilities:
        pytest.skip(f"{target} has no subgroups here")
    lanes = device.info.limits.subgroup_size
    require_same(*results_of([Simulator(lanes), device], seed, lanes, tmp_path))


def test_the_interpreter_agrees_with_subgroups_of_any_size(tmp_path: Path) -> None:
    for seed, lanes in enumerate((4, 16, 32)):
        require_same(*results_of([PlainPython(lanes), Simulator(lanes)], seed, lanes, tmp_path))
