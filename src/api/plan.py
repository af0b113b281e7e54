"""The plan of a call: all that does not depend on where arrays of one kind lie, made once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import attrs

from ..arrays.kinds import Kind
from ..operations.base import HostArray, Operation, Output
from ..types.errors import InvalidArgumentError
from ..types.specs import Spec

if TYPE_CHECKING:
    from ..kernel.launch import Schedule

Arrays: TypeAlias = Sequence[Any]


@attrs.frozen
class Cost:
    """What a call asks of the device. None where the host's own way decides as it goes."""

    launches: int
    temporary_bytes: int | None
    bytes_moved: int | None  # by launches, if each reads or writes all that it is handed


def cost_of(schedules: Sequence[Schedule], temporary_bytes: int | None = None) -> Cost:
    """Of schedules that run one after another: each with scratch of its own, unless it is told how much there is."""
    from ..kernel.launch import Role, is_buffer

    launches = [launch for schedule in schedules for launch in schedule.launches]
    moved = sum(argument.nbytes for launch in launches for argument in launch.arguments if is_buffer(argument))
    if temporary_bytes is None:
        scratch = [sum(b.nbytes for b in schedule.buffers if b.role is Role.SCRATCH) for schedule in schedules]
        temporary_bytes = max(scratch, default=0)
    return Cost(len(launches), temporary_bytes, moved)


class Plan(ABC):
    """What a warm call runs. Safe to use from several threads."""

    operation: Operation

    @property
    def function(self) -> Callable[..., object]:
        """What `__call__` is, with as little around it as can be: to be kept for warm calls."""
        return self.__call__

    @abstractmethod
    def __call__(self, x: Any, /, *others: Any) -> object:
        """New outputs: one array, or a tuple of several."""

    @abstractmethod
    def into(self, arrays: Arrays, outs: Arrays) -> object:
        """The same into arrays that are there; those may be inputs, or share memory with them."""

    @property
    def into_short(self) -> Callable[[Any, Any], bool] | None:
        """For one short array: `into` without a look at anything else; see targets/base.py."""
        return None

    @abstractmethod
    def new_outputs(self, arrays: Arrays) -> list[Any]:
        """Arrays for results of such arrays, which hold anything."""

    def reserved(self, specs: tuple[Spec, ...]) -> Plan:
        """The same for arrays of these specs alone, with scratch of its own; not for several threads at once."""
        return self

    def make_ready(self, arrays: Arrays) -> None:
        """Compiles, and allocates what is kept, for such arrays."""
        return

    def cost(self, specs: tuple[Spec, ...]) -> Cost:
        return Cost(0, None, None)


# -- what all plans share ---------------------------------------------------------------------------------


def specs_of(kind: Kind, operation: Operation, arrays: Arrays) -> tuple[Spec, ...]:
    return tuple(kind.spec(name, array) for name, array in zip(operation.names, arrays, strict=True))


def one_or_all(outs: list[Any]) -> object:
    return outs[0] if len(outs) == 1 else tuple(outs)


def require_fitting(kind: Kind, outs: Arrays, outputs: tuple[Output, ...]) -> None:
    """Refuses arrays that results cannot be written to."""
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


def as_tuple(found: object) -> tuple[Any, ...]:
    return found if _are_several(found) else (found,)


def _are_several(found: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(found, tuple)


def answers(operation: Operation, specs: tuple[Spec, ...]) -> tuple[HostArray, ...]:
    """What the shapes alone tell."""
    found = operation.answer(*specs)
    assert found is not None, "of arrays without elements"
    return found


def scalar_of(array: HostArray, output: Output) -> object:
    """As NumPy gives it: one value of a reduction is no array."""
    return array[()] if output.is_scalar and output.shape == () else array
