"""sort and sort_inplace: every dtype on every target, every kind of array, every mistake; against NumPy's bits."""

from __future__ import annotations

import ast
import tracemalloc
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.kernel.launch import Schedule
from gpusort.machine import Limits, TargetInfo
from gpusort.targets.simulator.target import Simulator
from tests.covering import few_cases
from tests.reference import DTYPES, SWAPPED, Array, assert_same_bits, sample, sorted_by_numpy

LENGTHS = (0, 1, 2, 3, 17, 100, 1000, 2048, 2049, 5000)
TINY = 17  # the longest that plain Python is asked to sort


def fits(target: str, length: int) -> int:
    return min(length, TINY) if target == "python" else length


# -- every dtype, length and target -----------------------------------------------------------------------


@few_cases(whole=["cpu"], pairs=False)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES + SWAPPED)
def test_every_dtype_sorts_to_numpys_bits(target: str, dtype: str, descending: bool) -> None:
    x = sample(dtype, fits(target, 1000))
    before = x.copy()
    found = gpusort.sort(x, descending=descending, stable=True, target=target)
    assert_same_bits(found, sorted_by_numpy(x, descending=descending))
    assert_same_bits(x, before)


@few_cases(whole=["cpu"], can=lambda case: case["target"] != "python" or int(str(case["length"])) <= TINY, pairs=False)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["u4", "f8"])
def test_every_length_sorts(target: str, dtype: str, length: int) -> None:
    x = sample(dtype, fits(target, length), seed=length)
    assert_same_bits(gpusort.sort(x, stable=True, target=target), sorted_by_numpy(x))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_an_unstable_sort_of_floats_holds_the_same_bits_in_an_order_of_equals(target: str, dtype: str) -> None:
    x = sample(dtype, fits(target, 300))
    found = gpusort.sort(x, target=target)
    np.testing.assert_array_equal(found, np.sort(x))
    words = f"u{x.dtype.itemsize}"
    np.testing.assert_array_equal(np.sort(found.view(words)), np.sort(x.view(words)))


@few_cases(pairs=False)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 7, 1), (2, 0, 3), (5, 1, 2)])
def test_every_axis_sorts(target: str, shape: tuple[int, ...], axis: int) -> None:
    x = sample("i2", shape)
    assert_same_bits(gpusort.sort(x, axis=axis, target=target), np.sort(x, axis=axis))


def test_stable_and_descending_hold_along_any_axis(target: str) -> None:
    x = sample("f4", (6, 5, 4))
    for axis in range(3):
        found = gpusort.sort(x, axis=axis, descending=True, stable=True, target=target)
        assert_same_bits(found, sorted_by_numpy(x, axis, descending=True))


# -- how an array lies ------------------------------------------------------------------------------------

VIEWS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda x: x.T,
    "Fortran order": np.asfortranarray,
    "strided": lambda x: x[::2, 1::3],
    "backwards": lambda x: x[::-1, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[0], (4, x.shape[1])),
    "misaligned": lambda x: np.frombuffer(b"." + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
    "one column": lambda x: x[:, :1],
}


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["f4", ">i8"])
def test_every_layout_sorts(dtype: str, view: str, axis: int | None) -> None:
    x = VIEWS[view](sample(dtype, (8, 12)))
    before = x.copy()
    found = gpusort.sort(x, axis=axis, stable=True)
    assert_same_bits(found, np.sort(x, axis=axis, kind="stable"))
    assert_same_bits(np.ascontiguousarray(x), np.ascontiguousarray(before))


def test_the_order_of_axes_is_kept() -> None:
    x = np.asfortranarray(sample("u4", (5, 6)))
    assert gpusort.sort(x).flags.f_contiguous


def test_a_read_only_array_sorts_and_stays() -> None:
    x = sample("u4", 50)
    x.flags.writeable = False
    found = gpusort.sort(x)
    assert_same_bits(found, np.sort(x))
    assert found.flags.writeable


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("axis", [-1, 0, None])
def test_an_empty_array_sorts(shape: tuple[int, ...], axis: int | None) -> None:
    x = np.empty(shape, "f4")
    assert_same_bits(gpusort.sort(x, axis=axis), np.sort(x, axis=axis))


