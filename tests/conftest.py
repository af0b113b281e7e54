"""What every test may ask for: a target of each kind that is here."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from gpusort.machine import Capability
from gpusort.targets import registry
from gpusort.targets.cpu.background import background
from gpusort.targets.simulator.checks import Checks
from gpusort.types import libraries, real_threads
from tests.chromium import Browser
from tests.covering import ALWAYS_WHOLE, MARK, TARGET, WHOLE, InTurn, cases_of
from tests.opened import or_skip

if TYPE_CHECKING:
    from gpusort.targets.cuda.target import CudaTarget

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes most of a card from the other tests
# Mesa's software adapter compiles each shader at once, which it is asked to do without its own optimisations: a fifth
# of a test's time on the target "wgsl" was theirs. GALLIVM_PERF= asks for them again.
os.environ.setdefault("GALLIVM_PERF", "nopt")

# The files that take longest, longest first: begun first, so that no process is left alone with one at the end. Each
# file is one process's (--dist loadfile), which then starts its browser, or compiles its kernels, once.
_LONGEST = (
    "pyodide", "files_killed", "files_parted", "files_tables", "installs", "export_node", "cpu_sorting", "docs",
    "cli", "forks", "dask_cluster", "in_pieces_card", "shipped", "arrays_without_a_card", "dask", "packaging", "select",
    "files_mapped", "wgsl_commands", "examples", "ptx", "background", "files", "translations", "webgpu",
    "export_native", "endless", "pieces", "benchmarks", "vulkan_example", "files_struck", "type_errors",
    "wgsl_defaults", "web_page", "works_in_pieces", "web_package", "in_pieces_calls", "multi", "ties",
)  # fmt: skip
_ORDER = {f"test_{name}": number for number, name in enumerate(_LONGEST)}


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


@pytest.fixture
def known_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what brings kernels their arrays, on stand-ins for devices that have the simulator. Kernels' own
    tests look for races in them, which is half of what the simulator does; here that is left out but for --whole. What
    lies outside of memory, or was never written, is looked for in any case."""
    if not request.config.getoption("--whole"):
        monkeypatch.setattr(Checks, "race_free", _nothing)


def _nothing(*_: object) -> None:
    pass


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system gives no more threads."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(real_threads, "start", refuse)


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


@pytest.fixture(autouse=True)
def cupy_is_found_anew() -> Iterator[None]:
    """What a test puts in its place is not used by the next, nor by what is made once for several: that is made before
    this."""
    vars(libraries.cupy).clear()
    yield
    vars(libraries.cupy).clear()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell has what it starts in its background: no test of Ctrl-C would see one, nor would the processes that
        # tests start, which are to be interrupted too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--update-golden") and "PYTEST_XDIST_WORKER" in os.environ:
        raise pytest.UsageError("--update-golden: several processes would write to one file; leave out -n")
    if config.getoption("--whole"):
        os.environ[WHOLE] = "1"  # of the processes that tests start, too
    _keep_memory()
    gc.set_threshold(100_000, 20, 50)  # a twentieth of a test's time was spent on looking for what may go
    background.in_caller = True  # what a test finds must not depend on what came before it
    config.addinivalue_line("markers", MARK)


def pytest_unconfigure() -> None:
    """At its end pytest looks five times at all that the process holds. Once will do, for what the last tests left."""
    gc.collect()
    gc.freeze()


def _keep_memory() -> None:
    """Has glibc keep the memory of large arrays for the next ones: given back at once, it comes again page by page,
    each with a fault and zeros, which was half of what the system's calls took."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        trim, top_pad, mmap = -1, -2, -3  # as malloc.h names what is set
        for name, value in ((trim, 1 << 30), (top_pad, 16 << 20), (mmap, 32 << 20)):
            libc.mallopt(name, value)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files of generated text anew")
    parser.addoption(
        "--whole", action="store_true", help="run all cases of tests that are marked `covering`, or go by `in_turn`"
    )


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    yield  # all parameters are there
    if not metafunc.config.getoption("--whole"):
        cases_of(metafunc)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    yield  # pytest has put those of a target together
    items.sort(key=lambda item: _ORDER.get(item.path.stem, len(_ORDER)))
