"""A key of one's own: IPv4 addresses as they travel, in network byte order, sorted by address."""

from __future__ import annotations

import attrs
import numpy as np

from gpusort import SortOrder, target
from gpusort.algos.sorts import Bitonic
from gpusort.types.scalars import U32


@attrs.frozen
class Ipv4Key:
    """Satisfies SortableKey[U32, U32]: an address lies in memory with its first byte first."""

    element: type[U32] = U32
    word: type[U32] = U32

    @property
    def greatest(self) -> U32:
        return U32(0xFFFFFFFF)

    def to_word(self, element: U32) -> U32:
        return (element << 24) | ((element & 0xFF00) << 8) | ((element >> 8) & 0xFF00) | (element >> 24)

    def from_word(self, word: U32) -> U32:
        return self.to_word(word)  # swapping bytes twice changes nothing

    def to_rank(self, element: U32) -> U32:
        return self.to_word(element)

    def mirrored(self, word: U32) -> U32:
        return ~word


def sort_addresses(addresses: np.ndarray[tuple[int], np.dtype[np.uint32]], where: str) -> None:
    """Sorts addresses in place on a target."""
    schedule = Bitonic().schedule(Ipv4Key(), 1, len(addresses), SortOrder.ASCENDING)
    target(where).run(schedule, {"data": addresses})


def main(where: str = "cpu") -> None:
    texts = ["10.0.0.2", "192.168.1.1", "9.255.0.1", "10.0.0.1"]
    packed = np.array([[int(part) for part in text.split(".")] for text in texts], np.uint8).view(np.uint32).reshape(-1)
    sort_addresses(packed, where)
    found = [".".join(map(str, row)) for row in packed.view(np.uint8).reshape(-1, 4)]
    print(*found)
    assert found == ["9.255.0.1", "10.0.0.1", "10.0.0.2", "192.168.1.1"]


if __name__ == "__main__":
    main()
