"""A target of one's own: kernels as C, compiled by the machine's `cc`.

It has workgroups of one invocation, which makes it short: there is nobody to wait for, and the algorithms fit
themselves to `Limits`. What its table has no row for is refused, by the kernel's file and line.
"""

from __future__ import annotations

import ctypes
import math
import platform
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

import numpy as np

import gpusort
from gpusort import Capability, CapabilityError, Limits, TargetInfo
from gpusort.kernel import ir
from gpusort.kernel.launch import Schedule, Step
from gpusort.targets.binding import work_of
from gpusort.targets.interpreters import bytes_behind
from gpusort.targets.render import Lines, Names, Row, render_operation
from gpusort.types.layout import Type

TYPES: Mapping[Type, str] = {
    Type.BOOL: "bool", Type.U8: "uint8_t", Type.U16: "uint16_t", Type.U32: "uint32_t", Type.U64: "uint64_t",
    Type.I32: "int32_t", Type.I64: "int64_t", Type.F32: "float", Type.F64: "double",
}  # fmt: skip
PASSED: Mapping[Type, Callable[..., object]] = {
    Type.BOOL: ctypes.c_bool, Type.U32: ctypes.c_uint32, Type.U64: ctypes.c_uint64, Type.I32: ctypes.c_int32,
    Type.I64: ctypes.c_int64, Type.F32: ctypes.c_float, Type.F64: ctypes.c_double,
}  # fmt: skip
RESERVED = frozenset({
    *TYPES.values(), "auto", "case", "char", "const", "default", "do", "enum", "goto", "group", "groups", "int",
    "kernel", "long", "register", "short", "static", "struct", "switch", "void",
})  # fmt: skip


def _shift(operator: str) -> Row:
    """A shift counts modulo the width."""
    return lambda node, operands: f"({operands[0]} {operator} ({operands[1]} & {node.type.bits - 1}))"


def _bitcast(node: ir.Apply, operands: Sequence[str]) -> str:
    return f"((union {{ {TYPES[node.operands[0].type]} from; {TYPES[node.type]} to; }}){{ {operands[0]} }}).to"


ROWS: Mapping[str, Row] = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})", "div": "({0} / {1})",
    "floordiv": "({0} / ({1} + ({1} == 0)))", "mod": "({0} % ({1} + ({1} == 0)))",  # by zero: as by one
    "neg": "(-{0})",
    "and": "({0} & {1})", "or": "({0} | {1})", "xor": "({0} ^ {1})", "shl": _shift("<<"), "shr": _shift(">>"),
    "invert": lambda node, operands: f"({'!' if node.type is Type.BOOL else '~'}{operands[0]})",
    "eq": "({0} == {1})", "ne": "({0} != {1})", "lt": "({0} < {1})", "le": "({0} <= {1})", "gt": "({0} > {1})",
    "ge": "({0} >= {1})", "select": "({0} ? {1} : {2})",
    "min": "({0} < {1} ? {0} : {1})", "max": "({0} > {1} ? {0} : {1})",
    "cast": lambda node, operands: f"(({TYPES[node.type]}){operands[0]})", "bitcast": _bitcast,
}  # fmt: skip


def literal(constant: ir.Const) -> str:
    value = constant.value
    if constant.type is Type.BOOL:
        return str(int(value))
    if not constant.type.is_float:
        return f"(({TYPES[constant.type]}){int(value) % (1 << 64)}ull)"
    if not math.isfinite(value):
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "(-INFINITY)"
    return f"(({TYPES[constant.type]}){float(value).hex()})"


