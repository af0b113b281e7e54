"""What sorts fastest where: plain data, as measured (docs/performance.md says how)."""

from __future__ import annotations

import attrs

from ..targets.base import Capability, TargetInfo
from ..types.params import RadixPolicy
from .sorts import Radix, SortAlgorithm


@attrs.frozen
class SortLine:
    """One line of the table: an algorithm, and when to take it."""

    target: str
    needs: frozenset[Capability]
    bits: tuple[int, ...]  # of an element
    lengths: range  # of a row
    algorithm: SortAlgorithm

    def suits(self, info: TargetInfo, bits: int, length: int) -> bool:
        return (
            info.name == self.target
            and self.needs <= info.capabilities
            and bits in self.bits
            and length in self.lengths
            and self.algorithm.most_rows(length, info.limits.groups) > 0
        )


_SWEEPS = frozenset({Capability.SUBGROUPS, Capability.FORWARD_PROGRESS})
_SUBGROUPS = frozenset({Capability.SUBGROUPS})
_LONG = range(1 << 13, 1 << 32)

# The first line that suits is taken; where none does, the bitonic network sorts.
SORTS: tuple[SortLine, ...] = (
    SortLine(
        "cuda", _SWEEPS, (8, 16, 32), range(1 << 13, 1 << 22),
        Radix(RadixPolicy(8, 384, 24, 32, True, 4, 1024, 8, 32, 132), sweeps=True),
    ),
    SortLine(
        "cuda", _SWEEPS, (8, 16, 32), _LONG,
        Radix(RadixPolicy(8, 384, 28, 32, True, 4, 1024, 8, 32, 132), sweeps=True),
    ),
    SortLine(
        "cuda", _SWEEPS, (64,), _LONG,
        Radix(RadixPolicy(8, 384, 16, 32, True, 4, 1024, 4, 16, 132), sweeps=True),
    ),
    SortLine("cuda", _SUBGROUPS, (8, 16, 32, 64), _LONG, Radix(RadixPolicy(8, 256, 16, 32))),
)  # fmt: skip

# The same for keys with values; bits are counted of both together.
PAIRS: tuple[SortLine, ...] = (
    SortLine(
        "cuda", _SWEEPS, (16, 24, 40, 48, 64), range(1, 1 << 32),
        Radix(RadixPolicy(8, 384, 26, 32, True, 4, 1024, 8, 32, 132), sweeps=True),
    ),
    SortLine(
        "cuda", _SWEEPS, (72, 80, 96, 128), range(1, 1 << 32),
        Radix(RadixPolicy(8, 384, 16, 32, True, 4, 1024, 4, 16, 132), sweeps=True),
    ),
)  # fmt: skip
