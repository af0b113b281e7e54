"""A kernel's text as LLVM's: the small language that the writers of the CPU and of CUDA write, and nothing beyond it.

A variable that is assigned once is its value: no text reads one where that may not have happened. Each other one is a
slot on the stack, which LLVM makes a register of.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

import attrs

from ...kernel.source import parsed
from .calls import Calls, Operand
from .numbers import B1, I8, KINDS, U1, Kind, Untranslatable, Value, literal
from .places import Array

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_TESTS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_SIGNATURE = re.compile(r'^SIGNATURE = "void\((.*)\)"$', re.MULTILINE)


@attrs.frozen
class Taken:
    """One of a kernel's arguments."""

    kind: Kind
    is_array: bool
    has_length: bool = False  # which comes behind the array


def signature_of(text: str) -> tuple[Taken, ...]:
    """What the kernel takes, in order: `u4`, an array `u4*`, or `u4[::1]`, whose length is an argument too."""
    found = _SIGNATURE.search(text)
    if found is None:
        raise Untranslatable("no signature")
    words = [re.fullmatch(r"(\w+)(\*|\[::1\])?", word) for word in found[1].split(", ") if word]
    return tuple(Taken(KINDS[word[1]], word[2] is not None, word[2] == "[::1]") for word in words if word is not None)


def function_of(text: str) -> ast.FunctionDef:
    """The text's one function."""
    (function,) = [node for node in parsed(text).body if isinstance(node, ast.FunctionDef)]
    return function


