"""Plans: what a warm call runs, made once for all arrays of equal signatures: a fast path of the target on host arrays,
where it has one, or else schedules of kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs
import numpy as np

from ..arrays.host import HOST
from ..arrays.kinds import Device, Kind, Located
from ..operations.base import Operation, Output
from ..targets.addresses import address_of
from ..targets.base import HasRoom, HostTarget, Native, Target
from ..targets.registry import target as target_of
from ..types.bounded import Bounded
from ..types.errors import InvalidArgumentError
from ..types.specs import HostArray, Spec, order_of_axes, strides_in_order

if TYPE_CHECKING:
    from ..kernel.launch import Schedule

Arrays: TypeAlias = Sequence[Any]

_MOST_SHAPES = 256
_size_of = attrgetter("size")


@attrs.frozen
class Cost:
    """What a call costs the device; None for what a fast path on the host decides at run time."""

    launches: int
    temporary_bytes: int | None
    bytes_moved: int | None  # by launches, if each reads or writes all that it is handed


def cost_of(schedules: Sequence[Schedule], temporary_bytes: int | None = None) -> Cost:
    """The cost of schedules that run in order. Temporary bytes are the most that any of them takes, unless given."""
    from ..kernel.launch import is_buffer

    launches = [launch for schedule in schedules for launch in schedule.launches]
    moved = sum(argument.nbytes for launch in launches for argument in launch.arguments if is_buffer(argument))
    return Cost(len(launches), most_scratch(schedules) if temporary_bytes is None else temporary_bytes, moved)


def most_scratch(schedules: Sequence[Schedule]) -> int:
    """The most bytes of scratch that any of them takes."""
    from ..kernel.launch import Role

    scratch = [sum(b.nbytes for b in schedule.buffers if b.role is Role.SCRATCH) for schedule in schedules]
    return max(scratch, default=0)


class Plan(ABC):
    """A call made ready. Thread-safe, unless it keeps its scratch."""

    kind: Located[Any]
    operation: Operation
    run: Callable[..., object]  # allocates and returns the outputs: one array, or a tuple of several
    # `into` for one short array without any checks before it; see Native in targets/base.py
    into_short: Callable[[Any, Any], bool] | None = None
    # which arrays are copied before kernels run on them, by words that are as wide as where they begin allows
    copied_inputs: Collection[int] = ()

    @abstractmethod
    def into(self, arrays: Arrays, outs: Arrays) -> None:
        """Writes the outputs to given arrays, which may be inputs or overlap with them."""

    def new_outputs(self, arrays: Arrays) -> list[Any]:
        """Uninitialised arrays for the outputs, once it is ready: here the host's, of which those that are `is_like`
        take the order of axes of the first input."""
        x, outputs = arrays[0], self.operation.outputs(*specs_of(self.kind, self.operation, arrays))
        like = strides_in_order(x.shape, x.itemsize, order_of_axes(x.shape, x.strides))
        return [HOST.empty(output.shape, output.dtype, like if output.is_like else None)() for output in outputs]

    def make_ready(self, arrays: Arrays) -> None:
        """Compiles kernels and allocates what the plan keeps."""
        return

    def cost(self) -> Cost:
        return Cost(0, None, None)


def specs_of(kind: Kind, operation: Operation, arrays: Arrays) -> tuple[Spec, ...]:
    require_all(operation.names, arrays)
    return tuple(kind.spec(name, array) for name, array in zip(operation.names, arrays, strict=True))


def require_all(names: Sequence[str], arrays: Arrays) -> None:
    if len(arrays) != len(names):
        raise InvalidArgumentError(f"arrays: expected {', '.join(names)}, found {len(arrays)} of them")


def require_fitting(kind: Kind, outs: Arrays, outputs: tuple[Output, ...]) -> None:
    """Raises InvalidArgumentError for an `out` of another shape or dtype, or one that cannot be written."""
    if len(outs) < len(outputs):
        raise InvalidArgumentError(f"out: expected None, as there are {len(outputs)} results, found one array")
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
        raise InvalidArgumentError(f"{name}: expected an array that can be written, found {kind.read_only}")
    if spec.may_share_elements:
        raise InvalidArgumentError(
            f"{name}: expected an array each of whose elements has a place of its own, found shape {spec.shape} with "
            f"strides {spec.strides}; copy it first"
        )


def view_to_write(kind: Kind, out: Any) -> Any:
    """What plans write to in place of `out`. Raises InvalidArgumentError if it may not be written, and what it is seen
    as does not tell."""
    place = kind.place(out)
    if kind.is_read_only(out):
        require_writable(kind, "out", out, kind.spec("out", out))
    return place


def require_same_device(device: Device[Any], names: Sequence[str], arrays: Arrays) -> None:
    """Raises InvalidArgumentError for an array on another device than the first."""
    where = device.device(arrays[0])
    for name, array in zip(names, arrays, strict=True):
        found = device.device(array)
        if found != where:
            here, there = "the same device", "another device"
            if isinstance(where, int):
                here, there = f"CUDA device {where}", f"CUDA device {found}"
            raise InvalidArgumentError(f"{name}: expected an array on {here}, as {names[0]} is, found one on {there}")


def as_tuple(found: object) -> tuple[Any, ...]:
    return cast(Any, found) if isinstance(found, tuple) else (found,)


def one_or_all(outs: Sequence[Any]) -> object:
    return outs[0] if len(outs) == 1 else tuple(outs)


def results_of(arrays: Sequence[Any], outputs: Sequence[Output]) -> object:
    """The return value: a scalar in place of a 0-d array of NumPy's, where its function returns one."""
    found = zip(arrays, outputs, strict=True)
    return one_or_all(
        [x[()] if output.is_scalar and output.shape == () and isinstance(x, np.ndarray) else x for x, output in found]
    )