# -- kinds of arrays --------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [[3, 1, 2], (2.5, -1.0), [[2, 1], [4, 3]], [True, False], []])
def test_lists_and_tuples_become_arrays_as_numpy_makes_them(given: list[int]) -> None:
    assert_same_bits(gpusort.sort(given), np.sort(given))


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_stays_a_matrix() -> None:
    x = np.matrix([[3, 1, 2], [9, 8, 7]])
    for axis in (0, 1, None):
        assert_same_bits(gpusort.sort(x, axis=axis), np.sort(x, axis=axis))


def test_a_memory_map_is_read_and_not_written(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    values = sample("u4", 40)
    values.tofile(file)
    x = np.memmap(file, "u4", "r")
    np.testing.assert_array_equal(gpusort.sort(x), np.sort(values))
    np.testing.assert_array_equal(np.fromfile(file, "u4"), values)


def test_units_of_time_are_kept() -> None:
    x = np.array(["2020-01-02", "NaT", "1950-05-05"], "M8[D]")
    assert_same_bits(gpusort.sort(x), np.sort(x))


def test_a_torch_tensor_gives_a_torch_tensor() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[3.0, -1.0, 2.0], [0.5, float("nan"), 0.25]])[:, ::2]
    found: Any = gpusort.sort(x)
    assert type(found) is torch.Tensor
    assert_same_bits(found.numpy(), np.sort(x.numpy()))
    gpusort.sort_inplace(x, axis=0)
    assert_same_bits(np.ascontiguousarray(x.numpy()), np.sort(np.array([[3, 2], [0.5, 0.25]], "f4"), axis=0))


# -- out and in place -------------------------------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["u4", "f4", ">f8"])
@pytest.mark.parametrize("place", ["packed", "strided"])
def test_out_takes_the_result_and_is_returned(target: str, dtype: str, place: str) -> None:
    x = sample(dtype, (4, 9))
    out = np.zeros((4, 9), dtype) if place == "packed" else np.zeros((8, 18), dtype)[::2, ::2]
    before = x.copy()
    found = gpusort.sort(x, axis=0, stable=True, out=out, target=target)
    assert found is out
    np.testing.assert_array_equal(out, np.sort(before, axis=0))
    assert_same_bits(x, before)


@pytest.mark.parametrize("stable", [False, True])
def test_out_may_be_the_array_itself(stable: bool) -> None:
    x = sample("f4", (5, 40))
    expected = np.sort(x, kind="stable")
    assert gpusort.sort(x, out=x, stable=stable) is x
    np.testing.assert_array_equal(x, expected)


@few_cases(
    can=lambda case: case["target"] not in ("simulator", "python") or cast("tuple[int, ...]", case["shape"])[0] <= 40,
    pairs=False,
)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(40, 7), (200, 200), (20_000, 10)])
def test_out_may_lie_partly_where_the_array_does(target: str, shape: tuple[int, int], axis: int) -> None:
    if target in ("simulator", "python") and shape[0] > 40:
        pytest.skip("one lane after the other: minutes for what the shortest shape shows")
    x = sample("f4", shape)
    expected = np.sort(x[:-1], axis=axis)
    gpusort.sort(x[:-1], axis=axis, out=x[1:], target=target)
    np.testing.assert_array_equal(x[1:], expected)
    square = sample("i8", (min(shape),) * 2)
    expected = np.sort(square, axis=axis)
    gpusort.sort(square, axis=axis, out=square.T, target=target)
    np.testing.assert_array_equal(square.T, expected)


def test_out_for_a_flattened_array() -> None:
    x, out = sample("u2", (3, 4)), np.zeros(12, "u2")
    gpusort.sort(x, axis=None, out=out)
    assert_same_bits(out, np.sort(x, axis=None))


