"""Pretty-prints the IR: a statement a line, each with the source line it came from."""

from __future__ import annotations

from collections.abc import Iterator

from . import ir


def listing(program: ir.Program) -> str:
    """The program as text; the numbers at the left are lines of the kernel's source."""
    return "\n".join(_Listing(program).lines()) + "\n"


class _Listing:
    def __init__(self, program: ir.Program) -> None:
        self._program = program
        self._names: dict[ir.Variable, str] = {}
        taken: set[str] = set()
        for variable in program.variables:
            name, count = variable.name, 1
            while name in taken:
                count += 1
                name = f"{variable.name}_{count}"
            taken.add(name)
            self._names[variable] = name

    def lines(self) -> Iterator[str]:
        program = self._program
        yield f"kernel {program.name}, {program.group_size} invocations a workgroup"
        for memory in program.memories:
            length = "" if memory.length is None else str(memory.length)
            yield f"       {memory.space.value} {memory.name}: {memory.type}[{length}]"
        for parameter in program.parameters:
            yield f"       parameter {parameter.name}: {parameter.type}"
        for variable in program.variables:
            yield f"       variable {self._names[variable]}: {variable.type}"
        yield from self._block(program.body, 0)

    def _block(self, block: ir.Block, depth: int) -> Iterator[str]:
        for statement in block:
            line = f"{statement.span.line:5}  " + "    " * depth
            match statement:
                case ir.If(condition, then, otherwise):
                    yield f"{line}if {self._text(condition)}:"
                    yield from self._block(then, depth + 1)
                    if otherwise:
                        yield f"{line}else:"
                        yield from self._block(otherwise, depth + 1)
                case ir.For(variable, start, stop, step, body):
                    bounds = ", ".join(map(self._text, (start, stop, step)))
                    yield f"{line}for {self._names[variable]} in range({bounds}):"
                    yield from self._block(body, depth + 1)
                case ir.Loop(body):
                    yield f"{line}loop:"
                    yield from self._block(body, depth + 1)
                case ir.Assign(variable, value):
                    yield f"{line}{self._names[variable]} = {self._text(value)}"
                case ir.Load(variable, memory, index):
                    uniform = " uniform" if statement.uniform else ""
                    yield f"{line}{self._names[variable]} = {memory.name}[{self._text(index)}]{uniform}"
                case ir.Store(memory, index, value):
                    yield f"{line}{memory.name}[{self._text(index)}] = {self._text(value)}"
                case ir.Atomic(variable, op, memory, index, value):
                    operands = self._text(index) if value is None else f"{self._text(index)}, {self._text(value)}"
                    result = "" if variable is None else f"{self._names[variable]} = "
                    yield f"{line}{result}{memory.name}.atomic_{op.value}({operands})"
                case ir.Subgroup(variable, op, operands):
                    texts = ", ".join(map(self._text, operands))
                    yield f"{line}{self._names[variable]} = subgroup_{op.value}({texts})"
                case ir.Barrier() | ir.Break():
                    yield line + type(statement).__name__.lower()

    def _text(self, expression: ir.Expression) -> str:
        match expression:
            case ir.Const(value):
                return str(value)
            case ir.Read(variable):
                return self._names[variable]
            case ir.Argument(parameter):
                return parameter.name
            case ir.BuiltinValue(builtin):
                return builtin.value
            case ir.Length(memory):
                return f"{memory.name}.length"
            case ir.Apply(op, operands, type):
                texts = [self._text(operand) for operand in operands]
                if op.sign and len(texts) == 2:
                    return f"({texts[0]} {op.sign} {texts[1]})"
                if op.name in ("cast", "bitcast"):
                    return f"{op.name}({type}, {texts[0]})"
                return f"{op.name}({', '.join(texts)})"
