"""The CUDA target: kernels compiled by Numba, loaded and launched by cupy, on arrays where they lie."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np

from ...compile_log import told
from ...forks import never_released_in_children, opened_before_fork, opens, require_own_process
from ...kernel import ir
from ...kernel.launch import Buffer, Role, Schedule, Step
from ...kernel.passes.safe import Safety
from ...machine import Capability, Limits, TargetInfo
from ...types.errors import TargetUnavailableError
from ...types.layout import Type
from ..apart import apart, import_apart
from ..base import OnStream, arrays_by_name, given_buffers
from ..binding import Work, host_arrays, is_lasting, work_of
from ..elsewhere import Remade, opened_by_name
from ..needs import require_within
from .arrays import Binding, arrays_given, common_device
from .compile import (
    INSTALL,
    ComputeCapability,
    capability_of_card,
    compile_machine_code,
    text_of,
    version_of,
)
from .errors import NOT_INITIALISED, device_errors
from .plan import Plan, Ready
from .room import CudaRoom, cuda_room, free_bytes
from .transfers import Transfers
from .writer import WARP

if TYPE_CHECKING:
    import cupy
    from cupy.cuda.function import Function

NAME = "cuda"

_MAX_DYNAMIC_BYTES = 8  # the driver's number for the attribute that allows more than 48 KB of workgroup memory
_PARAMETERS = 256  # storage buffers, each of which may bring a length: a kernel's parameters take up to 4 KB


class CudaTarget:
    """Runs schedules on NVIDIA cards, each on the one its arrays lie on, in the caller's stream."""

    def __init__(self) -> None:
        _require_card()
        never_released_in_children(self)
        self._lock = RLock()
        self._transfers = Transfers()
        self._safety = Safety(lambda group_size: WARP, trusts_own=True)
        self._functions: weakref.WeakKeyDictionary[ir.Program, dict[int, Function]] = weakref.WeakKeyDictionary()
        self._plans: dict[tuple[int, int], tuple[weakref.ref[Schedule], Plan, Work]] = {}
        self._infos: dict[int, TargetInfo] = {}

    def __reduce__(self) -> Remade:
        return opened_by_name(NAME)

    @property
    def info(self) -> TargetInfo:
        """Of the current card."""
        require_own_process(NAME)
        import cupy

        return self._info(cupy.cuda.runtime.getDevice())

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        """Launches everything on cupy's current stream; waits for it only where results go to the host."""
        self._run(work_of(schedule), arrays, lambda device: self._plan(schedule, device))

    def run_steps(self, steps: Sequence[Step], arrays: Mapping[str, object]) -> None:
        """The same for launches whose kernels are read."""
        work = Work.of_steps(steps)
        self._run(work, arrays, lambda device: self._prepared(work, device))

    def _run(self, work: Work, arrays: Mapping[str, object], plan_for: Callable[[int], Plan]) -> None:
        require_own_process(NAME)
        import cupy

        found = arrays_given(work, arrays)
        device = common_device(tuple(found.values()))
        with cupy.cuda.Device(device), device_errors():
            plan, stream = plan_for(device), cupy.cuda.get_current_stream()
            are_on_host = any(array.host is not None for array in found.values())
            try:
                binding = Binding(plan.buffers, found, stream, self._transfers)
                plan.launch(binding.addresses, stream.ptr)
                binding.hand_back()
                if are_on_host:
                    stream.synchronize()
            except BaseException:
                if are_on_host:  # the caller may let them go: no copy is to be under way any more
                    stream.synchronize()
                raise

    def free_bytes(self) -> int:
        """Of the current card's memory, as far as it can be had."""
        require_own_process(NAME)
        return free_bytes()

    def room(self, nbytes: int, /) -> AbstractContextManager[CudaRoom]:
        """For host arrays that the card cannot hold at once."""
        return cuda_room(nbytes, self._transfers)

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> CudaPrepared:
        """The schedule's plans, one a device, for callers that bring addresses."""
        return CudaPrepared(self, schedule, given_buffers(schedule))

    def plan_for(self, schedule: Schedule, device: int) -> Plan:
        """The schedule's plan for a device, which is the current one."""
        require_own_process(NAME)
        with device_errors():
            return self._plan(schedule, device)

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, object]) -> float:
        """Runs a schedule on copies of the host's arrays, and says how long the card was at its launches alone."""
        require_own_process(NAME)
        import cupy

        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        with device_errors():
            plan = self._plan(schedule, cupy.cuda.runtime.getDevice()).with_scratch()
            given = [buffer for buffer in schedule.buffers if buffer.role is not Role.SCRATCH]
            host = host_arrays(work_of(schedule), arrays)
            on_card = [cupy.asarray(host[buffer.name]) for buffer in given]
            start = [array.copy() for array in on_card]
            for _ in range(3):  # the third launches a graph; in place, each begins with what was given
                for array, before in zip(on_card, start, strict=True):
                    cupy.copyto(array, before)
                begin.record()
                plan.run([array.data.ptr for array in on_card])
                end.record()
            end.synchronize()
            for buffer, array in zip(given, on_card, strict=True):
                if buffer.role is not Role.INPUT:
                    np.copyto(host[buffer.name], array.get())
        return cupy.cuda.get_elapsed_time(begin, end) / 1e3

    def source(self, step: Step) -> str:
        """The Numba CUDA module of a kernel."""
        return text_of(self._safety.safe(step).program).source

    # -- making ready -------------------------------------------------------------------------------------

    def _plan(self, schedule: Schedule, device: int) -> Plan:
        """The schedule's plan, kept as long as the schedule lives. Schedules are told apart by identity."""
        key = (id(schedule), device)
        known, work = self._plans.get(key), work_of(schedule)
        if known is not None and known[0]() is schedule and known[2] is work:
            return known[1]
        plan = self._prepared(work, device)
        gone = weakref.ref(schedule, lambda _: self._plans.pop(key, None))
        self._plans[key] = (gone, plan, work)
        return plan

    def _prepared(self, work: Work, device: int) -> Plan:
        """Everything checked and compiled before anything is launched."""
        steps = [self._safety.safe(step) for step in work.steps]
        buffers = tuple(sorted(work.buffers, key=lambda buffer: buffer.role is Role.SCRATCH))
        places = {buffer.name: place for place, buffer in enumerate(buffers)}
        info = self._info(device)
        for step in steps:
            nbytes = text_of(step.program).workgroup_bytes
            require_within(step, info.limits, info.capabilities, "target 'cuda'", nbytes)
        # cupy would make a launch of no workgroups one of a single group
        return Plan(buffers, tuple(self._ready(step, places, device) for step in steps if step.groups))

    def _ready(self, step: Step, places: Mapping[str, int], device: int) -> Ready:
        program, text = step.program, text_of(step.program)
        lengths = {m: b.nbytes // m.type.size for m, b in zip(program.storage, step.buffers, strict=True)}
        values = [np.uint32(lengths[memory]) for memory in text.lengths]
        parameters = zip(program.parameters, step.values, strict=True)
        return Ready(
            self._function(program, device),
            step.groups,
            program.group_size,
            tuple(places[buffer.name] for buffer in step.buffers),
            (*values, *(_scalar(p.type, value) for p, value in parameters)),
            text.dynamic_bytes,
        )

    def _function(self, program: ir.Program, device: int) -> Function:
        """The kernel, compiled and loaded onto the current card."""
        import cupy

        with self._lock:
            loaded = self._functions.setdefault(program, {})
            if device not in loaded:
                with told("cuda", f"kernel {program.name!r}"):
                    compiled = compile_machine_code(program, _capability_of(device))
                module = cupy.cuda.function.Module()
                module.load(compiled.code)
                function = module.get_function(compiled.entry)
                if compiled.text.dynamic_bytes:
                    cupy.cuda.driver.funcSetAttribute(function.ptr, _MAX_DYNAMIC_BYTES, compiled.text.dynamic_bytes)
                loaded[device] = function
            return loaded[device]

    # -- who runs the kernels -----------------------------------------------------------------------------

    def _info(self, device: int) -> TargetInfo:
        info = self._infos.get(device)
        if info is None:
            info = self._infos[device] = _describe(device)
        return info


@attrs.frozen(eq=False)
class CudaPrepared:
    """A schedule that runs on arrays where they lie: on cupy's current stream or a caller's, without waiting."""

    target: CudaTarget
    schedule: Schedule
    buffers: tuple[Buffer[object], ...]

    def run(self, memories: Sequence[object], /) -> None:
        """Addresses or cupy's arrays on the current device; or NumPy's arrays, all of them, which travel."""
        if memories and isinstance(memories[0], np.ndarray):
            self.target.run(self.schedule, arrays_by_name(self.buffers, memories))
            return
        with device_errors():
            self.plan().run([memory if isinstance(memory, int) else _address_of(memory) for memory in memories])

    def on_stream(self) -> OnStream:
        """With scratch of the caller's."""
        plan = self.plan()
        return plan if is_lasting(self.schedule) else _LookedAt(self, plan.num_given, plan.scratch_bytes)

    def plan(self) -> Plan:
        """For the current device."""
        import cupy

        return self.target.plan_for(self.schedule, cupy.cuda.runtime.getDevice())


@attrs.frozen(eq=False)
class _LookedAt:
    """Kernels that took from outside what may change: each run looks whether it has."""

    prepared: CudaPrepared
    num_given: int
    scratch_bytes: int
    own_bytes: int = 0

    def run_at(self, given: Sequence[int], scratch: int, stream: int, /) -> None:
        self.prepared.plan().run_at(given, scratch, stream)

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        return None


def _address_of(memory: object) -> int:
    return cast("cupy.ndarray", memory).data.ptr


def _scalar(type: Type, value: int | float | bool) -> np.generic:
    """A parameter in its exact type: cupy hands over as many bytes as it has."""
    return cast("np.generic", np.asarray(value, type.dtype)[()])


def _make_temporary_files_ready() -> None:
    """What cupy compiles goes through one. At the first, Python takes a lock that an interrupt would leak."""
    with tempfile.TemporaryDirectory():
        pass


def _require_card() -> None:
    """One clear sentence where something is missing."""
    require_own_process(NAME)
    try:
        import_apart("cupy")
        apart(_make_temporary_files_ready)
        import cupy
    except ImportError as error:
        raise TargetUnavailableError(f"target 'cuda': cupy is not installed or does not load: {INSTALL}") from error
    if version_of("numba-cuda") is None:
        raise TargetUnavailableError(f"target 'cuda': numba-cuda is not installed: {INSTALL}")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status == NOT_INITIALISED:
            raise opened_before_fork(NAME) from error
        raise TargetUnavailableError(f"target 'cuda': no NVIDIA card with a driver for CUDA 13 ({error})") from error
    if count == 0:
        raise TargetUnavailableError("target 'cuda': no NVIDIA card was found")
    opens(NAME)


def _describe(device: int) -> TargetInfo:
    import cupy

    card, runtime = cupy.cuda.Device(device), cupy.cuda.runtime
    properties, attributes = runtime.getDeviceProperties(device), card.attributes
    name = properties["name"]
    major, minor = _capability_of(device)
    compilers = f"cupy {cupy.__version__}, numba-cuda {version_of('numba-cuda')}"
    return TargetInfo(
        name="cuda",
        adapter=name.decode() if isinstance(name, bytes) else str(name),
        driver=(
            f"CUDA driver {_dotted(runtime.driverGetVersion())}, "
            f"runtime {_dotted(runtime.runtimeGetVersion())}, "
            f"compute capability {major}.{minor}, {compilers}"
        ),
        limits=Limits(
            group_size=attributes["MaxThreadsPerBlock"],
            workgroup_bytes=attributes["MaxSharedMemoryPerBlockOptin"],
            groups=attributes["MaxGridDimX"],
            storage_bytes=card.mem_info[1],
            storage_buffers=_PARAMETERS,
            subgroup_size=WARP,
            most_subgroup_size=WARP,
        ),
        capabilities=frozenset({Capability.FLOAT64, Capability.SUBGROUPS, Capability.FORWARD_PROGRESS}),
    )


def _capability_of(device: int) -> ComputeCapability:
    capability = capability_of_card(device)
    if capability is None:
        raise TargetUnavailableError(f"target 'cuda': device {device} does not answer")
    return capability


def _dotted(version: int) -> str:
    """13020 is 13.2."""
    return f"{version // 1000}.{version % 1000 // 10}"
