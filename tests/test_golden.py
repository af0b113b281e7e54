"""What is generated for a few kernels, to the letter, so that a change shows. `--update-golden` writes it anew."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gpusort.algos.batch import Batch
from gpusort.algos.bitonic import bitonic_sort
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.reduce_axis import reduce_rows
from gpusort.algos.scan import scan_rows
from gpusort.kernel.ir import Program
from gpusort.kernel.launch import Schedule
from gpusort.kernel.listing import listing
from gpusort.kernel.specialise import specialise
from gpusort.targets.cpu.text import module_text
from gpusort.targets.cuda.text import kernel_text
from gpusort.targets.wgsl.kernel import lower_to_wgsl
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.indices import ScanKind, SortOrder
from gpusort.types.monoids import Sum
from gpusort.types.params import BitonicPolicy, RadixPolicy, ReducePolicy, ScanPolicy, Totals
from gpusort.types.searches import ArgMin

GOLDEN = Path(__file__).parent / "golden"


def ir(program: Program) -> str:
    """Without the lines of the source: they move with every edit above them."""
    return re.sub(r"^ *\d+  ", "", listing(program), flags=re.MULTILINE)


def cuda(program: Program) -> str:
    return kernel_text(program).source


def wgsl(program: Program) -> str:
    return lower_to_wgsl(program)[1].text


FORMS: dict[str, Callable[[Program], str]] = {"ir": ir, "cpu": module_text, "cuda": cuda, "wgsl": wgsl}


def bitonic(dtype: str) -> Schedule:
    return bitonic_sort(key_for(dtype), 1, 5000, SortOrder.ASCENDING, BitonicPolicy(256, 64, 2))


PROGRAMS: dict[str, tuple[Callable[[], Schedule], str]] = {
    "bitonic_step_u32": (lambda: bitonic("u4"), "bitonic_step"),
    "bitonic_step_f32": (lambda: bitonic("f4"), "bitonic_step"),
    "bitonic_tile_u64": (lambda: bitonic("u8"), "bitonic_tile"),
    "reduce_sum_f32": (
        lambda: reduce_rows(Sum(number_for("f4")), 1, 99, ReducePolicy(64, 2, 1, True)),
        "reduce_columns",
    ),
    "reduce_blocks_argmin_f32": (
        lambda: reduce_rows(ArgMin(key_for("f4")), 1, 99, ReducePolicy(64, 2, 1, totals=Totals.ONE)),
        "reduce_columns",
    ),
    "reduce_argmin_f32": (lambda: reduce_rows(ArgMin(key_for("f4")), 1, 99, ReducePolicy(64, 2, 1)), "reduce_columns"),
    "scan_sum_f32": (
        lambda: scan_rows(Sum(number_for("f4")), 1, 999, ScanKind.INCLUSIVE, ScanPolicy(64, 3, subgroups=True)),
        "scan_shares",
    ),
    "radix_scatter_u32": (
        lambda: radix_sort(Batch(key_for("u4"), 1, 99_999, SortOrder.ASCENDING), RadixPolicy(4, 64, 2), 8),
        "radix_scatter",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_generated_text(name: str, form: str, request: pytest.FixtureRequest) -> None:
    make, kernel = PROGRAMS[name]
    launch = next(launch for launch in make().launches if launch.kernel.name == kernel)
    text = FORMS[form](specialise(launch).program)
    path = GOLDEN / f"{name}.{form}.txt"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs; see `pytest --update-golden` and the diff"


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {f"{n}.{f}.txt" for n in PROGRAMS for f in FORMS}
