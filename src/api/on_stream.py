"""Arrays on a device with streams: the least that a warm call can do there.

Nothing is made current and nothing is looked up again. Results and scratch come from the caller's library, in the order
of the stream that its work goes to; kernels are handed addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import attrs

from ..arrays.kinds import Kind, Streamed
from ..forks import never_released_in_children
from ..kernel.launch import Schedule
from ..operations.base import Output
from ..targets.base import OnStream, RunsOnStreams
from ..types.errors import CapabilityError, InvalidArgumentError
from ..types.specs import Spec
from .plan import Arrays, require_fitting
from .steps import Lines, Steps, Way

_ALIGNMENT = 256  # of temporaries
_LITTLE = 1 << 16  # bytes of scratch that a plan may keep
_MOST_WAYS = 64
Maker: TypeAlias = Callable[[Sequence[Lines], Sequence[Lines], Way], Steps | None]  # of inputs and results


@attrs.frozen(eq=False)
class StreamCall:
    """All steps of a call, in one run."""

    streamed: Streamed[Any]
    run: OnStream
    places: tuple[tuple[int, int], ...] | None  # which memory it takes, and from which byte on; None for all as it is
    temporaries: tuple[int, ...]  # where each begins in the scratch
    scratch_bytes: int
    kept: tuple[object, int] | None  # scratch for all calls, which then come one after the other
    schedules: tuple[Schedule, ...]
    free: list[tuple[object, int]] = attrs.field(factory=list[tuple[object, int]])  # scratch for the default stream

    def __attrs_post_init__(self) -> None:
        never_released_in_children(self)

    @classmethod
    def of(cls, streamed: Streamed[Any], steps: Steps, given: int, keeps_scratch: bool) -> StreamCall | None:
        """On the current device. None where a run must be looked at each time."""
        prepared = [prepared for _, prepared, _ in steps.steps]
        found = [one.on_stream() if isinstance(one, RunsOnStreams) else None for one in prepared]
        runs = [run for run in found if run is not None]
        if not runs or len(runs) < len(found):
            return None
        run = runs[0] if len(runs) == 1 else runs[0].followed_by(runs[1:])
        taken = tuple((place.number, place.offset) for _, _, places in steps.steps for place in places)
        everything = tuple((number, 0) for number in range(given))
        needed = _aligned(run.scratch_bytes)
        temporaries: list[int] = []
        for nbytes in steps.temporaries:
            temporaries.append(needed)
            needed += _aligned(nbytes)
        return cls(
            streamed,
            run,
            None if taken == everything else taken,
            tuple(temporaries),
            needed,
            streamed.scratch(needed) if keeps_scratch and needed else None,
            tuple(schedule for schedule, _, _ in steps.steps),
        )

    def __call__(self, addresses: list[int], stream: int) -> None:
        held, scratch = None, 0
        if self.scratch_bytes:
            held, scratch = self.kept or self._scratch(stream)
        if self.places is not None:
            addresses += [scratch + first for first in self.temporaries]
            addresses = [addresses[number] + offset for number, offset in self.places]
        self.run.run_at(addresses, scratch, stream)
        # Until all is on its way it is ours. What the stream does next may have it: the library gives it out again in
        # that order. A little is left here for the next call: on the default stream, for others end, and their numbers
        # come back.
        if stream == 0 and 0 < self.scratch_bytes <= _LITTLE and self.kept is None:
            self.free.append((held, scratch))

    def _scratch(self, stream: int) -> tuple[object, int]:
        if stream == 0:
            try:
                return self.free.pop()
            except IndexError:  # there was none yet, or other threads have it
                pass
        return self.streamed.scratch(self.scratch_bytes)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


@attrs.define(eq=False)
class _Into:
    """Calls into arrays that lie in one way."""

    outs: tuple[Lines, ...]
    bounds: tuple[tuple[int, int], ...]  # of all arrays, from their addresses on
    is_like: bool  # whether the one result lies as the one input does
    calls: dict[Way, StreamCall | None]


class StreamPlan:
    """Calls on arrays that lie as those do for which it is made."""

    def __init__(
        self, kind: Kind, streamed: Streamed[Any], inputs: Sequence[Lines], outputs: tuple[Output, ...],
        row_axes: Sequence[tuple[int, ...]], like: Any, make: Maker, keeps_scratch: bool,
    ) -> None:  # fmt: skip
        self.kind, self.streamed, self.outputs = kind, streamed, outputs
        self._inputs, self._row_axes, self._make, self._keeps_scratch = inputs, row_axes, make, keeps_scratch
        # Of packed arrays the library is not asked: it would make one, and they may fill half the memory.
        is_packed = kind.is_packed(like)
        made = [
            kind.spec("out", kind.empty_like(like)).strides if output.is_like and not is_packed else None
            for output in outputs
        ]
        self._makers = tuple(
            streamed.empty(output.shape, output.dtype, strides) for output, strides in zip(outputs, made, strict=True)
        )
        self._ways: dict[Hashable, _Into] = {}
        self._outs = self._lines(made)
        self.new = self._call(self._outs, Way.APART)

    def __call__(self, arrays: Arrays, stream: int) -> object:
        """New results."""
        outs = [make() for make in self._makers]
        address = self.streamed.address
        assert self.new is not None, "looked at once, when it was made"
        self.new([*map(address, arrays), *map(address, outs)], stream)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def into(self, arrays: Arrays, outs: Arrays, stream: int) -> bool:
        """Into arrays that are there, however they lie. Says whether that could be done here."""
        known = tuple([self.kind.signature(out) for out in outs])
        into = self._ways.get(known) or self._into(known, arrays, outs)
        address = self.streamed.address
        addresses = [*map(address, arrays), *map(address, outs)]
        way = self._way(addresses, len(arrays), into)
        call = into.calls[way] if way in into.calls else self._call_into(into, way)
        if call is None:
            return False
        call(addresses, stream)
        return True

    def _way(self, addresses: Sequence[int], inputs: int, into: _Into) -> Way:
        bounds = into.bounds
        for out in range(inputs, len(addresses)):
            low, high = bounds[out]
            low, high = addresses[out] + low, addresses[out] + high
            for given in range(inputs):
                first, last = bounds[given]
                if low < addresses[given] + last and addresses[given] + first < high:
                    is_same = into.is_like and addresses[0] == addresses[1]
                    return Way.IN_PLACE if is_same else Way.BEHIND
        return Way.APART

    def _into(self, known: Hashable, arrays: Arrays, outs: Arrays) -> _Into:
        """How results go to such arrays: kept for others of the same signatures."""
        require_fitting(self.kind, outs, self.outputs)
        where = self.streamed.device(arrays[0])
        for out in outs:
            if self.streamed.device(out) != where:
                raise InvalidArgumentError(
                    f"out: expected an array on CUDA device {where}, as x is, found one on {self.streamed.device(out)}"
                )
        specs = [self.kind.spec("out", out) for out in outs]
        lines = self._lines([spec.strides for spec in specs])
        if len(self._ways) >= _MOST_WAYS:
            self._ways.clear()
        is_like = len(self._inputs) == len(lines) == 1 and _lie_alike(self._inputs[0], lines[0])
        into = _Into(lines, tuple(line.bounds() for line in (*self._inputs, *lines)), is_like, {})
        if any(self.streamed.address(out) % spec.dtype.itemsize for out, spec in zip(outs, specs, strict=True)):
            into.calls.update(dict.fromkeys(Way))
        self._ways[known] = into
        return into

    def _call_into(self, into: _Into, way: Way) -> StreamCall | None:
        call = self.new if way is Way.APART and into.outs == self._outs else self._call(into.outs, way)
        if call is None and way is Way.IN_PLACE:
            call = self._call(into.outs, Way.BEHIND)
        into.calls[way] = call
        return call

    def _lines(self, all_strides: Sequence[tuple[int, ...] | None]) -> tuple[Lines, ...]:
        """Results with these strides, in rows."""
        lines = zip(self.outputs, all_strides, self._row_axes, strict=True)
        return tuple(
            Lines.of(number, Spec(output.shape, output.dtype, strides=strides), axes)
            for number, (output, strides, axes) in enumerate(lines, len(self._inputs))
        )

    def _call(self, outs: Sequence[Lines], way: Way) -> StreamCall | None:
        try:
            steps = self._make(self._inputs, outs, way)
        except CapabilityError:
            return None
        given = len(self._inputs) + len(outs)
        return None if steps is None else StreamCall.of(self.streamed, steps, given, self._keeps_scratch)


def _lie_alike(array: Lines, other: Lines) -> bool:
    return (array.shape, array.strides, array.itemsize) == (other.shape, other.strides, other.itemsize)
