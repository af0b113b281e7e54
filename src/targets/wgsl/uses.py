"""Access analysis: which memories a kernel reads, writes, or accesses by atomics, for their bindings' types."""

from __future__ import annotations

import attrs

from ...kernel import ir
from ...kernel.passes.walk import statements_in
from ...types.ops import AtomicOp


@attrs.define
class Use:
    """How a kernel accesses one memory."""

    read: bool = False
    written: bool = False
    atomic: bool = False

    @property
    def needs_write(self) -> bool:
        """Whether the binding must be read_write: WGSL has no atomics in read-only storage."""
        return self.written or self.atomic


def uses_of(program: ir.Program) -> dict[ir.Memory, Use]:
    """How a kernel accesses each of its memories."""
    uses = {memory: Use() for memory in program.memories}
    for statement in statements_in(program.body):
        match statement:
            case ir.Load():
                uses[statement.memory].read = True
            case ir.Store():
                uses[statement.memory].written = True
            case ir.Atomic():
                use = uses[statement.memory]
                use.read = use.atomic = True
                use.written |= statement.op is not AtomicOp.LOAD
            case _:
                pass
    return uses
