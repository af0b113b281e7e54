"""What every test may ask for: a target of each kind that is here."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from gpusort.machine import Capability
from gpusort.targets import registry
from gpusort.targets.cpu.background import background
from tests.chromium import Browser
from tests.covering import ALWAYS_WHOLE, MARK, TARGET, InTurn, chosen_of
from tests.opened import or_skip

if TYPE_CHECKING:
    from gpusort.targets.cuda.target import CudaTarget

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes most of a card from the other tests
# Mesa's software adapter compiles each shader at once, which it is asked to do without its own optimisations: a fifth
# of a test's time on the target "wgsl" was theirs. GALLIVM_PERF= asks for them again.
os.environ.setdefault("GALLIVM_PERF", "nopt")


# A machine that is busy with other things takes seconds to draw what it draws in milliseconds, which is no mistake.
settings.register_profile("gpusort", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gpusort")


@pytest.fixture(scope="session", params=registry.NAMES)
def target(request: pytest.FixtureRequest) -> str:
    """The name of a target. Where it cannot run, the test is skipped with its own words."""
    name = str(request.param)
    or_skip(registry.target, name)
    return name


@pytest.fixture(scope="module")
def real_card() -> CudaTarget:
    """A target of its own for a card that is here."""
    from gpusort.targets.cuda.target import CudaTarget

    return or_skip(CudaTarget)


@pytest.fixture(params=["portable", "sweeps"])
def sweeps(request: pytest.FixtureRequest, target: str) -> bool:
    """Which form of a radix sort. In the simulator all workgroups of few tiles advance together, which is progress
    enough for a single sweep."""
    if target == "python":
        pytest.skip("plain Python takes minutes for these")
    sweeping = bool(request.param == "sweeps")
    promised = Capability.FORWARD_PROGRESS in registry.target(target).info.capabilities or target == "simulator"
    if sweeping and not promised:
        pytest.skip(f"{target} does not promise forward progress between workgroups")
    return sweeping


@pytest.fixture
def in_turn(request: pytest.FixtureRequest) -> InTurn:
    """What loops over several values go by: a few of their combinations, or all of them."""
    on_card = TARGET in request.fixturenames and request.getfixturevalue(TARGET) == ALWAYS_WHOLE
    return InTurn(on_card or bool(request.config.getoption("--whole")))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of pages."""
    started = Browser()
    yield started
    started.close()


@pytest.fixture(scope="module", autouse=True)
def young_garbage() -> None:
    """Collections look at what a module's tests make, and not at all that the process holds, which takes a second."""
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell has what it starts in its background: no test of Ctrl-C would see one, nor would the processes that
        # tests start, which are to be interrupted too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(20_000, 20, 50)  # a twentieth of a test's time was spent on looking for what may go
    background.in_caller = True  # what a test finds must not depend on what came before it
    config.addinivalue_line("markers", MARK)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files of generated text anew")
    parser.addoption(
        "--whole", action="store_true", help="run all cases of tests that are marked `covering`, or go by `in_turn`"
    )


@pytest.hookimpl(tryfirst=True)  # of all that are there, whatever -k then takes
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--whole"):
        items[:], left_out = chosen_of(items)
        config.hook.pytest_deselected(items=left_out)
