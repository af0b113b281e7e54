"""Exported modules sort as NumPy does, in node with Dawn: dtypes, lengths, orders, buffers of the caller's."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.cli import main
from gpusort.export.operations import LONGEST_BITONIC
from tests.exported import WEB, Cases, compiled, node, run_program
from tests.reference import sample

_TYPES = {"u32": "u4", "f32": "f4"}
_TILE = 2560
_LENGTHS = (0, 1, 2, _TILE - 1, _TILE, _TILE + 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exported")


@pytest.fixture(scope="module")
def module(folder: Path) -> Path:
    node()
    operations = ("sort", "argsort", "top_k")
    written = gpusort.export(operations, folder, keys=tuple(_TYPES), values=("u32",), rows=(7, "any"), k=(3, 200))
    (folder / "package.json").write_text('{"type": "module"}', "utf-8")
    assert [file.name for file in written] == ["gpusort.js", "gpusort.d.ts"]
    return written[0]


def data(dtype: str, length: int, seed: int = 0) -> npt.NDArray[np.generic]:
    """With few equal elements, extremes, NaNs of both signs, infinities, zeros of both signs."""
    return sample(dtype, length, seed)


def test_typed_arrays(module: Path, tmp_path: Path) -> None:
    """Keys alone equal NumPy's bit for bit, but for which NaN is which; argsort and values keep equal keys' order.

    Not all of every type: to compile their kernels is what takes time.
    """
    cases = Cases(module, tmp_path)
    asked = [
        ("sort", "f32", length, down)
        for length in (*_LENGTHS, LONGEST_BITONIC, LONGEST_BITONIC + 1)
        for down in (False, True)
    ]
    asked += [("sort", "u32", length, True) for length in (*_LENGTHS, LONGEST_BITONIC)]
    longer = (*_LENGTHS, 4 * _TILE + 5)
    asked += [(what, "f32", length, down) for what, down in (("argsort", True), ("pairs", False)) for length in longer]
    for what, name, length, down in asked:
        arrays = {"input": data(_TYPES[name], length)}
        if what == "pairs":
            arrays["values"] = np.arange(length, dtype=np.uint32)[::-1].copy()
        call, options = "argsortArray" if what == "argsort" else "sortArray", {"descending": down}
        cases.add(f"{what}-{name}-{length}-{down}", "arrays", arrays, call=call, type=name, options=options)
    cases.run()
    for what, name, length, down in asked:
        keys, label = data(_TYPES[name], length), f"{what}-{name}-{length}-{down}"
        found = np.frombuffer(cases.found(label), np.uint32 if what == "argsort" else _TYPES[name])
        expected = _places(keys, down) if what == "argsort" else _sorted(keys, down)
        np.testing.assert_array_equal(found, expected, err_msg=label)
        if what == "pairs":
            moved = np.frombuffer(cases.found(label, 1), np.uint32)
            # Values were counted down: they say which key each came with, bit for bit.
            assert keys[length - 1 - moved.astype(np.int64)].tobytes() == cases.found(label), label
            assert len(np.unique(moved)) == length, label


def _sorted(keys: npt.NDArray[np.generic], down: bool) -> npt.NDArray[np.generic]:
    """NaN last in both orders."""
    return keys[_places(keys, down)]


def _places(keys: npt.NDArray[np.generic], down: bool) -> npt.NDArray[np.intp]:
    """Stable in both orders, NaN last."""
    if not down:
        return np.argsort(keys, kind="stable")
    nan = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(keys.shape, bool)
    ranks = np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.lexsort((np.where(nan, 0, -ranks), nan))


def test_zeros_are_told_apart_where_keys_go_alone(module: Path, tmp_path: Path) -> None:
    keys = np.array([0.0, -0.0, 1.0, 0.0, -0.0], np.float32)
    cases = Cases(module, tmp_path)
    cases.add("zeros", "arrays", {"input": keys}, call="sortArray", type="f32")
    cases.run()
    found = np.frombuffer(cases.found("zeros"), np.float32)
    assert np.signbit(found).tolist() == [True, True, False, False, False]


def test_in_place_at_an_offset(module: Path, tmp_path: Path) -> None:
    """What lies around the keys in their buffer stays as it was; WebGPU itself binds at certain offsets alone."""
    keys, values = data("f4", 5000, 1), np.arange(5000, dtype=np.uint32)
    cases = Cases(module, tmp_path)
    offsets = (0, 256, 4, 1020)
    for offset in offsets:
        cases.add(f"alone-{offset}", "inPlace", {"input": keys}, type="f32", offset=offset, n=5000)
        arrays, options = {"input": keys, "values": values}, {"descending": True}
        cases.add(f"pairs-{offset}", "inPlace", arrays, type="f32", offset=offset, n=5000, options=options)
        cases.add(f"part-{offset}", "inPlace", {"input": keys}, type="f32", offset=offset, n=3000)
    cases.run()
    for offset in offsets:
        for name, expected in {
            f"alone-{offset}": _sorted(keys, False),
            f"pairs-{offset}": _sorted(keys, True),
            f"part-{offset}": np.concatenate([_sorted(keys[:3000], False), keys[3000:]]),
        }.items():
            held = cases.found(name)
            assert held[:offset] == b"\xa5" * offset
            assert held[offset + 20_000 :] == b"\xa5" * 8
            np.testing.assert_array_equal(np.frombuffer(held[offset : offset + 20_000], np.float32), expected)
        moved = np.frombuffer(cases.found(f"pairs-{offset}", 1)[:20_000], np.uint32)
        assert keys[moved].tobytes() == cases.found(f"pairs-{offset}")[offset : offset + 20_000]


def test_several_sorts_in_one_encoder(module: Path, tmp_path: Path) -> None:
    first, second = (data("f4", 70_000, seed) for seed in (1, 2))
    cases = Cases(module, tmp_path)
    cases.add("both", "together", {"first": first, "second": second}, type="f32", n=70_000)
    cases.run()
    for number, expected in enumerate((_sorted(first, True), _sorted(second, True), _sorted(first, False))):
        found = np.frombuffer(cases.found("both", number)[: 4 * 70_000], np.float32)
        np.testing.assert_array_equal(found, expected)


def test_rows_are_sorted_each_for_itself(module: Path, tmp_path: Path) -> None:
    """Of 7 elements, which the export has said, and of lengths that it has not."""
    cases = Cases(module, tmp_path)
    asked = [
        (call, name, rows, row, down)
        for call, name, down in (
            ("sortArray", "f32", False),
            ("sortArray", "f32", True),
            ("argsortArray", "f32", False),
        )
        for rows, row in ((0, 7), (1, 7), (60, 7), (0, 5), (1, 5), (50, 1), (20, 300), (2, _TILE), (2, 5000))
    ]
    for call, name, rows, row, down in asked:
        keys, options = data(_TYPES[name], rows * row), {"row": row, "descending": down}
        cases.add(f"{call}-{rows}-{row}-{down}", "arrays", {"input": keys}, call=call, type=name, options=options)
    cases.run()
    for call, name, rows, row, down in asked:
        keys, label = data(_TYPES[name], rows * row).reshape(rows, row), f"{call}-{rows}-{row}-{down}"
        places = np.array([_places(line, down) for line in keys], np.intp).reshape(rows, row)
        is_sort = call == "sortArray"
        found = np.frombuffer(cases.found(label), keys.dtype if is_sort else np.uint32).reshape(rows, row)
        np.testing.assert_array_equal(found, np.take_along_axis(keys, places, 1) if is_sort else places)


def test_values_are_taken_along_in_rows(module: Path, tmp_path: Path) -> None:
    cases = Cases(module, tmp_path)
    asked = [(rows, row, down) for rows, row in ((0, 7), (40, 8), (2, 5000)) for down in (False, True)]
    for rows, row, down in asked:
        arrays = {"input": data("f4", rows * row), "values": np.arange(rows * row, dtype=np.uint32)}
        options = {"row": row, "descending": down}
        cases.add(f"{rows}-{row}-{down}", "arrays", arrays, call="sortArray", type="f32", options=options)
    cases.run()
    for rows, row, down in asked:
        keys, label = data("f4", rows * row), f"{rows}-{row}-{down}"
        moved = np.frombuffer(cases.found(label, 1), np.uint32).reshape(rows, row)
        found = np.frombuffer(cases.found(label), np.float32).reshape(rows, row)
        assert cases.found(label) == keys[moved.astype(np.int64)].tobytes(), label
        for number, line in enumerate(keys.reshape(rows, row)):
            np.testing.assert_array_equal(found[number], _sorted(line, down), err_msg=label)
            assert sorted(moved[number]) == [*range(number * row, (number + 1) * row)]


def test_the_first_k_in_order(module: Path, tmp_path: Path) -> None:
    """Each with where it stands; of equals the first come first, and NaN last in both orders."""
    cases = Cases(module, tmp_path)
    shapes = (
        (3, 1, 3), (3, 1, 2049), (3, 1, 70_000), (200, 1, 200), (3, 50, 7), (3, 40, 11), (3, 5, 3000), (200, 6, 20_001),
    )  # fmt: skip
    asked = [("f32", *shape, down) for shape in shapes for down in (False, True)]
    asked += [("u32", 3, 1, 2049, down) for down in (False, True)]
    for name, k, rows, length, down in asked:
        options: dict[str, object] = {"k": k, "descending": down, **({"row": length} if rows > 1 else {})}
        keys = _selected_from(name, rows * length)
        cases.add(
            f"{name}-{k}-{length}-{down}", "arrays", {"input": keys}, call="topKArray", type=name, options=options
        )
    cases.add("none", "refused", {"input": np.arange(2, dtype=np.uint32)}, call="topKArray", type="u32")
    cases.run()
    for name, k, rows, length, down in asked:
        keys, label = _selected_from(name, rows * length), f"{name}-{k}-{length}-{down}"
        lines = keys.reshape(rows, length)
        places = np.array([_places(line, down)[:k] for line in lines], np.uint32)
        found = np.frombuffer(cases.found(label, 1), np.uint32).reshape(rows, k)
        np.testing.assert_array_equal(found, places, err_msg=label)
        assert cases.found(label) == np.take_along_axis(lines, places.astype(np.intp), 1).tobytes(), label
    assert cases.found("none").decode() == "RangeError: top_k u32 3: expected n from 3 to 4294967295, found 2"


def _selected_from(name: str, length: int) -> npt.NDArray[np.generic]:
    """Floats of all kinds; integers so few of which are different that most have equals."""
    if name == "f32":
        return data("f4", length)
    return np.random.default_rng(length).integers(0, 50, length, dtype=np.uint32)


def test_other_types(tmp_path: Path) -> None:
    """Several elements to a word, and several words to an element."""
    node()
    types = {"i8": "i1", "f16": "f2", "f64": "f8"}
    module, _ = gpusort.export("sort", tmp_path, keys=tuple(types), values=("u16",))
    assert '"f16": globalThis.Float16Array' in module.read_text("utf-8"), "which older browsers lack"
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    cases, lengths = Cases(module, tmp_path), (1, 3, 1101)
    for length in lengths:
        for name, dtype in types.items():
            cases.add(f"{name}-{length}", "inPlace", {"input": data(dtype, length)}, type=name, n=length)
        pair = {"input": data("f8", length), "values": np.arange(length, dtype=np.uint16)}
        options = {"descending": True}
        cases.add(f"pairs-{length}", "inPlace", pair, type="f64", n=length, options=options)
    cases.run()
    for length in lengths:
        for name, dtype in types.items():
            keys, held = data(dtype, length), cases.found(f"{name}-{length}")
            found = np.frombuffer(held[: keys.nbytes], dtype)
            np.testing.assert_array_equal(found, _sorted(keys, False), err_msg=f"{name} {length}")
            assert set(held[keys.nbytes :]) == {0xA5}
        keys, pairs = data("f8", length), cases.found(f"pairs-{length}")[: 8 * length]
        np.testing.assert_array_equal(np.frombuffer(pairs), _sorted(keys, True), err_msg=str(length))
        beside = cases.found(f"pairs-{length}", 1)
        assert set(beside[2 * length :]) == {0xA5}
        moved = np.frombuffer(beside[: 2 * length], np.uint16)
        assert keys[moved].tobytes() == pairs, length


def test_halves_have_types_where_the_compiler_knows_none(tmp_path: Path) -> None:
    node()
    module, _ = gpusort.export("sum", tmp_path, keys=("f16",))
    good = (
        f'import {{ reduceArray, type Numbers }} from "{module.with_suffix("")}.js";\n'
        "export const use = (device: GPUDevice, halves: Numbers = new Uint16Array(3)) =>\n"
        '  reduceArray(device, halves, { operation: "sum", type: "f16" });\n'
    )
    assert "TS2322" in compiled(tmp_path, good, good.replace("new Uint16Array(3)", '"a text"'))


def test_subgroups_where_they_are_asked_for(tmp_path: Path) -> None:
    """A device without them is told so; one with them sorts the same."""
    node()
    module, _ = gpusort.export("sort", tmp_path, keys=("u32",), lanes=8)
    assert "subgroupBallot" in module.read_text("utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    keys = data("u4", 70_000)
    without = Cases(module, tmp_path)
    without.add("refused", "refused", {"input": keys}, call="sort", n=70_000)
    without.run()
    assert 'expected a device with the feature "subgroups"' in without.found("refused").decode()
    cases = Cases(module, tmp_path)
    cases.add("sorted", "arrays", {"input": keys}, call="sortArray", type="u32")
    cases.run(("subgroups",))
    np.testing.assert_array_equal(np.frombuffer(cases.found("sorted"), np.uint32), np.sort(keys))


def test_a_million(module: Path, tmp_path: Path) -> None:
    keys = np.random.default_rng(0).standard_normal(1 << 20, np.float32)
    cases = Cases(module, tmp_path)
    cases.add("million", "arrays", {"input": keys}, call="sortArray", type="f32")
    cases.run()
    np.testing.assert_array_equal(np.frombuffer(cases.found("million"), np.float32), np.sort(keys))


def test_mistakes_are_named(module: Path, tmp_path: Path) -> None:
    keys = np.arange(4, dtype=np.uint32)
    cases = Cases(module, tmp_path)
    cases.add("type", "refused", {"input": keys}, call="sortArray", type="u8")
    cases.add("short", "refused", {"input": keys}, call="sort", n=400)
    cases.add("length", "refused", {"input": keys}, call="sort", n=1.5)
    cases.add("output", "refused", {"input": keys}, call="argsort", n=4)
    cases.add("row", "refused", {"input": keys}, call="topKArray", type="u32", options={"row": 2})
    cases.add("k", "refused", {"input": keys}, call="topKArray", type="u32", options={"row": 2, "k": 5})
    cases.add("rows", "refused", {"input": keys}, call="sortArray", type="u32", options={"row": 3})
    cases.run()
    found = {name: cases.found(name).decode() for name in ("type", "short", "length", "output", "row", "k", "rows")}
    assert found["type"].startswith("TypeError: expected an array of u32 or f32, found Uint8Array")
    assert found["short"].startswith("RangeError: keys: expected 1600 bytes")
    assert found["length"] == "RangeError: sort u32: expected n from 0 to 4294967295, found 1.5"
    assert found["row"] == "RangeError: top_k u32 3 rows any: expected n from 3 to 2147483647, found 2"
    assert found["k"].startswith("TypeError: top_k u32 5 rows 2 is not in this module, which has sort u32, ")
    assert found["rows"] == "RangeError: sort u32 rows any: expected whole rows of 3, found 1.3333333333333333"
    assert found["output"] == "TypeError: argsort u32: expected a buffer as into"


def test_what_a_sort_would_leave_as_it_was_is_refused(tmp_path: Path) -> None:
    """Values that the export has no sort for, and elements beyond those that a type says."""
    node()
    module, _ = gpusort.export("sort", tmp_path, keys=("u32", "u8"))
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    cases, arrays = Cases(module, tmp_path), {"input": np.arange(4, dtype=np.uint32)}
    cases.add("values", "refused", {**arrays, "values": np.arange(4, dtype=np.uint32)}, call="sort", n=4)
    cases.add("bytes", "refused", arrays, call="sortArray", type="u32", options={"type": "u8"})
    cases.run()
    assert cases.found("values").decode() == "TypeError: sort u32 takes keys, into, found values"
    assert cases.found("bytes").decode().startswith("RangeError: keys: expected 4 bytes")


def test_the_examples_of_the_document_run(module: Path, tmp_path: Path) -> None:
    """Every program in the how-to prints what stands behind its lines, with what the commands there export."""
    document = (WEB.parent.parent / "docs" / "howto" / "export.md").read_text("utf-8")
    programs = re.findall(r"^```js\n(.*?)^```", document, flags=re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^\$ python -m gpusort (export .*) --out", document, flags=re.MULTILINE)
    assert len(programs) == 3
    assert len(commands) == 2
    folders = [tmp_path / "sorts", tmp_path / "reductions"]
    for command, folder in zip(commands, folders, strict=True):
        assert main([*command.split(), "--out", str(folder)]) == 0
        (folder / "package.json").write_text('{"type": "module"}', "utf-8")
    for number, program in enumerate(programs):
        expected = "".join(f"{line}\n" for line in re.findall(r"console\.log.*// (.*)$", program, flags=re.MULTILINE))
        file = folders["reduce" in program] / f"{number}.mjs"
        file.write_text(program, "utf-8")
        assert run_program(file) == expected


def test_the_types_are_true(module: Path, tmp_path: Path) -> None:
    """A program that uses all of them passes the TypeScript compiler; one with a mistake does not."""
    good = (WEB / "use.ts").read_text("utf-8").replace("GPUSORT", str(module.with_suffix("")))
    assert "TS2322" in compiled(tmp_path, good, good.replace('type: "f32"', 'type: "f64"'))
