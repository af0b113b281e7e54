"""Emits programs as typed Python, for the compiler of CPU and CUDA, llvm/: what both write alike. The rules are
Numba's, which can take the CPU's texts too: tests compare what both make of them. Integers are promoted (u4 + u4 is a
u8), so each operation is cast to its IR type; LLVM removes redundant casts. Signed arithmetic may not wrap, from which
LLVM concludes that `a + 1 > a`: so signed integers are added, subtracted and multiplied as unsigned ones, with the same
bits. Type names are Numba's short ones: u4 is a U32."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from ..kernel import ir
from ..types import ops
from ..types.layout import Type
from .render import Emit, Lines, Row
from .statements import StatementWriter

TYPE_NAMES: Mapping[Type, str] = {type: f"{type.dtype.kind}{type.size}" for type in Type}  # b1, u1, …, f8

# Names defined in the generated module.
RESERVED_NAMES = frozenset(TYPE_NAMES.values()) | {
    "abs", "bits_f4", "bits_f8", "bits_i4", "bits_i8", "bits_u4", "bits_u8", "bool", "count_ones", "divide", "float",
    "inf", "int", "leading_zeros", "len", "math", "max", "min", "nan", "np", "numba", "print", "range", "remainder",
    "select", "trailing_zeros",
}  # fmt: skip


def stored_type(type: Type) -> Type:
    """The type in which memory holds a value: a Bool is a byte."""
    return Type.U8 if type is Type.BOOL else type


def held(value: str, type: Type) -> str:
    """A value as memory holds it."""
    return f"u1({value})" if type is Type.BOOL else value


def taken(place: str, type: Type) -> str:
    """The value that memory holds at a place."""
    return f"({place} != 0)" if type is Type.BOOL else place


def literal(value: int | float | bool, type: Type) -> str:
    """A constant of this type: `u4(7)`, `f4(-0.0)`, `True`."""
    if type is Type.BOOL:
        return repr(bool(value))
    name = TYPE_NAMES[type]
    if not type.is_float:
        return f"{name}({int(value)})"
    return f"{name}({float(value)!r})"  # or `nan`, `inf`, `-inf`, which are names of the text's


def described(program: ir.Program) -> str:
    return f"Kernel {program.name}, {program.group_size} invocation{'s' * (program.group_size > 1)} a workgroup"


def _wrapped(template: str) -> Emit:
    """A template, cast to the node's type."""
    return lambda node, operands: f"{TYPE_NAMES[node.type]}({template.format(*operands)})"


def _arithmetic(operator: str) -> Emit:
    """A sum, difference or product; of signed integers in the unsigned type of their width."""

    def row(node: ir.Apply, operands: Sequence[str]) -> str:
        if node.type.sign:
            operands = [f"u{node.type.size}({operand})" for operand in operands]
        return f"{TYPE_NAMES[node.type]}({f' {operator} '.join(operands)})"

    return row


def _division(operator: str, function: str) -> Emit:
    """A division; by a function that neither traps nor branches, unless the divisor is a nonzero constant."""

    def row(node: ir.Apply, operands: Sequence[str]) -> str:
        divisor = node.operands[1]
        if isinstance(divisor, ir.Const) and divisor.value:
            return f"{TYPE_NAMES[node.type]}({operands[0]} {operator} {operands[1]})"
        return f"{function}({operands[0]}, {operands[1]})"

    return row


def _logical(integers: str, booleans: str) -> Emit:
    """Bitwise operations, with another form for booleans, which would be promoted to integers."""
    row = _wrapped(integers)
    return lambda node, operands: booleans.format(*operands) if node.type is Type.BOOL else row(node, operands)


def _shift(operator: str) -> Emit:
    """A shift by the amount modulo the width."""

    def row(node: ir.Apply, operands: Sequence[str]) -> str:
        amount = node.operands[1]
        mask = node.type.bits - 1
        shown = str(int(amount.value) & mask) if isinstance(amount, ir.Const) else f"({operands[1]} & u4({mask}))"
        return f"{TYPE_NAMES[node.type]}({operands[0]} {operator} {shown})"

    return row


def _bitcast(node: ir.Apply, operands: Sequence[str]) -> str:
    """A cast between integers of one width; else a call of `bits_…`."""
    name = TYPE_NAMES[node.type]
    if node.type.is_integer and node.operands[0].type.is_integer:
        return f"{name}({operands[0]})"
    return f"bits_{name}({operands[0]})"