class Writer:
    """Writes one program."""

    def __init__(self, program: ir.Program, rows: Mapping[str, Row]) -> None:
        self.program, self.rows = program, rows
        self.lines, self.names = Lines(), Names(RESERVED)
        things: tuple[ir.Memory | ir.Parameter, ...] = (*program.memories, *program.parameters)
        self.fixed = {thing: self.names.of(thing, thing.name) for thing in things}
        self.lengths = {memory: self.names.of(memory.name, f"{memory.name}_length") for memory in program.storage}

    def text(self) -> str:
        program, lines = self.program, self.lines
        for header in ("math", "stdbool", "stdint"):
            lines.add(f"#include <{header}.h>")
        arguments = ["uint32_t groups", *(f"{TYPES[m.type]} *{self.fixed[m]}" for m in program.storage)]
        arguments += [f"uint32_t {self.lengths[m]}" for m in program.storage]
        arguments += [f"{TYPES[p.type]} {self.fixed[p]}" for p in program.parameters]
        whole = f"void kernel({', '.join(arguments)}) {{"
        with lines.nested(whole, "}"), lines.nested("for (uint32_t group = 0; group < groups; group++) {", "}"):
            for memory in program.memories[len(program.storage) :]:
                lines.add(f"{TYPES[memory.type]} {self.fixed[memory]}[{memory.length}];")
            for variable in program.variables:
                lines.add(f"{TYPES[variable.type]} {self.names.of(variable, variable.name)} = 0;")
            self.block(program.body)
        return lines.text()

    def block(self, block: ir.Block) -> None:
        for statement in block:
            self.statement(statement)

    def braced(self, head: str, body: ir.Block) -> None:
        with self.lines.nested(head + " {", "}"):
            self.block(body)

    def statement(self, statement: ir.Statement) -> None:
        show = self.expression
        match statement:
            case ir.Assign(variable, value):
                self.lines.add(f"{self.names.of(variable, variable.name)} = {show(value)};")
            case ir.Load(variable, memory, index):
                self.lines.add(f"{self.names.of(variable, variable.name)} = {self.fixed[memory]}[{show(index)}];")
            case ir.Store(memory, index, value):
                self.lines.add(f"{self.fixed[memory]}[{show(index)}] = {show(value)};")
            case ir.If(condition, then, otherwise):
                self.braced(f"if ({show(condition)})", then)
                if otherwise:
                    self.braced("else", otherwise)
            case ir.For(variable, start, stop, step, body):
                # Counted in 64 bits: a variable near 2^32 must end its loop, not wrap.
                at, end, by = (
                    self.names.of((statement, part), f"{variable.name}_{part}") for part in ("at", "end", "by")
                )
                head = f"uint64_t {at} = {show(start)}, {end} = {show(stop)}, {by} = {show(step)}"
                with self.lines.nested(f"for ({head}; {at} < {end}; {at} += {by}) {{", "}"):
                    self.lines.add(f"{self.names.of(variable, variable.name)} = {at};")
                    self.block(body)
            case ir.Loop(body):
                self.braced("for (;;)", body)
            case ir.Break():
                self.lines.add("break;")
            case ir.Barrier():
                pass  # nobody to wait for
            case ir.Atomic() | ir.Subgroup():
                raise CapabilityError(
                    f"{statement.span}: target 'c' has no {type(statement).__name__.lower()} operations"
                )
            case _:
                assert_never(statement)

    def expression(self, node: ir.Expression) -> str:
        match node:
            case ir.Const():
                return literal(node)
            case ir.Read(variable):
                return self.names.of(variable, variable.name)
            case ir.Argument(parameter):
                return self.fixed[parameter]
            case ir.Length(memory):
                return self.lengths[memory]
            case ir.BuiltinValue(ir.Builtin.GROUP_ID):
                return "group"
            case ir.BuiltinValue(ir.Builtin.NUM_GROUPS):
                return "groups"
            case ir.BuiltinValue(ir.Builtin.GROUP_SIZE | ir.Builtin.SUBGROUP_SIZE):
                return "1u"
            case ir.BuiltinValue():
                return "0u"
            case ir.Apply():
                return render_operation("c", self.rows, node, [self.expression(operand) for operand in node.operands])
            case _:
                assert_never(node)


class CTarget:
    """Satisfies gpusort.Target. `rows` says how C writes the operations."""

    def __init__(self, rows: Mapping[str, Row] = ROWS) -> None:
        self._rows = rows
        self._kernels: dict[ir.Program, ctypes.CDLL] = {}  # a program is compared by identity
        self._info = TargetInfo(
            name="c",
            adapter=platform.machine(),
            driver="cc",
            limits=Limits(
                group_size=1, workgroup_bytes=32 << 10, groups=1 << 31, storage_bytes=1 << 40, storage_buffers=32,
                subgroup_size=1,
            ),
            capabilities=frozenset({Capability.FLOAT64}),
        )  # fmt: skip

    @property
    def info(self) -> TargetInfo:
        return self._info

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        work = work_of(schedule)  # read and checked once
        kernels = [self._kernel(step) for step in work.steps]  # all or nothing: compiled before anything runs
        memory = bytes_behind(work, arrays)
        for kernel, step in zip(kernels, work.steps, strict=True):
            views = [memory[buffer.name].view(storage.type.dtype) for storage, buffer in step.buffers.items()]
            kernel.kernel(
                ctypes.c_uint32(step.groups),
                *(ctypes.c_void_p(view.ctypes.data) for view in views),
                *(ctypes.c_uint32(len(view)) for view in views),
                *(PASSED[parameter.type](value) for parameter, value in step.values.items()),
            )

    def _kernel(self, step: Step) -> ctypes.CDLL:
        found = self._kernels.get(step.program)
        if found is None:
            if step.program.group_size > 1:
                raise CapabilityError(f"{step.program.span}: target 'c' has workgroups of one invocation")
            found = self._kernels[step.program] = compiled(Writer(step.program, self._rows).text())
        return found


def compiled(source: str) -> ctypes.CDLL:
    # Signed integers wrap, and a product is rounded before it is added to something.
    flags = ("-O2", "-shared", "-fPIC", "-fwrapv", "-ffp-contract=off")
    with tempfile.TemporaryDirectory() as folder:
        text, library = Path(folder, "kernel.c"), Path(folder, "kernel.so")
        text.write_text(source)
        subprocess.run(["cc", *flags, "-o", str(library), str(text)], check=True)
        return ctypes.CDLL(str(library))  # stays mapped when the file goes


def main() -> None:
    x = np.random.default_rng(1).standard_normal(10_000, dtype=np.float32)
    c = CTarget()
    found = gpusort.sort(x, target=c)
    print(found[:4], "…", gpusort.argmin(x, target=c))
    assert found.tolist() == np.sort(x).tolist()
    assert gpusort.argmin(x, target=c) == np.argmin(x)


if __name__ == "__main__":
    main()
