"""Binding of arrays to a schedule's buffers, with the checks that all targets share, before anything runs. Checks of
the schedule (buffer names, no writes to INPUT buffers) are memoised; checks of arrays are done in every run: dtype,
length, writability, and no aliasing with a buffer that a kernel may write. A target starts with `work_of` and
`host_arrays`."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypeGuard, cast

import attrs
import numpy as np
import numpy.typing as npt

from ..kernel.captures import Captures
from ..kernel.launch import Buffer, Role, Schedule, Step
from ..kernel.passes.walk import writers_in
from ..kernel.specialise import captures_of, specialise
from ..types.errors import GpusortError, InvalidArgumentError, UnsupportedTypeError
from .addresses import address_of
from .base import Elements


@attrs.frozen(eq=False)
class Work:
    """A checked schedule: its buffers, and launches whose kernels have been read."""

    buffers: tuple[Buffer[Any], ...]
    steps: tuple[Step, ...]


_known: dict[tuple[int, bool], tuple[weakref.ref[Schedule], Work, tuple[Captures, ...]]] = {}


def work_of(schedule: Schedule, *, read_all: bool = True) -> Work:
    """Reads and checks a schedule's kernels. Cached by identity as long as the schedule lives, and the Python state
    that kernels captured is unchanged. Without `read_all`, kernels that cannot be read are left out, for the target
    that calls the Python functions."""
    key = (id(schedule), read_all)
    known = _known.get(key)
    if known is not None and known[0]() is schedule and all(captures.hold() for captures in known[2]):
        return known[1]
    if not isinstance(cast(object, schedule), Schedule):
        raise UnsupportedTypeError(
            f"schedule: expected a Schedule, e.g. `Schedule(buffers, (launch,))`, found a {type(schedule).__name__}"
        )
    steps: list[Step] = []
    for launch in schedule.launches:
        try:
            steps.append(specialise(launch))
        except (TypeError, ValueError, LookupError, AttributeError) as error:  # KernelError, or from a user's object
            if read_all or isinstance(error, GpusortError):
                raise
    named = {buffer.name for buffer in schedule.buffers}
    for step in steps:
        for buffer in step.buffers.values():
            if buffer.name not in named:
                raise InvalidArgumentError(
                    f"Schedule: kernel {step.program.name!r} is launched with buffer {buffer.name!r}, which is not "
                    "among the schedule's buffers"
                )
        _require_inputs_unwritten(step)
    work = Work(schedule.buffers, tuple(steps))
    forget = _known.pop  # bound now: at interpreter shutdown the module's globals are cleared first
    _known[key] = (weakref.ref(schedule, lambda _: forget(key, None)), work, captures_of(steps))
    return work


def is_lasting(schedule: Schedule) -> bool:
    """Whether its kernels captured no mutable Python state, so that they need not be checked again."""
    work_of(schedule)
    return not _known[id(schedule), True][2]


def _require_inputs_unwritten(step: Step) -> None:
    """Raises InvalidArgumentError for a kernel that writes to an INPUT buffer, naming the line."""
    writers = writers_in(step.program)
    for memory, buffer in step.buffers.items():
        write = writers.get(memory)
        if write is not None and buffer.role is Role.INPUT:
            raise InvalidArgumentError(
                f"{write.span}: kernel {step.program.name!r} writes to {memory.name!r}, to which the INPUT buffer "
                f"{buffer.name!r} is bound; make it {Role.INOUT}\n    {write.span.text}"
            )


@attrs.frozen
class ArrayProperties:
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    is_contiguous: bool
    is_writable: bool
    address: int


def host_arrays(work: Work, arrays: Mapping[str, object]) -> dict[str, Elements]:
    """Checks NumPy arrays and returns them by buffer name; without scratch that the caller leaves to the target."""
    checked = named_arrays(work.buffers, arrays)
    check_arrays([(buffer, host_properties(buffer, array)) for buffer, array in checked])
    return {buffer.name: cast(Elements, array) for buffer, array in checked}


def named_arrays(buffers: Sequence[Buffer[Any]], arrays: Mapping[str, object]) -> list[tuple[Buffer[Any], object]]:
    """Pairs buffers with the arrays of their names. Raises InvalidArgumentError for missing arrays (except SCRATCH) and
    unknown names."""
    found: list[tuple[Buffer[Any], object]] = []
    if not isinstance(cast(object, arrays), Mapping):
        what = type(arrays).__name__
        raise InvalidArgumentError(f"arrays: expected a dict of arrays by buffer name, found {what}")
    for buffer in buffers:
        if buffer.name in arrays:
            found.append((buffer, arrays[buffer.name]))
        elif buffer.role is not Role.SCRATCH:
            raise InvalidArgumentError(f"{expected(buffer)}, found nothing")
    if len(found) != len(arrays):
        known = {buffer.name for buffer in buffers}
        extra = next(name for name in arrays if name not in known)
        names = ", ".join(repr(buffer.name) for buffer in buffers) or "none"
        raise InvalidArgumentError(f"arrays[{extra!r}]: the schedule has no such buffer; it has {names}")
    return found


def expected(buffer: Buffer[Any]) -> str:
    """The beginning of an error message: what a buffer's array should be."""
    return f"arrays[{buffer.name!r}]: expected a contiguous array of {buffer.count} x {buffer.dtype}"


