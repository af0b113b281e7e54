"""A forked child works as its parent does, or says why it cannot: it never hangs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from gpusort import forks
from gpusort.arrays.cuda import CUPY
from gpusort.kernel.launch import Schedule
from gpusort.targets import registry
from gpusort.targets.cuda.plan import Plan
from gpusort.targets.cuda.target import CudaTarget
from gpusort.types.errors import TargetUnavailableError
from tests.new_process import IN_A_CHILD, printed
from tests.opened import or_skip

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")

_START = (
    IN_A_CHILD
    + """
import sys
import threading
import numpy as np
import gpusort
from gpusort import forks
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.types.errors import TargetUnavailableError
from gpusort.types.monoids import Maximum
x = np.random.default_rng(1).integers(0, 1 << 32, 1 << 20, dtype=np.uint32)
ordered, places = np.sort(x), np.argsort(x, kind="stable")

def works():
    from gpusort.targets.cpu.background import background
    assert (gpusort.sort(x) == ordered).all()
    background.in_caller = True
    assert (gpusort.argsort(x) == places).all()
    assert (gpusort.any(x.reshape(1024, -1), axis=1)).all()

def refused(call):
    try:
        call()
    except TargetUnavailableError as error:
        assert "before this process was forked" in str(error) and "spawn" in str(error), error
        return
    raise AssertionError("not refused")
"""
)

# -- the CPU target -----------------------------------------------------------------------------------------

_WHILE_COMPILING = """
compiling = threading.Event()
from gpusort.targets.cpu.compiler import loading
from gpusort.targets.cpu.compiler.machine import Machine
code, kept = Machine.code, loading.read_sealed
Machine.code = lambda *given: compiling.set() or code(*given)
loading.read_sealed = lambda *given: None  # what is called here is compiled, though an earlier test has kept it
def call(dtype):
    {call}
def works_too():
    compiling.clear()
    call("f8")
    assert compiling.is_set()
    loading.read_sealed = kept
    works()
thread = threading.Thread(target=call, args=("f4",))
thread.start()
assert compiling.wait(100)
print(child(works_too))
thread.join()
works_too()
"""

_WHILE_IMPORTING = """
importing = threading.Event()
class Slowly:
    def find_spec(self, name, path=None, target=None):
        if name == "{slowly}":
            importing.set()
            time.sleep(0.3)  # so that the fork comes in its midst
sys.meta_path.insert(0, Slowly())
def load():
    gpusort.sort(x)
    {imports}
thread = threading.Thread(target=load)
thread.start()
assert importing.wait(100)
print(child(works))
thread.join()
works()
"""


@pytest.mark.parametrize(
    "call",
    [
        "gpusort.reduce(np.ones((9, 999), dtype), Maximum(gpusort.key_for(dtype)), axis=1)",
        "gpusort.sum(np.ones(1 << 20, dtype))",
    ],
)
def test_a_child_works_that_was_forked_while_another_thread_compiled(call: str) -> None:
    """A kernel, or one of the host's own loops."""
    code = _WHILE_COMPILING.format(call=call)
    assert printed(_START + code, sorts=True, GPUSORT_THREADS="2") == "0"


@pytest.mark.parametrize(
    ("module", "imports"),
    [
        ("gpusort.api.sorting", "pass"),
        ("numba.core.types", "import numba"),
        ("colorsys", "import colorsys"),  # which nothing else imports on any Python
        ("numpy.ma", "np.ma"),  # which NumPy imports as it is asked for
    ],
)
def test_a_child_works_that_was_forked_while_another_thread_imported(module: str, imports: str) -> None:
    code = _START + _WHILE_IMPORTING.format(slowly=module, imports=imports)
    assert printed(code, sorts=not module.startswith("gpusort."), GPUSORT_THREADS="2") == "0"


def test_a_child_works_that_was_forked_while_loops_were_loaded() -> None:
    code = """
gpusort.sort(x), gpusort.sort(x)
from gpusort.targets.cpu.background import background
def goes_on():
    assert (gpusort.sort(x) == ordered).all()  # and loads anew what the parent's thread was loading
    assert background.wait(180) and not background.failures
    works()
print(child(goes_on), background.wait(200), background.failures)
"""
    assert printed(_START + code, sorts=True, GPUSORT_THREADS="2") == "0 True []"


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_child_says_so_where_waiting_was_in_vain(threads: str) -> None:
    """Sorts, which NumPy can, are sorted however often; that they are slower is said once. With one thread the caller
    would load compiled loops, and else a thread, which the child waits for before it ends."""
    code = """
forks.PATIENCE = 0.2
held, over = threading.Event(), threading.Event()
def compile_for_ever():
    with forks.compiling():
        held.set()
        over.wait()
thread = threading.Thread(target=compile_for_ever)
thread.start()
held.wait()
def refuses():
    import logging
    from gpusort.targets.cpu.background import background
    told = []
    logging.getLogger("gpusort").addFilter(lambda record: told.append(record.getMessage()))  # and is not printed
    for _ in range(3):
        assert (gpusort.sort(x) == ordered).all() and (gpusort.argsort(x) == places).all()
        assert background.wait(100)
    assert told == ["target 'cpu': compiled loops cannot be loaded, NumPy does without them"], told
    try:
        gpusort.reduce(np.ones((9, 999), np.float32), Maximum(gpusort.key_for("f4")), axis=1)
    except TargetUnavailableError as error:
        assert "forked while another thread was compiling" in str(error)
        return 7
print(child(refuses))
over.set()
thread.join()
works()
"""
    assert printed(_START + code, GPUSORT_THREADS=threads) == "7"


