"""Sorts and scans of arrays in the other byte order: by copies in the machine's, for NumPy turns the bytes of each
element whenever it looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs
import numpy as np

from ....types.dtypes import native
from ...base import HostArray, Native


def by_copies(found: Native, dtypes: Sequence[np.dtype[np.generic]]) -> Native:
    """A fast path for the machine's byte order as one for any. `dtypes` are those of the results."""

    def function(*arrays: HostArray) -> object:
        results = found.function(*map(_turned, arrays))
        if len(dtypes) == 1:
            return results.astype(dtypes[0], copy=False)
        given = cast("tuple[HostArray, ...]", results)
        return tuple(result.astype(dtype, copy=False) for result, dtype in zip(given, dtypes, strict=True))

    def into(arrays: Sequence[HostArray], outs: Sequence[HostArray]) -> None:
        outs[0][...] = found.function(*map(_turned, arrays))

    return attrs.evolve(found, function=function, into=into if found.into is not None else None, into_short=None)


def _turned(x: HostArray) -> HostArray:
    return x.astype(native(x.dtype))
