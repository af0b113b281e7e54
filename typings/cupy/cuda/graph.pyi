from typing import Protocol

class _HasPointer(Protocol):
    @property
    def ptr(self) -> int: ...

class Graph:
    # A Stream, or anything that has a stream's pointer.
    def launch(self, stream: _HasPointer | None = None) -> None: ...