@pytest.mark.parametrize("view", [name for name in VIEWS if name not in ("broadcast", "misaligned")])
@pytest.mark.parametrize("axis", [0, 1])
def test_in_place_is_in_place_however_the_array_lies(view: str, axis: int) -> None:
    base = sample("f4", (8, 12))
    x = VIEWS[view](base)
    expected = sorted_by_numpy(x, axis, descending=True)
    untouched = np.ones(base.shape, bool)
    if np.shares_memory(x, base):
        VIEWS[view](untouched)[...] = False
    before = base.copy()
    gpusort.sort_inplace(x, axis=axis, descending=True, stable=True)
    assert_same_bits(np.ascontiguousarray(x), np.ascontiguousarray(expected))
    assert_same_bits(base[untouched], before[untouched])


def test_in_place_on_every_target(target: str) -> None:
    x = sample("i4", fits(target, 500))
    expected = np.sort(x)
    gpusort.sort_inplace(x, target=target)
    assert_same_bits(x, expected)


# -- algorithm and target ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tile", [2, 8, 256])
def test_an_algorithm_brings_its_policy(tile: int) -> None:
    algorithm = gpusort.Bitonic(gpusort.BitonicPolicy(tile=tile, group_size=4, fused_passes=2))
    x = sample("f4", (3, 333))
    found = gpusort.sort(x, stable=True, target="simulator", algorithm=algorithm)
    assert_same_bits(found, sorted_by_numpy(x))


@attrs.define
class Recording:
    """A target of a user's own: the simulator, with other limits, that counts its runs."""

    limits: Limits
    inner: Simulator = attrs.field(factory=Simulator)
    buffers: list[int] = attrs.field(factory=list[int])

    @property
    def info(self) -> TargetInfo:
        return attrs.evolve(self.inner.info, name="recording", limits=self.limits)

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        self.buffers.append(schedule.buffers[0].count)
        assert all(launch.grid.group_size <= self.limits.group_size for launch in schedule.launches)
        assert all(launch.grid.groups <= self.limits.groups for launch in schedule.launches)
        self.inner.run(schedule, arrays)


LIMITS = Simulator().info.limits


def test_a_target_of_ones_own_is_used() -> None:
    own = Recording(LIMITS)
    x = sample("u4", 99)
    assert_same_bits(gpusort.sort(x, target=own), np.sort(x))
    assert own.buffers == [99]


def test_rows_are_shared_out_over_runs_where_a_buffer_is_too_small() -> None:
    own = Recording(attrs.evolve(LIMITS, storage_bytes=1000))
    x = sample("u4", (7, 100))
    assert_same_bits(gpusort.sort(x, target=own), np.sort(x))
    assert own.buffers == [200, 200, 200, 100]


def test_rows_are_shared_out_over_runs_where_a_launch_is_too_small() -> None:
    own = Recording(attrs.evolve(LIMITS, groups=3))
    x = sample("u4", (7, 10))
    assert_same_bits(gpusort.sort(x, target=own), np.sort(x))
    assert own.buffers == [30, 30, 10]


def test_a_fine_policy_shares_rows_out_sooner() -> None:
    own = Recording(attrs.evolve(LIMITS, groups=128))
    algorithm = gpusort.Bitonic(gpusort.BitonicPolicy(tile=64, group_size=2, fused_passes=1))
    x = sample("u4", (5, 256))
    assert_same_bits(gpusort.sort(x, target=own, algorithm=algorithm), np.sort(x))
    assert own.buffers == [512, 512, 256]


def test_the_policy_fits_the_limits() -> None:
    own = Recording(attrs.evolve(LIMITS, group_size=48, workgroup_bytes=1000))
    x = sample("u8", 700)
    assert_same_bits(gpusort.sort(x, target=own), np.sort(x))


def test_a_row_that_no_run_can_take_is_refused() -> None:
    own = Recording(attrs.evolve(LIMITS, storage_bytes=1000))
    x = sample("f4", 300)
    with pytest.raises(gpusort.CapabilityError, match=r"^x: a row of 300 elements"):
        gpusort.sort(x, target=own, algorithm=gpusort.Bitonic())
    assert own.buffers == []
    assert_same_bits(gpusort.sort(x, target=own, stable=True), gpusort.sort(x, stable=True, target="cpu"))


