from typing import Any  # an array of whichever library

import numpy.typing as npt

def meta_from_array(x: object, ndim: int | None = None, dtype: npt.DTypeLike | None = None) -> Any: ...
