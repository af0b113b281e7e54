"""Legalisation: lowers a program to 32-bit types, as WGSL has no others. IR to IR, with the same meaning.

Afterwards variables are U32, I32, F32 or Bool; storage and parameters are U32, I32 or F32 (other elements: see
ElementLayout). A Length is a parameter, as the size of a buffer of words does not give the number of elements. Floats
are compared as integers, and keep signed zeros, infinities and NaNs (legalize_operations.py). MATCH is a loop of
ballots, and shuffles read existing lanes only. One 64-bit value is left for the emitter: BALLOT sets a U64 variable,
which is read only as `cast(U32, mask)` and `cast(U32, shr(mask, 32))`.
"""

from __future__ import annotations

import struct

import attrs

from ...kernel import ir
from ...kernel.launch import Step
from ...kernel.passes.walk import statements_in, variables_in
from ...kernel.passes.widths import Widths
from ...types import ops
from ...types.layout import Type
from ...types.ops import AtomicOp
from ...types.params import WIDE_MASK_LANES
from .legalize_operations import Lanes, Leaf, Operations
from .legalize_words import Pair, Value, Word, WordBuilder


@attrs.frozen
class Origin:
    """Where the host finds the value of a legalised parameter: a word of an original one, a length, or else zero."""

    parameter: ir.Parameter | None = None
    word: int = 0  # 0 for the low 32 bits of `parameter`, 1 for the high
    length_of: ir.Memory | None = None  # the number of elements of a storage buffer

    def word_in(self, step: Step) -> int:
        """The word in a launch."""
        if self.length_of is not None:
            return step.length_of(self.length_of)
        if self.parameter is None:
            return 0
        value = step.values[self.parameter]
        if self.parameter.type.is_float:
            value = int.from_bytes(struct.pack("<f" if self.parameter.type is Type.F32 else "<d", value), "little")
        return int(value) >> 32 * self.word & 0xFFFF_FFFF


@attrs.frozen
class Legalized:
    """The legalised program; the origin of each of its parameters, in their order."""

    program: ir.Program
    origins: tuple[Origin, ...]


def legalize(program: ir.Program, lanes: int = WIDE_MASK_LANES) -> Legalized:
    """Legalises a program for subgroups of at most `lanes` lanes. Raises CapabilityError for F64 arithmetic."""
    return _Legalizer(program, lanes).run()


