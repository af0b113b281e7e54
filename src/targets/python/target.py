"""The target "python": calls the kernel's own Python function for each invocation. Slow, but it defines what a kernel
means, and can be debugged. Kernels that never synchronise run in a plain loop in the caller's thread."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, cast

import numpy as np

from ...forks import require_running
from ...kernel.launch import Buffer, Launch, Role, Schedule, is_buffer
from ...kernel.span import KernelError
from ...types.elements import dtype_of
from ...types.errors import InvalidArgumentError
from ...types.invocation import Invocation, InvocationIds
from ...types.memory import Storage, Workgroup
from ...types.scalars import U32
from ..binding import work_of
from ..interpreters import Bytes, Interpreter, bytes_behind, starts_written
from ..needs import require_at_most, require_needs
from ..refusals import refused_line
from ..registry import Reduced, reduce_to_settings
from .synchronise import resolve, subgroup_result
from .threads import InvocationThread, may_wait, run_group, stop

_Synchronise: TypeAlias = Callable[[str, tuple[object, ...]], object]


class PlainPython(Interpreter):
    """Runs kernels in CPython, with subgroups of `subgroup_size` lanes. Thread-safe."""

    def __init__(self, subgroup_size: int = 8) -> None:
        driver = f"{platform.python_implementation()} {platform.python_version()}"
        super().__init__("python", "the interpreter", driver, subgroup_size)

    def __reduce__(self) -> Reduced:
        return reduce_to_settings(self, self._subgroup_size)

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        work = work_of(schedule, read_all=False)
        for launch in schedule.launches:
            self._require_within_limits(launch)
        memory = bytes_behind(work, arrays)
        storage = {buffer.name: _storage(buffer, memory[buffer.name]) for buffer in work.buffers}
        for launch in schedule.launches:
            self._run_launch(launch, storage)

    def _require_within_limits(self, launch: Launch) -> None:
        size, kernel = launch.grid.group_size, f"kernel {launch.kernel.function.__name__!r}"
        require_needs(kernel, launch.needs, self.info.limits, self.info.capabilities, "target 'python'")
        shared = [argument.items.nbytes for argument in launch.arguments if isinstance(argument, Workgroup)]
        for what, asked, most in (
            ("invocations in a workgroup", size, self.info.limits.group_size),
            # No sum: the compiler alone knows which of them would share a place.
            ("bytes of workgroup memory", max(shared, default=0), self.info.limits.workgroup_bytes),
            ("workgroups", launch.grid.groups, self.info.limits.groups),
        ):
            require_at_most(kernel, what, asked, most, "target 'python'")

    def _run_launch(self, launch: Launch, storage: Mapping[str, Storage[object]]) -> None:
        threads: list[InvocationThread] = []
        try:
            try:
                self._run_groups(launch, storage, threads)
            finally:
                stop(threads)
        finally:
            stop(threads)  # again, in case an interrupt came before the first call began

    def _run_groups(
        self, launch: Launch, storage: Mapping[str, Storage[object]], threads: list[InvocationThread]
    ) -> None:
        """Runs all workgroups. Threads that are started are added to `threads`, for the caller to stop."""
        size = launch.grid.group_size
        if size > 1 and may_wait(launch.kernel.function):
            require_running("python")
            for local in range(size):
                threads.append(InvocationThread(local))
                threads[-1].start()
        for group in range(launch.grid.groups):
            arguments = [_argument(argument, storage) for argument in launch.arguments]
            if threads:
                for thread in threads:
                    thread.begin(self._invocation(launch, group, thread.local, arguments, thread.wait))
                run_group(threads, partial(resolve, group=group, subgroup_size=self._subgroup_size))
            else:
                for local in range(size):
                    self._invocation(launch, group, local, arguments, self._synchronise_alone)()

    def _synchronise_alone(self, what: str, operands: tuple[object, ...]) -> object:
        """Synchronises a workgroup of one invocation: without waiting."""
        if what == "barrier":
            return None
        return subgroup_result(what, [operands], 0, self._subgroup_size)

    def _invocation(
        self, launch: Launch, group: int, local: int, arguments: list[object], synchronise: _Synchronise
    ) -> Callable[[], None]:
        ids = InvocationIds(group, local, launch.grid.groups, launch.grid.group_size, self._subgroup_size)
        cx = Invocation(ids, synchronise)

        def invoke() -> None:
            try:
                launch.kernel.function(cx, *arguments)
            except Exception as error:
                if (line := refused_line(error)) is not None:
                    raise KernelError(line, str(error)) from error
                error.add_note(f"in invocation {ids} of kernel {launch.kernel.function.__name__!r}")
                raise

        return invoke


class _Input(Storage[object]):
    """A read-only buffer, for kernels that could not be analysed before they run."""

    __slots__ = ("name",)
    name: str

    def __setitem__(self, index: U32 | int, value: object) -> None:
        raise InvalidArgumentError(f"the kernel writes to the INPUT buffer {self.name!r}; make it {Role.INOUT}")


def _storage(buffer: Buffer[object], memory: Bytes) -> Storage[object]:
    """A buffer's array as Storage that raises on writes to an INPUT, and on uninitialised reads."""
    items = memory.view(dtype_of(buffer.element))
    if buffer.role is Role.INPUT:
        given = _Input(buffer.element, items)
        given.name = buffer.name
        return given
    storage: Storage[object] = Storage(buffer.element, items)
    if not starts_written(buffer):
        storage.written = np.zeros(len(items), np.bool_)
    return storage


def _argument(argument: object, storage: Mapping[str, Storage[object]]) -> object:
    """An argument for one workgroup: a buffer's Storage, new workgroup memory, or the value."""
    if is_buffer(argument):
        return storage.get(argument.name, argument)  # a buffer that the schedule does not name is never accessed
    if isinstance(argument, Workgroup):
        template = cast("Workgroup[object]", argument)
        return Workgroup(template.element, len(template.items))
    return argument