# The rows that both targets share. A target replaces those for which it has better forms.
OPERATIONS: Mapping[str, Row] = {
    "add": _arithmetic("+"),
    "add_nowrap": _arithmetic("+"),
    "sub": _arithmetic("-"),
    "mul": _arithmetic("*"),
    "div": _wrapped("{0} / {1}"),
    "floordiv": _division("//", "divide"),
    "mod": _division("%", "remainder"),
    "neg": _wrapped("-{0}"),
    "and": _logical("{0} & {1}", "({0} & {1})"),
    "or": _logical("{0} | {1}", "({0} | {1})"),
    "xor": _logical("{0} ^ {1}", "({0} != {1})"),
    "invert": _logical("~{0}", "(not {0})"),
    "shl": _shift("<<"),
    "shr": _shift(">>"),
    **{op.name: f"({{0}} {op.sign} {{1}})" for op in ops.COMPARISONS},
    "min": _wrapped("min({0}, {1})"),
    "max": _wrapped("max({0}, {1})"),
    "select": "select({0}, {1}, {2})",
    "count_ones": "count_ones({0})",
    "leading_zeros": "leading_zeros({0})",
    "trailing_zeros": "trailing_zeros({0})",
    "sqrt": _wrapped("math.sqrt({0})"),
    "exp": _wrapped("math.exp({0})"),
    "log": _wrapped("math.log({0})"),
    "cast": _wrapped("{0}"),
    "bitcast": _bitcast,
}


class KernelWriter(StatementWriter):
    """Writes a program's statements in this language."""

    operations = OPERATIONS

    def __init__(self, program: ir.Program, lines: Lines) -> None:
        super().__init__(program, lines)
        self._numbers: dict[str, str] = {}  # the names of unsigned literals
        # by value: statements may hold equal copies of the program's own memories and parameters
        outer: tuple[ir.Memory | ir.Parameter, ...] = (*program.memories, *program.parameters)
        self._outer = {thing: self.names.of(thing, thing.name) for thing in outer}

    @abstractmethod
    def index_operands(self, memory: ir.Memory, index: ir.Expression) -> Sequence[str]:
        """An index, as calls for one element take it."""

    def place(self, memory: ir.Memory, index: ir.Expression) -> str:
        """An element, to read or to write."""
        return f"{self.memory(memory)}[{self.text(index)}]"

    def variable(self, variable: ir.Variable) -> str:
        return self.names.of(variable, variable.name)

    def memory(self, memory: ir.Memory) -> str:
        return self._outer[memory]

    def parameter(self, parameter: ir.Parameter) -> str:
        return self._outer[parameter]

    def constant(self, constant: ir.Const) -> str:
        return self.number(constant.value, constant.type)

    def number(self, value: int | float | bool, type: Type) -> str:
        """A literal; an unsigned one by a name that `bindings` has: `u4(7)` is a call, and such calls would be half of
        a kernel's text."""
        shown = literal(value, type)
        if not type.is_unsigned:
            return shown
        if shown not in self._numbers:
            self._numbers[shown] = self.names.of(object(), f"{TYPE_NAMES[type]}_{int(value)}")
        return self._numbers[shown]

    @property
    def bindings(self) -> list[str]:
        """The assignments that go above the body, of all names of literals used so far."""
        return [f"{name} = {shown}" for shown, name in self._numbers.items()]

    def u4(self, value: int) -> str:
        return self.number(value, Type.U32)

    def counter(self, loop: ir.For) -> str:
        """The counter of a loop: the body may assign to the loop variable."""
        return self.names.of(loop, f"{loop.variable.name}_at")

    def loaded(self, load: ir.Load) -> str:
        return taken(self.place(load.memory, load.index), load.memory.type)

    def assign(self, variable: ir.Variable, value: str) -> None:
        self.lines.add(f"{self.variable(variable)} = {value}")

    def store(self, memory: ir.Memory, index: ir.Expression, value: str) -> None:
        self.put(memory, index, held(value, memory.type))

    def put(self, memory: ir.Memory, index: ir.Expression, value: str) -> None:
        """Stores a value of the type that memory holds."""
        self.lines.add(f"{self.place(memory, index)} = {value}")

    def atomic(self, statement: ir.Atomic) -> None:
        memory = statement.memory
        operands = [self.memory(memory), *self.index_operands(memory, statement.index)]
        if statement.value is not None:
            operands.append(self.text(statement.value))
        call = f"atomic_{statement.op.value}({', '.join(operands)})"
        if statement.variable is None:
            self.lines.add(call)
        else:
            self.assign(statement.variable, call)