def plan_for(
    operation: Operation, kind: Located[Any], specs: tuple[Spec, ...], arrays: Arrays, target: Target,
    keeps_scratch: bool = False,
) -> Plan:  # fmt: skip
    """Chooses and makes the plan of an operation for arrays of a kind and these specs on a target. One that keeps its
    scratch is for these specs alone, and a call of it allocates nothing."""
    if kind.is_host:
        if operation.is_the_hosts(specs[0]):
            target = target_of("cpu")
        native = target.native(operation, specs) if isinstance(target, HostTarget) else None
        plan = HostPlan(kind, operation, target, native)
        if not keeps_scratch or plan.is_fast(specs):
            return plan
    return _by_kernels(kind, operation, specs, arrays, target, keeps_scratch)


def _by_kernels(
    kind: Located[Any], operation: Operation, specs: tuple[Spec, ...], arrays: Arrays, target: Target,
    keeps_scratch: bool = False,
) -> Plan:  # fmt: skip
    """A plan for these specs alone: of kernels, in pieces if need be, unless there is nothing to compute. A caller's
    key is tried on elements of these arrays if they are the host's: to read a device's would be to wait for it."""
    if operation.answer(*specs) is not None:
        from .answered_plan import AnsweredPlan

        return AnsweredPlan(kind, operation, specs, target)
    if kind.is_host:
        from .key_laws import key_check, require_reversal

        require_reversal(operation, arrays[0])
        if (check := key_check(operation)) is not None:
            check(arrays[0])
        if isinstance(target, HasRoom):
            from .in_pieces.plan import PiecesPlan

            return PiecesPlan.of(kind, operation, specs, target, keeps_scratch)
    from .kernel_plan import KernelPlan  # and what launches kernels, which the host's own ways do without

    return KernelPlan(kind, operation, specs, target, keeps_scratch)


