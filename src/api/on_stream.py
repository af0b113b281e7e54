"""Packed arrays on a device with streams: the least that a warm call can do there.

Nothing is made current and nothing is looked up again. Results and scratch come from the caller's library, in the order
of the stream that its work goes to; kernels are handed addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ..arrays.kinds import Streamed
from ..operations.base import Output
from ..targets.base import OnStream, Prepared, RunsOnStreams
from ..types.specs import Spec
from .plan import Arrays


@attrs.frozen(eq=False)
class StreamCall:
    """All runs of a plan, one after another."""

    streamed: Streamed[Any]
    makers: tuple[Callable[[], Any], ...]  # of results
    runs: tuple[tuple[OnStream, tuple[int, ...] | None], ...]  # with which arrays it takes, where that is not all
    scratch_bytes: int  # of the run that asks for most
    kept: tuple[object, int] | None  # scratch for all calls, which then come one after the other
    lengths: tuple[int, ...] | None  # in bytes, of packed arrays, then of results

    @classmethod
    def of(
        cls, streamed: Streamed[Any], specs: Sequence[Spec], outputs: Sequence[Output],
        runs: Sequence[tuple[Prepared, tuple[int, ...]]], keeps_scratch: bool,
    ) -> StreamCall | None:  # fmt: skip
        """On the current device. None where a run must be looked at each time."""
        ready = [
            (prepared.on_stream() if isinstance(prepared, RunsOnStreams) else None, places) for prepared, places in runs
        ]
        everything = tuple(range(len(specs) + len(outputs)))
        found = tuple((run, None if places == everything else places) for run, places in ready if run is not None)
        if len(found) < len(ready):
            return None
        lengths = [spec.size * spec.dtype.itemsize for spec in specs]
        lengths += [Spec(output.shape, output.dtype).size * output.dtype.itemsize for output in outputs]
        are_packed = all(spec.strides is None for spec in specs)
        scratch_bytes = max((run.scratch_bytes for run, _ in found), default=0)
        return cls(
            streamed,
            tuple(streamed.empty(output.shape, output.dtype) for output in outputs),
            found,
            scratch_bytes,
            streamed.scratch(scratch_bytes) if keeps_scratch and scratch_bytes else None,
            tuple(lengths) if are_packed else None,
        )

    def __call__(self, arrays: Arrays, stream: int) -> object:
        """New results."""
        outs = [make() for make in self.makers]
        address = self.streamed.address
        self._run([*map(address, arrays), *map(address, outs)], stream)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def into(self, arrays: Arrays, outs: Arrays, stream: int) -> bool:
        """Into packed arrays, if they lie apart from what is read: says whether they do."""
        address, lengths = self.streamed.address, self.lengths
        addresses = [*map(address, arrays), *map(address, outs)]
        if lengths is None:
            return False
        for out in range(len(arrays), len(addresses)):
            for given in range(len(arrays)):
                if -lengths[out] < addresses[out] - addresses[given] < lengths[given]:
                    return False
        self._run(addresses, stream)
        return True

    def _run(self, addresses: list[int], stream: int) -> None:
        held, scratch = None, 0
        if self.scratch_bytes:
            held, scratch = self.kept or self.streamed.scratch(self.scratch_bytes)
        for run, places in self.runs:
            run.run_at(addresses if places is None else [addresses[place] for place in places], scratch, stream)
        del held  # until all is on its way; what the stream does next may have this memory
