"""Checks of kernels against a target's limits and capabilities, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from ..algos.sizes import LARGEST_U32
from ..kernel import ir
from ..kernel.launch import Step
from ..kernel.passes.overlay import packed_bytes
from ..machine import Capability, Limits
from ..types.errors import CapabilityError
from ..types.needs import Needs

# What a kernel may ask for, by the name of the limit.
_ASKED: Mapping[str, str] = {
    "group_size": "invocations in a workgroup",
    "workgroup_bytes": "bytes of workgroup memory",
    "groups": "workgroups",
    "storage_buffers": "storage buffers",
    "storage_bytes": "bytes in a storage buffer",
    "register_bytes": "bytes in an array of registers",
}


def require_within(
    step: Step, limits: Limits, capabilities: Collection[Capability], target: str, workgroup_bytes: int | None = None
) -> None:
    """Raises CapabilityError, naming the kernel and the limit that it exceeds. Workgroup memory is what is live at one
    time, as algorithms count it, unless a target says what it takes."""
    program, kernel = step.program, kernel_named(step.program)
    shared = packed_bytes(program) if workgroup_bytes is None else workgroup_bytes
    require_needs(kernel, program.needs, limits, capabilities, target)
    require_limits(
        kernel, limits, target, group_size=program.group_size, workgroup_bytes=shared, groups=step.groups,
        storage_buffers=len(step.buffers), storage_bytes=max((b.nbytes for b in step.buffers.values()), default=0),
    )  # fmt: skip
    elements = max(map(step.length_of, step.buffers), default=0)
    require_at_most(kernel, "elements in a storage buffer", elements, LARGEST_U32, target)


def require_limits(
    kernel: str, limits: Limits, target: str, hint: Callable[[str, int], str] = lambda limit, asked: "", **asked: int
) -> None:
    """The same for what is asked for, by the name of its limit. A hint is the end of the message."""
    for limit, number in asked.items():
        require_at_most(kernel, _ASKED[limit], number, getattr(limits, limit), target, hint(limit, number))


def require_at_most(kernel: str, what: str, asked: int, most: int, target: str, hint: str = "") -> None:
    """Raises CapabilityError for a kernel that asks for more of something than a target has."""
    if asked > most:
        raise CapabilityError(f"{kernel} asks for {asked} {what}, {target} has {most}{hint}")


def kernel_named(program: ir.Program) -> str:
    return f"{program.span}: kernel {program.name!r}"


def require_needs(
    kernel: str, needs: Iterable[Needs], limits: Limits, capabilities: Collection[Capability], target: str
) -> None:
    """Raises CapabilityError for a kernel whose needs a target does not meet. `kernel` and `target` are their names in
    the message."""
    for need in needs:
        lacks = _lacking(need, limits, capabilities)
        if lacks is not None:
            raise CapabilityError(f"{kernel} {lacks[0]}, {target} {lacks[1]}")


def _lacking(need: Needs, limits: Limits, capabilities: Collection[Capability]) -> tuple[str, str] | None:
    """The unmet need, and what the target has instead, as parts of a message; None if it is met."""
    if need.forward_progress and Capability.FORWARD_PROGRESS not in capabilities:
        progress = Capability.FORWARD_PROGRESS.value
        return f"needs {progress}: its workgroups wait for each other", "does not promise it"
    if not need.lanes:
        return None
    if Capability.SUBGROUPS not in capabilities:
        return f"needs {Capability.SUBGROUPS.value}", "has none"
    least, most = limits.subgroup_size, max(limits.subgroup_size, limits.most_subgroup_size)
    if need.lanes > least:
        return f"is made for subgroups of at least {need.lanes} lanes", f"has some of {least}"
    if need.whole:
        lanes = least
        while lanes <= most:
            if not need.parts_evenly(lanes):
                return f"takes workgroups of {need.whole} for whole subgroups", f"has subgroups of {lanes} lanes"
            lanes *= 2
    return None
