"""Launches and schedules with arguments that do not fit, and a key and a monoid that lack something."""

from __future__ import annotations

import attrs

from gpusort.algos.bitonic import bitonic_sort, bitonic_step
from gpusort.algos.reduce_axis import reduce_rows
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.types.indices import Pass, SortOrder, Stage
from gpusort.types.invocation import Invocation
from gpusort.types.keys import UnsignedKey
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.params import BitonicParams, BitonicPolicy, ReducePolicy, RowsParams
from gpusort.types.scalars import F32, U32

GRID = Grid(4, 64)
KEY = UnsignedKey(U32, U32, 32)
DATA = Buffer("data", U32, 256, Role.INOUT)
FLOATS = Buffer("floats", F32, 256, Role.INOUT)
PARAMS = BitonicParams(U32(256), U32(4), Stage(U32(0)), Pass(U32(0)), SortOrder.ASCENDING)


@kernel
def doubled(cx: Invocation, data: Storage[U32], tile: Workgroup[U32], count: U32) -> None:
    if cx.global_id < count:
        data[cx.global_id] = data[cx.global_id] * 2


def right() -> list[Launch]:
    return [bitonic_step.launch(GRID, KEY, DATA, PARAMS), doubled.launch(GRID, DATA, Workgroup(U32, 64), U32(3))]


def another_struct() -> Launch:
    return bitonic_step.launch(GRID, KEY, DATA, RowsParams(U32(1), U32(1)))  # E: arg-type, reportArgumentType


def another_element() -> Launch:
    return doubled.launch(GRID, FLOATS, Workgroup(U32, 64), U32(3))  # E: arg-type, reportArgumentType


def missing_argument() -> Launch:
    return doubled.launch(GRID, DATA, Workgroup(U32, 64))  # E: call-arg, reportCallIssue


def one_argument_more() -> Launch:
    return doubled.launch(GRID, DATA, Workgroup(U32, 64), U32(3), U32(4))  # E: call-arg, reportCallIssue


def workgroup_where_storage_belongs() -> Launch:
    return doubled.launch(GRID, Workgroup(U32, 64), Workgroup(U32, 64), U32(3))  # E: arg-type, reportArgumentType


def storage_where_workgroup_belongs() -> Launch:
    return doubled.launch(GRID, DATA, DATA, U32(3))  # E: arg-type, reportArgumentType


def python_int_where_a_scalar_belongs() -> Launch:
    return doubled.launch(GRID, DATA, Workgroup(U32, 64), 3)  # E: arg-type, reportArgumentType


def no_grid() -> Launch:
    return doubled.launch(DATA, Workgroup(U32, 64), U32(3))  # E: call-arg, reportCallIssue


@kernel  # E: arg-type, reportArgumentType
def without_invocation(data: Storage[U32]) -> None:
    data[0] = U32(1)


@attrs.frozen
class NoMirror:
    """A key that forgets `mirrored`."""

    element: type[U32] = U32
    word: type[U32] = U32

    @property
    def greatest(self) -> U32:
        return U32(0xFFFFFFFF)

    def to_word(self, element: U32) -> U32:
        return element

    def from_word(self, word: U32) -> U32:
        return word

    def to_rank(self, element: U32) -> U32:
        return element


def key_without_a_method() -> Schedule:
    return bitonic_sort(NoMirror(), 1, 256, SortOrder.ASCENDING, BitonicPolicy())  # E: arg-type, reportArgumentType


def bool_where_an_order_belongs() -> Schedule:
    return bitonic_sort(KEY, 1, 256, True, BitonicPolicy())  # E: arg-type, reportArgumentType


def policy_of_another_algorithm() -> Schedule:
    return bitonic_sort(KEY, 1, 256, SortOrder.ASCENDING, ReducePolicy())  # E: arg-type, reportArgumentType


@attrs.frozen
class NoIdentity:
    """A monoid that forgets `identity`."""

    element: type[U32] = U32
    state: type[U32] = U32

    def lift(self, element: U32, index: U32) -> U32:
        return element

    def combine(self, a: U32, b: U32) -> U32:
        return a | b


def monoid_without_identity() -> Schedule:
    return reduce_rows(NoIdentity(), 1, 256, ReducePolicy())  # E: arg-type, reportArgumentType
