"""Emits WGSL for a legalised program, in the subset that naga and Tint both accept.

That is: no pointer parameters, no overflow in constant expressions, plain identifiers. Barriers and subgroup operations
must be in uniform control flow, which is checked first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from ...kernel import ir
from ...kernel.passes.scopes import Scopes
from ...kernel.passes.uniform import check_uniform
from ...kernel.passes.walk import statements_in, writers_in
from ...types.ops import AtomicOp, SubgroupOp
from ..render import Lines, Names
from ..statements import StatementWriter
from .names import RESERVED_NAMES
from .operations import OPERATIONS, TYPE_NAMES, float_bits, literal

# Before the parameters: the number of workgroups, and of those in a row of the 2D dispatch.
_HEADER = (("group_count", "u32"), ("groups_in_row", "u32"))

_INPUTS = {
    ir.Builtin.LOCAL_ID: "@builtin(local_invocation_index) local_id: u32",
    ir.Builtin.LANE: "@builtin(subgroup_invocation_id) lane: u32",
    ir.Builtin.SUBGROUP_SIZE: "@builtin(subgroup_size) subgroup_size: u32",
}
_OF_SUBGROUPS = (ir.Builtin.LANE, ir.Builtin.SUBGROUP_ID, ir.Builtin.SUBGROUP_SIZE)
_GROUP = "@builtin(workgroup_id) group: vec3<u32>"
_OWN_NAMES = frozenset(
    {"parameters", "Parameters", "group", "group_id", "group_count", "groups_in_row", "local_id"}
    | {"lane", "subgroup_id", "subgroup_size"}
)
_SUBGROUPS = {  # those that legalisation leaves
    SubgroupOp.SHUFFLE: "subgroupShuffle({0}, {1})",
    SubgroupOp.ADD: "subgroupAdd({0})",
    SubgroupOp.EXCLUSIVE_ADD: "subgroupExclusiveAdd({0})",
    SubgroupOp.BALLOT: "subgroupBallot({0}).xy",
}


@attrs.frozen
class Shader:
    """A kernel's WGSL, its entry point's name there (the kernel's own may be a word of WGSL's), its parameters' names
    and types, of the header first, whether it needs the subgroups feature, and how it accesses its memories."""

    text: str
    entry: str
    parameters: tuple[tuple[str, str], ...]
    uses_subgroups: bool
    uses: Mapping[ir.Memory, Use]


@attrs.frozen
class Use:
    """How a kernel accesses one memory."""

    read: bool
    written: bool
    atomic: bool

    @property
    def needs_write(self) -> bool:
        """Whether the binding must be read_write: WGSL has no atomics in read-only storage."""
        return self.written or self.atomic


def uses_of(program: ir.Program) -> dict[ir.Memory, Use]:
    written, statements = writers_in(program), list(statements_in(program.body))
    atomic = {statement.memory for statement in statements if isinstance(statement, ir.Atomic)}
    read = atomic | {statement.memory for statement in statements if isinstance(statement, ir.Load)}
    return {memory: Use(memory in read, memory in written, memory in atomic) for memory in program.memories}


def wgsl_of(program: ir.Program, *, enable_line: bool = False) -> Shader:
    """Emits a legalised program. `enable_line` adds `enable subgroups;`, which browsers require and naga rejects."""
    check_uniform(program)
    writer = _Writer(program)
    text = writer.module(enable_line)
    return Shader(text, writer.entry, writer.parameters, writer.subgroups, writer.uses)


class _Writer(StatementWriter):
    target, operations, leave = "wgsl", OPERATIONS, "break;"
    if_, else_, loop_, end = "if ({}) {{", "} else {", "loop {", "}"
    reserved, not_first = RESERVED_NAMES | _OWN_NAMES, "_"

    def __init__(self, program: ir.Program) -> None:
        super().__init__(program, Lines(1))
        self.scopes = Scopes(program)
        self.unread = self.scopes.unread
        self.uses = uses_of(program)
        fields = Names(self.reserved, self.not_first)
        self.entry = self.names.of(program, program.name)
        self.memories = {m: self.names.of(m, m.name) for m in program.memories}
        self.fields = {p: fields.of(p, p.name) for p in program.parameters}
        self.parameters = (*_HEADER, *((name, TYPE_NAMES[p.type]) for p, name in self.fields.items()))
        self.numbers: dict[int, str] = {}  # variables with the bits of infinities and NaNs: WGSL has no such constant
        self.builtins: set[ir.Builtin] = set()
        self.subgroups = False

    def module(self, enable_line: bool) -> str:
        body = self.lines
        self.declarations()
        self.block(self.program.body)
        self.lines = head = Lines()
        if enable_line and self.subgroups:
            head.add("enable subgroups;")
            head.add()
        self.struct()
        for binding, memory in enumerate(self.program.storage, 1):
            access = "read_write" if self.uses[memory].needs_write else "read"
            head.add(f"@group(0) @binding({binding}) var<storage, {access}> {self.array(memory)};")
        for memory in self.program.memories:
            if memory.space is ir.Space.WORKGROUP:
                head.add(f"var<workgroup> {self.array(memory)};")
        for bits, name in self.numbers.items():
            head.add(f"var<private> {name}: u32 = {bits:#010x}u;")
        head.add()
        self.entry_point()
        return head.text() + body.text() + "}\n"

    def struct(self) -> None:
        with self.lines.nested("struct Parameters {", "}"):
            for name, type in self.parameters:
                self.lines.add(f"{name}: {type},")
        self.lines.add()
        self.lines.add("@group(0) @binding(0) var<uniform> parameters: Parameters;")

    def array(self, memory: ir.Memory) -> str:
        element = TYPE_NAMES[memory.type]
        if self.uses[memory].atomic:
            element = f"atomic<{element}>"
        length = "" if memory.length is None else f", {memory.length}"
        return f"{self.memories[memory]}: array<{element}{length}>"

    def entry_point(self) -> None:
        needed = set(self.builtins)
        if ir.Builtin.SUBGROUP_ID in needed:
            needed |= {ir.Builtin.LOCAL_ID, ir.Builtin.SUBGROUP_SIZE}
        inputs = [_GROUP, *(text for builtin, text in _INPUTS.items() if builtin in needed)]
        self.lines.add(f"@compute @workgroup_size({self.program.group_size})")
        with self.lines.nested(f"fn {self.entry}({', '.join(inputs)}) {{"):
            self.lines.add("let group_id = group.x + group.y * parameters.groups_in_row;")
            self.lines.add("if (group_id >= parameters.group_count) { return; }")
            if ir.Builtin.SUBGROUP_ID in needed:
                self.lines.add("let subgroup_id = local_id / subgroup_size;")

    def declarations(self) -> None:
        for memory in self.program.memories:
            if memory.space is ir.Space.REGISTERS:
                self.lines.add(f"var {self.array(memory)};")
        for variable in self.scopes.declared:
            self.lines.add(f"var {self.variable(variable)}: {TYPE_NAMES[variable.type]};")

    def variable(self, variable: ir.Variable) -> str:
        return self.names.of(variable, variable.name)

    def parameter(self, parameter: ir.Parameter) -> str:
        return f"parameters.{self.fields[parameter]}"

    def length(self, memory: ir.Memory) -> str:
        raise AssertionError("legalisation leaves no Length")

    def constant(self, constant: ir.Const) -> str:
        if math.isfinite(constant.value):  # WGSL has no constant expression that is infinite, or no number
            return literal(constant)
        bits = float_bits(constant)
        if bits not in self.numbers:
            self.numbers[bits] = self.names.of(object(), f"bits_{bits:08x}")
        return f"bitcast<f32>({self.numbers[bits]})"

    def builtin(self, builtin: ir.Builtin) -> str:
        self.builtins.add(builtin)
        self.subgroups |= builtin in _OF_SUBGROUPS
        name: str = builtin.value
        return "parameters.group_count" if builtin is ir.Builtin.NUM_GROUPS else name

    def assign(self, variable: ir.Variable, value: str) -> None:
        keyword = "let " if variable in self.scopes.settled else ""
        self.lines.add(f"{keyword}{self.variable(variable)} = {value};")

    def loaded(self, load: ir.Load) -> str:
        element = self.element(load.memory, load.index)
        if load.uniform:
            return f"workgroupUniformLoad(&{element})"
        return f"atomicLoad(&{element})" if self.uses[load.memory].atomic else element

    def store(self, memory: ir.Memory, index: ir.Expression, value: str) -> None:
        element = self.element(memory, index)
        self.lines.add(f"atomicStore(&{element}, {value});" if self.uses[memory].atomic else f"{element} = {value};")

    def element(self, memory: ir.Memory, index: ir.Expression) -> str:
        """An element. A constant index out of bounds is replaced by the last one, as WGSL rejects it even in dead
        code."""
        length = memory.length or (1 << 32) - 1  # of no buffer, but naga rejects 2**32 - 1 in every array
        if isinstance(index, ir.Const) and index.value >= length:
            return f"{self.memories[memory]}[{length - 1}u]"
        return f"{self.memories[memory]}[{self.text(index)}]"

    def atomic(self, statement: ir.Atomic) -> None:
        value = "" if statement.value is None else f", {self.text(statement.value)}"
        call = f"atomic{statement.op.value.capitalize()}(&{self.element(statement.memory, statement.index)}{value})"
        if statement.variable is not None and statement.variable not in self.scopes.unread:
            self.assign(statement.variable, call)
        elif statement.op is not AtomicOp.LOAD:  # WGSL requires an atomicLoad's value to be used
            self.lines.add(f"{call};")

    def subgroup(self, statement: ir.Subgroup) -> None:
        form = _SUBGROUPS[statement.op]
        self.subgroups = True
        if statement.variable not in self.scopes.unread:
            self.assign(statement.variable, form.format(*[self.text(operand) for operand in statement.operands]))

    def barrier(self) -> None:
        storage = (self.uses[memory] for memory in self.program.storage)
        if any(use.read and use.written for use in storage):
            self.lines.add("storageBarrier();")
        self.lines.add("workgroupBarrier();")

    def counted(self, loop: ir.For) -> None:
        """A `for` whose bounds are evaluated before it, as the body may change the variables in them."""
        start = self.text(loop.start)
        stop, step = (self.once(bound, name) for bound, name in ((loop.stop, "stop"), (loop.step, "step")))
        own = loop.variable in self.scopes.counters
        name = self.variable(loop.variable)
        begin = f"var {name}: u32 = {start}" if own else f"{name} = {start}"
        self.inside(f"for ({begin}; {name} < {stop}; {name} += {step}) {{", loop.body, "}")

    def once(self, bound: ir.Expression, name: str) -> str:
        if isinstance(bound, ir.Const | ir.Argument | ir.BuiltinValue):
            return self.text(bound)
        if isinstance(bound, ir.Read) and bound.variable in self.scopes.settled:
            return self.text(bound)
        kept = self.names.of(object(), name)
        self.lines.add(f"let {kept} = {self.text(bound)};")
        return kept
