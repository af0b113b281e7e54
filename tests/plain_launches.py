"""Copies and the like, for devices with WebGPU's default limits."""

from __future__ import annotations

from functools import partial

from gpusort.algos import chosen, copy, radix_sorts
from gpusort.targets.wgsl.defaults import DEFAULTS

copy_strided = partial(copy.copy_strided, limits=DEFAULTS)
take_rows = partial(copy.take_rows, limits=DEFAULTS)
chosen_indices = partial(chosen.chosen_indices, limits=DEFAULTS)
widened = partial(radix_sorts.widened, limits=DEFAULTS)
numbered = partial(radix_sorts.numbered, limits=DEFAULTS)
