"""What a launch may be made of: refused when it is made, so alike for every target, by the line of the parameter."""

# The mistakes are what is tested.
# mypy: disable-error-code="arg-type, call-arg, import-not-found, misc, no-untyped-def, type-var, untyped-decorator"
# pyright: basic, reportArgumentType=false, reportCallIssue=false, reportMissingImports=false

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import attrs
import numpy as np
import pytest

from gpusort.algos.cut import Arrangement
from gpusort.algos.reduce_axis import reduce_columns
from gpusort.kernel import arguments as checking
from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.language import N
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.kernel.span import KernelError
from gpusort.kernel.specialise import specialise
from gpusort.targets.registry import target as target_of
from gpusort.types.bounded import Bounded
from gpusort.types.errors import InvalidArgumentError, UnsupportedTypeError
from gpusort.types.finishes import AsItIs
from gpusort.types.indices import SortOrder
from gpusort.types.intrinsics import bitcast
from gpusort.types.invocation import Invocation
from gpusort.types.keys import SignedKey, SortableKey, UnsignedKey
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.monoids import Sum
from gpusort.types.numbers import Numeric
from gpusort.types.params import ReducePolicy, RowsParams
from gpusort.types.scalars import F32, I32, U8, U32, U64, Bool, Scalar

if TYPE_CHECKING:
    from somewhere import OnlyForCheckers

    from gpusort.types import invocation

E = TypeVar("E")
W = TypeVar("W", U32, U64)
GRID = Grid(1, 4)
DATA, SIGNED = Buffer("data", U32, 4, Role.INOUT), Buffer("data", I32, 4, Role.INOUT)
OUT, WIDE = Buffer("out", U32, 4, Role.INOUT), Buffer("out", U64, 4, Role.INOUT)


@attrs.frozen
class Params:
    factor: U32
    order: SortOrder


@attrs.frozen
class Pair(Generic[W]):
    low: W
    high: W


@attrs.frozen
class Policy:
    items: int = 4
    twice: bool = False


@kernel
def plain(
    cx: Invocation,
    data: Storage[U32],
    tile: Workgroup[U32],
    factor: U32,
    params: Params,
    order: SortOrder,
    items: int,
    policy: Policy,
) -> None:
    data[cx.global_id] = data[cx.global_id] * factor + params.factor


@kernel
def moved(cx: Invocation, data: Storage[E], out: Storage[E]) -> None:
    out[cx.global_id] = data[cx.global_id]


@kernel
def by_key(cx: Invocation, key: SortableKey[E, W], data: Storage[E], out: Storage[W]) -> None:
    out[cx.global_id] = key.to_word(data[cx.global_id])


@kernel
def of_kind(cx: Invocation, kind: type[W], pair: Pair[W], out: Storage[W]) -> None:
    out[cx.global_id] = kind(pair.low) + pair.high


@kernel
def other_forms(
    cx: Invocation, out: Storage[U32], orders: tuple[SortOrder, SortOrder], many: tuple[int, ...],
    some: int | None, mode: Literal["up", "down"], unknown: OnlyForCheckers, scale: float, key: SortableKey[Any, Any],
) -> None:  # fmt: skip
    out[cx.global_id] = U32(0)


ARGUMENTS: dict[str, object] = {
    "data": DATA, "tile": Workgroup(U32, 4), "factor": U32(3), "params": Params(U32(1), SortOrder.ASCENDING),
    "order": SortOrder.ASCENDING, "items": 2, "policy": Policy(),
}  # fmt: skip


def line_of(subject: Kernel[...], text: str) -> str:
    """Where this stands in a kernel's source."""
    lines, first = inspect.getsourcelines(subject.function)
    return f"test_launches.py:{first + next(number for number, line in enumerate(lines) if text in line)}"


def refusal(make: Callable[[], object], error: type[Exception] = KernelError) -> str:
    with pytest.raises(error) as caught:
        make()
    return str(caught.value)


