from collections.abc import Mapping, Sequence
from typing import Protocol, type_check_only

@type_check_only
class _Node(Protocol):
    @property
    def dependencies(self) -> frozenset[object]: ...

def optimize(dsk: Mapping[object, object], keys: Sequence[object]) -> Mapping[object, _Node]: ...
