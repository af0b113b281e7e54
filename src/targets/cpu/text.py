"""A program as Numba source for the CPU: a module with one function, for the workgroups [first, last)."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from ...kernel import ir
from ...kernel.passes.scopes import scopes_of
from ...kernel.passes.uniform import check_uniform
from ..numba_text import TYPE_NAMES
from ..render import Lines
from .barrier_split import split_at_barriers
from .lanes import LaneWriter
from .writer import HELPERS, PATIENCE, Writer, asks, memory_type

_RUNTIME = Path(__file__).with_name("runtime.py")


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
    head = Lines()
    _imports(program, head)
    _function(writer, asking, head)
    return head.text() + body.text()


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
            # Where Numba sees that itself none is needed: what is assigned twice costs it a look at the whole kernel.
            if variable not in inner:
                self.zero(variable)
        self.block(self.program.body)


def _imports(program: ir.Program, lines: Lines) -> None:
    package = __name__.rpartition(".")[0]
    shape = f"{program.group_size} invocation{'s' if program.group_size > 1 else ''} a workgroup"
    lines.add(f'"""Kernel {program.name}, {shape}. Generated; do not edit. Helpers: {_runtime_stamp()}."""')
    lines.add()
    lines.add("import math")
    lines.add()
    lines.add("import numpy as np")
    lines.add(f"from numba import {', '.join(sorted(TYPE_NAMES.values()))}, njit")
    lines.add()
    lines.add(f"from {package}.pipeline import Straight")
    lines.add(f"from {package}.runtime import (")
    with lines.indented():
        for name in HELPERS:
            lines.add(f"{name},")
    lines.add(")")
    lines.add()
    lines.add("inf, nan = math.inf, math.nan")


def _function(writer: SerialWriter | LaneWriter, asking: bool, lines: Lines) -> None:
    """All of the kernel above its body: storage arrays and parameters come by position, in the program's order."""
    program = writer.program
    arrays = [f"{TYPE_NAMES[memory_type(m.type)]}[::1]" for m in program.storage]
    scalars = [TYPE_NAMES[p.type] for p in program.parameters]
    stop = {"stop": "i8"} if asking else {}  # where the host says that it wants the kernel to end
    signature = f"void({', '.join(['i8', 'i8', 'u4', *stop.values(), *arrays, *scalars])})"
    names = [*map(writer.memory, program.storage), *map(writer.parameter, program.parameters)]
    lines.add(f'SIGNATURE = "{signature}"')
    lines.add()
    lines.add()
    lines.add(
        '@njit(nogil=True, error_model="numpy", boundscheck=False, pipeline_class=Straight, no_cfunc_wrapper=True)'
    )
    lines.add(f"def kernel({', '.join(['first', 'last', 'num_groups', *stop, *names])}):")
    with lines.indented():
        for binding in writer.constants.bindings():
            lines.add(binding)


def _body(writer: SerialWriter | LaneWriter, asking: bool) -> None:
    lines = writer.lines
    with lines.indented():
        writer.declare()
        if asking:
            lines.add(f"left = {PATIENCE}")
        lines.add("for group_at in range(first, last):")
        with lines.indented():
            lines.add("group = u4(group_at)")
            writer.group()
            if asking:
                writer.leave_if_stopped()


@lru_cache(maxsize=1)
def _runtime_stamp() -> str:
    """Names this version of the helpers: a kernel in the cache has them compiled in."""
    return hashlib.sha256(_RUNTIME.read_bytes()).hexdigest()[:16]