def host_properties(buffer: Buffer[Any], array: object, kinds: str = "a NumPy array") -> ArrayProperties:
    """The properties of a NumPy array. Raises InvalidArgumentError for other objects."""
    if not _is_plain(array):
        what = "nothing" if array is None else type(array).__name__
        raise InvalidArgumentError(f"{expected(buffer)}, {kinds}, found {what}")
    flags = array.flags
    return ArrayProperties(array.dtype, array.shape, flags.c_contiguous, flags.writeable, address_of(array))


def _is_plain(array: object) -> TypeGuard[npt.NDArray[np.generic]]:
    """Whether this is a NumPy array, but not a masked one, whose mask would be ignored."""
    return isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)


def check_arrays(found: Sequence[tuple[Buffer[Any], ArrayProperties]]) -> None:
    """Raises InvalidArgumentError for arrays that do not fit their buffers, or that alias a buffer which is written."""
    for buffer, seen in found:
        if seen.dtype != buffer.dtype or seen.shape != (buffer.count,):
            what = f"{seen.shape[0]} x" if len(seen.shape) == 1 else f"shape {seen.shape} of"
            raise InvalidArgumentError(f"{expected(buffer)}, found {what} {seen.dtype}{_hint(buffer, seen)}")
        if not seen.is_contiguous:
            raise InvalidArgumentError(f"{expected(buffer)}, found one that is not contiguous")
        if buffer.role is not Role.INPUT and not seen.is_writable:
            raise InvalidArgumentError(f"{expected(buffer)} that can be written, found a read-only one")
    _require_apart(found)


def _hint(buffer: Buffer[Any], seen: ArrayProperties) -> str:
    """The end of an error message: how to pass the bits of another dtype of the same size."""
    if seen.dtype.itemsize != buffer.dtype.itemsize or seen.dtype.newbyteorder("=") == buffer.dtype:
        return ""
    return f"; for its bits, array.view({str(buffer.dtype)!r})" if buffer.dtype.names is None else ""


def _require_apart(found: Sequence[tuple[Buffer[Any], ArrayProperties]]) -> None:
    """Raises InvalidArgumentError if two arrays overlap, unless both are only read."""
    ranges = [(buffer, seen.address, seen.address + buffer.nbytes) for buffer, seen in found if buffer.nbytes]
    for (one, first, end), (other, start, last) in combinations(ranges, 2):
        if first < last and start < end and not one.role is other.role is Role.INPUT:
            raise InvalidArgumentError(
                f"arrays: {one.name!r} and {other.name!r} share memory, which a kernel may write to; hand in a copy of "
                "one"
            )
