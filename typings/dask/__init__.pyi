# What gpusort uses of dask, checked against 2026.8. The package annotates some of its functions, few of its methods.
from . import array as array
from . import base as base
from . import config as config

def compute(*args: object) -> tuple[object, ...]: ...
def optimize(*args: object) -> tuple[object, ...]: ...
