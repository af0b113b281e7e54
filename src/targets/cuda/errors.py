"""What a card's errors mean."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ...forks import opened_before_fork
from ...types.errors import DeviceLostError

NOT_INITIALISED = 3  # what the driver says of everything in a forked child of a process that has used it
# What the driver reports when a context cannot be used any more.
_LOST = frozenset({46, 201, 214, 219, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999})


def meaning(error: Exception) -> Exception:
    """A card that stopped working is reported as such, whatever call noticed it."""
    import cupy

    if isinstance(error, cupy.cuda.runtime.CUDARuntimeError | cupy.cuda.driver.CUDADriverError):
        if error.status == NOT_INITIALISED:
            return opened_before_fork("cuda")
        if error.status in _LOST:
            return DeviceLostError(f"target 'cuda': the card stopped working in this process ({error})")
    return error


@contextmanager
def device_errors() -> Generator[None]:
    try:
        yield
    except Exception as error:
        found = meaning(error)
        if found is error:
            raise
        raise found from error
