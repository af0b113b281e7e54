"""Emits a program as the text that is compiled for the CPU: one function, over the workgroups [first, last)."""

from __future__ import annotations

from ...kernel import ir
from ...kernel.passes.scopes import scopes_of
from ...kernel.passes.uniform import check_uniform
from ..kernel_text import TYPE_NAMES, described, stored_type
from ..render import Lines, head_of
from .barrier_split import split_at_barriers
from .lanes import LaneWriter
from .writer import PATIENCE, Writer, asks


def module_text(program: ir.Program) -> str:
    """The whole module."""
    uniformity = check_uniform(program)
    body = Lines()
    writer: SerialWriter | LaneWriter
    if program.group_size == 1:
        writer = SerialWriter(program, body)
    else:
        writer = LaneWriter(program, body, split_at_barriers(program, uniformity))
    asking = asks(program)
    _body(writer, asking)
    constants = Lines()
    with constants.indented():
        for binding in writer.constants.bindings():
            constants.add(binding)
    return head_of(described(program), _arguments(writer, asking)) + constants.text() + body.text()


class SerialWriter(Writer):
    """One invocation a workgroup: plain serial code, as it stands in the kernel."""

    def declare(self) -> None:
        for memory in self.program.memories:
            if memory.space is not ir.Space.STORAGE:
                assert memory.length is not None
                self.array(self.memory(memory), memory.type, memory.length)

    def group(self) -> None:
        inner = scopes_of(self.program).inner
        for variable in self.program.variables:
            if variable not in inner:
                self.zero(variable)
        self.block(self.program.body)


def _arguments(writer: SerialWriter | LaneWriter, asking: bool) -> list[tuple[str, str]]:
    """Storage arrays and parameters come by position, in the program's order."""
    program = writer.program
    stop = [("stop", "i8")] if asking else []  # where the host says that it wants the kernel to end
    return [
        ("first", "i8"), ("last", "i8"), ("num_groups", "u4"), *stop,
        *((writer.memory(memory), f"{TYPE_NAMES[stored_type(memory.type)]}[::1]") for memory in program.storage),
        *((writer.parameter(parameter), TYPE_NAMES[parameter.type]) for parameter in program.parameters),
    ]  # fmt: skip


def _body(writer: SerialWriter | LaneWriter, asking: bool) -> None:
    lines = writer.lines
    with lines.indented():
        writer.declare()
        if asking:
            lines.add(f"left = {PATIENCE}")
        with lines.nested("for group_at in range(first, last):"):
            lines.add("group = u4(group_at)")
            writer.group()
            if asking:
                writer.leave_if_stopped()
