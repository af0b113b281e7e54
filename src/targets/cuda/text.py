"""Code generation: a program as the text of one kernel, in the subset of Python that function.py reads, statement by
statement.

Storage is passed as raw pointers, loops stay loops. Workgroup memory beyond CUDA's 48 KiB of static shared memory is
dynamic: each memory has an offset from one base, and the launch asks for the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from ...kernel import ir
from ...kernel.passes.overlay import overlaid
from ...kernel.passes.scopes import Scopes
from ...kernel.passes.uniform import check_uniform
from ...kernel.passes.widths import Widths
from ...types import ops
from ...types.layout import Type
from ...types.ops import AtomicOp, SubgroupOp
from ..kernel_text import RESERVED_NAMES, TYPE_NAMES, KernelWriter, described, literal, stored_type
from ..render import Lines, head_of

WARP = 32
STATIC_BYTES = 48 * 1024  # the most static shared memory that CUDA allows
_ALIGNMENT = 16  # bytes, of each workgroup memory: enough for any type
_MATCH_BY_BALLOTS = 10  # values of up to this many bits are matched by a ballot a bit, which is faster than match.any
# What a kernel's text has, and what it calls.
_RESERVED = RESERVED_NAMES | frozenset([
    "SIGNATURE", "cuda", "group_id", "kernel", "lane", "lanes", "local_id", "num_groups", "subgroup_id", "types",
    *(f"atomic_{op.value}" for op in AtomicOp), "ballot", "byte", "float_to_half", "half_to_float", "lanes_add",
    "lanes_exclusive_add", "load_workgroup", "match", "match_and_rank", "match_low_bits", "multiply_rounded", "shuffle",
    "shuffle_down", "shuffle_up", "shuffle_xor", "store_workgroup",
])  # fmt: skip
# Subgroup operations that are called by another name.
_LANE_OPERATIONS: Mapping[SubgroupOp, str] = {
    SubgroupOp.ADD: "lanes_add",
    SubgroupOp.EXCLUSIVE_ADD: "lanes_exclusive_add",
}
_OWN_NUMBERS: Mapping[ir.Builtin, str] = {
    ir.Builtin.LOCAL_ID: "local_id = u4(cuda.threadIdx.x)",
    ir.Builtin.LANE: f"lane = u4(local_id & u4({WARP - 1}))",
    ir.Builtin.SUBGROUP_ID: f"subgroup_id = u4(local_id >> {WARP.bit_length() - 1})",
    ir.Builtin.GROUP_ID: "group_id = u4(cuda.blockIdx.x)",
    ir.Builtin.NUM_GROUPS: "num_groups = u4(cuda.gridDim.x)",
}


@attrs.frozen
class KernelText:
    """A module's source, and what the host needs to launch its kernel. Kernel parameters: storage in the program's
    order, then the lengths that it reads, then its parameters."""

    source: str
    lengths: tuple[ir.Memory, ...]
    workgroup_bytes: int
    dynamic_bytes: int  # dynamic shared memory to ask for at launch: all of workgroup_bytes, or 0 if static


def kernel_text(program: ir.Program) -> KernelText:
    """The program as a module that defines `kernel` and its `SIGNATURE`."""
    check_uniform(program)
    program = overlaid(program)
    places, nbytes = _workgroup_places(program)
    offsets = places if nbytes > STATIC_BYTES else {}
    writer = BodyWriter(program, offsets)
    body = writer.body()
    prologue = _prologue(program, writer, offsets)
    lengths = tuple(memory for memory in program.storage if memory in writer.lengths)
    arguments = [
        *((writer.memory(memory), f"{TYPE_NAMES[stored_type(memory.type)]}*") for memory in program.storage),
        *((writer.lengths[memory], "u4") for memory in lengths),
        *((writer.parameter(parameter), TYPE_NAMES[parameter.type]) for parameter in program.parameters),
    ]
    return KernelText(head_of(described(program), arguments) + prologue + body, lengths, nbytes, nbytes * bool(offsets))


def _workgroup_places(program: ir.Program) -> tuple[dict[ir.Memory, int], int]:
    """Each workgroup memory's offset from a common base, in its elements; and the bytes of all."""
    offsets, nbytes = dict[ir.Memory, int](), 0
    for memory in program.memories:
        if memory.space is ir.Space.WORKGROUP:
            offsets[memory] = nbytes // memory.type.size
            nbytes += -(-_length(memory) * memory.type.size // _ALIGNMENT) * _ALIGNMENT
    return offsets, nbytes


def _length(memory: ir.Memory) -> int:
    assert memory.length is not None, memory
    return max(memory.length, 1)


def _prologue(program: ir.Program, writer: BodyWriter, offsets: Mapping[ir.Memory, int]) -> str:
    """Declarations above the body: invocation indices, memories, constants and variables."""
    lines, used = Lines(1), set(writer.builtins)
    if writer.lanes_vary or used & {ir.Builtin.LANE, ir.Builtin.SUBGROUP_ID}:
        used.add(ir.Builtin.LOCAL_ID)
    for builtin, form in _OWN_NUMBERS.items():
        if builtin in used:
            lines.add(form)
    if writer.lanes_vary:
        whole, rest = program.group_size // WARP * WARP, program.group_size % WARP
        every, rest_of_them = (literal((1 << lanes) - 1, Type.U32) for lanes in (WARP, rest))
        lines.add(f"lanes = select(local_id < u4({whole}), {every}, {rest_of_them})")
    for memory in program.memories:
        if memory.space is not ir.Space.STORAGE:
            place = "local" if memory.space is ir.Space.REGISTERS else "shared"
            length = 0 if memory in offsets else _length(memory)  # 0 means dynamic shared memory
            element = TYPE_NAMES[stored_type(memory.type)]
            lines.add(f"{writer.memory(memory)} = cuda.{place}.array({length}, {element})")
    for binding in writer.bindings:
        lines.add(binding)
    for variable in Scopes(program).declared:
        # Where only some branches assign a variable, it has a value in the others too.
        lines.add(f"{writer.variable(variable)} = {literal(0, variable.type)}")
    return lines.text()


class BodyWriter(KernelWriter):
    """Writes a program's body, and collects what has to be declared above it. `offsets` are those of workgroup memories
    in dynamic shared memory, in elements; empty where all are static."""

    target, reserved = "cuda", _RESERVED

    def __init__(self, program: ir.Program, offsets: Mapping[ir.Memory, int]) -> None:
        super().__init__(program, Lines(1))
        self.lengths: dict[ir.Memory, str] = {}
        self.builtins: set[ir.Builtin] = set()
        self.lanes_vary = False  # whether a mask of existing lanes is needed: the last subgroup is partial
        self._offsets = offsets
        self._barriers = 0  # emitted so far
        self._widths = Widths(program, WARP)

    def body(self) -> str:
        """Indented by one level."""
        self.block(self.program.body)
        if not self.program.body:
            self.lines.add("pass")
        return self.lines.text()

    def length(self, memory: ir.Memory) -> str:
        if memory not in self.lengths:
            self.lengths[memory] = self.names.of(("length", memory), f"length_of_{memory.name}")
        return self.lengths[memory]

    def builtin(self, builtin: ir.Builtin) -> str:
        if builtin is ir.Builtin.GROUP_SIZE:
            return self.u4(self.program.group_size)
        if builtin is ir.Builtin.SUBGROUP_SIZE:
            return self.u4(WARP)
        self.builtins.add(builtin)
        name: str = builtin.value
        return name

    def _lanes(self) -> str:
        """The mask of existing lanes, as an expression."""
        size = self.program.group_size
        if size % WARP and size > WARP:
            self.lanes_vary = True
            return "lanes"
        return self.u4((1 << min(size, WARP)) - 1)

    def operation(self, node: ir.Apply, operands: list[str]) -> str:
        match node.op:
            case ops.COUNT_ONES | ops.LEADING_ZEROS if self._is_half_empty(node.operands[0]):
                count = f"{node.op}(u4({operands[0]}))"
                return count if node.op is ops.COUNT_ONES else f"u4({self.u4(32)} + {count})"
            case ops.MUL if node.type.is_float:  # never contracted to a fused multiply-add, which rounds differently
                return f"multiply_rounded({', '.join(operands)})"
            case ops.AND if (byte := byte_of(node)) is not None:
                return self._byte(*byte)
            case _:
                return super().operation(node, operands)

    def _byte(self, source: ir.Expression, place: ir.Expression) -> str:
        """Emits `(x >> 8 * n) & 255` as one byte permute, in a form that alternates from barrier to barrier. Else the
        assembler eliminates common subexpressions across barriers, keeps many extracted bytes live, and spills
        registers. In another form it computes the byte again. Kernels of gpusort's own ask for no byte beyond."""
        word, number, form = self.text(source), self.text(place), self._barriers % 2
        last = source.type.size - 1
        if self._widths.of(place) > last.bit_length() and not place.span.is_own:  # a shift's amount is taken modulo
            number = f"u4({number} & {self.u4(last)})"
        if source.type is Type.U32:
            return f"byte({word}, {number}, {form})"
        half = f"select({number} < {self.u4(4)}, u4({word}), u4({word} >> 32))"
        return f"u8(byte({half}, u4({number} & {self.u4(3)}), {form}))"

    def _is_half_empty(self, operand: ir.Expression) -> bool:
        """Whether the upper half of a U64 is known to be zero, as in a lane mask: 32-bit instructions then do."""
        return operand.type is Type.U64 and self._widths.of(operand) <= 32

    def index_operands(self, memory: ir.Memory, index: ir.Expression) -> Sequence[str]:
        """An index as two summands (one is the memory's offset if it is no sum)."""
        offset, first, second = self._offsets.get(memory, 0), "", self.text(index)
        if isinstance(index, ir.Apply) and index.op is ops.ADD:
            first, second = map(self.text, index.operands)
        start = first or self.u4(offset)
        if first and offset:
            start = f"u4({first} + {self.u4(offset)})"
        return [start, second]

    def place(self, memory: ir.Memory, index: ir.Expression) -> str:
        """Workgroup memory is loaded by a call. `add_nowrap` is done in 64 bits, and so folds into the address."""
        if memory.space is ir.Space.WORKGROUP:
            return f"load_workgroup({', '.join((self.memory(memory), *self.index_operands(memory, index)))})"
        if isinstance(index, ir.Apply) and index.op is ops.ADD_NOWRAP:
            first, second = (f"u8({self.text(part)})" for part in index.operands)
            return f"{self.memory(memory)}[u8({first} + {second})]"
        return super().place(memory, index)

    def put(self, memory: ir.Memory, index: ir.Expression, value: str) -> None:
        if memory.space is not ir.Space.WORKGROUP:
            super().put(memory, index, value)
            return
        operands = (self.memory(memory), *self.index_operands(memory, index), value)
        self.lines.add(f"store_workgroup({', '.join(operands)})")

    def barrier(self) -> None:
        self.lines.add("cuda.syncthreads()")
        self._barriers += 1

    def branch(self, statement: ir.If) -> None:
        match statement.overridable:
            case ir.Overridable(name="match_and_rank") as overridable:
                self._match_and_rank(overridable)
            case ir.Overridable(name="half_to_float" | "float_to_half" as name, operands=(given,), variable=variable):
                self.assign(variable, f"{name}({self.text(given)})")
            case _:
                super().branch(statement)

    def repeated(self, loop: ir.Loop) -> None:
        """A test at a loop's beginning goes to its head, from where the compiler also puts it at its end."""
        match loop.test:
            case ir.Apply(op, (goes_on,)) if op is ops.INVERT:
                self.inside(f"while {self.text(goes_on)}:", loop.body[1:])
            case _:
                super().repeated(loop)

    def counted(self, loop: ir.For) -> None:
        """A while loop with a counter of its own. Where the counter might wrap before it passes the end, a trip count
        is counted down instead. NVVM then knows the trip count, unrolls, and issues several iterations' loads at
        once."""
        name, add = loop.variable.name, self.lines.add
        counter = self.counter(loop)
        add(f"{counter} = {self.text(loop.start)}")
        stop = self._bound_once(loop.stop, f"{name}_end")
        step = self._bound_once(loop.step, f"{name}_step", f"max({{}}, {self.u4(1)})")
        counting = not loop.ends_before_it_wraps
        zero, one = self.u4(0), self.u4(1)
        turns = self.names.of(object(), f"{name}_turns") if counting else ""
        if counting:
            add(f"{turns} = {zero}")
            with self.lines.nested(f"if {counter} < {stop}:"):
                add(f"{turns} = u4(divide(u4(u4({stop} - {counter}) - {one}), {step}) + {one})")
        with self.lines.nested(f"while {turns} > {zero}:" if counting else f"while {counter} < {stop}:"):
            self.assign(loop.variable, counter)
            self.block(loop.body)
            if loop.body and isinstance(loop.body[-1], ir.Break):
                return  # there is no second round
            add(f"{counter} = u4({counter} + {step})")
            if counting:
                add(f"{turns} = u4({turns} - {one})")

    def _bound_once(self, bound: ir.Expression, wanted: str, form: str = "{}") -> str:
        """Evaluates a bound once before the loop, in a variable unless it is a constant."""
        text = self.text(bound)
        if isinstance(bound, ir.Const):
            return text
        name = self.names.of(object(), wanted)
        self.lines.add(f"{name} = {form.format(text)}")
        return name

    def _match_and_rank(self, overridable: ir.Overridable) -> None:
        (memory,), (first, digit) = overridable.memories, overridable.operands
        index = ir.Apply(ops.ADD, (first, digit), Type.U32, digit.span)
        operands = [self._lanes(), self.memory(memory), *self.index_operands(memory, index)]
        call = f"match_and_rank({', '.join(operands)}, {self._widths.of(digit)})"
        self.assign(overridable.variable, call)

    def subgroup(self, statement: ir.Subgroup) -> None:
        operands = [self._lanes(), *map(self.text, statement.operands)]
        function = _LANE_OPERATIONS.get(statement.op, statement.op.value)
        if statement.op is SubgroupOp.MATCH:
            bits = self._widths.of(statement.operands[0])
            if bits <= _MATCH_BY_BALLOTS:
                function = "match_low_bits"
                operands.append(str(bits))
        self.assign(statement.variable, f"{function}({', '.join(operands)})")


def byte_of(node: ir.Apply) -> tuple[ir.Expression, ir.Expression] | None:
    """Matches `(x >> 8 * n) & 255`: returns x and n, else None."""
    source, mask = node.operands
    if node.op is not ops.AND or not node.type.is_unsigned or not isinstance(mask, ir.Const) or mask.value != 255:
        return None
    if not isinstance(source, ir.Apply) or source.op is not ops.SHR:
        return source, ir.Const(0, Type.U32, node.span)
    inner, shift = source.operands
    if isinstance(shift, ir.Const) and shift.value % 8 == 0:
        return inner, ir.Const(int(shift.value) // 8 % inner.type.size, Type.U32, node.span)
    if isinstance(shift, ir.Apply) and shift.op is ops.MUL and shift.type is Type.U32:
        number, bits = shift.operands
        if isinstance(bits, ir.Const) and bits.value == 8:
            return inner, number
    return None
