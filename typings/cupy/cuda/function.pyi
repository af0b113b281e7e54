from collections.abc import Sequence

import numpy as np

from .. import ndarray
from . import MemoryPointer, Stream

class Module:
    def __init__(self) -> None: ...
    def load(self, cubin: bytes) -> None: ...
    def get_function(self, name: str) -> Function: ...

class Function:
    @property
    def ptr(self) -> int: ...
    # An int or a float travels as 8 bytes, a NumPy scalar as its own: hand over what the kernel declares.
    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[ndarray | MemoryPointer | int | float | np.generic],
        shared_mem: int = 0,
        stream: Stream | None = None,
        enable_cooperative_groups: bool = False,
    ) -> None: ...
