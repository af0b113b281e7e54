"""A program as Numba CUDA source: the text of a module with one kernel in it.

Storage comes as raw pointers (an array of Numba's would cost seven parameters each), integers stay 32 bits wide and
unsigned, loops stay loops. Workgroup memory beyond what a kernel may hold statically lies behind one base address,
each memory at an offset, and the host asks for the bytes at the launch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import assert_never

import attrs

from ..kernel import ir
from ..kernel.passes.uniform import check_uniform
from ..types.layout import Type
from ..types.ops import AtomicOp, SubgroupOp
from .cuda_bits import Widths
from .numba_text import OPERATIONS, RESERVED_NAMES, TYPE_NAMES, Expressions, literal
from .render import Lines, Names, Row

WARP = 32
STATIC_BYTES = 48 * 1024  # more than this of workgroup memory has to be asked for at the launch
MATCH_BY_BALLOTS = 10  # bits up to which as many ballots are quicker than the hardware's match

OPERATION_INTRINSICS = (
    "atomic_add", "atomic_and", "atomic_exchange", "atomic_load", "atomic_max", "atomic_min", "atomic_or",
    "atomic_store", "atomic_xor", "bits_f4", "bits_f8", "bits_i4", "bits_i8", "bits_u4", "bits_u8", "choose",
    "count_ones", "divide", "leading_zeros", "maximum", "minimum", "multiply_rounded", "remainder", "shift_left",
    "shift_right", "trailing_zeros",
)  # fmt: skip
LANE_INTRINSICS = (
    "ballot", "lanes_add", "lanes_exclusive_add", "match", "match_low_bits", "shuffle", "shuffle_down", "shuffle_up",
    "shuffle_xor",
)  # fmt: skip
_SCAFFOLDING = frozenset(
    {"SIGNATURE", "cuda", "group_id", "kernel", "lane", "lanes", "local_id", "num_groups", "subgroup_id", "types"}
)


def _product(node: ir.Apply, operands: Sequence[str]) -> str:
    """NVVM may fuse a product of floats with the sum behind it, so those have a form of their own."""
    if node.type.is_float:
        return f"multiply_rounded({operands[0]}, {operands[1]})"
    return f"{TYPE_NAMES[node.type]}({operands[0]} * {operands[1]})"


def _cast(node: ir.Apply, operands: Sequence[str]) -> str:
    """Numba goes from a Bool to a float by way of an integer."""
    value = f"u4({operands[0]})" if node.operands[0].type is Type.BOOL else operands[0]
    return f"{TYPE_NAMES[node.type]}({value})"


_OPERATIONS: Mapping[str, Row] = {
    **OPERATIONS,
    "mul": _product,
    "floordiv": "divide({0}, {1})",
    "mod": "remainder({0}, {1})",
    "shl": "shift_left({0}, {1})",
    "shr": "shift_right({0}, {1})",
    "min": "minimum({0}, {1})",
    "max": "maximum({0}, {1})",
    "select": "choose({0}, {1}, {2})",
    "leading_zeros": "leading_zeros({0})",
    "trailing_zeros": "trailing_zeros({0})",
    "cast": _cast,
}

_SUBGROUP: Mapping[SubgroupOp, str] = {
    SubgroupOp.BALLOT: "ballot",
    SubgroupOp.MATCH: "match",
    SubgroupOp.SHUFFLE: "shuffle",
    SubgroupOp.SHUFFLE_XOR: "shuffle_xor",
    SubgroupOp.SHUFFLE_UP: "shuffle_up",
    SubgroupOp.SHUFFLE_DOWN: "shuffle_down",
    SubgroupOp.ADD: "lanes_add",
    SubgroupOp.EXCLUSIVE_ADD: "lanes_exclusive_add",
}


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
        self._names = Names(RESERVED_NAMES | _SCAFFOLDING | {*OPERATION_INTRINSICS, *LANE_INTRINSICS})
        # by value: statements may hold equal copies of the program's own memories and parameters
        self._outer = {thing: self._names.of(thing, thing.name) for thing in (*program.memories, *program.parameters)}
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
        for module, offered in (("cuda_ops", OPERATION_INTRINSICS), ("cuda_lanes", LANE_INTRINSICS)):
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

    # -- names --------------------------------------------------------------------------------------------

    def _variable(self, variable: ir.Variable) -> str:
        return self._names.of(variable, variable.name)

    def _memory(self, memory: ir.Memory) -> str:
        return self._outer[memory]

    def _parameter(self, parameter: ir.Parameter) -> str:
        return self._outer[parameter]

    def _length(self, memory: ir.Memory) -> str:
        if memory not in self._lengths:
            self._lengths[memory] = self._names.of(("length", memory), f"length_of_{memory.name}")
        return self._lengths[memory]

    def _identity(self, builtin: ir.Builtin) -> str:
        if builtin is ir.Builtin.GROUP_SIZE:
            return f"u4({self._program.group_size})"
        if builtin is ir.Builtin.SUBGROUP_SIZE:
            return f"u4({WARP})"
        self._identities.add(builtin)
        return builtin.value

    def _lanes(self) -> str:
        """The mask of the lanes there are."""
        size = self._program.group_size
        if size % WARP and size > WARP:
            self._lanes_vary = True
            return "lanes"
        return _lane_mask(min(size, WARP))

    def _count_ones(self, node: ir.Apply, operands: Sequence[str]) -> str:
        """Masks of lanes are 64 bits wide to the kernel; their upper half is empty here and not worth counting."""
        narrow = node.operands[0].type is Type.U64 and self._widths.of(node.operands[0]) <= 32
        return f"count_ones(u4({operands[0]}))" if narrow else f"count_ones({operands[0]})"

    # -- statements ---------------------------------------------------------------------------------------

    def _text(self, expression: ir.Expression) -> str:
        return self._expressions.text(expression)

    def _index(self, memory: ir.Memory, index: ir.Expression) -> str:
        offset = self._offsets.get(memory, 0)
        return f"u4({self._text(index)} + u4({offset}))" if offset else self._text(index)

    def _block(self, block: ir.Block) -> None:
        if not block:
            self._lines.add("pass")
        for statement in block:
            self._statement(statement)

    def _statement(self, statement: ir.Statement) -> None:
        add = self._lines.add
        match statement:
            case ir.Assign():
                add(f"{self._variable(statement.variable)} = {self._text(statement.value)}")
            case ir.Load():
                place = f"{self._memory(statement.memory)}[{self._index(statement.memory, statement.index)}]"
                value = f"{place} != u1(0)" if statement.memory.type is Type.BOOL else place
                add(f"{self._variable(statement.variable)} = {value}")
            case ir.Store():
                place = f"{self._memory(statement.memory)}[{self._index(statement.memory, statement.index)}]"
                value = self._text(statement.value)
                add(f"{place} = u1({value})" if statement.memory.type is Type.BOOL else f"{place} = {value}")
            case ir.Atomic():
                self._atomic(statement)
            case ir.Subgroup():
                self._subgroup(statement)
            case ir.Barrier():
                add("cuda.syncthreads()")
            case ir.If():
                add(f"if {self._text(statement.condition)}:")
                self._inside(statement.then)
                if statement.otherwise:
                    add("else:")
                    self._inside(statement.otherwise)
            case ir.For():
                self._for(statement)
            case ir.While():
                self._while(statement)
            case ir.Break():
                add("break")
            case _:
                assert_never(statement)

    def _inside(self, block: ir.Block) -> None:
        with self._lines.indented():
            self._block(block)

    def _for(self, statement: ir.For) -> None:
        """A counter beside the variable, since the body may assign to that.

        Where the counter might wrap before it passes the end, the turns are counted instead; NVVM then knows how
        many there are, and has several loads under way at once.
        """
        name, add = statement.variable.name, self._lines.add
        counter = self._names.of(statement, f"{name}_at")
        add(f"{counter} = {self._text(statement.start)}")
        stop = self._bound_once(statement.stop, f"{name}_end")
        step = self._bound_once(statement.step, f"{name}_step")
        counting = not _ends_before_it_wraps(statement)
        if counting:
            turn, turns = self._names.of(object(), f"{name}_turn"), self._names.of(object(), f"{name}_turns")
            add(f"{turns} = u4(0)")
            add(f"if {counter} < {stop}:")
            with self._lines.indented():
                add(f"{turns} = u4(divide(u4(u4({stop} - {counter}) - u4(1)), {step}) + u4(1))")
            add(f"{turn} = u4(0)")
            add(f"while {turn} < {turns}:")
        else:
            turn = ""
            add(f"while {counter} < {stop}:")
        with self._lines.indented():
            add(f"{self._variable(statement.variable)} = {counter}")
            self._block(statement.body)
            add(f"{counter} = u4({counter} + {step})")
            if counting:
                add(f"{turn} = u4({turn} + u4(1))")

    def _bound_once(self, bound: ir.Expression, wanted: str) -> str:
        """A bound as it is before the first turn, whatever the body does to what it was computed from."""
        text = self._text(bound)
        if isinstance(bound, ir.Const):
            return text
        name = self._names.of(object(), wanted)
        self._lines.add(f"{name} = {text}")
        return name

    def _while(self, statement: ir.While) -> None:
        condition = self._text(statement.condition)
        if not statement.head:
            self._lines.add(f"while {condition}:")
            self._inside(statement.body)
            return
        self._lines.add("while True:")
        with self._lines.indented():
            self._block(statement.head)
            self._lines.add(f"if not {condition}:")
            with self._lines.indented():
                self._lines.add("break")
            self._block(statement.body)

    def _atomic(self, statement: ir.Atomic) -> None:
        operands = [self._memory(statement.memory), self._index(statement.memory, statement.index)]
        if statement.value is not None and statement.op is not AtomicOp.LOAD:
            operands.append(self._text(statement.value))
        call = f"atomic_{statement.op.value}({', '.join(operands)})"
        self._lines.add(call if statement.variable is None else f"{self._variable(statement.variable)} = {call}")

    def _subgroup(self, statement: ir.Subgroup) -> None:
        operands = [self._lanes(), *map(self._text, statement.operands)]
        function = _SUBGROUP[statement.op]
        if statement.op is SubgroupOp.MATCH:
            bits = self._widths.of(statement.operands[0])
            if bits <= MATCH_BY_BALLOTS:
                function = "match_low_bits"
                operands.append(str(bits))
        self._lines.add(f"{self._variable(statement.variable)} = {function}({', '.join(operands)})")


def _lane_mask(lanes: int) -> str:
    return f"u4({(1 << lanes) - 1})"


def _ends_before_it_wraps(loop: ir.For) -> bool:
    """Whether the counter is known to pass the end within 32 bits."""
    if not isinstance(loop.step, ir.Const):
        return False
    if loop.step.value == 1:
        return True
    return isinstance(loop.stop, ir.Const) and int(loop.stop.value) + int(loop.step.value) <= 1 << 32
