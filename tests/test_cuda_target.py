"""The CUDA target, without a card where that is possible.

Kernels are compiled to PTX and assembled for real. Their generated source and the target's host side run on stand-ins
for the card and for cupy; with a card, the same cases run there too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pytest

from gpusort.algos.bitonic import bitonic_sort
from gpusort.algos.reduce import reduce_rows
from gpusort.kernel import ir
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.kernel.specialise import specialise
from gpusort.targets import cuda, cuda_compile
from gpusort.targets.base import Capability
from gpusort.targets.cuda_text import kernel_text
from gpusort.types.errors import (
    CapabilityError,
    DeviceLostError,
    InvalidArgumentError,
    TargetUnavailableError,
)
from gpusort.types.indices import SortOrder
from gpusort.types.intrinsics import dynamic_range, select
from gpusort.types.invocation import Invocation
from gpusort.types.keys import UnsignedKey
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.params import BitonicPolicy
from gpusort.types.scalars import F32, F64, I32, U8, U32, U64, Bool
from tests import fake_cupy
