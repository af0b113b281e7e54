"""What becomes of loops for Mesa's software driver: none that it unrolls, and one report of all that it cuts short."""

from __future__ import annotations

import re

from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role
from gpusort.kernel.specialise import specialise
from gpusort.targets.wgsl.legalize import legalize
from gpusort.targets.wgsl.loops import instrumented
from gpusort.targets.wgsl.text import wgsl_of
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import U32


@kernel
def go_round(cx: Invocation, out: Storage[U32], times: U32) -> None:
    total = U32(0)
    for outer in dynamic_range(U32(0), times):
        for inner in dynamic_range(U32(0), U32(9)):
            total = total + outer * inner
    for rest in dynamic_range(U32(0), U32(7)):
        total = total ^ rest
    out[cx.global_id] = total


def test_no_bound_is_a_constant_and_one_place_reports() -> None:
    out = Buffer("out", U32, 8, Role.OUTPUT)
    program = instrumented(legalize(specialise(go_round.launch(Grid(1, 8), out, U32(5))).program).program)
    text = wgsl_of(program).text
    bounds = re.findall(r"let (stop\w*) = (.+);", text)
    assert len(bounds) == len(re.findall(r"\bloop\b", text)) == 3
    assert not any(re.fullmatch(r"\d+u", bound) for _, bound in bounds)
    # By no uniform: the driver would compile the kernel for its value.
    assert all("group_id" in bound for _, bound in bounds if re.search(r"\d+u", bound))
    assert text.count("atomicStore(") == 1
