"""A program as Numba CUDA source: the text of a module with one kernel in it.

Storage comes as raw pointers (an array of Numba's would cost seven parameters each), integers stay 32 bits wide and
unsigned, loops stay loops. Workgroup memory beyond what a kernel may hold statically lies behind one base address,
each memory at an offset, and the host asks for the bytes at the launch.
"""

from __future__ import annotations

import re

import attrs

from ..kernel import ir
from ..kernel.passes.uniform import check_uniform
from ..types.layout import Type
from .cuda_table import INTRINSICS
from .cuda_writer import WARP, BodyWriter, lane_mask
from .numba_text import TYPE_NAMES, literal
from .render import Lines

_STATIC_BYTES = 48 * 1024  # more than this of workgroup memory has to be asked for at the launch
_ALIGNMENT = 16


@attrs.frozen
class KernelText:
    """A module's source, and what the host has to know to launch its kernel.

    The kernel takes the storage in the program's order, then the lengths asked for, then the parameters.
    """

    source: str
    lengths: tuple[ir.Memory, ...]
    dynamic_bytes: int  # workgroup memory to ask for at the launch; 0 where it is static


def kernel_text(program: ir.Program) -> KernelText:
    """The program as a module with one function, `kernel`, and its `SIGNATURE`."""
    check_uniform(program)
    return _Writer(program).module()


def workgroup_bytes(program: ir.Program) -> int:
    """The workgroup memory of a program, each of its memories on a boundary fit for any type."""
    return sum(-(-_bytes(m) // 16) * 16 for m in program.memories if m.space is ir.Space.WORKGROUP)


def _bytes(memory: ir.Memory) -> int:
    assert memory.length is not None, memory
    return max(memory.length, 1) * memory.type.size


def _held(type: Type) -> Type:
    """How memory holds elements of this type: a Bool is a byte."""
    return Type.U8 if type is Type.BOOL else type


class _Writer:
    """Writes one program. What the body turns out to use is declared above it afterwards."""

    def __init__(self, program: ir.Program) -> None:
        self._program = program
        self._lines = Lines()
        self._widths = Widths(program, WARP)
        self._names = Names(RESERVED_NAMES | _SCAFFOLDING | frozenset().union(*INTRINSICS.values()))
        # by value: statements may hold equal copies of the program's own memories and parameters
        outer: tuple[ir.Memory | ir.Parameter, ...] = (*program.memories, *program.parameters)
        self._outer = {thing: self._names.of(thing, thing.name) for thing in outer}
        self._lengths: dict[ir.Memory, str] = {}
        self._identities: set[ir.Builtin] = set()
        self._lanes_vary = False
        self._offsets = self._place_workgroup_memories()
        self._expressions = Expressions(
            target="cuda",
            operations={**_OPERATIONS, "count_ones": self._count_ones},
            variable=self._variable,
            parameter=self._parameter,
            identity=self._identity,
            length=self._length,
        )

    def module(self) -> KernelText:
        with self._lines.indented():
            self._block(self._program.body)
        body = self._lines.text()
        self._lines = Lines()
        self._head(body)
        lengths = tuple(m for m in self._program.storage if m in self._lengths)
        dynamic = workgroup_bytes(self._program) if self._offsets else 0
        return KernelText(self._lines.text() + body, lengths, dynamic)

    # -- above the body -----------------------------------------------------------------------------------

    def _head(self, body: str) -> None:
        program, add = self._program, self._lines.add
        package = __name__.rpartition(".")[0]
        add(f'"""Kernel {program.name}, {program.group_size} invocations a workgroup. Generated; do not edit."""')
        add()
        add("import math")
        add("from math import inf, nan")
        add()
        add("from numba import cuda")
        add("from numba.cuda import types")
        add(f"from numba.cuda.types import {', '.join(sorted(TYPE_NAMES.values()))}")
        add()
        prologue = Lines()
        with prologue.indented():
            self._prologue(prologue)
        for module, offered in INTRINSICS.items():
            used = [name for name in offered if re.search(rf"\b{name}\(", prologue.text() + body)]
            if used:
                add(f"from {package}.{module} import {', '.join(used)}")
        names, types = self._arguments()
        add()
        add(f"SIGNATURE = types.void({', '.join(types)})")
        add()
        add()
        add(f"def kernel({', '.join(names)}):")
        for line in prologue.text().splitlines():
            add(line)

    def _arguments(self) -> tuple[list[str], list[str]]:
        """What the kernel takes: names, and types as they read in the source."""
        program = self._program
        storage = [(self._memory(m), f"types.CPointer({TYPE_NAMES[_held(m.type)]})") for m in program.storage]
        lengths = [(self._lengths[m], "u4") for m in program.storage if m in self._lengths]
        scalars = [(self._parameter(p), TYPE_NAMES[_held(p.type)]) for p in program.parameters]
        both = [*storage, *lengths, *scalars]
        return [name for name, _ in both], [type for _, type in both]

    def _prologue(self, lines: Lines) -> None:
        """The invocation's own numbers, memories and variables."""
        size = self._program.group_size
        forms = {
            ir.Builtin.LOCAL_ID: "local_id = u4(cuda.threadIdx.x)",
            ir.Builtin.LANE: f"lane = u4(local_id & u4({WARP - 1}))",
            ir.Builtin.SUBGROUP_ID: "subgroup_id = shift_right(local_id, u4(5))",
            ir.Builtin.GROUP_ID: "group_id = u4(cuda.blockIdx.x)",
            ir.Builtin.NUM_GROUPS: "num_groups = u4(cuda.gridDim.x)",
        }
        needs_local = self._lanes_vary or self._identities & {ir.Builtin.LANE, ir.Builtin.SUBGROUP_ID}
        for builtin, form in forms.items():
            if builtin in self._identities or (builtin is ir.Builtin.LOCAL_ID and needs_local):
                lines.add(form)
        if self._lanes_vary:
            whole = size // WARP * WARP
            lines.add(f"lanes = choose(local_id < u4({whole}), {_lane_mask(WARP)}, {_lane_mask(size % WARP)})")
        for parameter in self._program.parameters:
            if parameter.type is Type.BOOL:  # comes as a byte: the calling convention has no bits
                name = self._parameter(parameter)
                lines.add(f"{name} = {name} != u1(0)")
        for memory in self._program.memories:
            if memory.space is not ir.Space.STORAGE:
                place = "local" if memory.space is ir.Space.REGISTERS else "shared"
                assert memory.length is not None, memory
                length = 0 if memory in self._offsets else max(memory.length, 1)
                lines.add(f"{self._memory(memory)} = cuda.{place}.array({length}, {TYPE_NAMES[_held(memory.type)]})")
        for variable in self._program.variables:
            # a start value for the type's sake: every variable is assigned before it is read
            lines.add(f"{self._variable(variable)} = {literal(0, variable.type)}")

    def _place_workgroup_memories(self) -> dict[ir.Memory, int]:
        """Where each memory begins behind the one base, in its elements; nothing while all are static."""
        if workgroup_bytes(self._program) <= STATIC_BYTES:
            return {}
        offsets: dict[ir.Memory, int] = {}
        at = 0
        for memory in self._program.memories:
            if memory.space is ir.Space.WORKGROUP:
                offsets[memory] = at // memory.type.size
                at += -(-_bytes(memory) // 16) * 16
        return offsets