# -- mistakes ---------------------------------------------------------------------------------------------

ONES = np.ones(4, "f4")
READ_ONLY = np.broadcast_to(np.float32(1), (4,))
SUPPORTED = "supported: bool, integers of 8 to 64 bits, float16, float32, float64, datetime64 and timedelta64"
MISTAKES: dict[str, tuple[object, dict[str, object], type[Exception], str]] = {
    "complex": (ONES.astype("c8"), {}, gpusort.UnsupportedTypeError, f"x: cannot order .* complex64; {SUPPORTED}"),
    "object": (np.array([1, None]), {}, gpusort.UnsupportedTypeError, f"x: cannot order .* dtype object; {SUPPORTED}"),
    "string": (["b", "a"], {}, gpusort.UnsupportedTypeError, "x: cannot order .* dtype <U1"),
    "bytes": (np.array([b"b"]), {}, gpusort.UnsupportedTypeError, "x: cannot order .* dtype .S1"),
    "record": (np.zeros(2, "u4,f4"), {}, gpusort.UnsupportedTypeError, "x: cannot order .* dtype \\["),
    "complex double": (ONES.astype("c16"), {}, gpusort.UnsupportedTypeError, "x: cannot order .* dtype complex128"),
    "integer": (1 << 64, {}, gpusort.UnsupportedTypeError, "x: expected .* found an integer beyond 64 bits$"),
    "integers": ([1, 1 << 64], {}, gpusort.UnsupportedTypeError, f".* {SUPPORTED}; .* integers beyond 64 bits$"),
    "nothing": (None, {}, gpusort.UnsupportedTypeError, "x: expected a NumPy or cupy array.*found NoneType"),
    "ragged": ([[1, 2], [3]], {}, gpusort.InvalidArgumentError, "x: expected a NumPy or cupy array.*inhomogeneous"),
    "masked": (np.ma.array([1, 2]), {}, gpusort.UnsupportedTypeError, "x: masked arrays are not supported"),
    "0-d": (np.float32(1), {}, np.exceptions.AxisError, "axis: axis -1 is out of bounds for array of dimension 0"),
    "axis too large": (ONES, {"axis": 1}, np.exceptions.AxisError, "axis: axis 1 is out of bounds .* dimension 1"),
    "axis no number": (ONES, {"axis": "0"}, gpusort.UnsupportedTypeError, "axis: expected an int or None, found '0'"),
    "unknown target": (ONES, {"target": "gpu"}, gpusort.InvalidArgumentError, "target: expected 'auto', .*'gpu'"),
    "no target": (ONES, {"target": 3}, gpusort.InvalidArgumentError, "target: expected .* or a Target, found 3"),
    "algorithm": (ONES, {"algorithm": "radix"}, gpusort.UnsupportedTypeError, r"algorithm: .* such as Bitonic\(\)"),
    "out shape": (ONES, {"out": np.ones(3, "f4")}, gpusort.InvalidArgumentError, r"out: expected shape \(4,\)"),
    "out dtype": (ONES, {"out": np.ones(4, "f8")}, gpusort.InvalidArgumentError, "out: .* found .* dtype float64"),
    "out order": (ONES, {"out": np.ones(4, ">f4")}, gpusort.InvalidArgumentError, "out: .* float32, found .* >f4"),
    "out kind": (ONES, {"out": [0.0] * 4}, gpusort.UnsupportedTypeError, "out: .* the same kind as x, ndarray"),
    "out read-only": (ONES, {"out": READ_ONLY}, gpusort.InvalidArgumentError, "out: .* found a read-only one"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_and_leaves_the_input_alone(mistake: str) -> None:
    x, options, error, message = MISTAKES[mistake]
    before = np.copy(cast(Array, x)) if isinstance(x, np.ndarray) else None
    call: Callable[..., Any] = gpusort.sort  # the checkers know better than to allow these calls
    with pytest.raises(error, match=f"^{message}"):
        call(x, **options)
    if before is not None:
        np.testing.assert_array_equal(cast(Array, x), before)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        ([2, 1], gpusort.UnsupportedTypeError, "x: expected an array to sort in place, found list"),
        (READ_ONLY, gpusort.InvalidArgumentError, "x: expected an array that can be written"),
        (np.ones(3, "c8"), gpusort.UnsupportedTypeError, "x: cannot order"),
        (np.array(1), np.exceptions.AxisError, "axis: axis -1"),
    ],
)
def test_in_place_needs_an_array_that_can_be_written(x: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}") as e:
        gpusort.sort_inplace(x)
    assert e.value.__context__ is None or e.value.__suppress_context__  # as if of `out`, which nobody has given