class _Legalizer:
    def __init__(self, program: ir.Program, lanes: int) -> None:
        self.program = program
        self.build = WordBuilder(program.span)
        self.names = {parameter.name for parameter in program.parameters}
        self.origins: dict[ir.Parameter, Origin] = {}  # of the parameters so far
        self.parameters = {parameter: self._parameter(parameter) for parameter in program.parameters}
        self.from_host: dict[ir.Memory | None, Word] = {}  # what the host adds: lengths of memories, and zero
        self.variables: dict[ir.Variable, tuple[ir.Variable, ...]] = {}
        stored = {s.memory for s in statements_in(program.body) if isinstance(s, ir.Store)}
        self.layouts = {memory: ElementLayout.of(memory, memory in stored) for memory in program.memories}
        self.atomic = {s.memory for s in statements_in(program.body) if isinstance(s, ir.Atomic)}
        self.broadcast: list[ir.Memory] = []  # one word of workgroup memory, if a load_uniform needs it
        self.operations = Operations(self.build, self._leaf, lambda: self._from_host(None, "hidden_zero"))
        self.lanes = Lanes(self.build, program.group_size, lanes)
        self.widths = Widths(program, lanes)

    def run(self) -> Legalized:
        self._statements(self.program.body)
        own = tuple(half for halves in self.variables.values() for half in halves)
        legal = attrs.evolve(
            self.program,
            parameters=tuple(self.origins),
            memories=(*(layout.after for layout in self.layouts.values()), *self.broadcast),
            variables=own + tuple(self.build.variables),
            body=self.build.finish(),
        )
        return Legalized(legal, tuple(self.origins.values()))

    def _parameter(self, parameter: ir.Parameter) -> Value:
        """One of the program's, by the parameters that replace it."""
        if parameter.type.size == 8:
            halves = enumerate(("low", "high"))
            return Pair(*(self._added(f"{parameter.name}_{half}", Origin(parameter, word)) for word, half in halves))
        own = parameter if parameter.type.size == 4 else ir.Parameter(parameter.name, Type.U32)
        self.origins[own] = Origin(parameter)
        value = Word(self.build, ir.Argument(own, self.program.span))
        return value.differs(0) if parameter.type is Type.BOOL else value

    def _added(self, name: str, origin: Origin) -> Word:
        """A new U32 parameter with an unused name."""
        name = ir.unused(name, self.names)
        self.names.add(name)
        self.origins[made := ir.Parameter(name, Type.U32)] = origin
        return Word(self.build, ir.Argument(made, self.program.span))

    def _from_host(self, memory: ir.Memory | None, name: str) -> Word:
        """A parameter that the host always sets to a memory's length; or to zero, which the driver's compiler cannot
        know."""
        if memory not in self.from_host:
            self.from_host[memory] = self._added(name, Origin(length_of=memory))
        return self.from_host[memory]

    def _halves(self, variable: ir.Variable) -> tuple[ir.Variable, ...]:
        """The variables that replace one: itself, a U32, or two for its low and high words."""
        known = self.variables.get(variable)
        if known is None:
            known = (variable,)
            if variable.type.size == 8:
                known = tuple(ir.Variable(f"{variable.name}_{half}", Type.U32) for half in ("low", "high"))
            elif variable.type.is_narrow:
                known = (ir.Variable(variable.name, Type.U32),)
            self.variables[variable] = known
        return known

    def _leaf(self, node: Leaf) -> Value:
        match node:
            case ir.Read():
                halves = [Word(self.build, ir.Read(half, node.span)) for half in self._halves(node.variable)]
                return halves[0] if len(halves) == 1 else Pair(*halves)
            case ir.Argument():
                return self.parameters[node.parameter]
            case ir.Length():
                return self._from_host(node.memory, f"{node.memory.name}_length")
            case ir.BuiltinValue():
                # A constant, so that expressions with it are folded here, with wrapping: WGSL rejects `64u - 65u`.
                is_size = node.builtin is ir.Builtin.GROUP_SIZE
                return self.build.literal(self.program.group_size) if is_size else Word(self.build, node)

    def _statements(self, block: ir.Block) -> None:
        for statement in block:
            self.build.span = statement.span
            self._statement(statement)

    def _block(self, block: ir.Block) -> ir.Block:
        with self.build.nested() as statements:
            self._statements(block)
        return tuple(statements)

    def _statement(self, statement: ir.Statement) -> None:
        build = self.build
        match statement:
            case ir.Assign():
                self._assign(statement.variable, self.operations.value(statement.value))
            case ir.Load() if statement.uniform:
                self._load_uniform(statement)
            case ir.Load():
                value = self.layouts[statement.memory].load(self.operations.word(statement.index))
                self._assign(statement.variable, value)
            case ir.Store():
                index = self.operations.word(statement.index)
                self.layouts[statement.memory].store(index, self.operations.value(statement.value))
            case ir.Atomic():
                operand = None if statement.value is None else self.operations.word(statement.value).node
                memory, place = self.layouts[statement.memory].after, self.operations.word(statement.index).node
                variable = None if statement.variable is None else self._halves(statement.variable)[0]
                build.emit(ir.Atomic(variable, statement.op, memory, place, operand, statement.span))
            case ir.Subgroup():
                operands = [self.operations.value(operand) for operand in statement.operands]
                bits = self.widths.of(statement.operands[0])
                self._assign(statement.variable, self.lanes.subgroup(statement.op, operands, bits))
            case ir.If():
                condition = self.operations.word(statement.condition).node
                then, otherwise = self._block(statement.then), self._block(statement.otherwise)
                build.emit(ir.If(condition, then, otherwise, statement.span))
            case ir.For():
                self._counted(statement)
            case ir.Loop():
                build.emit(ir.Loop(self._block(statement.body), statement.span))
            case ir.Barrier() | ir.Break():
                build.emit(statement)

    def _load_uniform(self, statement: ir.Load) -> None:
        """`workgroupUniformLoad`. WGSL does not have it for atomics: then one invocation loads the element, and
        broadcasts it through another word of workgroup memory."""
        build, span = self.build, statement.span
        loaded, memory = self._halves(statement.variable)[0], self.layouts[statement.memory].after
        index = self.operations.word(statement.index)
        if statement.memory in self.atomic:
            if not self.broadcast:
                name = ir.unused("broadcast", {other.name for other in self.layouts})
                self.broadcast.append(ir.Memory(name, ir.Space.WORKGROUP, Type.U32, 1))
            index, (shared,), none = index.bound("place"), self.broadcast, build.literal(0)
            with build.nested() as body:
                item = build.variable("item", Type.U32)
                build.emit(ir.Load(item, memory, index.node, span))
                build.store(shared, none, build.read(item))
            build.emit(ir.If(build.builtin(ir.Builtin.LOCAL_ID).equals(0).node, tuple(body), (), span))
            memory, index = shared, none
        build.emit(ir.Load(loaded, memory, index.node, span, uniform=True))

    def _counted(self, loop: ir.For) -> None:
        """A For. If the counter may wrap before it reaches `stop`, the loop is over the trip count instead."""
        build, variable = self.build, self._halves(loop.variable)[0]
        start, stop, step = (self.operations.word(e) for e in (loop.start, loop.stop, loop.step))
        if attrs.evolve(loop, start=start.node, stop=stop.node, step=step.node).ends_before_it_wraps:
            build.emit(ir.For(variable, start.node, stop.node, step.node, self._block(loop.body), loop.span))
            return
        step = step if isinstance(step.node, ir.Const) else build.apply(ops.MAX, step, 1).held("step")
        start, stop = start.held("start"), stop.held("stop")
        rounds = (stop - start - 1) // step
        turns = (start < stop).select(rounds + 1, 0).held("turns")
        turn = build.variable("turn", Type.U32)
        with build.nested() as body:
            build.assign(variable, start + build.read(turn) * step)
            self._statements(loop.body)
        none, one = build.literal(0).node, build.literal(1).node
        build.emit(ir.For(turn, none, turns.node, one, tuple(body), loop.span))

    def _assign(self, variable: ir.Variable, value: Value) -> None:
        halves = self._halves(variable)
        values = (value.low, value.high) if isinstance(value, Pair) else (value,)
        if self.build.elided_copy(halves, values):
            return
        if len(values) == 2 and halves[0] in variables_in(values[1].node):
            values = (values[0], values[1].held("high"))
        for half, word in zip(halves, values, strict=True):
            self.build.assign(half, word)


