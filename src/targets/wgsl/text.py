"""Emits WGSL for a legalised program, in the subset that naga and Tint both accept.

That is: no pointer parameters, no overflow in constant expressions, plain identifiers. Barriers and subgroup operations
must be in uniform control flow, which is checked first.
"""

from __future__ import annotations

import attrs

from ...kernel import ir
from ...kernel.passes.scopes import Scopes, scopes_of
from ...kernel.passes.uniform import check_uniform
from ...types.errors import CapabilityError
from ...types.ops import AtomicOp, SubgroupOp
from ..render import Lines, Names, render_operation
from .names import RESERVED_NAMES, valid_identifier
from .operations import OPERATIONS, TYPE_NAMES, float_bits, is_not_finite, literal
from .uses import uses_of

HEADER_WORDS = 2  # before the parameters: the number of workgroups, and of those in a row of the 2D dispatch

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
_SUBGROUPS = {
    SubgroupOp.SHUFFLE: "subgroupShuffle({0}, {1})",
    SubgroupOp.ADD: "subgroupAdd({0})",
    SubgroupOp.EXCLUSIVE_ADD: "subgroupExclusiveAdd({0})",
    SubgroupOp.BALLOT: "subgroupBallot({0}).xy",
}


@attrs.frozen
class Shader:
    """A kernel's WGSL, and whether it needs the subgroups feature."""

    text: str
    uses_subgroups: bool


def wgsl_of(program: ir.Program, *, enable_line: bool = False) -> Shader:
    """Emits a legalised program. `enable_line` adds `enable subgroups;`, which browsers require and naga rejects."""
    check_uniform(program)
    writer = _Writer(program)
    return Shader(writer.text(enable_line), writer.subgroups)