def test_errors_are_also_of_the_standard_kinds() -> None:
    assert issubclass(gpusort.UnsupportedTypeError, TypeError)
    assert issubclass(gpusort.InvalidArgumentError, ValueError)
    assert issubclass(gpusort.TargetUnavailableError, RuntimeError)


# -- the package ------------------------------------------------------------------------------------------


PUBLIC: list[str] = vars(gpusort)["__all__"]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    assert callable(getattr(gpusort, name)) or isinstance(getattr(gpusort, name), ModuleType)


def test_only_public_names_are_listed() -> None:
    assert {name for name in dir(gpusort) if not name.startswith("__")} == {*PUBLIC}


def test_type_checkers_find_every_public_name_where_it_is() -> None:
    found: dict[str, str] = {}
    (checked,) = (node for node in ast.parse(Path(gpusort.__file__).read_text()).body if isinstance(node, ast.If))
    for node in checked.body:
        assert isinstance(node, ast.ImportFrom)
        found |= {name.name: f"gpusort.{node.module or name.name}" for name in node.names}
    assert sorted(found) == sorted(PUBLIC)
    for name, home in found.items():
        here: object = getattr(gpusort, name)
        assert isinstance(here, ModuleType) or here is getattr(import_module(home), name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gpusort' has no attribute 'sorted'"):
        getattr(gpusort, "sorted")  # noqa: B009  # the checkers would say so


def test_a_target_says_which_package_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        return None

    monkeypatch.setattr("gpusort.targets.registry.find_spec", none)
    monkeypatch.setattr("gpusort.targets.registry._opened", {})
    with pytest.raises(gpusort.TargetUnavailableError, match="target 'cpu' needs llvmlite: pip install llvmlite"):
        gpusort.target("cpu")


def test_targets_lists_every_target_or_why_it_is_not_here() -> None:
    states = {state.name: state for state in gpusort.targets()}
    assert list(states) == ["cpu", "wgsl", "cuda", "simulator", "python"]
    for name, state in states.items():
        if isinstance(state, gpusort.Unavailable):
            assert f"'{name}'" in state.reason
            with pytest.raises(gpusort.TargetUnavailableError):
                gpusort.sort(ONES, target=name)
        else:
            assert state.adapter
            assert state.driver
            assert gpusort.target(name) is gpusort.target(name)
    assert isinstance(states["cpu"], gpusort.TargetInfo)
    assert isinstance(states["simulator"], gpusort.TargetInfo)


@pytest.mark.parametrize("dtype", ["u2", "i8"])
def test_no_result_is_made_beside_an_array_that_is_sorted_in_place(dtype: str) -> None:
    """A sort of columns takes two copies; a result would be a third."""
    numbers = np.random.default_rng(1).integers(0, 1 << 15, (3000, 100)).astype(dtype)
    peaks: list[int] = []
    for x in (numbers.copy(), numbers.copy()):  # of the first call there are loops and plans, too
        tracemalloc.start()
        try:
            gpusort.sort_inplace(x, axis=0, target="cpu")
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert_same_bits(x, np.sort(numbers, axis=0))
    assert min(peaks) < 2.5 * numbers.nbytes
