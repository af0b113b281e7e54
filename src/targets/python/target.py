"""The target "python": calls the kernel's own Python function for each invocation. Slow, but it defines what a kernel
means, and can be debugged. Kernels that never synchronise run in a plain loop in the caller's thread."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, cast

import numpy as np

from ...forks import require_running
from ...kernel.launch import Buffer, Launch, Role, Schedule, is_buffer
from ...kernel.span import KernelError, ResultError
from ...kernel.specialise import specialise
from ...types.elements import dtype_of
from ...types.errors import BarrierDivergenceError, InvalidArgumentError, OutOfBoundsError
from ...types.invocation import Invocation, InvocationIds, Synchronise
from ...types.memory import Storage, Workgroup
from ...types.ops import SubgroupOp
from ...types.real_threads import SimpleQueue
from ...types.scalars import U32, U64
from ..binding import work_of
from ..interpreters import Bytes, Interpreter, bytes_behind, divergence, source_lane, starts_written
from ..needs import require_limits, require_needs
from ..refusals import refused_line
from .threads import InvocationThread, Wait, may_wait, run_group, stop


class PlainPython(Interpreter):
    """Runs kernels in CPython, with subgroups of `subgroup_size` lanes. Thread-safe."""

    def __init__(self, subgroup_size: int = 8) -> None:
        driver = f"{platform.python_implementation()} {platform.python_version()}"
        super().__init__("python", "the interpreter", driver, subgroup_size)

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        work = work_of(schedule, read_all=False)
        for launch in schedule.launches:
            self._require_within_limits(launch)
            _require_declared(launch)
        memory = bytes_behind(work, arrays)
        storage = {buffer.name: _storage(buffer, memory[buffer.name]) for buffer in work.buffers}
        for launch in schedule.launches:
            self._run_launch(launch, storage)

    def _require_within_limits(self, launch: Launch) -> None:
        info, kernel = self.info, f"kernel {launch.kernel.function.__name__!r}"
        require_needs(kernel, launch.needs, info.limits, info.capabilities, f"target {info.name!r}")
        shared = [argument.items.nbytes for argument in launch.arguments if isinstance(argument, Workgroup)]
        require_limits(
            kernel, info.limits, f"target {info.name!r}", group_size=launch.grid.group_size, groups=launch.grid.groups,
            workgroup_bytes=max(shared, default=0),  # no sum: the compiler alone knows which would share a place
        )  # fmt: skip

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
        size, caller = launch.grid.group_size, SimpleQueue[None]()
        if size > 1 and may_wait(launch.kernel.function):
            require_running("python")
            for local in range(size):
                threads.append(InvocationThread(local, caller))
                threads[-1].start()
        for group in range(launch.grid.groups):
            arguments = [_argument(argument, storage) for argument in launch.arguments]
            if threads:
                for thread in threads:
                    thread.body = self._invocation(launch, group, thread.local, arguments, thread.wait)
                run_group(threads, caller, partial(resolve, group=group, subgroup_size=self._subgroup_size))
            else:
                for local in range(size):
                    self._invocation(launch, group, local, arguments, self._synchronise_alone)()

    def _synchronise_alone(self, what: str, operands: tuple[object, ...]) -> object:
        """Synchronises a workgroup of one invocation: without waiting."""
        if what == "barrier":
            return None
        return subgroup_result(what, [operands], 0, self._subgroup_size)

    def _invocation(
        self, launch: Launch, group: int, local: int, arguments: list[object], synchronise: Synchronise
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


def _require_declared(launch: Launch) -> None:
    """Raises ResultError if a method of a caller's key, monoid or finish gives another class than the object declares:
    Python itself would go on with what it gives, to a line of ours or to a wrong result."""
    if any(map(_is_callers, launch.arguments)):
        try:
            specialise(launch)
        except ResultError:
            raise
        except KernelError:  # of what runs as Python alone, such as a `print`
            pass


def _is_callers(argument: object) -> bool:
    """Whether it is an object of a caller's class, or has one."""
    home = type(argument).__module__.partition(".")[0]
    if home not in ("builtins", __name__.partition(".")[0]):
        return True
    return any(_is_callers(getattr(argument, field.name)) for field in getattr(type(argument), "__attrs_attrs__", ()))


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


Operands: TypeAlias = tuple[object, ...]


def resolve(threads: Sequence[InvocationThread], group: int, subgroup_size: int) -> dict[int, object]:
    """When all threads wait or have ended: the local ids to resume, with results. Subgroup operations come first, then
    the barrier. Raises BarrierDivergenceError."""
    results: dict[int, object] = {}
    for start in range(0, len(threads), subgroup_size):
        subgroup = threads[start : start + subgroup_size]
        at_subgroup_operation = [m for m in subgroup if m.waits is not None and not m.waits.is_barrier]
        if at_subgroup_operation:
            what = _together(at_subgroup_operation[0], subgroup, group)
            given = [thread.waits.operands for thread in subgroup if thread.waits is not None]
            for lane, thread in enumerate(subgroup):
                results[thread.local] = subgroup_result(what.what, given, lane, subgroup_size)
    if results:
        return results
    at_barrier = [thread for thread in threads if thread.waits is not None]
    if at_barrier:
        _together(at_barrier[0], threads, group)
    return {thread.local: None for thread in at_barrier}


def subgroup_result(what: str, given: Sequence[Operands], lane: int, size: int) -> object:
    """A subgroup operation's result for one lane, from the operands of all existing lanes."""
    mine = given[lane]
    match what:
        case "ballot":
            return U64(sum(1 << i for i, (vote,) in enumerate(given) if vote))
        case "match":
            return U64(sum(1 << i for i, (value,) in enumerate(given) if value == mine[0]))
        case "subgroup_add":
            return sum((cast(U32, value) for (value,) in given), U32(0))
        case "exclusive_add":
            return sum((cast(U32, value) for (value,) in given[:lane]), U32(0))
        case _:
            asked, count = np.array(int(cast(U32, mine[1]))), np.array(len(given))
            source = int(source_lane(SubgroupOp(what), np.array(lane), asked, size, count))
            if source >= len(given):
                raise OutOfBoundsError(f"{what} reads lane {source} of a subgroup of {len(given)}")
            return given[source][0]


def _together(first: InvocationThread, threads: Sequence[InvocationThread], group: int) -> Wait:
    """What the first waits for. Raises BarrierDivergenceError unless all wait for that operation on that line."""
    wait = first.waits
    assert wait is not None
    arrive = [
        m.local for m in threads if m.waits is not None and (m.waits.what, m.waits.span) == (wait.what, wait.span)
    ]
    if len(arrive) == len(threads):
        return wait
    lack = [thread for thread in threads if thread.local not in arrive]
    elsewhere = lack[0].waits
    left = None if elsewhere is None else (f"local {lack[0].local} waits at", elsewhere.span)
    what = "the barrier" if wait.is_barrier else f"the subgroup operation '{wait.what}'"
    message = divergence(wait.span, what, arrive, [thread.local for thread in lack], group, left)
    raise BarrierDivergenceError(message)
