"""Which forms of a kernel are made, with tests of the accesses that are not proven, and which is run for a launch."""

from __future__ import annotations

from pathlib import Path

from gpusort.algos.radix_tile import match_and_rank
from gpusort.kernel import ir
from gpusort.kernel import span as kernel_span
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role
from gpusort.kernel.passes.safe import Safety, guarded
from gpusort.kernel.passes.walk import statements_in
from gpusort.kernel.span import Span
from gpusort.kernel.specialise import specialise
from gpusort.targets.cpu.limits import subgroup_size
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.scalars import U32
from tests import bounds_cases
from tests.test_bounds import SCHEDULES


def test_forms_of_a_program_are_few() -> None:
    """However many lengths come, few kernels are compiled."""
    safety, forms = Safety(subgroup_size), set[ir.Program]()
    for by in range(200):
        data: Buffer[U32] = Buffer("data", U32, 100 + by % 7, Role.INPUT)
        found: Buffer[U32] = Buffer("found", U32, 32 + by % 3, Role.OUTPUT)
        step = specialise(bounds_cases.shifted.launch(Grid(4, 8), data, found, U32(by)))
        forms.add(safety.safe(step).program)
        assert safety.safe(step).program is safety.safe(step).program
    assert len(forms) == 2


def test_own_kernels_are_proven_some_times_and_then_known() -> None:
    """Scans of ever other lengths do not wait for proofs."""
    safety, forms = Safety(subgroup_size, polls=True), set[ir.Program]()
    for length in range(4000, 40_000, 3000):
        for launch in SCHEDULES["scan"](length).launches:
            forms.add(safety.safe(specialise(launch)).program)
    assert len(forms) == 2, "one for each kernel"


@kernel
def into_four(cx: Invocation, a: Storage[U32], b: Storage[U32], c: Storage[U32], d: Storage[U32], rounds: U32) -> None:
    a[cx.local_id] = U32(1)
    b[cx.local_id] = U32(1)
    c[cx.local_id] = U32(1)
    for i in dynamic_range(U32(0), rounds):
        d[cx.local_id] = i


def into_short(safety: Safety, short: str, rounds: int = 1) -> ir.Program:
    """The form of that kernel for a launch in which some of the four are too short."""
    a, b, c, d = (Buffer(name, U32, 7 if name in short else 8, Role.OUTPUT) for name in "abcd")
    return safety.safe(specialise(into_four.launch(Grid(1, 8), a, b, c, d, U32(rounds)))).program


def test_beyond_three_forms_the_one_is_taken_that_tests_least_of_what_has_to_be() -> None:
    """And if none does, one that tests whatever any launch needed."""
    safety = Safety(subgroup_size)
    first, second, third = (into_short(safety, short) for short in ("a", "b", "abc"))
    assert [len(checks_in(form)) for form in (first, second, third)] == [1, 1, 3]
    assert into_short(safety, "b") is second
    assert into_short(safety, "c") is into_short(safety, "ac") is third
    assert len(checks_in(into_short(safety, ""))) == 1
    all_four = into_short(safety, "d")
    assert len(checks_in(all_four)) == 4
    assert into_short(safety, "cd") is all_four
    assert into_short(safety, "bc") is third


def test_a_form_that_polls_is_taken_where_no_other_tests_enough() -> None:
    safety = Safety(subgroup_size, polls=True)
    polls, second, third = into_short(safety, "a", 1 << 31), into_short(safety, "b"), into_short(safety, "bc")
    assert [max(loop.poll_cost for loop in loops_in(form)) for form in (polls, second, third)] == [2, 0, 0]
    assert into_short(safety, "a", 2) is polls
    assert into_short(safety, "c") is third
    assert [len(checks_in(into_short(safety, "d", rounds))) for rounds in (1, 1 << 31)] == [4, 4]


@kernel
def ranks(cx: Invocation, data: Storage[U32], counters: Workgroup[U32]) -> None:
    counters[cx.local_id] = U32(0)
    cx.barrier()
    data[cx.local_id] = match_and_rank(cx, counters, U32(0), data[cx.local_id])


def test_a_helper_is_a_targets_own_unless_an_access_in_it_is_tested() -> None:
    """A target's own would not test it."""
    step = specialise(ranks.launch(Grid(1, 8), Buffer("data", U32, 8, Role.INOUT), Workgroup(U32, 8)))
    for statement in statements_in(step.program.body):
        if isinstance(statement, ir.Access):
            form = guarded(step.program, {id(statement)}, {})
            own = [one.overridable.name for one in checks_in(form) if one.overridable is not None]
            assert own == ([] if isinstance(statement, ir.Atomic) else ["match_and_rank"])


def checks_in(program: ir.Program) -> list[ir.If]:
    return [statement for statement in statements_in(program.body) if isinstance(statement, ir.If)]


def loops_in(program: ir.Program) -> list[ir.For]:
    return [statement for statement in statements_in(program.body) if isinstance(statement, ir.For)]


def test_the_files_of_others_are_not_taken_for_own() -> None:
    """Also of a package whose name begins like this one's."""
    own = Path(kernel_span.__file__).parents[1]
    assert Span(str(own / "algos" / "copy.py"), 1).is_own
    assert not Span(f"{own}_extras/keys.py", 1).is_own
