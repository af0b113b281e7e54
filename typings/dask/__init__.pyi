# What gpusort uses of dask, checked against 2026.8. The package annotates some of its functions, few of its methods.
from contextlib import AbstractContextManager

from . import array as array
from . import base as base
from . import config as config

__version__: str

def compute(*args: object) -> tuple[object, ...]: ...
def annotate(*, retries: int) -> AbstractContextManager[None]: ...