def test_pools_of_forked_processes_work_on_every_target_of_the_host() -> None:
    code = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
def sorted_by(target):
    few = x[:{"cpu": None, "python": 20, "simulator": 300}[target]]  # in plain Python a thread for each
    return bool((gpusort.sort(few, target=target) == np.sort(few)).all())
targets = ["cpu", "python", "simulator"]
few = [sorted_by(target) for target in targets]
context = multiprocessing.get_context("fork")
with context.Pool(2) as pool:
    print(pool.map(sorted_by, targets))
with ProcessPoolExecutor(2, mp_context=context) as pool:
    print(list(pool.map(sorted_by, targets)))
"""
    assert printed(_START + code, sorts=True, GPUSORT_THREADS="2").splitlines() == ["[True, True, True]"] * 2


def test_several_threads_may_fork_at_once() -> None:
    code = """
ends = []
threads = [threading.Thread(target=lambda: ends.append(child(works))) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(ends)
works()
"""
    assert printed(_START + code, sorts=True, GPUSORT_THREADS="2") == "[0, 0, 0, 0]"


# -- devices ------------------------------------------------------------------------------------------------

_DEVICE = """
import gc
target = gpusort.target({name!r})
gpusort.sort(x[:999], target=target)
from gpusort.algos.sorts import Bitonic
from gpusort.types.indices import Placement, SortOrder
from gpusort.types.dtypes import key_for
schedule = Bitonic().schedule(key_for(x.dtype), 1, 256, SortOrder.ASCENDING, Placement.IN_PLACE)
arrays = {{"data": x[:256].copy()}}
target.run(schedule, arrays)
def refuses():
    refused(lambda: target.info)
    refused(lambda: gpusort.sort(x[:999], target=target))
    refused(lambda: gpusort.sum(x, target={name!r}))
    refused(lambda: target.run(schedule, arrays))
    refused(lambda: target.device_seconds(schedule, arrays))
    assert [state.reason for state in gpusort.targets() if state.name == {name!r}]
    works()
    return 5
print(child(refuses), flush=True)
def collects():
    global target
    from gpusort.targets import registry
    target = None
    registry._opened.clear()
    gc.collect()
    print("written", end="", flush=False)
    sys.exit(6)
number = os.fork()
if number == 0:
    collects()  # and ends as a process does
end = time.monotonic() + 100
while time.monotonic() < end:
    done, status = os.waitpid(number, os.WNOHANG)
    if done:
        print("", os.waitstatus_to_exitcode(status))
        break
    time.sleep(0.01)
else:
    print("hangs")
    os.kill(number, 9)
gpusort.sort(x[:999], target=target)
"""


@pytest.mark.parametrize("name", ["wgsl", "cuda"])
def test_a_device_that_the_parent_opened_is_refused_and_left_alone(name: str) -> None:
    or_skip(registry.target, name)
    assert printed(_START + _DEVICE.format(name=name), sorts=True).splitlines() == ["5", "written 6"]


@pytest.mark.parametrize("name", ["wgsl", "cuda"])
def test_a_device_that_the_parent_did_not_open_is_free_for_the_child(name: str) -> None:
    or_skip(registry.target, name)
    code = f"print(child(lambda: 0 if (gpusort.sort(x[:999], target={name!r}) == np.sort(x[:999])).all() else 1))"
    assert printed(_START + code, sorts=True) == "0"


class _Plain:
    """What is asked of cupy's arrays, here without cupy."""


_Plain.__module__ = "cupy"


def _card() -> CudaTarget:
    """One that was never opened."""
    return CudaTarget.__new__(CudaTarget)


_NOTHING = Schedule((), ())
_NO_STREAM: Any = None
_CUDA_WAYS: dict[str, Callable[[], object]] = {
    "info": lambda: _card().info,
    "run": lambda: _card().run(_NOTHING, {}),
    "prepared": lambda: _card().plan_for(_NOTHING, 0),
    "device_seconds": lambda: _card().device_seconds(_NOTHING, {}),
    "a plan's run": lambda: Plan((), ()).run(()),
    "a plan's launch": lambda: Plan((), ()).launch((), _NO_STREAM),
    "arrays": lambda: CUPY.signature(cast(Any, _Plain())),
    "opening": CudaTarget,
}


@pytest.mark.parametrize("way", _CUDA_WAYS)
def test_every_way_to_a_card_is_closed_in_a_child(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(forks), "_opened_before_fork", {"cuda"})
    monkeypatch.setitem(sys.modules, "cupy", cast(ModuleType, SimpleNamespace(ndarray=_Plain)))
    with pytest.raises(TargetUnavailableError, match=r"target 'cuda' was opened before this process was forked.*spawn"):
        _CUDA_WAYS[way]()