@attrs.frozen
class ElementLayout:
    """How a memory's elements are stored in 32-bit words.

    - 64-bit elements: two words, low first. In workgroup memory all low words come before all high ones, which avoids
      bank conflicts.
    - Bool, U8 and U16 in storage: packed, four, four and two in a word. If the kernel stores to the memory, all its
      accesses are atomic, as invocations may own different bytes of one word.
    - Bool, U8 and U16 in workgroup memory or registers: a word each. (With NVIDIA's Vulkan driver, stores to an array
      of WGSL's own bool in workgroup memory change other memories.)
    """

    before: ir.Memory
    after: ir.Memory
    packed: bool  # several elements in a word
    stored: bool  # whether the kernel stores to it

    @staticmethod
    def of(memory: ir.Memory, stored: bool) -> ElementLayout:
        is_short, after = memory.type.size < 4, memory
        if memory.type.size == 8:
            after = attrs.evolve(memory, type=Type.U32, length=None if memory.length is None else 2 * memory.length)
        elif is_short:
            after = attrs.evolve(memory, type=Type.U32)
        return ElementLayout(memory, after, is_short and memory.space is ir.Space.STORAGE, stored)

    def load(self, index: Word) -> Value:
        """Loads an element: a U32 for U8 and U16, a pair for 64 bits."""
        if self.before.type.size == 8:
            low, high = self._halves(index)
            return Pair(self._word(low, "low"), self._word(high, "high"))
        if self.packed:
            where, shift = self._where(index)
            value = (self._word(where, "packed") >> shift) & self._mask
        else:
            value = self._word(index, "item")
        return value.differs(0) if self.before.type is Type.BOOL else value

    def store(self, index: Word, value: Value) -> None:
        if isinstance(value, Pair):
            low, high = self._halves(index)
            index.build.store(self.after, low, value.low)
            index.build.store(self.after, high, value.high)
            return
        word = value.cast(Type.U32) if self.before.type is Type.BOOL else value
        if self.packed:
            self._replace(index, word)
        else:
            index.build.store(self.after, index, word)

    def _halves(self, index: Word) -> tuple[Word, Word]:
        index = index.bound("place")
        if self.before.space is ir.Space.WORKGROUP and self.before.length is not None:
            return index, index + self.before.length
        low = (index * 2).bound("place")
        return low, low + 1

    def _word(self, index: Word, name: str) -> Word:
        build, loaded = index.build, index.build.variable(name, self.after.type)
        if self.packed and self.stored:
            build.emit(ir.Atomic(loaded, AtomicOp.LOAD, self.after, index.node, None, build.span))
        else:
            build.emit(ir.Load(loaded, self.after, index.node, build.span))
        return build.read(loaded)

    @property
    def _mask(self) -> int:
        return (1 << self.before.type.bits) - 1

    def _where(self, index: Word) -> tuple[Word, Word]:
        """The index of a packed element's word, and its shift in bits."""
        index = index.bound("place")
        per_word_log2, bits_log2 = (1, 4) if self.before.type is Type.U16 else (2, 3)
        return index >> per_word_log2, (index & (1 << per_word_log2) - 1) << bits_log2

    def _replace(self, index: Word, value: Word) -> None:
        """Stores a packed element by an atomic xor with the bits that change, so that concurrent stores to other
        elements of the word are not lost. (Stores to one element by two invocations are a data race anyway.)"""
        where, shift = self._where(index)
        where, shift = where.bound("where"), shift.bound("shift")
        old = self._word(where, "packed")
        change = ((old >> shift) ^ value) & self._mask
        build = index.build
        build.emit(ir.Atomic(None, AtomicOp.XOR, self.after, where.node, (change << shift).node, build.span))
