"""What the reader says of mistakes: `file:line: expected …, e.g. …`, and the line itself."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from gpusort.kernel import ir
from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role
from gpusort.kernel.passes.walk import statements_in
from gpusort.kernel.span import KernelError
from gpusort.kernel.specialise import specialise
from gpusort.types.indices import SortOrder, Stage
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import U32
from tests import reader_mistakes

FILE = Path(reader_mistakes.__file__)
LINES = FILE.read_text().splitlines()
MARK = "# <-"

LESSER = "`minimum(a, b)`, of floats `a if a < b else b`"
CALLABLE = "expected an operation of the kernel language or a helper written in it"
OF_NUMBERS = (
    "expected a scalar to compute with, found an enum's number, which to Python is an int, e.g. `U32(kind.value)`"
)
INVERTED = "expected a Bool after `~`, found a bool of Python's own, e.g. `not a == b`, or `~Bool(x)`"
NO_NUMBER = "expected a number from 0 to 2**32 - 1 as the value of Sign.MINUS, which is -1, e.g. `MINUS = 1`"
DECORATED = "expected a helper without a decorator around it, found '{}', e.g. its body in the helper itself"
FAILED = "expected compile-time values that fit, found an error ({}), e.g. `2 * count`"
NO_TRUTH = "ValueError: The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
OWN_EQUALITY = "expected Alike without an `__eq__` of its own, e.g. a method, or `a is b`"
IDLE = "expected a statement that does something, e.g. `cx.barrier()`, or `x = a + b`"
STRUCT = "expected an attrs class to make a value of"

# By the kernel's name: all of the message behind `file:line: `.
TOO_LARGE = (
    "expected compile-time values of at most 4096 bits or 10000 items, found more, e.g. `1 << 32`, "
    "or a computation before the launch"
)
with pytest.raises(ZeroDivisionError) as _by_zero:
    divmod(1, 0)
DIVISION = str(_by_zero.value)  # Python's own words, which are others from 3.14 on
MESSAGES = {
    "calls_itself": "expected helpers nested less than 50 deep; recursion has no meaning on a device, e.g. use a loop",
    "shifts_by_a_wide_number": "expected an integer and a U32 for `<<`, found U64 and U64; convert one, e.g. `U32(x)`",
    "inverts_a_float": "expected an integer or a Bool for `~`, found F32; convert one, e.g. `bitcast(U32, x)`",
    "mixes_types": "expected two numbers of one type for `+`, found U32 and U64; convert one, e.g. `U32(x)`",
    "literal_too_large": "expected a literal that fits U32 (0 to 4294967295), found 4294967296, e.g. `U32(1)`",
    "int_beyond_floats": "expected a literal that fits F32, found an int beyond all floats, e.g. `F32(1e30)`",
    "more_rounds_than_python_counts": (
        "expected loops that unroll to at most 10000 statements in a kernel, and this one has "
        f"{10**400} rounds, e.g. `for i in dynamic_range(U32(0), U32(4294967295)):`"
    ),
    "float_beside_integer": "expected U32 beside U32, found 0.5, e.g. `U32(1)`",
    "indexes_by_a_stage": "expected a U32 index, found a Stage, e.g. `data[thread.value]`",
    "stores_a_float": "expected U32 to store, found a F32, e.g. `bitcast(U32, x)`",
    "stores_a_python_int": "expected U32 to store, found the compile-time value 1, e.g. `U32(x)`",
    "slices": "expected one index instead of a slice, e.g. a loop over `data[i]`",
    "chained_comparison": "expected one comparison at a time, e.g. `low <= x and x < high`",
    "membership": "expected a comparison of scalars instead of `in`, e.g. `a == b or a == c`",
    "number_as_condition": "expected a condition, found a U32, e.g. `x != 0`",
    "not_of_a_number": "expected a condition after `not`, found a U32, e.g. `x == 0`",
    "power": "expected an operator of the kernel language, e.g. `x * x` instead of `x ** 2`",
    "true_division": "expected two floats of one type for `/`, found U32 and U32; convert one, e.g. `F32(x)`",
    "division_by_zero": "expected a divisor other than zero, e.g. `x // 2`",
    "sum_beyond_its_type": "expected a sum that fits 32 bits, e.g. `a + b`, which wraps",
    "zeros_of_two_signs": (
        "expected one value of 'zero' behind the branch; its compile-time value differs between the paths, "
        "e.g. `zero = F32(-0.0)` before it"
    ),
    "nothing_or_zero": (
        "expected one value of 'x' behind the branch; its compile-time value differs between the paths, "
        "e.g. `x = U32(0)` before it"
    ),
    "structs_that_differ_at_compile_time": (
        "expected a Scaled of 0.5 for 'scaled' as before, found a Scaled of 2.0, e.g. a name of its own"
    ),
    "range_of_a_scalar": (
        "expected a compile-time value for 'range', found a U32, e.g. `for i in dynamic_range(U32(0), n):`"
    ),
    "break_of_an_unrolled_loop": (
        "expected `break` in a run-time loop; an unrolled one has no end to jump to, e.g. `for i in "
        "dynamic_range(U32(0), n):`"
    ),
    "returns_from_a_loop": "expected `return` outside run-time loops, e.g. set a variable and `break`",
    "for_else": "expected a loop without `else`, e.g. set a variable before `break`",
    "counts_in_a_python_int": (
        "expected 'count' to be a run-time value, for a loop changes it, e.g. `count = U32(0)` before the loop"
    ),
    "unset_on_a_path": "expected 'x' to be set on every path to here, e.g. `x = U32(0)` before the branch",
    "changes_its_type": "expected a U32 for 'x' as before, found a U64, e.g. a name of its own",
    "changes_a_field": "expected a new object instead of a changed field: structs are frozen, e.g. `p = Pair(a, b)`",
    "forgets_a_case": (
        "expected a case for every member of SortOrder, found none for SortOrder.DESCENDING, e.g. `case "
        "SortOrder.DESCENDING:`"
    ),
    "matches_a_number": "expected an enum to match, found a U32, e.g. `if x == 1:` for a number",
    "guards_a_case": "expected a case without a guard, e.g. an `if` inside it",
    "asserts": "expected no `assert` in a kernel: a device cannot raise, e.g. a check on the host",
    "raises": "expected no exceptions in a kernel: a device cannot raise, e.g. write a U32 flag",
    "prints": "expected no `print` in a kernel, e.g. a breakpoint in a run under CPython instead",
    "makes_a_list": "expected a fixed-size array instead of a Python container, e.g. `Registers(U32, 8)`",
    "uses_a_lambda": "expected a named function instead of `lambda`, e.g. `def helper(x: U32) -> U32: …`",
    "formats": "expected no text in a kernel: f-strings have no meaning on a device, e.g. store a U32 code",
    "walrus": "expected an assignment of its own instead of `:=`, e.g. `x = data[i]`",
    "unknown_name": "expected a name that is defined, found 'nowhere', e.g. a parameter or an import",
    "unknown_field": "expected a field or method of Params, found `.length`, e.g. `.n`",
    "unknown_method_of_cx": "expected something an invocation has, found `.wait`, e.g. `cx.local_id` or `cx.barrier()`",
    "barrier_with_an_argument": "expected no argument, e.g. `cx.barrier()`",
    "too_few_arguments": (
        "expected a call that fits `Pair(low: 'U32', high: 'U32') -> None` (missing a required argument: "
        "'high'), e.g. each argument by its name"
    ),
    "wrong_field_type": "expected U32 for `high` of Pair, found a U64, e.g. `U32(x)`",
    "builtin_on_scalars": f"expected a compile-time value for 'min', found a U32, e.g. {LESSER}",
    "imports": "expected definitions and imports outside the kernel, e.g. at the top of the module",
    "with_block": (
        "expected no `with` in a kernel: there is nothing to enter and leave on a device, e.g. its statements alone"
    ),
    "narrow_arithmetic": "expected two numbers of one type for `+`, found U8 and U8; convert one, e.g. `U32(x)`",
    "atomic_on_registers": "expected Storage[U32] or Workgroup[U32] for an atomic, e.g. `counts: Workgroup[U32]`",
    "registers_of_run_time_length": "expected an element class and a compile-time length, e.g. `Registers(U32, 8)`",
    "bitcasts_to_another_size": "expected another type of U64's size to bitcast, found U32, e.g. `U64(x)`",
    "different_arms": "expected one type on both sides, found a U32 and a U64, e.g. `U32(1)` for a number",
    "loops_over_a_scalar": "expected something to loop over, found a U32, e.g. `for i in dynamic_range(U32(0), n):`",
    "step_of_zero": "expected a step of at least 1, e.g. `dynamic_range(U32(0), n, U32(2))`",
    "reads_the_counter_behind_its_loop": (
        "expected 'i' to count in its loop only, e.g. another name for the value behind the loop"
    ),
    "python_int_set_before_break": (
        "expected 'found' to be a run-time value, for a loop changes it, e.g. `found = U32(0)` before the loop"
    ),
    "python_int_set_before_continue": (
        "expected one value of 'found' behind the branch; its compile-time value differs between the paths, "
        "e.g. `found = U32(0)` before it"
    ),
    "breaks_beside_a_return": (
        "expected no `break` or `continue` beside a `return` in an unrolled loop, e.g. an `if` instead"
    ),
    "identity_of_scalars": "expected `is` between members of one enum, or with None, e.g. `a == b` for scalars",
    "falls_off_a_helper": "expected 'returns_sometimes' to return on every path, e.g. `return U32(0)` at its end",
    "helper_of_two_types": "expected a U32 from every `return`, found a F32, e.g. `return U32(1)`",
    "decorated_helper": (
        "expected a helper without a decorator around it, found 'plus_one', e.g. its body in the helper itself"
    ),
    "converting_struct": (
        "expected Converted to hold what it is given, without a conversion of 'value', e.g. a classmethod "
        "`Converted.of(x)`"
    ),
    "too_many_operands": "expected 2 argument(s), found 3, e.g. `minimum(a, b)`",
    "tuple_too_short": (
        "expected compile-time values that fit, found an error (IndexError: tuple index out of range), e.g. `2 * count`"
    ),
    "known_values_that_do_not_fit": (
        f"expected compile-time values that fit, found an error (ZeroDivisionError: {DIVISION}), e.g. `2 * count`"
    ),
    "run_time_value_over_zero": "expected a divisor other than zero, e.g. `x // 2`",
    "narrow_literal_too_large": "expected a literal that fits U8 (0 to 255), found 300, e.g. `U8(1)`",
    "bitcast_to_itself": "expected another type of U32's size to bitcast, found U32, e.g. `U32(x)`",
    "no_registers": "expected a length of at least 1, found 0, e.g. `Registers(U32, 8)`",
    "registers_of_ints": (
        "expected a scalar, an enum or a frozen attrs class as an element, found int, e.g. `Registers(U32, 8)`"
    ),
    "shuffles_an_array": (
        "expected a scalar or a struct to shuffle, found the array 'data', e.g. `cx.shuffle(pair, lane)`"
    ),
    "unpacks_too_much": "expected 2 values to unpack, found a tuple of 3, e.g. `a, b = p.a, p.b`",
    "negates_unsigned": "expected a signed number for `-`, found U32; convert one, e.g. `I32(x)`",
    "selects_by_a_number": (
        "expected a Bool and two scalars of one type for `select`, found U32 and U32 and U32; convert one, "
        "e.g. `select(a < b, a, b)`"
    ),
    "converts_a_float": "expected a value that converts to U32, found F32, e.g. `bitcast(U32, x)`",
    "stores_a_number_for_a_pair": "expected Pair to store, found a U32, e.g. `Pair(low, high)`",
    "stores_a_number_for_a_stage": "expected Stage to store, found a U32, e.g. `Stage(value)`",
    "number_for_an_order": ("expected SortOrder for `order` of Params, found a U32, e.g. `SortOrder.ASCENDING`"),
    "number_for_a_python_int": "expected int for `passes` of Plan, found a U32, e.g. `8`",
    "loads_with_a_value": "expected an index, e.g. `counts.atomic_load(i)`",
    "adds_without_a_value": "expected an index and a value, e.g. `counts.atomic_add(i, x)`",
    "python_int_of_a_scalar": "expected a compile-time value for 'int', found a U32, e.g. `I32(x)`",
    "python_float_of_a_scalar": "expected a compile-time value for 'float', found a U32, e.g. `F32(x)`",
    "python_bool_of_a_scalar": "expected a compile-time value for 'bool', found a U32, e.g. `x != 0`",
    "abs_of_a_scalar": "expected a compile-time value for 'abs', found a U32, e.g. `x if x >= 0 else -x`",
    "len_of_an_array": "expected a compile-time value for 'len', found the array 'data', e.g. `data.length`",
    "misspells_an_id": ("expected something an invocation has, found `.locl_id`, e.g. `cx.local_id` or `cx.barrier()`"),
    "number_in_an_arm": (
        "expected one type on both sides, found a U32 and the compile-time value 0, e.g. `U32(1)` for a number"
    ),
    "looks_a_scalar_up": (
        "expected a compile-time index into a tuple or a table, found a U32, e.g. `pair[0]`, or a buffer in place of "
        "the table"
    ),
    "makes_a_newtype_of_typing": (
        "expected an attrs class as a newtype, found the NewType 'Meters', e.g. `@attrs.frozen` above a class of one "
        "field"
    ),
    "math_on_scalars": "expected a compile-time value for 'sqrt', found a U32, e.g. `sqrt(x)`",
    "built_in_without_source": f"{CALLABLE}, found 'round', e.g. a helper of your own",
    "defines_a_helper": "expected definitions and imports outside the kernel, e.g. at the top of the module",
    "makes_a_dataclass": f"{STRUCT}, found the dataclass 'Plain', e.g. `@attrs.frozen` above its definition",
    "makes_a_named_tuple": f"{STRUCT}, found the named tuple 'Named', e.g. `@attrs.frozen` above its definition",
    "evolves": f"{CALLABLE}, found 'evolve', e.g. `Pair(p.low, x)`",
    "takes_a_struct_apart_by_attrs": f"{CALLABLE}, found 'astuple', e.g. `p.low`",
    "starred_name": "expected a name for each value instead of `*`, e.g. `a, b, c = p`",
    "enumerates": f"{CALLABLE}, found 'enumerate', e.g. `for i in range(len(table)):`",
    "numpy_on_scalars": f"{CALLABLE}, found 'minimum', e.g. {LESSER}",
    "minimum_of_floats": (
        "expected two integers of one type for `min`, found F32 and F32; convert one, e.g. `a if a < b else b`"
    ),
    "numpy_scalar": "expected a scalar of the kernel language, found 'uint32', e.g. `U32(x)`",
    "number_of_a_table_of_numpys": "expected U32 beside U32, found np.uint32(1), e.g. `int(x)` of it",
    "loops_over_an_array": (
        "expected something to loop over, found the array 'data', e.g. `for i in dynamic_range(U32(0), data.length):`"
    ),
    "loops_over_a_generator": "expected a helper that gives one value, e.g. `return x` instead of `yield`",
    "counts_from_the_end": "expected an index counted from the front, found -1, e.g. `data.length - 1`",
    "two_indices": "expected a U32 index, found a tuple of 2, e.g. `data[row * width + column]`",
    "imaginary": "expected a number, a text or None as a literal, found 1j, e.g. `1`",
    "size_of_an_array": "expected the length or a method of an array, found `.size`, e.g. `data.length`",
    "property_that_is_kept": (
        "expected a field, a method or a property of Cached, found `.doubled`, which is none, e.g. `@property` above "
        "its definition"
    ),
    "workgroup_memory_in_the_body": (
        "expected workgroup memory as a parameter of the kernel, which the launch gives its length, "
        "e.g. `tile: Workgroup[U32]`"
    ),
    "storage_in_the_body": (
        "expected storage as a parameter of the kernel, which the launch gives its length, e.g. `data: Storage[U32]`"
    ),
    "never_ends": "expected a loop that ends, by its condition or a `break`, e.g. `while i < n:`",
    "tries_several": "expected no exceptions in a kernel: a device cannot raise, e.g. write a U32 flag",
    "declares_a_global": "expected a result in an array instead of `global`, e.g. `out[cx.global_id] = x`",
    "deletes": "expected no `del` in a kernel: a name ends with its function, e.g. another name for another value",
    "names_a_wide_number": "expected two scalars of one type for `==`, found U8 and U32; convert one, e.g. `U32(x)`",
    "equates_with_too_much": "expected a literal that fits U8 (0 to 255), found 256, e.g. `U8(1)`",
    "large_power": TOO_LARGE,
    "large_shift": TOO_LARGE,
    "large_product": TOO_LARGE,
    "large_text": TOO_LARGE,
    "large_factorial": TOO_LARGE,
    "sums_a_large_range": TOO_LARGE,
    "many_registers": (
        "expected at most 2048 registers of this class in an array, found 2049, e.g. workgroup memory, "
        "a parameter `tile: Workgroup[U32]`"
    ),
    "adds_a_struct": (
        "expected two numbers of one type for `+`, found a U32 and a Stage, e.g. `U32(1)` for a literal, "
        "or a struct's field"
    ),
    "asks_for_no_class": (
        "expected compile-time values that fit, found an error (TypeError: issubclass expected 2 arguments, got 1), "
        "e.g. `2 * count`"
    ),
    "connects_a_number": (
        "expected a Bool or a bool beside `and` and `or`, found the compile-time value 5, e.g. `a if c else b`"
    ),
    "connects_nothing": (
        "expected a Bool or a bool beside `and` and `or`, found the compile-time value None, e.g. `a if c else b`"
    ),
    "compares_by_a_tuple": "expected Ordered to define `__lt__`, or its field, e.g. `x.low`",
    "asks_a_factory": (
        "expected a default of 'Ordered' that is known, found a factory's for 'high', e.g. each argument by itself, "
        "or `high: U32 = U32(0)`"
    ),
    "identity_of_structs": ("expected `is` between members of one enum, or with None, e.g. `a == b` for scalars"),
    "indexes_by_another_number": "expected a U32 index, found a U64, e.g. `data[U32(x)]`",
    "chooses_an_array": ("expected an element on both sides, found an array and another, e.g. `a[i] if c else b[i]`"),
    "makes_a_bool_of_a_number": "expected Bool beside Bool, found 5, e.g. `Bool(True)`",
    "never_comes_here": f"{CALLABLE}, found 'assert_never', e.g. `match order:`",
    "subtracts_from_the_number_of_an_enum": OF_NUMBERS,
    "negates_the_number_of_an_enum": OF_NUMBERS,
    "exceeds_the_number_of_an_enum": OF_NUMBERS,
    "chooses_a_negative_member": NO_NUMBER,
    "equates_with_a_negative_member": NO_NUMBER,
    "calls_an_enum_of_no_members": "expected a member of Enum, e.g. `Enum.MEMBER`",
    "asks_for_the_name_of_a_member": (
        "expected a field, a method or a property of SortOrder, found `.name`, which is none, e.g. `kind.value`"
    ),
    "matches_a_negative_member": NO_NUMBER,
    "holds_a_negative_member": NO_NUMBER,
    "takes_numbers_of_enums_for_scalars": OF_NUMBERS,
    "adds_to_a_number_that_changed": OF_NUMBERS,
    "gives_two_arrays": ("expected the array 'data' from every `return`, found registers, e.g. `return U32(1)`"),
    "chooses_a_choice": (
        "expected one type on both sides, found a Tripled of 3 and a Tripled of 5, e.g. `U32(1)` for a number"
    ),
    "swaps_arrays_in_a_loop": (
        "expected 'a' to be one array, for a run-time loop is read once, e.g. a loop over `range(3)`"
    ),
    "takes_an_enum_for_its_number": (
        "expected two numbers of one type for `+`, found a U32 and a Level, e.g. `U32(1)` for a literal, "
        "or `U32(kind.value)`"
    ),
    "converts_an_enum": "expected a scalar to convert to U32, found a Level, e.g. `U32(kind.value)`",
    "matches_flags": "expected an enum to match, found Marks, which is a Flag, e.g. `if x.value & 1 != 0:`",
    "multiplies_flags": OF_NUMBERS,
    "keeps_a_bool_by_plus": "expected a number after `+`, found a Bool, e.g. `U32(x)`",
    "calls_super": f"{CALLABLE}, found 'super', e.g. `Base.method(self)`",
    "inverts_what_python_negates": INVERTED,
    "inverts_an_equality_of_enums": INVERTED,
    "inverts_an_identity": INVERTED,
    "multiplies_a_scalar_by_a_struct": "expected the Vector on the left of a scalar, found a U32 there, e.g. `v * x`",
    "reads_a_decorated_property": DECORATED.format("area"),
    "adds_by_a_decorated_method": DECORATED.format("__add__"),
    "subtracts_by_a_method_of_one_operand": (
        "expected a call that fits `Odd.__sub__(self)` (too many positional arguments), e.g. each argument by its name"
    ),
    "names_an_argument_of_a_scalar": "expected positional arguments, e.g. `minimum(a, b)`",
    "takes_an_array_for_a_condition": FAILED.format(NO_TRUTH),
    "connects_an_array": FAILED.format(NO_TRUTH),
    "calls_an_array": "expected something to call, found the compile-time value array([0, 1, 2, 3], dtype=uint32), "
    "e.g. `partner_of(thread)`",
    "loops_over_a_class": FAILED.format("TypeError: 'type' object is not iterable"),
    "asks_a_property_that_fails": FAILED.format("OSError: no width"),
    "asks_for_an_attribute_in_vain": FAILED.format("OSError: no height"),
    "equates_what_are_all_equal": OWN_EQUALITY,
    "matches_what_are_all_equal": OWN_EQUALITY,
    "sorts_as_the_host_does": f"{CALLABLE}, found 'sort', e.g. a helper of your own",
    "looks_up_a_key": f"{CALLABLE}, found 'key_for', e.g. a helper of your own",
    "looks_up_what_is_not_there": FAILED.format("KeyError: 'three'"),
    "forgets_to_call_the_barrier": IDLE,
    "compares_for_nothing": IDLE,
    "makes_a_scalar_as_the_host_does": f"{CALLABLE}, found 'of_item', e.g. a helper of your own",
    "literal_that_python_does_not_write": (
        "expected a literal that fits U32 (0 to 4294967295), found an int of 15001 bits, e.g. `U32(1)`"
    ),
}
KERNELS = {name: thing for name, thing in vars(reader_mistakes).items() if isinstance(thing, Kernel)}


def launch_of(name: str) -> Launch:
    data = Buffer("data", U32, 8, Role.INOUT)
    params = reader_mistakes.Params(U32(8), SortOrder.ASCENDING, Stage(U32(1)))
    return Launch(KERNELS[name], Grid(1, 4), (data, params))


def test_every_mistake_has_a_message() -> None:
    assert list(KERNELS) == list(MESSAGES)
    assert len([line for line in LINES if line.endswith(MARK)]) == len(MESSAGES)


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    with pytest.raises(KernelError) as caught:
        specialise(launch_of(name))
    line = caught.value.span.line
    assert LINES[line - 1].endswith(MARK)
    assert str(caught.value) == f"{FILE}:{line}: {MESSAGES[name]}\n    {LINES[line - 1].strip()}"


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_has_an_example(name: str) -> None:
    assert MESSAGES[name].startswith("expected ")
    assert ", e.g. " in MESSAGES[name]


def test_an_unrolled_loop_has_as_many_rounds_as_it_has_numbers() -> None:
    """However large these are."""

    def far_away(cx: Invocation, data: Storage[U32]) -> None:
        for i in range(20_000, 20_008, 4):
            data[cx.global_id] = data[cx.global_id] + i

    found = specialise(kernel(far_away).launch(Grid(1, 4), Buffer("data", U32, 4, Role.INOUT))).program
    assert sum(isinstance(statement, ir.Store) for statement in statements_in(found.body)) == 2


def test_a_full_stack_is_the_callers_and_no_mistake_of_the_kernels() -> None:
    @kernel
    def copy(cx: Invocation, data: Storage[U32]) -> None:
        data[cx.global_id] = data[cx.global_id] + U32(1)

    launch = copy.launch(Grid(1, 4), Buffer("data", U32, 4, Role.INOUT))

    def behind(frames: int) -> object:
        return specialise(launch) if frames == 0 else behind(frames - 1)

    free = sys.getrecursionlimit() - len(inspect.stack())
    for room in range(20, 60, 4):
        try:
            behind(free - room)
            break
        except RecursionError:
            pass  # and never a KernelError
