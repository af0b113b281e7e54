"""Words of the algorithms and scalars, taken for each other."""

from __future__ import annotations

from gpusort.algos.bitonic import ComparisonDistance
from gpusort.types.indices import ElementIndex, Pass, SortOrder, Stage, ThreadId
from gpusort.types.intrinsics import maximum, minimum
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.scalars import F32, I32, U8, U32, U64, Bool


def right(stage: Stage, pass_: Pass, data: Storage[U32], count: U32) -> U32:
    distance = ComparisonDistance.of(stage, pass_)
    return data[distance.lower_of(ThreadId(count)).value] + (count >> 1) * 2


def stage_for_pass(stage: Stage, pass_: Pass) -> ComparisonDistance:
    return ComparisonDistance.of(
        pass_,  # E: arg-type, reportArgumentType
        stage,  # E: arg-type, reportArgumentType
    )


def stage_minus_pass(stage: Stage, pass_: Pass) -> None:
    _ = stage - pass_  # E: operator, reportOperatorIssue


def element_for_thread(distance: ComparisonDistance, element: ElementIndex) -> ElementIndex:
    return distance.lower_of(element)  # E: arg-type, reportArgumentType


def scalars_of_two_types(a: U32, b: I32) -> None:
    _ = a + b  # E: operator, reportOperatorIssue


def wide_and_narrow(a: U64, b: U32) -> None:
    _ = a & b  # E: operator, reportOperatorIssue


def shift_by_the_wrong_type(a: U64, b: U64) -> None:
    _ = a << b  # E: operator, reportOperatorIssue


def division_of_signed(a: I32, b: I32) -> None:
    _ = a // b  # E: operator, reportOperatorIssue


def integer_of_a_float(a: F32) -> U32:
    return U32(a)  # E: arg-type, reportArgumentType


def right_conversions(a: U32, b: U8, c: Bool) -> F32:
    return F32(U64(I32(a))) + F32(U64(b) & U64(c)) + F32(True)


def negative_unsigned(a: U32) -> None:
    _ = -a  # E: operator, reportOperatorIssue


def arithmetic_on_bytes(a: U8, b: U8) -> None:
    _ = a + b  # E: operator, reportOperatorIssue


def fraction_beside_an_integer(a: U32, b: I32) -> None:
    _ = a * 1.5  # E: operator, reportOperatorIssue
    _ = 0.5 + b  # E: operator, reportOperatorIssue
    _ = a < 1.5  # E: operator, reportOperatorIssue


def negative_beside_an_unsigned(a: U32, b: U64) -> None:
    _ = a + -1  # E: deprecated, reportDeprecated
    _ = b - -1  # E: deprecated, reportDeprecated


def number_as_a_condition(a: U32, b: F32) -> U32:
    if a:  # E: truthy-bool, reportGeneralTypeIssues
        return a
    while a & 1:  # E: truthy-bool, reportGeneralTypeIssues
        pass
    print(not b)  # E: truthy-bool, reportGeneralTypeIssues
    return a + 1 if b else a  # E: truthy-bool, reportGeneralTypeIssues


def right_literals(a: U32, b: F32, c: I32) -> Bool:
    return a + minimum(a, 1) < maximum(2, a) and b * 2 < b * 0.5 and c + -1 < -c


def fraction_of_integers(a: U32, b: U32) -> None:
    _ = a / b  # E: operator, reportOperatorIssue


def python_bool(a: U32, b: U32) -> Bool:
    return not a < b  # E: return-value, reportReturnType


def index_by_a_stage(data: Storage[U32], stage: Stage) -> U32:
    return data[stage]  # E: index, reportArgumentType


def store_another_type(data: Storage[U32], value: U64) -> None:
    data[0] = value  # E: assignment, reportArgumentType


def atomic_on_floats(data: Storage[F32]) -> None:
    data.atomic_add(0, U32(1))  # E: misc, reportAttributeAccessIssue


def first_of(data: Storage[U32]) -> U32:
    return data[0]


def workgroup_for_storage(tile: Workgroup[U32]) -> U32:
    return first_of(tile)  # E: arg-type, reportArgumentType


def change_a_frozen_struct(stage: Stage) -> None:
    stage.value = U32(1)  # E: misc, reportAttributeAccessIssue


def bool_for_order() -> SortOrder:
    return True  # E: return-value, reportReturnType


def forgotten_case(order: SortOrder) -> U32:  # E: return, reportReturnType
    match order:  # E: exhaustive-match, reportMatchNotExhaustive
        case SortOrder.ASCENDING:
            return U32(0)
