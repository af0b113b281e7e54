"""The CPU's compiler: what it makes of kernels' texts is what Numba makes of them; what it keeps it finds again."""

from __future__ import annotations

import ctypes
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.targets.cpu.compiler import loading
from gpusort.targets.cpu.compiler.function import llvm_text
from gpusort.targets.cpu.compiler.loading import load_kernel
from gpusort.targets.llvm.numbers import Untranslatable
from gpusort.types.errors import TargetUnavailableError
from tests import numba_runtime
from tests.covering import few_cases
from tests.new_process import end_well_side_by_side

TEXT = """
SIGNATURE = "void(i8, i8, u4, {arrays})"


def kernel(first, last, num_groups, {names}):
{body}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    here = tmp_path / "kept"
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(here))
    return here


def by_numba(text: str) -> Callable[..., object]:
    """The text as Numba has it: a second opinion."""
    import numba

    names: dict[str, Any] = {
        name: getattr(numba, name) for name in ("b1", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
    }
    names.update(vars(numba_runtime))
    names.update(math=math, np=np, inf=math.inf, nan=math.nan)
    exec(compile(text, "<kernel>", "exec"), names)
    compiled: Callable[..., object] = numba.njit(names["SIGNATURE"], error_model="numpy", boundscheck=False)(
        names["kernel"]
    )
    return compiled


def by_ours(text: str, *, is_serial: bool = True) -> Callable[..., object]:
    """The same, called as Numba's is."""
    kernel = load_kernel("test", text, is_serial=is_serial)

    def call(*arguments: Any) -> None:
        given: list[int | float] = []
        for value in arguments:
            given += [value.ctypes.data, value.size] if isinstance(value, np.ndarray) else [value]
        kernel(*given)

    return call


def text_of(body: str, **arrays: str) -> str:
    """A kernel that takes these arrays, by names and types."""
    lines = [f"    {line}" for line in body.strip().splitlines()]
    return TEXT.format(
        arrays=", ".join(f"{type}[::1]" for type in arrays.values()), names=", ".join(arrays), body="\n".join(lines)
    )


def both(body: str, *arrays: npt.NDArray[Any], names: Sequence[str] = "abcdefghijkl") -> None:
    """Runs a body by both compilers on copies of arrays, each of which may be written: what is in them is the same."""
    types = {name: f"{array.dtype.kind}{array.itemsize}" for name, array in zip(names, arrays, strict=False)}
    text = text_of(body, **types)
    results: list[list[npt.NDArray[Any]]] = []
    for make in (by_numba, by_ours):
        copies = [array.copy() for array in arrays]
        make(text)(0, 1, 1, *copies)
        results.append(copies)
    for theirs, ours in zip(*results, strict=True):
        assert theirs.tobytes() == ours.tobytes(), body
    assert any(was.tobytes() != ours.tobytes() for was, ours in zip(arrays, results[1], strict=True)), (
        "nothing was done"
    )


