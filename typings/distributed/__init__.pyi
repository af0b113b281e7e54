# What gpusort uses of distributed, checked against 2026.8.
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

class _Closing:
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def close(self) -> None: ...

class LocalCluster(_Closing):
    def __init__(
        self,
        n_workers: int | None = None,
        threads_per_worker: int | None = None,
        processes: bool = True,
        silence_logs: int | None = ...,
        dashboard_address: str | None = ...,
    ) -> None: ...

class Client(_Closing):
    def __init__(self, address: LocalCluster | str | None = None, *, set_as_default: bool = True) -> None: ...
    def run(self, function: Callable[..., T], *args: object, workers: list[str] | None = None) -> dict[str, T]: ...
    def compute(self, collections: object) -> Future: ...

class Future:
    def result(self) -> object: ...

def wait(fs: object) -> object: ...