def test_what_fits(target: str) -> None:
    target_of(target).run(Schedule((DATA,), (plain.launch(GRID, *ARGUMENTS.values()),)), {"data": np.ones(4, "u4")})


WRONG: dict[str, tuple[str, object, str]] = {
    "an element of another class": (
        "data", SIGNED,
        "expected Storage[U32] for 'data' of kernel 'plain', found Buffer('data', I32, 4, Role.INOUT), "
        "e.g. `Buffer('data', U32, 4, Role.INOUT)`",
    ),
    "an array": ("data", np.zeros(4, np.uint32), "expected Storage[U32] for 'data' of kernel 'plain', found array([0,"),
    "memory of the wrong space": ("data", Workgroup(U32, 4), "found Workgroup(U32, 4), e.g. `Buffer("),
    "memory without a name": ("data", Storage(U32, np.zeros(4, np.uint32)), "found a Storage, e.g. `Buffer("),
    "registers": ("tile", Registers(U32, 4), "found a Registers, e.g. `Workgroup(U32, 64)`"),
    "a tile of another class": ("tile", Workgroup(F32, 4), "expected Workgroup[U32] for 'tile'"),
    "a buffer for a tile": ("tile", DATA, "expected Workgroup[U32] for 'tile'"),
    "a number": ("factor", 3, "expected U32 for 'factor' of kernel 'plain', found 3, e.g. `U32(3)`"),
    "a negative number": ("factor", -3, "found -3, e.g. `U32(0)`"),
    "NumPy's number": ("factor", np.uint32(3), "found np.uint32(3), e.g. `U32(3)`"),
    "an array for a scalar": ("factor", np.zeros(3), "found array([0., 0., 0.]), e.g. `U32(0)`"),
    "another scalar": ("factor", U64(3), "expected U32 for 'factor' of kernel 'plain', found U64(3), e.g. `U32(3)`"),
    "a Bool": ("factor", Bool(True), "found Bool(True), e.g. `U32("),
    "another struct": ("params", RowsParams(U32(1), U32(1)), "expected Params for 'params'"),
    "a struct with a number": (
        "params", Params(3, SortOrder.ASCENDING), "expected U32 for 'params.factor' of kernel 'plain', found 3, e.g. "
    ),
    "a struct with another enum": ("params", Params(U32(3), Role.INPUT), "expected SortOrder for 'params.order'"),
    "a struct's class": ("params", Params, "expected Params for 'params' of kernel 'plain', found the class Params"),
    "a number for an enum": ("order", 0, "expected SortOrder for 'order' of kernel 'plain', found 0, e.g. `SortOrder."),
    "a float for an int": ("items", 2.0, "expected int for 'items' of kernel 'plain', found 2.0, e.g. `int(x)`"),
    "NumPy's int": ("items", np.int64(2), "expected int for 'items' of kernel 'plain', found np.int64(2)"),
    "a scalar for an int": ("items", U32(2), "expected int for 'items'"),
    "another policy": ("policy", ReducePolicy(), "expected Policy for 'policy'"),
    "a policy with a float": ("policy", Policy(4.0), "expected int for 'policy.items' of kernel 'plain', found 4.0"),
    "a policy with an int": ("policy", Policy(4, 1), "expected bool for 'policy.twice' of kernel 'plain', found 1"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_an_argument_that_is_not_as_annotated(what: str) -> None:
    name, value, message = WRONG[what]
    given = {**ARGUMENTS, name: value}
    for _ in range(2):  # what fits is remembered, what does not is not
        plain.launch(GRID, *ARGUMENTS.values())
        found = refusal(lambda: plain.launch(GRID, *given.values()))
        assert line_of(plain, f"{name}: ") in found
        assert message in found
        assert found.endswith(f"    {name}: {inspect.signature(plain.function).parameters[name].annotation},")


def test_another_class_of_the_same_name_is_told_apart() -> None:
    """As when a cell of a notebook that defines it has run again."""
    again: Any = attrs.make_class("Params", {"factor": attrs.field(type=U32)}, frozen=True)
    given = {**ARGUMENTS, "params": again(U32(1))}
    assert "found Params(factor=U32(1)), of another class named Params, e.g." in refusal(
        lambda: plain.launch(GRID, *given.values())
    )
    element = attrs.make_class("Point", {"x": attrs.field(type=U32)}, frozen=True)
    other = attrs.make_class("Point", {"x": attrs.field(type=U32)}, frozen=True)
    assert ", of another class named Point, e.g." in refusal(
        lambda: moved.launch(GRID, Buffer("data", element, 4, Role.INOUT), Buffer("out", other, 4, Role.INOUT))
    )


def test_a_type_variable_is_one_class() -> None:
    moved.launch(GRID, DATA, OUT)
    found = refusal(lambda: moved.launch(GRID, DATA, WIDE))
    assert "expected Storage[U32] (Storage[E]) for 'out' of kernel 'moved', found Buffer('out', U64, 4" in found
    pairs = Buffer("data", Pair[U32], 4, Role.INOUT)
    moved.launch(GRID, pairs, Buffer("out", Pair[U32], 4, Role.INOUT))
    assert repr(pairs) == "Buffer('data', Pair[U32], 4, Role.INOUT)"
    assert "Storage[Pair[U32]]" in refusal(lambda: moved.launch(GRID, pairs, Buffer("out", Pair[U64], 4, Role.INOUT)))


@kernel
def numbered(cx: Invocation, data: Storage[N]) -> None:
    data[cx.global_id] = data[cx.global_id] + 1


def test_a_type_variable_may_be_one_of_a_few_classes() -> None:
    launch: Any = numbered.launch
    floats = Buffer("data", F32, 4, Role.INOUT)
    assert (
        "expected Storage[N], N being U32 or U64, for 'data' of kernel 'numbered', found "
        "Buffer('data', F32, 4, Role.INOUT), e.g. `Buffer('data', U32, 4, Role.INOUT)`"
    ) in refusal(lambda: launch(GRID, floats))


def test_a_type_variable_is_what_a_key_says() -> None:
    by_key.launch(GRID, UnsignedKey(U32, U64, 32), DATA, WIDE)
    assert "expected Storage[U64] (Storage[W]) for 'out'" in refusal(
        lambda: by_key.launch(GRID, UnsignedKey(U32, U64, 32), DATA, OUT)
    )
    assert "expected Storage[U8] (Storage[E]) for 'data'" in refusal(
        lambda: by_key.launch(GRID, UnsignedKey(U8, U32, 8), DATA, OUT)
    )
    assert "for 'key.word' of kernel 'by_key', found I32" in refusal(
        lambda: by_key.launch(GRID, SignedKey(U32, I32, 32), DATA, OUT)
    )
    assert "for 'key.element' of kernel 'by_key', found 3" in refusal(
        lambda: by_key.launch(GRID, SignedKey(3, U32, 32), DATA, OUT)
    )


def test_what_is_no_key() -> None:
    found: tuple[object, ...] = (3, UnsignedKey, U32)
    for key in found:
        assert "expected SortableKey[E, W] for 'key' of kernel 'by_key', found" in refusal(
            lambda key=key: by_key.launch(GRID, key, DATA, OUT)
        )
    assert "expected SortableKey[E, W], which has 'word', for 'key' of kernel 'by_key', found Sum(" in refusal(
        lambda: by_key.launch(GRID, Sum(Numeric), DATA, OUT)
    )


def test_a_class_and_a_generic_struct() -> None:
    of_kind.launch(GRID, U32, Pair(U32(1), U32(2)), OUT)
    assert "for 'pair.low'" in refusal(lambda: of_kind.launch(GRID, U32, Pair(U64(1), U64(2)), OUT))
    assert "for 'pair.high'" in refusal(lambda: of_kind.launch(GRID, U32, Pair(U32(1), U64(2)), OUT))
    assert "expected type[W] for 'kind'" in refusal(lambda: of_kind.launch(GRID, 3, Pair(U32(1), U32(2)), OUT))
    assert "for 'kind' of kernel 'of_kind', found I32" in refusal(
        lambda: of_kind.launch(GRID, I32, Pair(I32(1), I32(2)), SIGNED)
    )


def test_other_annotations() -> None:
    up, key = SortOrder.ASCENDING, UnsignedKey(U32, U32, 32)
    fitting: list[object] = [OUT, (up, up), (1, 2, 3), None, "up", 3, 1, key]
    other_forms.launch(GRID, *fitting)
    other_forms.launch(GRID, *fitting[:3], 7, "down", "anything", 1.5, key)
    for place, value, wanted in (
        (1, (up,), "expected tuple[SortOrder, SortOrder] for 'orders'"),
        (1, (up, 3), "expected SortOrder for 'orders[1]'"),
        (2, (1, 2.0), "expected int for 'many[1]'"),
        (2, [1, 2], "expected tuple[int, ...] for 'many'"),
        (3, "x", "expected int | None for 'some'"),
        (4, U32(3), "expected Literal['up', 'down'] for 'mode'"),
        (4, np.zeros(3), "expected Literal['up', 'down'] for 'mode'"),
        (4, "left", "expected Literal['up', 'down'] for 'mode'"),
        (5, [1], "expected something that does not change for 'unknown' of kernel 'other_forms', found [1]"),
        (5, np.zeros(2), "expected something that does not change for 'unknown'"),
        (6, "1", "expected float for 'scale'"),
        (7, 3, "expected SortableKey[Any, Any] for 'key'"),
    ):
        given = [*fitting]
        given[place] = value
        assert wanted in refusal(lambda given=given: other_forms.launch(GRID, *given))


@kernel
def of_any_scalar(cx: Invocation, out: Storage[U32], factor: Scalar) -> None:
    out[cx.global_id] = U32(0)


def test_a_base_of_the_scalars_is_none_of_them() -> None:
    found = refusal(lambda: of_any_scalar.launch(GRID, OUT, U32(3)))
    assert "expected Scalar for 'factor' of kernel 'of_any_scalar', found U32(3), e.g. " in found


def test_the_grid_comes_first() -> None:
    for grid in (DATA, (1, 4), 4):
        found = refusal(lambda grid=grid: moved.launch(grid, DATA, OUT), UnsupportedTypeError)
        assert found.startswith("moved: expected a grid first, e.g. `Grid(groups=4, group_size=64)`")


def test_how_many_arguments() -> None:
    assert "moved: expected 2 arguments behind the grid, found 1" in refusal(
        lambda: moved.launch(GRID, DATA), TypeError
    )
    assert "positional" in refusal(lambda: moved.launch(GRID, DATA, out=OUT), TypeError)


def test_one_compile_for_all_values_of_a_scalar() -> None:
    def launch(factor: int) -> Launch:
        return plain.launch(GRID, *{**ARGUMENTS, "factor": U32(factor)}.values())

    assert specialise(launch(3)).program is specialise(launch(4)).program


# -- kernels that are none ---------------------------------------------------------------------------------


@kernel
def without_cx(data: Storage[U32]) -> None:
    data[0] = U32(1)


@kernel
def nothing_at_all() -> None:
    pass


@kernel
def not_annotated(cx: Invocation, data: Storage[U32], factor) -> None:
    data[0] = factor


@kernel
def cx_is_something_else(cx: U32, data: Storage[U32]) -> None:
    data[0] = cx


@kernel
def returns_a_value(cx: Invocation, data: Storage[U32]):
    if cx.global_id < 1:
        return
    return data[0]


@kernel
def says_it_returns(cx: Invocation, data: Storage[U32]) -> U32:
    raise NotImplementedError


@kernel
def any_number(cx: Invocation, *data: Storage[U32]) -> None:
    pass


@kernel
def any_name(cx: Invocation, data: Storage[U32], **more: U32) -> None:
    pass


@kernel
def with_a_default(cx: Invocation, data: Storage[U32], items: int = 4) -> None:
    pass


@kernel
def by_keyword(cx: Invocation, data: Storage[U32], *, items: int) -> None:
    pass


@kernel
def by_position(cx: Invocation, data: Storage[U32], /) -> None:
    pass


@kernel
def generator(cx: Invocation, data: Storage[U32]):
    yield data[0]


@kernel
async def coroutine(cx: Invocation, data: Storage[U32]) -> None:
    pass


@kernel
def takes_registers(cx: Invocation, data: Storage[U32], words: Registers[U32]) -> None:
    data[0] = words[0]


def test_a_kernel_that_is_none() -> None:
    """Whatever it is launched with, and wherever."""
    for subject, line, message in (
        (without_cx, "def", "expected `cx: Invocation` as the first parameter of kernel 'without_cx', found 'data'"),
        (
            nothing_at_all,
            "def",
            "expected `cx: Invocation` as the first parameter of kernel 'nothing_at_all', found no",
        ),
        (cx_is_something_else, "def", "expected `cx: Invocation` as the first parameter"),
        (not_annotated, "def", "expected an annotation for 'factor' of kernel 'not_annotated', e.g. `factor: Storage"),
        (returns_a_value, "return data", "expected a kernel to return nothing, e.g. `out[cx.global_id] = x`"),
        (says_it_returns, "def", "expected kernel 'says_it_returns' to return nothing, e.g. `-> None`"),
        (any_number, "def", "expected plain parameters of kernel 'any_number', found 'data', e.g. "),
        (any_name, "def", "expected plain parameters of kernel 'any_name', found 'more'"),
        (
            with_a_default,
            "def",
            "expected plain parameters of kernel 'with_a_default' without a default, found 'items'",
        ),
        (by_keyword, "def", "expected plain parameters of kernel 'by_keyword', found 'items'"),
        (by_position, "def", "expected plain parameters of kernel 'by_position', found 'cx'"),
        (
            takes_registers,
            "def",
            "expected the registers 'words' in the body of kernel 'takes_registers', for a launch",
        ),
        (generator, "def", "expected kernel 'generator' to run to its end, e.g. without `yield` and `async`"),
        (coroutine, "async def", "expected kernel 'coroutine' to run to its end, e.g. without `yield` and `async`"),
    ):
        for arguments in ((), (DATA,), (DATA, U32(3))):
            found = refusal(lambda subject=subject, arguments=arguments: subject.launch(GRID, *arguments))
            assert f"{line_of(subject, line)}: {message}" in found


@kernel
def with_a_helper_inside(cx: Invocation, data: Storage[U32]) -> None:
    def doubled(x: U32) -> U32:
        return x + x

    data[cx.global_id] = doubled(data[cx.global_id])


def test_what_a_helper_inside_returns_is_not_the_kernels() -> None:
    """The reader refuses the helper for being there."""
    launch = with_a_helper_inside.launch(GRID, DATA)
    found = refusal(lambda: specialise(launch))
    assert f"{line_of(with_a_helper_inside, 'def doubled')}: expected definitions and imports outside the ker" in found


def test_what_is_no_function() -> None:
    def through(function: Any) -> Any:
        @wraps(function)
        def inner(cx: Invocation, data: Storage[U32]) -> None:
            function(cx, data)

        return inner

    def inside(cx: Invocation, data: Storage[U32]) -> None:
        pass

    for function in (3, len, staticmethod(inside), Policy, through(inside), kernel(inside)):
        found = refusal(lambda function=function: kernel(function), UnsupportedTypeError)
        assert found.startswith("kernel: expected a plain function right below @kernel, found ")


def of_a_length(length: int) -> Launch:
    own = Policy(items=length)
    return plain.launch(
        GRID, DATA, Workgroup(U32, length), U32(1), Params(U32(1), SortOrder.ASCENDING), SortOrder.ASCENDING, 1, own
    )


def test_launches_that_were_checked_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: Bounded[object, None] = Bounded(3)
    monkeypatch.setattr(checking, "_checked", kept)
    counts: list[int] = []
    for length in range(1, 9):
        of_a_length(length)
        counts.append(len(kept))
    assert counts == [1, 2, 3, 1, 2, 3, 1, 2]


@kernel
def combined(cx: Invocation, first: Storage[U32], second: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = first[cx.global_id] + 2 * second[cx.global_id]


@pytest.mark.parametrize("names", ["abc", "aab", "abb", "aba", "aaa", "bca"])
def test_any_parameters_may_be_one_buffer(names: str, target: str) -> None:
    """Whichever: each case has a program of its own."""
    buffers = {name: Buffer(name, U32, 4, Role.INOUT) for name in names}
    launch = combined.launch(GRID, *(buffers[name] for name in names))
    arrays = {name: np.arange(4, dtype=np.uint32) + 10 * ord(name) for name in buffers}
    first, second, _ = (arrays[name].copy() for name in names)
    target_of(target).run(Schedule(tuple(buffers.values()), (launch,)), arrays)
    assert arrays[names[2]].tolist() == (first + 2 * second).tolist()


def test_without_source_a_kernel_is_checked_too() -> None:
    names: dict[str, Any] = {"Invocation": Invocation, "Storage": Storage, "U32": U32}
    exec("def typed(cx: Invocation, data: Storage[U32]) -> None:\n    data[0] = U32(1)", names)
    subject: Any = kernel(names["typed"])
    assert "<string>:1: expected Storage[U32] for 'data'" in refusal(lambda: subject.launch(GRID, SIGNED))
    found = np.zeros(4, np.uint32)
    target_of("python").run(Schedule((DATA,), (subject.launch(GRID, DATA),)), {"data": found})
    assert found.tolist() == [1, 0, 0, 0]
    unwritable = Buffer("data", U32, 4, Role.INPUT)
    with pytest.raises(InvalidArgumentError, match="writes to the INPUT buffer 'data'"):
        target_of("python").run(Schedule((unwritable,), (subject.launch(GRID, unwritable),)), {"data": found})
    with pytest.raises(InvalidArgumentError, match="buffer 'data'"):
        target_of("python").run(Schedule((), (subject.launch(GRID, DATA),)), {})


def test_names_of_another_function_are_looked_up_as_far_as_they_can_be() -> None:
    class Local(Enum):
        ONE = 1

    @kernel
    def nested(cx: Invocation, data: Storage[U32], local: Local) -> None:
        if local is Local.ONE:
            data[cx.global_id] = bitcast(U32, I32(1))

    nested.launch(GRID, DATA, Local.ONE)
    assert "expected Local for 'local'" in refusal(lambda: nested.launch(GRID, DATA, Role.INPUT))


@kernel
def of_a_module_that_is_not_there(cx: invocation.Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = U32(1)


@kernel
def cx_is_what_only_checkers_know(cx: OnlyForCheckers, data: Storage[U32]) -> None:
    data[0] = U32(1)


def test_what_only_checkers_know_is_an_invocation_by_its_name() -> None:
    of_a_module_that_is_not_there.launch(GRID, DATA)
    found = refusal(lambda: cx_is_what_only_checkers_know.launch(GRID, DATA))
    assert "expected `cx: Invocation` as the first parameter" in found


def test_the_librarys_kernels_are_held_to_their_annotations() -> None:
    number: Any = target_of  # anything that is no monoid
    finish, shared = AsItIs(U32), Workgroup(U32, 4)
    rest: Any = None, ReducePolicy(), Arrangement.ROWS
    message = refusal(lambda: reduce_columns.launch(GRID, number, finish, DATA, shared, OUT, *rest))
    assert "expected Monoid[E, S] for 'monoid' of kernel 'reduce_columns'" in message
