"""What a target is: something that runs schedules, and says what it can do."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import attrs
import numpy as np
import numpy.typing as npt

from ..kernel.launch import Schedule, Step
from ..types.indices import SortOrder
from ..types.monoids import Monoid

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Elements: TypeAlias = np.ndarray[tuple[int], np.dtype[np.generic]]


class Capability(Enum):
    """What a kernel may need beyond the portable core."""

    FLOAT64 = "64-bit float arithmetic"
    SUBGROUPS = "subgroup operations"
    FORWARD_PROGRESS = "forward progress between workgroups"


@attrs.frozen
class Limits:
    """How far a target goes. A schedule is made within them; a kernel that asks for more is refused."""

    group_size: int  # invocations in a workgroup
    workgroup_bytes: int  # workgroup memory of one workgroup
    groups: int  # workgroups in a launch
    storage_bytes: int  # one storage buffer
    storage_buffers: int  # storage buffers of one kernel
    subgroup_size: int  # the smallest a kernel may meet; 1 where there are no subgroups
    most_subgroup_size: int = 64  # the largest a kernel may meet


@attrs.frozen
class TargetInfo:
    """Who runs the kernels: for `targets()`, and for the choice of a policy."""

    name: str  # "cpu", "wgsl", "cuda", "simulator", "python"
    adapter: str  # the hardware, by the name it gives itself
    driver: str  # what stands between: driver, compiler, versions
    limits: Limits
    capabilities: frozenset[Capability]
    is_software: bool = False  # an adapter that is no device, but a driver which computes on the host's processor


class Target(Protocol):
    """An adapter to one machine. Safe to use from several threads."""

    @property
    def info(self) -> TargetInfo: ...

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        """Run all launches. `arrays` holds, by buffer name, an array for each buffer that is not SCRATCH: NumPy's
        (contiguous, one-dimensional, of the element's dtype), or the target's own kind. OUTPUT and INOUT arrays hold
        the result when this returns (for arrays on a device: when the work on the current stream is done). binding.py
        checks all of that, for all targets alike.
        """
        ...

    def source(self, step: Step) -> str:
        """The text generated for a kernel, as `gpusort show` prints it."""
        ...


@runtime_checkable
class TellsTime(Protocol):
    """A target with a clock on its device."""

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, object]) -> float:
        """Runs a schedule on arrays of the host, and says how long the device was at its launches alone."""
        ...


@runtime_checkable
class ChecksMonoids(Protocol):
    """A target that looks for what other machines would leave to chance."""

    def check_monoid(
        self, monoid: Monoid[Any, Any], elements: Elements, places: Sequence[int], commutes: bool, /
    ) -> None:
        """Raises MonoidError where a monoid is none on some elements, which stand at these places of their rows."""
        ...


@runtime_checkable
class SortsRows(Protocol):
    """A target with ways of its own to sort host arrays, faster than a schedule of kernels."""

    def sort_rows(self, source: HostArray, results: HostArray, order: SortOrder, stable: bool = False) -> None:
        """Sorts each row of a packed two-dimensional array into `results`, which is `source` itself or lies apart.

        In place, an exception leaves the elements of each row there, in some order. NaN and NaT come last in both
        orders, -0.0 before 0.0 as they ascend, and every bit comes back. `stable` keeps floats that are equal, and
        NaNs, in the order they came in.
        """
        ...

    def sort_spread_rows(self, source: HostArray, results: HostArray, order: SortOrder, stable: bool = False) -> bool:
        """The same of rows with any strides, in any byte order, if they are many. Whether it is done."""
        ...

    def argsort_rows(self, source: HostArray, places: npt.NDArray[np.intp], order: SortOrder) -> None:
        """Where each row's elements come from, in order. Equal elements keep theirs, as in NumPy's stable argsort:
        -0.0 and 0.0 are equal, so are all NaNs, and NaN and NaT come last in both orders.
        """
        ...

    def argsort_runs(self, row: HostArray, order: SortOrder) -> npt.NDArray[np.intp] | None:
        """The same of one row, in a new array, if it is made of a few long runs; else None, and nothing is done."""
        ...


@runtime_checkable
class LoadsAside(Protocol):
    """A target that compiles while somebody else does the work: whoever can do without it, asks first."""

    def has_loaded(self, schedule: Schedule, nbytes: int) -> bool:
        """Whether a schedule on so many bytes should be run, now or at last. If not, it is being compiled."""
        ...


def sorts_rows(target: object) -> TypeGuard[SortsRows]:
    """Asked once of a class: a look at all methods of a protocol takes as long as sorting a thousand elements."""
    return _does_sort_rows(cast(Hashable, type(target)))  # mypy takes a class's own __hash__ for its elements'


def loads_aside(target: object) -> TypeGuard[LoadsAside]:
    return _does_load_aside(cast(Hashable, type(target)))


@cache
def _does_load_aside(kind: type) -> bool:
    return issubclass(kind, LoadsAside)


@cache
def _does_sort_rows(kind: type) -> bool:
    return issubclass(kind, SortsRows)
