import numpy.typing as npt

from . import Array

class Generator:
    def random(self, size: int, dtype: npt.DTypeLike = ..., chunks: int | str = "auto") -> Array: ...

def default_rng(seed: int | None = None) -> Generator: ...
