"""What a kernel does with its memories: which bindings it needs to write, and which hold atomics."""

from __future__ import annotations

import attrs

from ...kernel import ir
from ...kernel.passes.walk import statements_in
from ...types.ops import AtomicOp


@attrs.define
class Use:
    """What a kernel does with one memory."""

    read: bool = False
    written: bool = False
    atomic: bool = False

    @property
    def needs_write(self) -> bool:
        """Whether its binding is one to write: WGSL has no atomics in memory that is only read."""
        return self.written or self.atomic


def uses_of(program: ir.Program) -> dict[ir.Memory, Use]:
    """What a kernel does with its memories."""
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
