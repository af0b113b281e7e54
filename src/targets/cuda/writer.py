"""Emits a kernel's body as the source that translate.py reads, statement by statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from ...kernel import ir
from ...kernel.passes.widths import Widths
from ...types import ops
from ...types.layout import Type
from ...types.ops import SubgroupOp
from ..kernel_text import RESERVED_NAMES, Constants, Expressions
from ..render import Lines, Names, render_operation
from .table import CUDA_OPERATIONS, INTRINSICS, LANE_OPERATIONS

WARP = 32
_MATCH_BY_BALLOTS = 10  # values of up to this many bits are matched by a ballot a bit, which is faster than match.any
_SCAFFOLDING = frozenset(
    ["SIGNATURE", "cuda", "group_id", "kernel", "lane", "lanes", "local_id", "num_groups", "subgroup_id", "types"]
)  # fmt: skip
_RESERVED = RESERVED_NAMES | _SCAFFOLDING | {name for names in INTRINSICS.values() for name in names}


class BodyWriter:
    """Writes a program's body, and collects what has to be declared above it.

    `offsets` are those of workgroup memories in dynamic shared memory, in elements; empty where all are static.
    """

    def __init__(self, program: ir.Program, offsets: Mapping[ir.Memory, int]) -> None:
        self.lengths: dict[ir.Memory, str] = {}
        self.identities: set[ir.Builtin] = set()
        self.lanes_vary = False  # whether a mask of existing lanes is needed: the last subgroup is partial
        self._program = program
        self._offsets = offsets
        self._barriers = 0  # emitted so far
        self._lines = Lines()
        self._widths = Widths(program, WARP)
        self._names = Names(_RESERVED)
        self.constants = Constants(self._names)
        # Looked up by value: statements may hold equal copies of the program's memories and parameters.
        outer: tuple[ir.Memory | ir.Parameter, ...] = (*program.memories, *program.parameters)
        self._outer = {thing: self._names.of(thing, thing.name) for thing in outer}
        bools = [parameter for parameter in program.parameters if parameter.type is Type.BOOL]
        self._bytes = {parameter: self._names.of(object(), f"{parameter.name}_byte") for parameter in bools}
        self._expressions = Expressions(
            target="cuda",
            operations={
                **CUDA_OPERATIONS,
                "count_ones": self._count_ones,
                "leading_zeros": self._leading_zeros,
                "and": self._and,
            },
            variable=self.variable,
            parameter=self.parameter,
            identity=self._identity,
            length=self._length,
            constant=self.constants.text,
        )

    def text(self) -> str:
        """The body, indented by one level."""
        with self._lines.indented():
            self._block(self._program.body)
        return self._lines.text()

    # -- names --------------------------------------------------------------------------------------------

    def variable(self, variable: ir.Variable) -> str:
        return self._names.of(variable, variable.name)

    def memory(self, memory: ir.Memory) -> str:
        return self._outer[memory]

    def argument(self, parameter: ir.Parameter) -> str:
        """The name by which the kernel takes a parameter: of a Bool the byte that it is passed as."""
        if parameter.type is not Type.BOOL:
            return self.parameter(parameter)
        return self._bytes[parameter]

    def parameter(self, parameter: ir.Parameter) -> str:
        return self._outer[parameter]

    def _number(self, value: int, type: Type = Type.U32) -> str:
        return self.constants.of(value, type)

    def _length(self, memory: ir.Memory) -> str:
        if memory not in self.lengths:
            self.lengths[memory] = self._names.of(("length", memory), f"length_of_{memory.name}")
        return self.lengths[memory]

    def _identity(self, builtin: ir.Builtin) -> str:
        if builtin is ir.Builtin.GROUP_SIZE:
            return self._number(self._program.group_size)
        if builtin is ir.Builtin.SUBGROUP_SIZE:
            return self._number(WARP)
        self.identities.add(builtin)
        name: str = builtin.value
        return name

    def _lanes(self) -> str:
        """The mask of existing lanes, as an expression."""
        size = self._program.group_size
        if size % WARP and size > WARP:
            self.lanes_vary = True
            return "lanes"
        return self._number((1 << min(size, WARP)) - 1)

    def _count_ones(self, node: ir.Apply, operands: Sequence[str]) -> str:
        word = f"as_u4({operands[0]})" if self._is_half_empty(node.operands[0]) else operands[0]
        return f"count_ones({word})"

    def _leading_zeros(self, node: ir.Apply, operands: Sequence[str]) -> str:
        if self._is_half_empty(node.operands[0]):
            return f"add({self._number(32)}, leading_zeros(as_u4({operands[0]})))"
        return f"leading_zeros({operands[0]})"

    def _and(self, node: ir.Apply, operands: Sequence[str]) -> str:
        """Emits `(x >> 8 * n) & 255` as one byte permute, in a form that alternates from barrier to barrier.

        Else the assembler eliminates common subexpressions across barriers, keeps many extracted bytes live, and
        spills registers. In another form it computes the byte again.
        """
        byte = byte_of(node)
        if byte is None:
            return render_operation("cuda", CUDA_OPERATIONS, node, operands)
        source, place = byte
        word, number = self._text(source), self._text(place)
        form = self._barriers % 2
        if source.type is Type.U32:
            return f"byte({word}, {number}, {form})"
        upper = f"as_u4(shift_right({word}, {self._number(32)}))"
        half = f"choose(less({number}, {self._number(4)}), as_u4({word}), {upper})"
        return f"as_u8(byte({half}, bits_and({number}, {self._number(3)}), {form}))"

    def _is_half_empty(self, operand: ir.Expression) -> bool:
        """Whether the upper half of a U64 is known to be zero, as in a lane mask: 32-bit instructions then do."""
        return operand.type is Type.U64 and self._widths.of(operand) <= 32

    # -- statements ---------------------------------------------------------------------------------------

    def _text(self, expression: ir.Expression) -> str:
        return self._expressions.text(expression)

    def _place(self, memory: ir.Memory, index: ir.Expression) -> list[str]:
        """Operands for memory.py: a memory and the two summands of an index (one is the offset if it is no sum)."""
        offset, first, second = self._offsets.get(memory, 0), "", self._text(index)
        if isinstance(index, ir.Apply) and index.op is ops.ADD:
            first, second = map(self._text, index.operands)
        start = first or self._number(offset)
        if first and offset:
            start = f"add({first}, {self._number(offset)})"
        return [self.memory(memory), start, second]

    def _block(self, block: ir.Block) -> None:
        if not block:
            self._lines.add("pass")
        for statement in block:
            self._statement(statement)

    def _statement(self, statement: ir.Statement) -> None:
        add = self._lines.add
        match statement:
            case ir.Assign():
                self._set(statement.variable, self._text(statement.value))
            case ir.Load():
                self._load(statement)
            case ir.Store():
                self._store(statement)
            case ir.Atomic():
                self._atomic(statement)
            case ir.Subgroup():
                self._subgroup(statement)
            case ir.Barrier():
                add("cuda.syncthreads()")
                self._barriers += 1
            case ir.If(overridable=ir.Overridable(name="match_and_rank") as overridable):
                self._match_and_rank(overridable)
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

    def _load(self, statement: ir.Load) -> None:
        memory, index = statement.memory, statement.index
        is_shared = memory.space is ir.Space.WORKGROUP
        value = (
            f"load_workgroup({', '.join(self._place(memory, index))})" if is_shared else self._element(memory, index)
        )
        is_bool = memory.type is Type.BOOL
        self._set(statement.variable, f"unequal({value}, {self._number(0, Type.U8)})" if is_bool else value)

    def _store(self, statement: ir.Store) -> None:
        memory, index, value = statement.memory, statement.index, self._text(statement.value)
        if memory.type is Type.BOOL:
            value = f"as_u1({value})"
        if memory.space is ir.Space.WORKGROUP:
            self._lines.add(f"store_workgroup({', '.join(self._place(memory, index))}, {value})")
        else:
            self._lines.add(f"{self._element(memory, index)} = {value}")

    def _set(self, variable: ir.Variable, value: str) -> None:
        self._lines.add(f"{self.variable(variable)} = {value}")

    def _element(self, memory: ir.Memory, index: ir.Expression) -> str:
        """An element of storage or registers. `add_nowrap` is done in 64 bits, and so folds into the address."""
        if isinstance(index, ir.Apply) and index.op is ops.ADD_NOWRAP:
            first, second = (f"as_u8({self._text(part)})" for part in index.operands)
            return f"{self.memory(memory)}[add({first}, {second})]"
        return f"{self.memory(memory)}[{self._text(index)}]"

    def _inside(self, block: ir.Block) -> None:
        with self._lines.indented():
            self._block(block)

    def _for(self, statement: ir.For) -> None:
        """A while loop with a counter of its own, since the body may assign to the loop variable.

        Where the counter might wrap before it passes the end, a trip count is counted down instead. NVVM then knows the
        trip count, unrolls, and issues several iterations' loads at once.
        """
        name, add = statement.variable.name, self._lines.add
        counter = self._names.of(statement, f"{name}_at")
        add(f"{counter} = {self._text(statement.start)}")
        stop = self._bound_once(statement.stop, f"{name}_end")
        step = self._bound_once(statement.step, f"{name}_step", f"maximum({{}}, {self._number(1)})")
        counting = not statement.ends_before_it_wraps
        zero, one = self._number(0), self._number(1)
        turns = self._names.of(object(), f"{name}_turns") if counting else ""
        if counting:
            add(f"{turns} = {zero}")
            add(f"if less({counter}, {stop}):")
            with self._lines.indented():
                last = f"subtract(subtract({stop}, {counter}), {one})"
                add(f"{turns} = add(divide({last}, {step}), {one})")
        add(f"while greater({turns}, {zero}):" if counting else f"while less({counter}, {stop}):")
        with self._lines.indented():
            self._set(statement.variable, counter)
            self._block(statement.body)
            add(f"{counter} = add({counter}, {step})")
            if counting:
                add(f"{turns} = subtract({turns}, {one})")

    def _bound_once(self, bound: ir.Expression, wanted: str, form: str = "{}") -> str:
        """Evaluates a bound once before the loop, in a variable unless it is a constant."""
        text = self._text(bound)
        if isinstance(bound, ir.Const):
            return text
        name = self._names.of(object(), wanted)
        self._lines.add(f"{name} = {form.format(text)}")
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
        operands = self._place(statement.memory, statement.index)
        if statement.value is not None:
            operands.append(self._text(statement.value))
        call = f"atomic_{statement.op.value}({', '.join(operands)})"
        if statement.variable is None:
            self._lines.add(call)
        else:
            self._set(statement.variable, call)

    def _match_and_rank(self, overridable: ir.Overridable) -> None:
        (memory,), (first, digit) = overridable.memories, overridable.operands
        index = ir.Apply(ops.ADD, (first, digit), Type.U32, digit.span)
        operands = [self._lanes(), *self._place(memory, index)]
        call = f"match_and_rank({', '.join(operands)}, {self._widths.of(digit)})"
        self._set(overridable.variable, call)

    def _subgroup(self, statement: ir.Subgroup) -> None:
        operands = [self._lanes(), *map(self._text, statement.operands)]
        function = LANE_OPERATIONS.get(statement.op, statement.op.value)
        if statement.op is SubgroupOp.MATCH:
            bits = self._widths.of(statement.operands[0])
            if bits <= _MATCH_BY_BALLOTS:
                function = "match_low_bits"
                operands.append(str(bits))
        self._set(statement.variable, f"{function}({', '.join(operands)})")


def lane_mask(lanes: int) -> str:
    """A literal mask of the lowest lanes."""
    return f"u4({(1 << lanes) - 1})"


def stored_type(type: Type) -> Type:
    """The type in which memory and parameters store a value: a Bool is stored as a byte."""
    return Type.U8 if type is Type.BOOL else type


def byte_of(node: ir.Apply) -> tuple[ir.Expression, ir.Expression] | None:
    """Matches `(x >> 8 * n) & 255`: returns x and n, else None."""
    source, mask = node.operands
    if node.op is not ops.AND or not node.type.is_unsigned or not isinstance(mask, ir.Const) or mask.value != 255:
        return None
    if not isinstance(source, ir.Apply) or source.op is not ops.SHR:
        return source, ir.Const(0, Type.U32, node.span)
    inner, shift = source.operands
    if isinstance(shift, ir.Const) and shift.value % 8 == 0:
        return inner, ir.Const(int(shift.value) // 8, Type.U32, node.span)
    if isinstance(shift, ir.Apply) and shift.op is ops.MUL and shift.type is Type.U32:
        number, bits = shift.operands
        if isinstance(bits, ir.Const) and bits.value == 8:
            return inner, number
    return None