INTEGERS = {name: np.dtype(name) for name in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8")}

FEW_INTEGERS = ("u1", "i2", "u4", "i8")  # of each width one


def edges(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Numbers at which integers of a type behave otherwise, and others."""
    info = np.iinfo(dtype)
    few = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 3, 7, info.max // 2, info.max // 3]
    more = np.random.default_rng(info.bits).integers(info.min, info.max, 13, dtype, endpoint=True)
    return np.concatenate([np.array(few, dtype), more])


@few_cases(can=lambda case: case["type"] in FEW_INTEGERS)
@pytest.mark.parametrize("type", INTEGERS)
def test_integers_are_computed_as_numba_computes_them(type: str) -> None:
    """Every operator on every two of the edges; shifts by every amount."""
    values = edges(INTEGERS[type])
    a, b = (grid.ravel().copy() for grid in np.meshgrid(values, values))
    wrapping = "u" + type[1]
    signed = type[0] == "i"
    bits = INTEGERS[type].itemsize * 8
    rows = [f"{type}({wrapping}(x) {operator} {wrapping}(y))" for operator in "+-*"]
    rows += [f"{type}(x {operator} y)" for operator in "&|^"]
    rows += [f"{type}({word}(x, y))" for word in ("min", "max")]
    rows += [f"{type}(x {word} (u4(at) & u4({bits - 1})))" for word in ("<<", ">>")]
    rows += [f"{type}(x << {bits - 1})", f"{type}(x >> 3)", f"{type}(~x)", f"{type}({wrapping}(0) - {wrapping}(x))"]
    rows += [f"{type}(x {test} y)" for test in ("==", "!=", "<", "<=", ">", ">=")]
    rows += [f"{type}(select(x < y, x, y))", f"{type}((x < y) & (not (x == y)))"]
    if not signed:
        rows += [f"{type}(x // {type}(7))", f"{type}(x % {type}(7))", f"{type}({type}(x) % {type}(5))"]
        if bits >= 32:
            rows += ["divide(x, y)", "remainder(x, y)"]
            rows += [f"{type}({word}(x))" for word in ("count_ones", "leading_zeros", "trailing_zeros")]
    found = np.full((len(rows), a.size), 77, a.dtype)
    body = f"for at in range({a.size}):\n    x = a[at]\n    y = b[at]\n"
    body += "".join(f"    c[{row * a.size} + at] = {text}\n" for row, text in enumerate(rows))
    both(body, a, b, found.ravel())


@few_cases(can=lambda case: case["source"] in FEW_INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_become_others_as_numba_has_it(source: str) -> None:
    values = edges(INTEGERS[source])
    targets = [*INTEGERS, "f4", "f8"]
    lines = [f"    {name}[at] = {target}(a[at])" for name, target in zip("bcdefghijk", targets, strict=True)]
    body = "\n".join([f"for at in range({values.size}):", *lines, "    l[at] = u1(b1(a[at]))"])
    both(body, values, *(np.full(values.size, 77, target) for target in [*targets, "u1"]))


@pytest.mark.parametrize(("type", "word"), [("f4", "u4"), ("f8", "u8")])
def test_floats_are_computed_as_numba_computes_them(type: str, word: str) -> None:
    few = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e30, -1e-30, 3.0, 1e-45, 0.1]
    a, b = (grid.ravel().copy() for grid in np.meshgrid(np.array(few, type), np.array(few, type)))
    rows = [f"{type}(x {operator} y)" for operator in "+-*/"]
    rows += [f"{type}(x {test} y)" for test in ("==", "!=", "<", "<=", ">", ">=")]
    rows += [f"{type}(math.{name}(x))" for name in ("sqrt", "exp", "log")]
    rows += [f"{type}(-x)", f"select(x < y, x, {type}(-0.0))", f"{type}(0.1)", f"{type}(inf)", f"{type}(-inf)"]
    rows += [f"bits_{type}({word}(bits_{word}(x) ^ {word}(1)))", f"{type}(x + {type}(nan))"]
    found = np.full(len(rows) * a.size, 77, type)
    body = f"for at in range({a.size}):\n    x = a[at]\n    y = b[at]\n"
    body += "".join(f"    c[{row * a.size} + at] = {text}\n" for row, text in enumerate(rows))
    text = text_of(body, a=type, b=type, c=type)
    results: list[npt.NDArray[Any]] = []
    for make in (by_numba, by_ours):
        results.append(found.copy())
        make(text)(0, 1, 1, a, b, results[-1])
    theirs, ours = results
    np.testing.assert_array_equal(np.isnan(theirs), np.isnan(ours))  # of a NaN no bit but its kind is promised
    known = ~np.isnan(theirs)
    assert theirs[known].tobytes() == ours[known].tobytes()


def test_atomics_loops_and_branches_are_as_numba_has_them() -> None:
    body = """
tile = stack(u4, 8)
far = np.empty(40000, np.uint64)
total = u4(0)
for i_at in range(0, 8, 1):
    tile[u4(i_at)] = u4(i_at)
for j in range(40000):
    far[j] = u8(j)
for i_at in range(i8(a[0]), 20, max(i8(a[1]), 1)):
    i = u4(i_at)
    if i == u4(13):
        total = u4(total + u4(100))
    else:
        if i > u4(17):
            break
        total = u4(total + tile[u4(i % u4(8))])
left = 100
while True:
    left -= 7
    if left < 0:
        break
    total = u4(total + u4(left))
    if not (total < u4(100000)):
        break
b[0] = total
b[1] = atomic_add(b, u4(2), u4(5))
atomic_max(b, u4(3), total)
b[4] = atomic_exchange(b, u4(5), u4(9))
atomic_min(b, u4(6), u4(1))
atomic_and(b, u4(7), u4(6))
atomic_or(b, u4(8), u4(1))
atomic_xor(b, u4(9), u4(255))
atomic_store(b, u4(10), u4(41))
b[11] = u4(atomic_load(b, u4(10)) + u4(len(a)))
b[12] = u4(far[39999])
least = most = tile[3]
b[13] = u4(least + most)
"""
    both(body, np.array([1, 0], "u4"), np.full(14, 77, "u4"))
    both(body, np.array([0, 3], "u4"), np.full(14, 77, "u4"))


@pytest.mark.parametrize("type", ["u1", "i8", "f4", "f8"])
def test_sums_and_products_in_any_order_lack_nothing(type: str) -> None:
    """Of numbers that come out the same in each order; floats are added and multiplied many at a time."""
    a, b = np.arange(1, 201).astype(type), np.array([2, 1, 4, 1] * 3 + [1] * 188, type)
    body = "total = a[0]\nproduct = b[0]\nfor j in range(1, 200):\n"
    body += "    total = add_in_any_order(total, a[j])\n    product = multiply_in_any_order(product, b[j])\n"
    text = text_of(f"{body}c[0] = total\nc[1] = product", a=type, b=type, c=type)
    found = np.zeros(2, type)
    by_ours(text)(0, 1, 1, a, b, found)
    assert found.tolist() == [a.sum(dtype=type), b.prod(dtype=type)]
    if type[0] == "f":
        made = llvm_text(text, "kernel", is_opaque=True, compresses=False)
        assert (made.count("fadd reassoc"), made.count("fmul reassoc")) == (1, 1)


def test_where_there_is_no_memory_left_that_is_said() -> None:
    body = "near = np.empty(10000, np.uint64)\nfar = np.empty(1152921504606846975, np.uint64)\n"
    kernel = by_ours(text_of(f"{body}near[a[0]] = a[1]\nfar[a[0]] = near[a[2]]\na[1] = far[a[2]]", a="u8"))
    with pytest.raises(MemoryError, match="no memory for a kernel's arrays"):
        kernel(0, 1, 1, np.zeros(3, "u8"))


@pytest.mark.parametrize(
    "body",
    ["import os", "a[0] = b[0]", "a[0] = other", "a[0] = open(a)", "a[0] = u4(1.5 + a[0] // 2.5)",
     "a[0] = i8(a[0]) // 3", "a[0] = i8(a[0]) + u8(a[0])", "a.b = u4(1)", "a[0] = [1]", "x = stack(u4, a)", "return",
     "x = u4(1)\nx = u8(a[0])"],
)  # fmt: skip
def test_what_is_no_kernels_text_is_refused(body: str) -> None:
    with pytest.raises((Untranslatable, KeyError)):
        llvm_text(text_of(body, a="u4"), "kernel", is_opaque=True, compresses=False)


def test_a_text_without_its_signature_is_refused() -> None:
    with pytest.raises(Untranslatable, match="no signature"):
        llvm_text("def kernel(): pass", "kernel", is_opaque=True, compresses=False)


def test_arrays_may_have_any_names() -> None:
    """Also those that LLVM's text has blocks and values for."""
    text = """
SIGNATURE = "void(u4[::1], u4[::1], u4[::1], u4[::1])"


def kernel(body, entry, refused, t1):
    body[0] = entry[0] + refused[0] + t1[0]
"""
    body = np.zeros(1, "u4")
    by_ours(text)(body, *(np.full(1, number, "u4") for number in (1, 20, 300)))
    assert body[0] == 321


def test_pointers_have_their_types_where_llvm_wants_them() -> None:
    text = llvm_text(
        text_of("x = np.empty(9, np.uint64)\na[1] = u4(x[a[0]])", a="u4"), "kernel", is_opaque=False, compresses=False
    )
    assert re.search(r"\bptr\b", text) is None
    assert "define i32 @kernel(i64 %first, i64 %last, i32 %num_groups, i32* %a, i64 %a.length)" in text


# -- the cache --------------------------------------------------------------------------------------------


def run(number: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Loads a kernel as a new process would and runs it. Whether it was found compiled."""
    monkeypatch.setattr("gpusort.targets.cpu.compiler.loading.loaded", {})
    kernel = load_kernel("test", text_of(f"a[0] = u4({number})", a="u4"), is_serial=True)
    data = np.zeros(1, "u4")
    kernel(0, 1, 1, data.ctypes.data, 1)
    assert data[0] == number
    return kernel.was_kept


def test_a_kernel_is_found_compiled_and_only_under_its_seal(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [run(1, monkeypatch), run(1, monkeypatch), run(2, monkeypatch)] == [False, True, False]
    assert sorted(path.name for path in place.iterdir()) == ["cpu", "key"]
    one, two = sorted((place / "cpu").iterdir())
    good = one.read_bytes(), two.read_bytes()
    for content in (good[0][:-1], good[1], b"", good[0][:60] + bytes([good[0][60] ^ 1]) + good[0][61:]):
        one.write_bytes(content)
        assert sorted([run(1, monkeypatch), run(2, monkeypatch)]) == [False, True]
        assert (one.read_bytes(), two.read_bytes()) == good, "the same code each time"
    assert run(1, monkeypatch)
    assert run(2, monkeypatch)


def test_kernels_of_another_compiler_or_processor_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from llvmlite.binding import llvm_version_info

    from gpusort.targets.cpu.compiler import machine

    newer = llvm_version_info[0], 99, 0  # of another major one the text might be another
    assert [run(1, monkeypatch), run(1, monkeypatch)] == [False, True]
    for owner, name, other in (
        ("llvmlite", "__version__", "0.1"), ("llvmlite.binding", "llvm_version_info", newer),
        ("llvmlite.binding", "get_host_cpu_name", lambda: "x86-64"),
        ("gpusort.targets.cpu.compiler.loading", "stamp", lambda: "another"),
    ):  # fmt: skip
        with monkeypatch.context() as changed:
            changed.setattr(f"{owner}.{name}", other)
            machine.machine.cache_clear()
            assert not run(1, monkeypatch), name
        machine.machine.cache_clear()
        assert run(1, monkeypatch)


_COLD = """
import sys
from gpusort.targets.cpu.compiler.loading import load_kernel
import numpy as np
sys.stdin.readline()
for number in range(2):
    data = np.zeros(1, np.uint32)
    load_kernel("test", sys.argv[1].replace("NUMBER", str(number)), is_serial=True)(0, 1, 1, data.ctypes.data, 1)
    assert data[0] == number
assert "numba" not in sys.modules
"""


def test_processes_that_start_cold_at_once_are_right(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And load no Numba."""
    end_well_side_by_side([sys.executable, "-c", _COLD, text_of("a[0] = u4(NUMBER)", a="u4")], 4, timeout=120)
    assert len(list((place / "cpu").iterdir())) == 2
    assert all(run(number, monkeypatch) for number in range(2))


def test_arguments_are_taken_as_c_takes_them() -> None:
    """All that a signature may have, each at its largest."""
    text = """
SIGNATURE = "void(i8, i8, u4, f8[::1], b1, u1, u2, u4, u8, i4, i8, f4, f8)"


def kernel(first, last, num_groups, a, b, c, d, e, f, g, h, i, j):
    a[0] = f8(b)
    a[1] = f8(c)
    a[2] = f8(d)
    a[3] = f8(e)
    a[4] = f8(f)
    a[5] = f8(g)
    a[6] = f8(h)
    a[7] = f8(i)
    a[8] = j
    a[9] = f8(first)
    a[10] = f8(last)
    a[11] = f8(num_groups)
"""
    values = (1, 255, 65535, (1 << 32) - 1, 1 << 63, -(1 << 31), -(1 << 63), 0.5, -0.1)
    found = np.zeros(12)
    load_kernel("test", text, is_serial=True)(3, 1 << 40, 7, found.ctypes.data, 12, *values)
    assert found.tolist() == [*map(float, values), 3.0, float(1 << 40), 7.0]
    assert ctypes.sizeof(ctypes.c_void_p) == 8


@pytest.mark.parametrize(
    ("cause", "told"), [(OSError("libllvmlite.so: failed to map segment"), "failed to map"), (MemoryError(), "out of")]
)
def test_where_llvm_does_not_load_the_error_says_why(
    cause: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> None:
        try:
            raise cause
        except Exception:
            raise OSError("Could not find/load shared object file") from None

    monkeypatch.setattr(loading, "import_uninterrupted", refuse)
    try:
        raise ValueError("which the caller handles meanwhile")
    except ValueError:
        with pytest.raises(TargetUnavailableError, match=f"target 'cpu': LLVM, .* does not load: .*{told}.*ulimit"):
            load_kernel("test", text_of("a[0] = 1", a="u4"), is_serial=True)
