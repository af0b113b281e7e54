"""What an export writes: plans for every length, kernels for every device, and what it refuses."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import gpusort
from examples.ipv4_key import Ipv4Key
from examples.log_sum_exp import LogSumExp
from gpusort.export.kernels import Kernels, wgsl_kernel
from gpusort.export.module import in_numbered_lines
from gpusort.export.operations import LONGEST_BITONIC
from gpusort.export.plans import Plan, exported_of, plans_of, plans_of_rows
from gpusort.export.request import Request, any_device
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.types.dtypes import key_for
from gpusort.types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import I32, U32
from gpusort.types.traced import Traced, term_of, value_at

_COUNTS: tuple[Callable[[int], int], ...] = (
    lambda n: n,
    lambda n: -(-n // 256),
    lambda n: 3 * n + 7 - n // 4,
    lambda n: min(n, 1024) + max(-(-n // 8), 40),
    lambda n: (n << 3) >> 1,
    lambda n: n % 10 + 1,
    lambda n: 1 << n.bit_length(),
    lambda n: (20 - n // 100).bit_length(),
    lambda n: 5 if n == 17 else n - 1 if n else 0,
)


@pytest.mark.parametrize("number", range(len(_COUNTS)))
def test_a_traced_length_stands_for_its_whole_range(number: int) -> None:
    """Wherever a range ends, another begins; within it the formula is what the function gives."""
    count, first, ranges = _COUNTS[number], 0, 0
    while first <= 5000:
        length = Traced.of(first, first, 5000)
        term = term_of(count(length))
        last = length.range.last
        assert first <= last
        for n in range(first, last + 1):
            assert value_at(term, n) == count(n)
        first, ranges = last + 1, ranges + 1
    assert ranges <= 15


def test_a_traced_length_is_found_in_the_middle_of_its_range() -> None:
    length = Traced.of(100, 0, 1000)
    assert length // 2 >= 50
    assert length < 300
    assert (length.range.first, length.range.last) == (100, 299)


def test_what_rises_and_falls_is_compared_within_bounds() -> None:
    """A quotient of two that grow: the range is smaller than it could be, but what it says is true."""
    first, ranges = 0, 0
    while first <= 5000:
        length = Traced.of(first, first, 5000)
        is_one = length > 0 and -(-length // -(-length // 100)) <= 60
        for n in range(first, length.range.last + 1):
            assert is_one is (n > 0 and -(-n // -(-n // 100)) <= 60)
        first, ranges = length.range.last + 1, ranges + 1
    assert ranges < 64
    last = 5000  # and the other way
    while last >= 0:
        length = Traced.of(last, 0, last)
        is_one = length > 0 and -(-length // -(-length // 100)) <= 60
        for n in range(length.range.first, last + 1):
            assert is_one is (n > 0 and -(-n // -(-n // 100)) <= 60)
        last, ranges = length.range.first - 1, ranges + 1
    assert ranges < 128


def test_a_divisor_that_may_be_zero_in_the_range_narrows_it() -> None:
    length = Traced.of(50, 0, 100)
    assert 100 // (length - 5) < 60
    assert (length.range.first, length.range.last) == (7, 100)


@pytest.mark.parametrize("name", ["and", "or", "xor", "pow", "truediv", "divmod", "mod", "lshift", "rshift"])
def test_what_would_hold_for_one_length_alone_is_refused(name: str) -> None:
    """Bits, powers and fractions of it; what is divided or shifted by it, too."""
    length: Any = Traced.of(50, 0, 100)
    if name in ("mod", "lshift", "rshift"):
        assert isinstance(getattr(length, f"__{name}__")(3), Traced)
    else:
        with pytest.raises(UnsupportedTypeError, match="a quotient rounded up is `-"):
            getattr(length, f"__{name}__")(3)
    with pytest.raises(UnsupportedTypeError, match="a length that stands for others"):
        getattr(length, f"__r{name}__")(3)


@kernel
def fill(cx: Invocation, data: Storage[U32], value: U32) -> None:
    """Writes one number everywhere."""
    data[cx.global_id] = value


def _filling(value: Callable[[int], int], length: int) -> Schedule:
    data = Buffer("data", U32, 64 * -(-length // 64), Role.OUTPUT)
    launch = fill.launch(Grid(-(-length // 64), 64), data, U32(value(length)))
    return Schedule((data,), (launch,))


def test_a_length_that_was_made_into_another_int_is_noticed() -> None:
    assert len(plans_of(lambda length: _filling(lambda n: n, length), Kernels(any_device(0).limits, wgsl_kernel))) == 1
    with pytest.raises(InvalidArgumentError, match="did not ask how many there are"):
        plans_of(lambda length: _filling(lambda n: int(str(n)), length), Kernels(any_device(0).limits, wgsl_kernel))


def test_plans_end_where_a_buffer_has_more_scalars_than_kernels_count() -> None:
    """As targets refuse it: indices and lengths are U32."""
    times = 3

    def make(length: int) -> Schedule:
        data = Buffer("data", U32, times * length, Role.OUTPUT)
        return Schedule((data,), (fill.launch(Grid(1, 64), data, U32(1)),))

    (plan,) = plans_of(make, Kernels(any_device(0).limits, wgsl_kernel))
    assert (plan.first, plan.last) == (0, ((1 << 32) - 1) // times)


def test_a_form_for_every_length_is_refused() -> None:
    def steps(length: int) -> int:
        return sum(length > other for other in range(1000))

    with pytest.raises(UnsupportedTypeError, match="more than 64 forms up to length 64"):
        plans_of(lambda length: _filling(steps, length), Kernels(any_device(0).limits, wgsl_kernel))


def _plans_of_rows(value: Callable[[int, int], int]) -> tuple[Plan, ...]:
    def make(rows: int, length: int) -> Schedule:
        return _filling(lambda n: value(rows, n), length)

    return plans_of_rows(make, Kernels(any_device(0).limits, wgsl_kernel))


def test_rows_are_a_term_of_their_own() -> None:
    (plan,) = _plans_of_rows(lambda rows, n: n // 8 * rows + 9 - rows)
    word = plan.launches[0].words[-1]
    assert all(value_at(word, n, rows) == n // 8 * rows + 9 - rows for n in (0, 7, 8, 100) for rows in (1, 2, 9))


def test_what_does_not_grow_by_as_much_with_each_row_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="is another than that"):
        _plans_of_rows(lambda rows, n: n // 8 + rows * rows)
    with pytest.raises(UnsupportedTypeError, match="do not grow by as much"):
        _plans_of_rows(lambda rows, n: n // 8 + 1 if rows % 2 else n // 3)


def test_a_sort_is_a_few_plans_whatever_the_length() -> None:
    """One for all lengths; where keys go alone, others for few keys, each of which begins with the one before."""
    request = Request({"u32": key_for("u4"), "f32": key_for("f4")}, (4,), any_device(0))
    exported = exported_of(("sort", "argsort"), request)
    for schedule in exported.schedules:
        lasts = [plan.last for plan in schedule.orders[0]]
        few = [plan for plan in schedule.orders[0] if 0 < plan.last <= LONGEST_BITONIC]
        assert lasts == [0, *(1 << bits for bits in range(9, 17) if few), (1 << 32) - 1]
        assert bool(few) == (schedule.variant.name in ("sort u32", "sort f32"))
        for plan, following in pairwise(few):
            assert following.launches[: len(plan.launches)] == plan.launches
    for found in exported.kernels.all:
        assert found.group_size <= 256
        assert found.workgroup_bytes <= 16384
        assert len(found.writes) <= 8
        assert not found.uses_subgroups


def test_the_module_is_small(tmp_path: Path) -> None:
    module, _ = gpusort.export("sort", tmp_path, keys=("u32", "f32"))
    text = module.read_bytes()
    assert len(text) < 40_000
    assert len(gzip.compress(text)) < 10_000


def test_lines_that_texts_share_are_written_once() -> None:
    request = Request({"u32": key_for("u4"), "f32": key_for("f4")}, (4,), any_device(0))
    texts = [kernel.text for kernel in exported_of(("sort",), request).kernels.all]
    lines, runs = in_numbered_lines(texts)
    each: list[Any] = json.loads(json.dumps(runs))
    places = [[at if isinstance(at, list) else [at, 1] for at in text] for text in each]
    whole = ["\n".join(line for first, count in text for line in lines[first : first + count]) for text in places]
    assert whole == texts
    assert sum(map(len, lines)) < sum(map(len, texts)) / 2


def test_plain_texts_come_with_all_that_a_program_needs(tmp_path: Path) -> None:
    written = gpusort.export("sort", tmp_path, keys=("u32",), format="wgsl")
    document: Any = json.loads((tmp_path / "gpusort.json").read_text("utf-8"))
    assert {file.name for file in written} == {found["file"] for found in document["kernels"]} | {
        "gpusort.json",
        "gpusort.h",
    }
    scatter = next(found for found in document["kernels"] if found["entry"] == "radix_scatter")
    text = (tmp_path / scatter["file"]).read_text("utf-8")
    assert f"@workgroup_size({scatter['workgroup_size']})" in text
    for field in scatter["parameters"]:
        assert f" {field['name']}: {field['type']}," in text
    launches = document["schedules"]["sort u32"][-1]["launches"]
    assert len(launches) == 15
    for launch in launches:
        found = document["kernels"][launch["kernel"]]
        assert len(launch["parameters"]) == len(found["parameters"]) - 2
        assert len(launch["buffers"]) == len(found["bindings"]) - 1
    assert set(document["schedules"]) == {"sort u32", "sort u32 descending"}


def test_a_key_of_ones_own(tmp_path: Path) -> None:
    module, types = gpusort.export("sort", tmp_path, keys=("examples.ipv4_key:Ipv4Key",))
    assert '"sort Ipv4Key"' in module.read_text("utf-8")
    assert 'Type = "Ipv4Key"' in types.read_text("utf-8")
    named, _ = gpusort.export("sort", tmp_path, keys={"address": Ipv4Key()}, name="addresses")
    assert named.read_text("utf-8") == module.read_text("utf-8").replace("Ipv4Key", "address")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"operations": "sorted"}, "operations: expected some of sort, argsort"),
        ({"operations": "reduce"}, "monoids: expected some for 'reduce'"),
        ({"k": (3, 10)}, "k: expected none without the operation 'top_k', found 3, 10"),
        ({"operations": "sum", "values": "u32"}, "values: expected none without the operation 'sort', found u32"),
        ({"monoids": {"own": LogSumExp()}}, "monoids: expected none without .* 'reduce' or 'scan', found own"),
        ({"operations": "sum", "rows": (8, "any")}, "rows: expected none .* 'argsort' or 'top_k', found 8, any"),
        ({"format": "ptx", "unrolled": True}, "unrolled: expected False for 'ptx', whose compiler unrolls; found True"),
        ({"schedules": {"own": len}}, "schedules: expected none without the operation 'schedule', found own"),
        ({"schedules": ("here",)}, "schedules: expected 'module:attribute'"),
        ({"keys": ("u33",)}, "keys: expected some of u8"),
        ({"keys": (":KEY",)}, "keys: expected 'module:attribute', found ':KEY'"),
        ({"keys": (".keys:KEY",)}, "keys: expected 'module:attribute', found '.keys:KEY'"),
        ({"keys": ("inspect:Parameter",)}, "keys: expected an object, or a class that takes no arguments: .*missing"),
        ({"keys": ("nowhere:KEY",)}, "keys: 'nowhere:KEY' cannot be imported"),
        ({"values": ("x",)}, "values: expected some of u8"),
        ({"operations": "top_k"}, "k: expected some for 'top_k'"),
        ({"operations": "top_k", "k": 257}, "k: expected 1 to 256, found 257; a sort gives more"),
        ({"operations": "top_k", "k": (5, 0)}, "k: expected 1 to 256, found 0"),
        ({"rows": (0,)}, "rows: expected lengths of at least 1 and below 2..32, or 'any', found 0"),
        ({"rows": (1 << 32,)}, "rows: expected lengths of at least 1 and below 2..32, or 'any', found 4294967296"),
        ({"lanes": -1}, "lanes: expected 0, or a power of two up to 64, found -1"),
        ({"lanes": 3}, "lanes: expected 0, or a power of two up to 64, found 3"),
        ({"lanes": 12}, "lanes: expected 0, or a power of two up to 64, found 12"),
        ({"lanes": 128}, "lanes: expected 0, or a power of two up to 64, found 128"),
        ({"operations": "schedule", "schedules": ("math:pi",)}, "schedules: expected a function of a length for 'pi'"),
        ({"rows": ("all",)}, "rows: expected lengths of at least 1 and below 2..32, or 'any', found 'all'"),
        ({"operations": ()}, "operations: expected some, .* found nothing to export"),
        ({"keys": ()}, "operations: expected some, .* found nothing to export"),
        ({"keys": {"u32": Ipv4Key()}}, "keys: 'u32' is the name of a type; expected another one for Ipv4Key"),
        ({"operations": "scan", "monoids": {"sum": LogSumExp()}}, "monoids: 'sum' is the name of an operation"),
        (
            {"operations": ("sort", "schedule"), "schedules": {"sort u32": lambda n: Schedule((), ())}},
            "export: expected schedules of different names, found 'sort u32' twice",
        ),
        ({"name": "../x"}, "name: expected a file's name"),
        ({"format": "glsl"}, "format: expected js or wgsl"),
        ({"format": np.zeros(2)}, "format: expected js or wgsl"),
        ({"operations": "schedule", "schedules": "here"}, "schedules: expected 'module:attribute', found 'here'"),
        ({"keys": "u33"}, "keys: expected some of u8, .* found 'u33'"),
        ({"out": __file__}, "out: expected a folder, or what can become one, found '.*test_export.py'"),
        ({"out": f"{__file__}/in"}, "out: expected a folder, or what can become one, found '.*test_export.py/in'"),
        ({"out": "a\0b"}, "out: expected a folder, or what can become one, found 'a.x00b'"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, what: dict[str, Any], message: str) -> None:
    request: dict[str, Any] = {"operations": "sort", "out": tmp_path, **what}
    with pytest.raises(InvalidArgumentError, match=message):
        gpusort.export(**request)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"keys": {"own": Ipv4Key(element=cast(Any, I32))}}, "^keys: export sorts keys whose .* in memory, not I32$"),
        ({"operations": "top_k", "k": 3, "keys": {"own": Ipv4Key(element=cast(Any, I32))}}, "sorts keys .* not I32$"),
        ({"keys": {3: Ipv4Key()}}, "keys: expected str, or a sequence of these, found {3: "),
        ({"keys": ("textwrap:dedent",)}, "keys: 'dedent': expected a SortableKey, .*, found <function"),
        ({"keys": ("pathlib:PurePath",)}, r"keys: 'PurePath': expected a SortableKey, .*, found Pure\w+\('.'\), which"),
        ({"keys": {"own": Ipv4Key}}, "keys: 'own': .*, found the class Ipv4Key: make a value of it"),
        ({"operations": "scan", "monoids": {"own": LogSumExp}}, "monoids: 'own': .*, found the class LogSumExp: make"),
        ({"operations": "reduce", "monoids": ("math:pi",)}, "monoids: 'pi': expected a monoid, .*, found 3.14"),
        ({"keys": ("math:pi",)}, "keys: 'pi': expected a SortableKey, .*, found 3.14"),
        ({"keys": {"pi": 3}}, "keys: 'pi': expected a SortableKey, .*, found 3, which has no"),
        (
            {"keys": {"half": SimpleNamespace(element=U32, word=U32, to_word=U32, from_word=U32)}},
            "keys: 'half': expected a SortableKey, .*, found .*, which has no greatest, to_rank, mirrored",
        ),
        ({"keys": 3}, "keys: expected str, or a sequence of these, found 3"),
        ({"operations": ("sort", 1)}, r"operations: expected str, or a sequence of these, found \('sort', 1\)"),
        ({"monoids": (3,)}, r"monoids: expected str, or a sequence of these, found \(3,\)"),
        ({"rows": 1.5}, "rows: expected int or str, or a sequence of these, found 1.5"),
        ({"k": "10"}, "k: expected int, or a sequence of these, found '10'"),
        ({"lanes": "32"}, "lanes: expected an int, found '32'"),
        ({"out": None}, "out: expected a path, found None"),
        ({"out": b"x"}, "out: expected a path, found b'x'"),
        ({"name": 3}, "name: expected a text, found 3"),
        ({"arch": 90, "format": "ptx"}, "arch: expected a text, found 90"),
        ({"unrolled": 2}, "unrolled: expected True or False, found 2"),
        ({"unrolled": "no"}, "unrolled: expected True or False, found 'no'"),
        (
            {"operations": "schedule", "schedules": {"own": str}},
            "schedules: expected a Schedule of a length from 'own', found '1'",
        ),
    ],
)
def test_what_is_of_another_type_is_named(tmp_path: Path, what: dict[str, Any], message: str) -> None:
    request: dict[str, Any] = {"operations": "sort", "out": tmp_path, **what}
    with pytest.raises(UnsupportedTypeError, match=message):
        gpusort.export(**request)
    assert not list(tmp_path.iterdir())


def test_numbers_are_numpys_too(tmp_path: Path) -> None:
    plain = gpusort.export("top_k", tmp_path / "plain", keys=("u32",), k=(1, 3), rows=(1,), lanes=32)
    numpys: Any = {"k": [np.int64(1), np.int8(3)], "rows": np.uint32(1), "lanes": np.int16(32), "unrolled": 0}
    for one, another in zip(plain, gpusort.export("top_k", tmp_path, keys=("u32",), **numpys), strict=True):
        assert one.read_bytes() == another.read_bytes()


def test_doubles_are_sorted_but_not_added(tmp_path: Path) -> None:
    assert gpusort.export(("sort", "argsort", "max"), tmp_path, keys=("f64",))
    with pytest.raises(CapabilityError, match="64-bit floats"):
        gpusort.export("sum", tmp_path, keys=("f64",))
    pytest.importorskip("cuda.bindings")
    assert gpusort.export(("sum", "cumsum"), tmp_path, keys=("f64",), format="ptx")  # of cards, which add them


@kernel
def ranked(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = cx.exclusive_add(data[cx.global_id])


def test_a_kernel_with_subgroups_has_to_say_of_how_many_lanes(tmp_path: Path) -> None:
    def make(length: int) -> Schedule:
        data = Buffer("data", U32, length, Role.INOUT)
        return Schedule((data,), (ranked.launch(Grid(1, 32), data),))

    with pytest.raises(CapabilityError, match=r"'ranked' uses subgroups: .* expected a Policy .*`Needs\(lanes=32\)`"):
        gpusort.export("schedule", tmp_path, schedules={"ranks": make})
