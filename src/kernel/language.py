"""All names of the kernel language, for one import: `from gpusort.kernel.language import *`. Types and functions to
write a kernel with, classes to launch it, and the Protocols and type variables of generic kernels. Concrete keys,
monoids and policies are imported from their own modules."""

from __future__ import annotations

from typing import TypeVar

from ..types.finishes import AsItIs, Finish
from ..types.indices import Placement, ScanKind, SortOrder
from ..types.intrinsics import (
    add_nowrap,
    bitcast,
    count_ones,
    dynamic_range,
    exp,
    leading_zeros,
    log,
    maximum,
    minimum,
    select,
    sqrt,
    trailing_zeros,
)
from ..types.invocation import Invocation
from ..types.keys import SortableKey, Word
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Monoid
from ..types.needs import Needs, Policy
from ..types.scalars import F32, F64, I32, I64, U8, U16, U32, U64, Bool
from .kernel import kernel
from .launch import Buffer, Grid, Launch, Role, Schedule

# The variables of generic kernels, by what they stand for.
E = TypeVar("E")  # an element in memory
A = TypeVar("A", U8, U16, U32, U64)  # an element that is an unsigned integer, whose words lie in its place
V = TypeVar("V", U8, U16, U32, U64)  # a value that goes along with a key: only its bits count
W = TypeVar("W", bound=Word)  # a word: all that compares
N = TypeVar("N", U32, U64)  # a word that is a number
S = TypeVar("S")  # a monoid's state
R = TypeVar("R")  # a result, which a finish makes of a state

__all__ = [
    "F32", "F64", "I32", "I64", "U8", "U16", "U32", "U64", "A", "AsItIs", "Bool", "Buffer", "E", "Finish",
    "Grid", "Invocation", "Launch", "Monoid", "N", "Needs", "Placement", "Policy", "R", "Registers", "Role", "S",
    "ScanKind", "Schedule", "SortOrder", "SortableKey", "Storage", "V", "W", "Word", "Workgroup", "add_nowrap",
    "bitcast", "count_ones", "dynamic_range", "exp", "kernel", "leading_zeros", "log", "maximum", "minimum", "select",
    "sqrt", "trailing_zeros",
]  # fmt: skip