class HostPlan(Plan):
    """A plan for NumPy's arrays of any shape and layout, as their signatures leave these out: a fast path of the target
    where it has one, for all arrays or for small ones; else a plan of kernels for each shape."""

    def __init__(self, kind: Located[HostArray], operation: Operation, target: Target, native: Native | None) -> None:
        self.kind, self.operation, self.target, self._native = kind, operation, target, native
        self._has_key = getattr(operation, "key", None) is not None
        self.into_short = None if native is None else native.into_short
        self.run = self._fastest()
        self._plans: Bounded[Hashable, Plan | None] = Bounded(_MOST_SHAPES)  # None: the fast path takes such arrays
        self._fitting: Bounded[Hashable, bool] = Bounded(_MOST_SHAPES)

    def _fastest(self) -> Callable[..., object]:
        native, call = self._native, self._run
        if native is None or self._has_key:
            return call
        run, takes, most = native.function, native.takes, native.most
        if takes is not None:

            def run_fitting(x: Any) -> object:
                return run(x) if takes(x) else call(x)

            return run_fitting
        if most is None:
            return run

        def run_few(*arrays: Any) -> object:
            return run(*arrays) if sum(map(_size_of, arrays)) <= most else call(*arrays)

        def run_on_two(x: Any, y: Any) -> object:
            return run(x, y) if x.size + y.size <= most else call(x, y)

        return run_on_two if len(self.operation.names) == 2 else run_few

    def _run(self, *arrays: Any) -> object:
        plan = self._plan(arrays)
        return cast(Native, self._native).function(*arrays) if plan is None else plan.run(*arrays)

    def is_fast(self, arrays: Sequence[HostArray] | tuple[Spec, ...]) -> bool:
        """Whether the fast path takes all arrays, or so few elements as these have."""
        native = self._native
        return native is not None and (native.most is None or sum(map(_size_of, arrays)) <= native.most)

    def _plan(self, arrays: Arrays) -> Plan | None:
        """The plan for arrays of these shapes; None for the fast path, if that takes them."""
        is_fast = self.is_fast(arrays) or (self._native is not None and self._native.suits(arrays))
        if is_fast:
            key: Hashable = tuple([array.shape for array in arrays])
        else:  # with the signature all there is to know; an operation of a caller's monoid may have no hash
            key = tuple([(array.shape, array.strides, array.flags.aligned) for array in arrays])
        try:
            return self._plans[key]
        except KeyError:
            specs = specs_of(self.kind, self.operation, arrays)
            self.operation.outputs(*specs)  # shapes are no part of the signature: what does not fit is refused here
            by_kernels = not is_fast or self.operation.answer(*specs) is not None
            plan = None
            if by_kernels:
                plan = _by_kernels(self.kind, self.operation, specs, arrays, self.target)
            elif self._has_key:
                from .key_laws import require_reversal

                require_reversal(self.operation, arrays[0])
            self._plans[key] = plan
            return plan

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        if self.into_short is not None and self.into_short(arrays[0], outs[0]):
            return
        native = self._native
        if native is None or native.most is not None:
            plan = self._plan(arrays)
            if plan is not None:
                plan.into(arrays, outs)
                return
        given: list[object] = [array.shape for array in arrays]
        is_apart = True
        for out in outs:
            given += [out.shape, out.dtype, out.flags.writeable, out.flags.forc or out.strides]
            for array in arrays:
                if array is not out and is_apart:
                    is_apart = not overlap_partly(array, out)
        fitting = tuple(given)
        if fitting not in self._fitting:
            require_fitting(self.kind, outs, self.operation.outputs(*specs_of(self.kind, self.operation, arrays)))
            self._fitting[fitting] = True
        if native is not None and native.into is not None and is_apart:
            native.into(arrays, outs)
        else:
            for out, values in zip(outs, as_tuple(self._run(*arrays)), strict=True):
                out[...] = values


def overlap_partly(array: HostArray, out: HostArray) -> bool:
    """Whether two arrays overlap without being the same elements in the same layout."""
    if not np.may_share_memory(array, out):
        return False
    lies, other = ((address_of(x), x.shape, x.strides) for x in (array, out))
    return lies != other
