"""Random kernels, as CPython runs them and as the simulator runs what the reader has made of them: bit for bit."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusort.kernel.kernel import Kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.kernel.specialise import specialise
from gpusort.targets import registry
from gpusort.targets.cuda.compile import compile_uncached
from gpusort.types.errors import TargetUnavailableError
from gpusort.types.scalars import U32
from tests.covering import examples, few_cases
from tests.expressions import load
from tests.reader_programs import RESULT_COUNT, Writer

SubjectKernel = Kernel[Buffer[U32], Buffer[U32], U32]
DATA = (3, (1 << 31) + 5, 0, 77)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


def kernel_of(text: str, folder: Path) -> SubjectKernel:
    subject: SubjectKernel = load(text, folder).subject
    return subject


def run(subject: SubjectKernel, target: str, number: int) -> npt.NDArray[np.uint32]:
    count = len(DATA) * RESULT_COUNT
    data, out = Buffer("data", U32, len(DATA), Role.INPUT), Buffer("out", U32, count, Role.INOUT)
    schedule = Schedule((data, out), (subject.launch(Grid(1, len(DATA)), data, out, U32(number)),))
    found = np.zeros(count, np.uint32)
    registry.target(target).run(schedule, {"data": np.array(DATA, np.uint32), "out": found})
    return found


def one_nan(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """With one word for every NaN: which of them an operation gives is not defined."""
    return np.where((words & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000), np.uint32(0x7FC00000), words)


def require_agreement(random: Random, number: int, folder: Path, target: str) -> None:
    text = Writer(random).module()
    subject = kernel_of(text, folder)
    expected, found = run(subject, "python", number), run(subject, target, number)
    np.testing.assert_array_equal(one_nan(found), one_nan(expected), err_msg=text)


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(random=st.randoms(use_true_random=False), number=st.integers(0, (1 << 32) - 1))
def test_the_simulator_runs_what_cpython_runs(random: Random, number: int, folder: Path) -> None:
    require_agreement(random, number, folder, "simulator")


@few_cases(can=lambda case: int(str(case["seed"])) < 40)
@pytest.mark.parametrize("seed", range(100))
def test_larger_kernels_on_the_simulator(seed: int, folder: Path) -> None:
    require_agreement(Random(seed), seed * 2654435761 % (1 << 32), folder, "simulator")


@pytest.mark.parametrize("compiled", ["cpu", "wgsl"])
@pytest.mark.parametrize("seed", range(4))
def test_compiled(seed: int, compiled: str, folder: Path) -> None:
    try:
        registry.target(compiled)
    except TargetUnavailableError as error:
        pytest.skip(str(error))
    require_agreement(Random(seed), seed * 2654435761 % (1 << 32), folder, compiled)


@pytest.mark.parametrize("seed", range(4, 7))
def test_nvvm_takes_them(seed: int, folder: Path) -> None:
    pytest.importorskip("cuda.bindings")
    subject = kernel_of(Writer(Random(seed)).module(), folder)
    data, out = Buffer("data", U32, len(DATA), Role.INPUT), Buffer("out", U32, len(DATA) * RESULT_COUNT, Role.INOUT)
    program = specialise(subject.launch(Grid(1, len(DATA)), data, out, U32(3))).program
    assert ".visible .entry gpusort_subject" in compile_uncached(program, (9, 0))
