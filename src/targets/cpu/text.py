"""Emits a program as the text that is compiled for the CPU: one function, over the workgroups [first, last)."""

from __future__ import annotations

from ...kernel import ir
from ...kernel.passes.uniform import check_uniform
from ..kernel_text import TYPE_NAMES, described, stored_type
from ..render import Lines, head_of
from .barrier_split import split_at_barriers
from .lanes import LaneWriter
from .writer import PATIENCE, Writer, asks


def module_text(program: ir.Program) -> str:
    """The whole module. Storage arrays and parameters come by position, in the program's order."""
    uniformity, lines, asking = check_uniform(program), Lines(1), asks(program)
    if program.group_size == 1:
        writer = Writer(program, lines)
    else:
        writer = LaneWriter(program, lines, split_at_barriers(program, uniformity))
    writer.declare()
    if asking:
        lines.add(f"left = {PATIENCE}")
    with lines.nested("for group_at in range(first, last):"):
        lines.add("group = u4(group_at)")
        writer.group()
        if asking:
            writer.leave_if_stopped()
    stop = [("stop", "i8")] if asking else []  # where the host says that it wants the kernel to end
    arguments = [
        ("first", "i8"), ("last", "i8"), ("num_groups", "u4"), *stop,
        *((writer.memory(memory), f"{TYPE_NAMES[stored_type(memory.type)]}[::1]") for memory in program.storage),
        *((writer.parameter(parameter), TYPE_NAMES[parameter.type]) for parameter in program.parameters),
    ]  # fmt: skip
    constants = Lines(1)
    for binding in writer.constants.bindings():
        constants.add(binding)
    return head_of(described(program), arguments) + constants.text() + lines.text()