class Translation(Calls):
    """Of one function."""

    def __init__(self, text: str, *, is_opaque: bool) -> None:
        super().__init__(is_opaque=is_opaque)
        self._function, self._taken = function_of(text), signature_of(text)
        self._times = Counter(argument.arg for argument in self._function.args.args)
        self._times.update(
            node.id
            for node in ast.walk(self._function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        self._ends: list[str] = []  # where the loops around continue once they are left
        self._blocks = 0
        self._is_left = False  # nothing more can happen in this block

    def new_array(self, name: str, given: Sequence[ast.expr]) -> Array | None:
        """What a call makes, where it makes an array."""
        raise NotImplementedError

    def loop_mark(self, body: Sequence[ast.stmt]) -> str:
        """What is to be said about a loop where it goes back."""
        return ""

    def translated(self) -> list[str]:
        """Translates the function; what it takes, by types and names."""
        heads: list[str] = []
        for argument, taken in zip(self._function.args.args, self._taken, strict=True):
            name, kind = argument.arg, taken.kind
            if taken.is_array:
                heads.append(f"{self.pointer_type(kind.llvm)} %{name}")
                heads += [f"i64 %{name}.length"] if taken.has_length else []
                length = Value(I8, f"%{name}.length") if taken.has_length else None
                self.arrays[name] = Array(kind, f"%{name}", length)
            else:
                given = U1 if kind.is_bool else kind
                heads.append(f"{given.llvm} %{name}")
                self._set(name, self.converted(Value(given, f"%{name}"), kind))
        self._block(self._function.body)
        return heads

    # -- statements ---------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Call(function, given)) if (
                array := self.new_array(_name_of(function), given)
            ) is not None:
                self.arrays[name] = array
            case ast.Assign(targets, value):
                found = self.value(value)
                for target in targets:
                    self._assign(target, found)
            case ast.AugAssign(ast.Name(name), operator, value):
                old = self._read(name)
                self._set(name, self.computed(_OPERATORS[type(operator)], old, self.value(value), old.kind))
            case ast.Expr(ast.Call() as call):
                self._called(call)
            case ast.If(test, then, otherwise):
                self._if(test, then, otherwise)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds), body):
                self._for(name, bounds, body)
            case ast.While(test, body):
                self._while(test, body)
            case ast.Break():
                self._go(self._ends[-1])
            case ast.Pass():
                pass
            case _:
                raise Untranslatable(ast.unparse(statement))

    def _assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(name):
                self._set(name, value)
            case ast.Subscript(ast.Name(name), index):
                array = self.arrays[name]
                self.store(array, self.value(index), self.converted(value, array.kind))
            case _:
                raise Untranslatable(ast.unparse(target))

    def _set(self, name: str, value: Value) -> None:
        if self._times[name] == 1:
            self.fixed[name] = value
            return
        slot = self.slot(name, value.kind)
        if value.kind != slot.kind and value.number is None:
            raise Untranslatable(f"{name}: {value.kind.name} where it was {slot.kind.name}")
        self.lines.append(f"  store {slot.kind.llvm} {self.converted(value, slot.kind).text}, {slot.pointer}")

    def _read(self, name: str) -> Value:
        if name in self.fixed:
            return self.fixed[name]
        if name not in self.slots:
            raise Untranslatable(name)
        slot = self.slots[name]
        return self.made(slot.kind, f"load {slot.kind.llvm}, {slot.pointer}")

    def _if(self, test: ast.expr, then: Sequence[ast.stmt], otherwise: Sequence[ast.stmt]) -> None:
        yes, no, end = self._label("then"), self._label("else"), self._label("end")
        self._branch(self.value(test), yes, no if otherwise else end)
        self._begin(yes)
        self._block(then)
        self._go(end)
        if otherwise:
            self._begin(no)
            self._block(otherwise)
            self._go(end)
        self._begin(end)

    def _for(self, name: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        """Steps are at least one, and 64 bits hold every counter and the step beyond the last."""
        values = [self.converted(self.value(bound), I8) for bound in bounds]
        start, stop = (literal(0, I8), values[0]) if len(values) == 1 else values[:2]
        step = values[2] if len(values) == 3 else literal(1, I8)
        head, inside, following, end = (self._label(word) for word in ("head", "inside", "next", "end"))
        counter = self.slot(f"{name}.{head}", I8)
        self.lines.append(f"  store i64 {start.text}, {counter.pointer}")
        self._go(head)
        self._begin(head)
        at = self.made(I8, f"load i64, {counter.pointer}")
        self._branch(self.made(B1, f"icmp slt i64 {at.text}, {stop.text}"), inside, end)
        self._begin(inside)
        self._set(name, at)
        self._inside(end, body)
        self._go(following)
        self._begin(following)
        more = self.made(I8, f"add nsw i64 {at.text}, {step.text}")
        self.lines.append(f"  store i64 {more.text}, {counter.pointer}")
        self._go(head, self.loop_mark(body))
        self._begin(end)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        """The test stands before the loop and at its end, which spares a jump each time round."""
        inside, end = self._label("loop"), self._label("end")
        is_endless = isinstance(test, ast.Constant) and test.value is True  # only a break ends it
        if is_endless:
            self._go(inside)
        else:
            self._branch(self.value(test), inside, end)
        self._begin(inside)
        self._inside(end, body)
        if is_endless:
            self._go(inside, self.loop_mark(body))
        elif not self._is_left:
            self._branch(self.value(test), inside, end)
        self._begin(end)

    def _inside(self, end: str, body: Sequence[ast.stmt]) -> None:
        self._ends.append(end)
        self._block(body)
        self._ends.pop()

    # -- blocks -------------------------------------------------------------------------------------------

    def _label(self, word: str) -> str:
        self._blocks += 1
        return f"{word}.{self._blocks}"

    def _begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._is_left = False

    def _go(self, label: str, mark: str = "") -> None:
        if not self._is_left:
            self.lines.append(f"  br label %{label}{mark}")
        self._is_left = True

    def _branch(self, test: Value, yes: str, no: str) -> None:
        if not test.kind.is_bool:
            raise Untranslatable(f"a condition of {test.kind.name}")
        self.lines.append(f"  br i1 {test.text}, label %{yes}, label %{no}")
        self._is_left = True

    # -- expressions --------------------------------------------------------------------------------------

    def value(self, node: ast.expr, wanted: Kind | None = None) -> Value:
        """What an expression gives, where `wanted` is what it is cast to at once."""
        match node:
            case ast.Constant(bool() as number):
                return literal(number, B1)
            case ast.Constant(int() as number):
                return literal(number, I8 if number < 1 << 63 else KINDS["u8"])
            case ast.Constant(float() as number):
                return literal(number, KINDS["f8"])
            case ast.Name("inf" | "nan" as number):
                return literal(float(number), KINDS["f8"])
            case ast.Name(name):
                return self._read(name)
            case ast.BinOp(a, operator, b) if type(operator) in _OPERATORS:
                return self.computed(_OPERATORS[type(operator)], self.value(a), self.value(b), wanted)
            case ast.Compare(a, [operator], [b]):
                return self.compared(_TESTS[type(operator)], self.value(a), self.value(b))
            case ast.UnaryOp(ast.USub(), operand):
                return self.negative(self.value(operand))
            case ast.UnaryOp(ast.Invert(), operand):
                return self.inverted(self.value(operand))
            case ast.UnaryOp(ast.Not(), operand):
                return self.inverted(self.converted(self.value(operand), B1))
            case ast.Subscript(ast.Name(name), index):
                return self.load(self.arrays[name], self.value(index))
            case ast.Call(ast.Name(name), [operand]) if name in KINDS:
                return self.converted(self.value(operand, KINDS[name]), KINDS[name])
            case ast.Call() if (found := self._called(node)) is not None:
                return found
            case _:
                raise Untranslatable(ast.unparse(node))

    def _called(self, node: ast.Call) -> Value | None:
        return self.call(_name_of(node.func), [self._operand(argument) for argument in node.args])

    def _operand(self, node: ast.expr) -> Operand:
        match node:
            case ast.Name(name) if name in self.arrays:
                return self.arrays[name]
            case _:
                return self.value(node)


def _name_of(function: ast.expr) -> str:
    match function:
        case ast.Name(name):
            return name
        case ast.Attribute(ast.Name(module), name):
            return f"{module}.{name}"
        case _:
            return ast.unparse(function)
