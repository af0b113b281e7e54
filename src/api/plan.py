"""Plans: what a warm call runs, made once for all arrays of equal signatures, wherever in memory they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import attrs

from ..arrays.kinds import Device, Kind
from ..operations.base import Operation, Output
from ..types.errors import InvalidArgumentError
from ..types.specs import HostArray, Spec

if TYPE_CHECKING:
    from ..kernel.launch import Schedule

Arrays: TypeAlias = Sequence[Any]


@attrs.frozen
class Cost:
    """What a call costs the device; None for what a fast path on the host decides at run time."""

    launches: int
    temporary_bytes: int | None
    bytes_moved: int | None  # by launches, if each reads or writes all that it is handed


def cost_of(schedules: Sequence[Schedule], temporary_bytes: int | None = None) -> Cost:
    """The cost of schedules that run in order. Temporary bytes are the most that any of them takes, unless given."""
    from ..kernel.launch import Role, is_buffer

    launches = [launch for schedule in schedules for launch in schedule.launches]
    moved = sum(argument.nbytes for launch in launches for argument in launch.arguments if is_buffer(argument))
    if temporary_bytes is None:
        scratch = [sum(b.nbytes for b in schedule.buffers if b.role is Role.SCRATCH) for schedule in schedules]
        temporary_bytes = max(scratch, default=0)
    return Cost(len(launches), temporary_bytes, moved)


class Plan(ABC):
    """A call made ready. Thread-safe, unless it keeps its scratch."""

    operation: Operation
    run: Callable[..., object]  # allocates and returns the outputs: one array, or a tuple of several
    # `into` for one short array without any checks before it; see WritesShort in targets/base.py
    into_short: Callable[[Any, Any], bool] | None = None

    @abstractmethod
    def into(self, arrays: Arrays, outs: Arrays) -> None:
        """Writes the outputs to given arrays, which may be inputs or overlap with them."""

    @abstractmethod
    def new_outputs(self, arrays: Arrays) -> list[Any]:
        """Uninitialised arrays for the outputs."""

    def make_ready(self, arrays: Arrays) -> None:
        """Compiles kernels and allocates what the plan keeps."""
        return

    def cost(self) -> Cost:
        return Cost(0, None, None)


# -- what all plans share ---------------------------------------------------------------------------------


def specs_of(kind: Kind, operation: Operation, arrays: Arrays) -> tuple[Spec, ...]:
    return tuple(kind.spec(name, array) for name, array in zip(operation.names, arrays, strict=True))


def require_fitting(kind: Kind, outs: Arrays, outputs: tuple[Output, ...]) -> None:
    """Raises InvalidArgumentError for an `out` of another shape or dtype, or one that cannot be written."""
    for out, output in zip(outs, outputs, strict=True):
        spec = kind.spec("out", out)
        if spec.shape != output.shape or spec.dtype != output.dtype:
            raise InvalidArgumentError(
                f"out: expected shape {output.shape} and dtype {output.dtype}, found shape {spec.shape} and dtype "
                f"{spec.dtype}"
            )
        require_writable(kind, "out", out, spec)


def require_writable(kind: Kind, name: str, array: Any, spec: Spec) -> None:
    if kind.is_read_only(array):
        raise InvalidArgumentError(f"{name}: expected an array that can be written, found a read-only one")
    if spec.may_share_elements:
        raise InvalidArgumentError(
            f"{name}: expected an array each of whose elements has a place of its own, found shape {spec.shape} with "
            f"strides {spec.strides}; copy it first"
        )


def require_same_device(device: Device[Any], names: Sequence[str], arrays: Arrays) -> None:
    """Raises InvalidArgumentError for an array on another device than the first."""
    where = device.device(arrays[0])
    for name, array in zip(names, arrays, strict=True):
        found = device.device(array)
        if found != where:
            here, there = (
                f"CUDA device {place}" if isinstance(place, int) else "another device" for place in (where, found)
            )
            raise InvalidArgumentError(f"{name}: expected an array on {here}, as {names[0]} is, found one on {there}")


def as_tuple(found: object) -> tuple[Any, ...]:
    return found if _are_several(found) else (found,)


def _are_several(found: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(found, tuple)


def one_or_all(outs: Sequence[Any]) -> object:
    return outs[0] if len(outs) == 1 else tuple(outs)


def results_of(arrays: Sequence[HostArray], outputs: Sequence[Output]) -> object:
    """What a call gives back: a scalar in place of a 0-d array, where NumPy's function returns one."""
    found = zip(arrays, outputs, strict=True)
    return one_or_all([x[()] if output.is_scalar and output.shape == () else x for x, output in found])
