"""The CPU target: kernels compiled by Numba, workgroups shared out over threads."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

import attrs

from ...algos.choice import choose_host_sort
from ...algos.host_sort import HostSort, HostSortPolicy
from ...algos.rules import SortRule
from ...algos.table import HOST_RULE
from ...kernel import ir
from ...kernel.launch import Schedule, Step
from ...kernel.passes.safe import Safety
from ...machine import Capability, Limits, TargetInfo
from ...operations.base import Operation
from ...types.errors import CapabilityError
from ...types.specs import Spec
from ..base import Native, given_buffers
from ..binding import Work, host_arrays, work_of
from ..needs import require_needs
from .background import background
from .binding import Binding
from .host.fast_paths import fast_path
from .host.tuning import tuned_policy
from .lanes import subgroup_size
from .module import Kernel, load_kernel
from .pool import thread_count
from .prepared import CpuPrepared, Ready
from .text import module_text

_LARGEST_U32 = (1 << 32) - 1
_LIMITS = Limits(
    group_size=1024,
    workgroup_bytes=1 << 20,
    groups=_LARGEST_U32,
    storage_bytes=8 * _LARGEST_U32,  # indices are U32
    storage_buffers=64,
    subgroup_size=subgroup_size(1024),
    most_subgroup_size=subgroup_size(1024),
)
_CAPABILITIES = frozenset({Capability.FLOAT64, Capability.SUBGROUPS, Capability.HOST_SORT})
_REGISTER_BYTES = 4 << 20  # they lie on a thread's stack, as workgroup memory does


class CpuTarget:
    """Runs schedules on this machine's processor. Safe under Python threads and in forked children."""

    def __init__(self, policy: HostSortPolicy | None = None) -> None:
        self._kernels: dict[ir.Program, Kernel] = {}
        self._safety = Safety(subgroup_size, asks=True)
        self.policy = choose_host_sort(self.info).policy if policy is None else policy

    def with_policy(self, policy: HostSortPolicy, /) -> CpuTarget:
        return CpuTarget(policy)

    @property
    def info(self) -> TargetInfo:
        threads = thread_count()
        compiler = f"numba {_version('numba')}, llvmlite {_version('llvmlite')}"
        driver = f"{compiler}, {threads} thread{'s' if threads > 1 else ''}"
        return TargetInfo("cpu", _processor(), driver, _LIMITS, _CAPABILITIES)

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        """Runs all launches on NumPy arrays, in place."""
        self._run(work_of(schedule), arrays)

    def run_steps(self, steps: Sequence[Step], arrays: Mapping[str, object]) -> None:
        """Runs launches whose kernels are read."""
        self._run(Work.of_steps(steps), arrays)

    def _run(self, work: Work, arrays: Mapping[str, object]) -> None:
        """All is checked and compiled before anything is written."""
        safe = self._safe(work)
        binding = Binding.of(safe, host_arrays(safe, arrays))
        for ready, step in zip(self._compiled(safe), safe.steps, strict=True):
            ready.run([binding.arrays[buffer.name] for buffer in step.buffers])
        binding.hand_back()

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> CpuPrepared:
        """For packed arrays that nobody has to look at any more."""
        return CpuPrepared(self, schedule, given_buffers(schedule))

    def ready(self, work: Work) -> tuple[Ready, ...]:
        """All launches, checked and compiled."""
        return self._compiled(self._safe(work))

    def native(self, operation: Operation, given: Sequence[Spec], /) -> Native | None:
        """The host library's fast path, which runs no kernel; None where it has none."""
        return fast_path(operation, given, self.policy)

    def tune(self, largest: int, tell: Callable[[str], object], /) -> Sequence[SortRule]:
        """Measures from which sizes on the host library's own ways pay, and goes by that."""
        with background.off():
            self.policy = tuned_policy(largest, tell)
        return (attrs.evolve(HOST_RULE, algorithm=HostSort(self.policy)),)

    def read_tuning(self) -> None:
        """Goes by what is kept."""
        self.policy = choose_host_sort(self.info).policy

    def source(self, step: Step) -> str:
        """The Numba module of a kernel."""
        return module_text(self._safety.safe(step).program)

    def _safe(self, work: Work) -> Work:
        for step in work.steps:
            _check_limits(step)
        return attrs.evolve(work, steps=tuple(self._safety.safe(step) for step in work.steps))

    def _compiled(self, safe: Work) -> tuple[Ready, ...]:
        return tuple(Ready.of(self._kernel(step.program), step) for step in safe.steps)

    def _kernel(self, program: ir.Program) -> Kernel:
        kernel = self._kernels.get(program)
        if kernel is None:
            kernel = self._kernels[program] = load_kernel(program.name, module_text(program))
        return kernel


def _check_limits(step: Step) -> None:
    """Refuses what this target does not go as far as, naming the kernel and the limit."""
    program = step.program
    kernel = f"{program.span}: kernel {program.name!r}"
    require_needs(kernel, program.needs, _LIMITS, _CAPABILITIES, "target 'cpu'")
    shared = [m for m in program.memories if m.space is ir.Space.WORKGROUP]
    registers = program.group_size * sum(
        m.type.size * (m.length or 0) for m in program.memories if m.space is ir.Space.REGISTERS
    )
    for what, asked, most in (
        ("invocations in a workgroup", program.group_size, _LIMITS.group_size),
        (
            "bytes of workgroup memory",
            sum(m.type.size * (m.length or 0) for m in shared),
            _LIMITS.workgroup_bytes,
        ),
        ("bytes of registers in a workgroup", registers, _REGISTER_BYTES),
        ("workgroups", step.groups, _LIMITS.groups),
        ("storage buffers", len(step.buffers), _LIMITS.storage_buffers),
        (
            "bytes in a storage buffer",
            max((b.nbytes for b in step.buffers), default=0),
            _LIMITS.storage_bytes,
        ),
        ("elements in a storage buffer", max((b.count for b in step.buffers), default=0), _LARGEST_U32),
    ):
        if asked > most:
            raise CapabilityError(f"{kernel} asks for {asked} {what}, target 'cpu' has {most}")


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(not installed)"


@lru_cache(maxsize=1)
def _processor() -> str:
    """The processor's name for itself."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
