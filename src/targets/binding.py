"""What a caller binds to a schedule, checked in one place for all targets before anything runs or is written.

What depends on the schedule alone is looked at once for each: the names of its buffers, and that no kernel writes to a
buffer of Role.INPUT. What depends on the arrays is looked at in every run: dtype, length, whether they can be written,
and that no memory is handed in twice if a kernel may write to it. A target of one's own begins with `work_of` and
`host_arrays`, as those here do.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias, TypeGuard, cast

import attrs
import numpy as np
import numpy.typing as npt

from ..kernel import ir
from ..kernel.captures import Captures
from ..kernel.launch import Buffer, Role, Schedule, Step, require_alike
from ..kernel.passes.walk import writers_in
from ..kernel.specialise import captures_of, specialise
from ..types.errors import GpusortError, InvalidArgumentError

HostArray: TypeAlias = np.ndarray[tuple[int], np.dtype[np.generic]]


@attrs.frozen
class Work:
    """Launches whose kernels are read, and the buffers they may use: both fit."""

    buffers: tuple[Buffer[Any], ...]
    steps: tuple[Step, ...]

    @classmethod
    def of_steps(cls, steps: Sequence[Step]) -> Work:
        """Of launches that are read already; their buffers are all there are."""
        named: dict[str, Buffer[Any]] = {}
        for step in steps:
            for buffer in step.buffers:
                require_alike(buffer, named.setdefault(buffer.name, buffer))
            _require_inputs_unwritten(step)
        return cls(tuple(named.values()), tuple(steps))


_known: dict[tuple[int, bool], tuple[weakref.ref[Schedule], Work, tuple[Captures, ...]]] = {}


def work_of(schedule: Schedule, *, read_all: bool = True) -> Work:
    """A schedule's kernels, read and checked: once, as long as the schedule lives and what they took from outside is
    as it was. Told apart by identity.

    Without `read_all`, kernels that cannot be read are left out: for a target that runs them as they stand.
    """
    key = (id(schedule), read_all)
    known = _known.get(key)
    if known is not None and known[0]() is schedule and all(captures.hold() for captures in known[2]):
        return known[1]
    steps: list[Step] = []
    for launch in schedule.launches:
        try:
            steps.append(specialise(launch))
        except (TypeError, ValueError, LookupError, AttributeError) as error:  # a KernelError, or something stranger
            if read_all or isinstance(error, GpusortError):
                raise
    named = {buffer.name: buffer for buffer in schedule.buffers}
    for step in steps:
        for buffer in step.buffers:
            require_declared(buffer.name, named, step.program.name)
        _require_inputs_unwritten(step)
    work = Work(schedule.buffers, tuple(steps))
    forget = _known.pop  # held here: when the interpreter ends, a module's names go first
    _known[key] = (weakref.ref(schedule, lambda _: forget(key, None)), work, captures_of(steps))
    return work


def is_lasting(schedule: Schedule) -> bool:
    """Whether its kernels took nothing from outside that can change: once read, they stay as they are."""
    work_of(schedule)
    return not _known[id(schedule), True][2]


def require_declared(name: str, named: Mapping[str, object], kernel: str) -> None:
    """Refuses a launch with a buffer that its schedule does not name."""
    if name not in named:
        raise InvalidArgumentError(
            f"Schedule: kernel {kernel!r} is launched with buffer {name!r}, which is not among the schedule's buffers"
        )


def _require_inputs_unwritten(step: Step) -> None:
    """Refuses a kernel that writes to what its schedule only hands in, by the line that does."""
    writers = _writers(step.program)
    for buffer, memory in zip(step.buffers, step.program.storage, strict=True):
        write = writers.get(memory)
        if write is not None and buffer.role is Role.INPUT:
            raise InvalidArgumentError(
                f"{write.span}: kernel {step.program.name!r} writes to {memory.name!r}, to which the INPUT buffer "
                f"{buffer.name!r} is bound; make it {Role.INOUT}\n    {write.span.text}"
            )


@lru_cache(maxsize=512)
def _writers(program: ir.Program) -> Mapping[ir.Memory, ir.Store | ir.Atomic]:
    return writers_in(program.body)


# -- arrays -----------------------------------------------------------------------------------------------


@attrs.frozen
class Seen:
    """An array that was handed in, as far as the checks go."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    is_contiguous: bool
    is_writable: bool
    address: int


