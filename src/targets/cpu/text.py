"""Emits a program as the text that is compiled for the CPU: one function, over the workgroups [first, last). A kernel
that was split is a loop over lanes for each region, with uniform control flow around them."""

from __future__ import annotations

from ...kernel import ir
from ...kernel.passes.uniform import check_uniform
from ...types.layout import Type
from ...types.ops import SubgroupOp
from ..kernel_text import TYPE_NAMES, described, held, stored_type, taken
from ..render import Lines, head_of
from .barrier_split import BarrierSplit, Exchange, Group, Pieces, Region, assignments_of, split_at_barriers
from .limits import subgroup_size
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
    for binding in writer.bindings:
        constants.add(binding)
    return head_of(described(program), arguments) + constants.text() + lines.text()


class LaneWriter(Writer):
    """Writes the body of a group of several lanes."""

    def __init__(self, program: ir.Program, lines: Lines, split: BarrierSplit) -> None:
        super().__init__(program, lines)
        self.split = split
        self.size = program.group_size
        self.subgroup_size = subgroup_size(self.size)
        # By the context variables, in the order of the program, so that the text is the same every time.
        context = [v for v in program.variables if v in split.context]
        self._lane_arrays = {v: self.names.of(object(), f"{v.name}_lanes") for v in context}
        self._slots = {
            key: self.names.of(object(), f"{key[0]}_{TYPE_NAMES[key[1]]}_{key[2]}") for key in _slots_of(split)
        }

    # -- what differs from one lane alone -----------------------------------------------------------------

    def builtin(self, builtin: ir.Builtin) -> str:
        match builtin:
            case ir.Builtin.LOCAL_ID:
                return "local"
            case ir.Builtin.LANE:
                return f"u4(local % {self.u4(self.subgroup_size)})"
            case ir.Builtin.SUBGROUP_ID:
                return f"u4(local // {self.u4(self.subgroup_size)})"
            case _:
                return super().builtin(builtin)

    def place(self, memory: ir.Memory, index: ir.Expression) -> str:
        """Registers that outlive a region hold element i of all lanes side by side: so lanes vectorise."""
        if self.copies(memory) > 1:
            return f"{self.memory(memory)}[u8({self.text(index)}) * {self.u8(self.size)} + u8(local)]"
        return super().place(memory, index)

    def copies(self, memory: ir.Memory) -> int:
        return self.size if memory.space is ir.Space.REGISTERS and memory not in self.split.private else 1

    # -- declarations -------------------------------------------------------------------------------------

    def declare(self) -> None:
        """Context variables, exchanges, workgroup memory and registers."""
        for variable, name in self._lane_arrays.items():
            self.array(name, variable.type, self.size)
        for (_, type, _), name in self._slots.items():
            self.array(name, type, self.size)
        super().declare()

    def group(self) -> None:
        for variable in self.program.variables:
            if variable in self.split.group:
                self.zero(variable)
        self.pieces(self.split.pieces)

    def _slot(self, kind: str, type: Type, exchange: Exchange) -> str:
        return self._slots[kind, type, exchange.slot]

    # -- pieces -------------------------------------------------------------------------------------------

    def pieces(self, pieces: Pieces) -> None:
        for piece in pieces:
            match piece:
                case Region():
                    self._region(piece)
                case Exchange():
                    self._combine(piece)
                case Group():
                    self._group(piece)

    def _group(self, piece: Group) -> None:
        match piece.statement, piece.blocks:
            case ir.If() as statement, [then, otherwise]:
                with self.lines.nested(f"if {self.text(statement.condition)}:"):
                    self.pieces(then)
                if otherwise:
                    with self.lines.nested("else:"):
                        self.pieces(otherwise)
            case ir.For() | ir.Loop() as statement, [body]:
                with self.round_of(statement, self.size):
                    self.pieces(body)
            case statement, _:
                self.statement(statement)

    def _region(self, region: Region) -> None:
        found = assignments_of(region)
        maybe = found.assigned - found.sure  # kept as they were on the paths that do not assign them
        with self.lines.nested(f"for lane in range({self.size}):"):
            self.lines.add("local = u4(lane)")
            for variable, array in self._lane_arrays.items():
                if variable in found.exposed or variable in maybe:
                    self.assign(variable, taken(f"{array}[lane]", variable.type))
            if region.fetch is not None:
                self._fetch(region.fetch)
            for statement in region.statements:
                self.statement(statement)
            if region.hand_in is not None:
                operand = region.hand_in.statement.operands[0]
                array = self._slot("given", operand.type, region.hand_in)
                self.lines.add(f"{array}[lane] = {held(self.text(operand), operand.type)}")
            for variable, array in self._lane_arrays.items():
                if variable in found.assigned:
                    self.lines.add(f"{array}[lane] = {held(self.variable(variable), variable.type)}")

    # -- subgroup operations ------------------------------------------------------------------------------

    def _fetch(self, exchange: Exchange) -> None:
        """A lane takes its result: what was found for it, or what another lane handed in."""
        statement = exchange.statement
        if not statement.op.is_shuffle:
            type, array, source = statement.variable.type, "found", "lane"
        else:
            type, array, source = statement.operands[0].type, "given", self._source(statement)
        self.assign(statement.variable, taken(f"{self._slot(array, type, exchange)}[{source}]", type))

    def _source(self, statement: ir.Subgroup) -> str:
        """The lane that a shuffle reads. What names no lane gives some lane's value, never a fault."""
        operand = f"u8({self.text(statement.operands[1])})"
        size, count = self.u8(self.subgroup_size), self.size
        here, lead = (
            f"u8(local % {self.u4(self.subgroup_size)})",
            f"u8(local // {self.u4(self.subgroup_size)} * {self.u4(self.subgroup_size)})",
        )
        ragged = count % self.subgroup_size != 0
        match statement.op:
            case SubgroupOp.SHUFFLE_UP:
                return f"select({here} >= {operand}, u8(local) - {operand}, u8(local))"
            case SubgroupOp.SHUFFLE_DOWN:
                inside = f"{here} + {operand} < {size}"
                if ragged:
                    inside = f"({inside}) & (u8(local) + {operand} < {self.u8(count)})"
                return f"select({inside}, u8(local) + {operand}, u8(local))"
            case SubgroupOp.SHUFFLE_XOR:
                source = f"{lead} + ({here} ^ {operand}) % {size}"
            case _:
                source = f"{lead} + {operand} % {size}"
        return f"min({source}, {self.u8(count - 1)})" if ragged else source

    def _combine(self, exchange: Exchange) -> None:
        """What the lanes of each subgroup find together."""
        statement = exchange.statement
        if statement.op.is_shuffle:
            return
        given = self._slot("given", statement.operands[0].type, exchange)
        found = self._slot("found", statement.variable.type, exchange)
        ragged = self.size % self.subgroup_size != 0
        with self.lines.nested(f"for lead in range(0, {self.size}, {self.subgroup_size}):"):
            self.lines.add(
                f"count = min({self.subgroup_size}, {self.size} - lead)" if ragged else f"count = {self.subgroup_size}"
            )
            match statement.op:
                case SubgroupOp.BALLOT:
                    self.lines.add(f"mask = {self.u8(0)}")
                    self._each("lane", f"mask = u8(mask | (u8({given}[lead + lane]) << u8(lane)))")
                    self._each("lane", f"{found}[lead + lane] = mask")
                case SubgroupOp.ADD:
                    self.lines.add(f"total = {self.u4(0)}")
                    self._each("lane", f"total = u4(total + {given}[lead + lane])")
                    self._each("lane", f"{found}[lead + lane] = total")
                case SubgroupOp.EXCLUSIVE_ADD:
                    self.lines.add(f"total = {self.u4(0)}")
                    self._each("lane", f"{found}[lead + lane] = total", f"total = u4(total + {given}[lead + lane])")
                case SubgroupOp.MATCH:
                    with self.lines.nested("for lane in range(count):"):
                        self.lines.add(f"mine = {given}[lead + lane]")
                        self.lines.add(f"mask = {self.u8(0)}")
                        self._each("other", f"mask = u8(mask | (u8({given}[lead + other] == mine) << u8(other)))")
                        self.lines.add(f"{found}[lead + lane] = mask")
                case _:
                    raise AssertionError(f"{statement.span}: no way to combine {statement.op}")

    def _each(self, index: str, *body: str) -> None:
        with self.lines.nested(f"for {index} in range(count):"):
            for line in body:
                self.lines.add(line)


def _slots_of(split: BarrierSplit) -> list[tuple[str, Type, int]]:
    """The arrays that subgroup operations need: what lanes hand in, what is found; in order of first use."""
    found: dict[tuple[str, Type, int], None] = {}
    for exchange in split.exchanges:
        statement, slot = exchange.statement, exchange.slot
        found["given", statement.operands[0].type, slot] = None
        if not statement.op.is_shuffle:
            found["found", statement.variable.type, slot] = None
    return list(found)