class _Writer:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.lines = Lines()
        self.scopes: Scopes = scopes_of(program)
        self.uses = uses_of(program)
        self.names = Names(RESERVED_NAMES | _OWN_NAMES)
        fields = Names(RESERVED_NAMES | _OWN_NAMES)
        self.entry = self.names.of(program, valid_identifier(program.name))
        self.memories = {m: self.names.of(m, valid_identifier(m.name)) for m in program.memories}
        self.fields = {p: fields.of(p, valid_identifier(p.name)) for p in program.parameters}
        self.numbers: dict[int, str] = {}  # variables with the bits of infinities and NaNs, which no constant may be
        self.builtins: set[ir.Builtin] = set()
        self.subgroups = False

    # -- the module ---------------------------------------------------------------------------------------

    def text(self, enable_line: bool) -> str:
        body = self.lines
        with body.indented():
            self.declarations()
            self.block(self.program.body)
        self.lines = head = Lines()
        if enable_line and self.subgroups:
            head.add("enable subgroups;")
            head.add()
        self.parameters()
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

    def parameters(self) -> None:
        fields = [f"{name}: {TYPE_NAMES[parameter.type]}," for parameter, name in self.fields.items()]
        self.lines.add("struct Parameters {")
        with self.lines.indented():
            for field in ("group_count: u32,", "groups_in_row: u32,", *fields):
                self.lines.add(field)
        self.lines.add("}")
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
        self.lines.add(f"fn {self.entry}({', '.join(inputs)}) {{")
        with self.lines.indented():
            self.lines.add("let group_id = group.x + group.y * parameters.groups_in_row;")
            self.lines.add("if (group_id >= parameters.group_count) { return; }")
            if ir.Builtin.SUBGROUP_ID in needed:
                self.lines.add("let subgroup_id = local_id / subgroup_size;")

    def declarations(self) -> None:
        for memory in self.program.memories:
            if memory.space is ir.Space.REGISTERS:
                self.lines.add(f"var {self.array(memory)};")
        inner = self.scopes.inner
        for variable in self.program.variables:
            if variable not in inner:
                self.lines.add(f"var {self.variable(variable)}: {TYPE_NAMES[variable.type]};")

    # -- expressions --------------------------------------------------------------------------------------

    def variable(self, variable: ir.Variable) -> str:
        return self.names.of(variable, valid_identifier(variable.name))

    def expression(self, node: ir.Expression) -> str:
        match node:
            case ir.Const():
                return self.constant(node)
            case ir.Read():
                return self.variable(node.variable)
            case ir.Argument():
                return f"parameters.{self.fields[node.parameter]}"
            case ir.Identity():
                return self.identity(node.builtin)
            case ir.Apply():
                operands = [self.expression(operand) for operand in node.operands]
                return render_operation("wgsl", OPERATIONS, node, operands)
            case ir.Length():
                raise AssertionError("legalisation leaves no Length")

    def constant(self, constant: ir.Const) -> str:
        if not is_not_finite(constant):
            return literal(constant)
        bits = float_bits(constant)
        name = self.numbers.setdefault(bits, f"bits_{bits:08x}")
        return f"bitcast<f32>({name})"

    def identity(self, builtin: ir.Builtin) -> str:
        self.builtins.add(builtin)
        self.subgroups |= builtin in _OF_SUBGROUPS
        match builtin:
            case ir.Builtin.GROUP_SIZE:
                return f"{self.program.group_size}u"
            case ir.Builtin.NUM_GROUPS:
                return "parameters.group_count"
            case _:
                name: str = builtin.value
                return name

    # -- statements ---------------------------------------------------------------------------------------

    def block(self, block: ir.Block) -> None:
        for statement in block:
            self.statement(statement)

    def inside(self, block: ir.Block) -> None:
        with self.lines.indented():
            self.block(block)

    def set(self, variable: ir.Variable, value: str) -> None:
        keyword = "let " if variable in self.scopes.settled else ""
        self.lines.add(f"{keyword}{self.variable(variable)} = {value};")

    def statement(self, node: ir.Statement) -> None:
        match node:
            case ir.Assign():
                if node.variable not in self.scopes.unread:
                    self.set(node.variable, self.expression(node.value))
            case ir.Load():
                if node.variable not in self.scopes.unread:
                    element = self.element(node.memory, node.index)
                    if node.uniform:
                        element = f"workgroupUniformLoad(&{element})"
                    elif self.uses[node.memory].atomic:
                        element = f"atomicLoad(&{element})"
                    self.set(node.variable, element)
            case ir.Store():
                element, value = self.element(node.memory, node.index), self.expression(node.value)
                atomic = self.uses[node.memory].atomic
                self.lines.add(f"atomicStore(&{element}, {value});" if atomic else f"{element} = {value};")
            case ir.Atomic():
                self.atomic(node)
            case ir.Subgroup():
                self.subgroup(node)
            case ir.Barrier():
                self.barrier()
            case ir.If():
                self.branch(node)
            case ir.For():
                self.counted(node)
            case ir.While():
                self.conditional(node)
            case ir.Break():
                self.lines.add("break;")

    def element(self, memory: ir.Memory, index: ir.Expression) -> str:
        """An element. A constant index out of bounds, which WGSL rejects even in dead code, becomes the last."""
        if memory.length is not None and isinstance(index, ir.Const) and index.value >= memory.length:
            return f"{self.memories[memory]}[{memory.length - 1}u]"
        return f"{self.memories[memory]}[{self.expression(index)}]"

    def atomic(self, node: ir.Atomic) -> None:
        value = "" if node.value is None else f", {self.expression(node.value)}"
        call = f"atomic{node.op.value.capitalize()}(&{self.element(node.memory, node.index)}{value})"
        if node.variable is not None and node.variable not in self.scopes.unread:
            self.set(node.variable, call)
        elif node.op is not AtomicOp.LOAD:  # WGSL requires an atomicLoad's value to be used
            self.lines.add(f"{call};")

    def subgroup(self, node: ir.Subgroup) -> None:
        form = _SUBGROUPS.get(node.op)
        if form is None:
            raise CapabilityError(f"{node.span}: target 'wgsl' has no subgroup operation {node.op.value!r}")
        self.subgroups = True
        if node.variable not in self.scopes.unread:
            self.set(node.variable, form.format(*[self.expression(operand) for operand in node.operands]))

    def barrier(self) -> None:
        storage = (self.uses[memory] for memory in self.program.storage)
        if any(use.read and use.written for use in storage):
            self.lines.add("storageBarrier();")
        self.lines.add("workgroupBarrier();")

    def branch(self, node: ir.If) -> None:
        self.lines.add(f"if ({self.expression(node.condition)}) {{")
        self.inside(node.then)
        if node.otherwise:
            self.lines.add("} else {")
            self.inside(node.otherwise)
        self.lines.add("}")

    def counted(self, node: ir.For) -> None:
        """A `for` whose bounds are evaluated before it, as the body may change the variables in them."""
        start = self.expression(node.start)
        stop, step = (self.once(bound, name) for bound, name in ((node.stop, "stop"), (node.step, "step")))
        own = node.variable in self.scopes.counters
        name = self.variable(node.variable)
        begin = f"var {name}: u32 = {start}" if own else f"{name} = {start}"
        self.lines.add(f"for ({begin}; {name} < {stop}; {name} += {step}) {{")
        self.inside(node.body)
        self.lines.add("}")

    def once(self, bound: ir.Expression, name: str) -> str:
        if isinstance(bound, ir.Const | ir.Argument | ir.Identity):
            return self.expression(bound)
        if isinstance(bound, ir.Read) and bound.variable in self.scopes.settled:
            return self.expression(bound)
        kept = self.names.of(object(), name)
        self.lines.add(f"let {kept} = {self.expression(bound)};")
        return kept

    def conditional(self, node: ir.While) -> None:
        self.lines.add("loop {")
        with self.lines.indented():
            self.block(node.head)
            if not (isinstance(node.condition, ir.Const) and node.condition.value):
                self.lines.add(f"if (!{self.expression(node.condition)}) {{ break; }}")
            self.block(node.body)
        self.lines.add("}")