def host_arrays(work: Work, arrays: Mapping[str, object]) -> dict[str, HostArray]:
    """The NumPy array for every buffer, but for scratch that the caller leaves to the target."""
    checked = named_arrays(work.buffers, arrays)
    check_arrays([(buffer, seen_on_host(buffer, array)) for buffer, array in checked])
    return {buffer.name: cast(HostArray, array) for buffer, array in checked}


def named_arrays(buffers: Sequence[Buffer[Any]], arrays: Mapping[str, object]) -> list[tuple[Buffer[Any], object]]:
    """Buffers with what was handed in for them: for each one something, but for SCRATCH, and for no other name."""
    found: list[tuple[Buffer[Any], object]] = []
    _require_mapping(arrays)
    for buffer in buffers:
        if buffer.name in arrays:
            found.append((buffer, arrays[buffer.name]))
        elif buffer.role is not Role.SCRATCH:
            raise InvalidArgumentError(f"{wanted(buffer)}, found nothing")
    if len(found) != len(arrays):
        known = {buffer.name for buffer in buffers}
        extra = next(name for name in arrays if name not in known)
        names = ", ".join(repr(buffer.name) for buffer in buffers) or "none"
        raise InvalidArgumentError(f"arrays[{extra!r}]: the schedule has no such buffer; it has {names}")
    return found


def _require_mapping(arrays: object) -> None:
    if not isinstance(arrays, Mapping):
        raise InvalidArgumentError(f"arrays: expected a dict of arrays by buffer name, found {type(arrays).__name__}")


def wanted(buffer: Buffer[Any]) -> str:
    """What a buffer's array should be, as messages begin."""
    return f"arrays[{buffer.name!r}]: expected a contiguous array of {buffer.count} x {buffer.dtype}"


def seen_on_host(buffer: Buffer[Any], array: object, kinds: str = "a NumPy array") -> Seen:
    """A NumPy array as the checks see it; an error where it is none."""
    if not _is_plain(array):
        what = "nothing" if array is None else type(array).__name__
        raise InvalidArgumentError(f"{wanted(buffer)}, {kinds}, found {what}")
    flags = array.flags
    address: int = array.__array_interface__["data"][0]
    return Seen(array.dtype, array.shape, flags.c_contiguous, flags.writeable, address)


def _is_plain(array: object) -> TypeGuard[npt.NDArray[np.generic]]:
    """Whether this is NumPy's array, and all of it: a mask would be lost."""
    return isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)


def check_arrays(found: Sequence[tuple[Buffer[Any], Seen]]) -> None:
    """Refuses arrays that do not fit their buffers, or share memory that a kernel may write to."""
    for buffer, seen in found:
        if seen.dtype != buffer.dtype or seen.shape != (buffer.count,):
            what = f"{seen.shape[0]} x" if len(seen.shape) == 1 else f"shape {seen.shape} of"
            raise InvalidArgumentError(f"{wanted(buffer)}, found {what} {seen.dtype}{_hint(buffer, seen)}")
        if not seen.is_contiguous:
            raise InvalidArgumentError(f"{wanted(buffer)}, found one that is not contiguous")
        if buffer.role is not Role.INPUT and not seen.is_writable:
            raise InvalidArgumentError(f"{wanted(buffer)} that can be written, found a read-only one")
    if len(found) > 1:
        _require_apart(found)


def _hint(buffer: Buffer[Any], seen: Seen) -> str:
    """How bits of another dtype are handed in on purpose."""
    if seen.dtype.itemsize != buffer.dtype.itemsize or seen.dtype.newbyteorder("=") == buffer.dtype:
        return ""
    return f"; for its bits, array.view({str(buffer.dtype)!r})" if buffer.dtype.names is None else ""


def _require_apart(found: Sequence[tuple[Buffer[Any], Seen]]) -> None:
    """Refuses memory that is handed in twice, unless all only read it."""
    places = [(seen.address, buffer.nbytes, buffer.name, buffer.role) for buffer, seen in found if buffer.nbytes]
    places.sort(key=itemgetter(0))
    reach, last = 0, ""  # how far what has begun extends: all of it, and what is written of it
    written, writer = 0, ""
    for address, nbytes, name, role in places:
        other = last if role is not Role.INPUT and address < reach else writer if address < written else ""
        if other:
            raise InvalidArgumentError(
                f"arrays: {other!r} and {name!r} share memory, which a kernel may write to; hand in a copy of one"
            )
        if address + nbytes > reach:
            reach, last = address + nbytes, name
        if role is not Role.INPUT and address + nbytes > written:
            written, writer = address + nbytes, name
