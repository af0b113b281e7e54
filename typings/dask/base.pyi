from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

def get_scheduler(*, collections: Sequence[object] | None = None) -> Callable[..., object] | None: ...
def optimize(collection: T, /) -> tuple[T]: ...
