"""A kernel's text as LLVM's: the small language that `writer.py` and `lanes.py` write, and nothing beyond it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

import attrs

from .calls import Calls
from .numbers import B1, I8, KINDS, Kind, Untranslatable, Value, literal
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


def signature_of(text: str) -> tuple[Taken, ...]:
    """What the kernel takes, in order."""
    found = _SIGNATURE.search(text)
    if found is None:
        raise Untranslatable("no signature")
    words = [word.strip() for word in found[1].split(",")]
    return tuple(Taken(KINDS[word.removesuffix("[::1]")], word.endswith("[::1]")) for word in words)


def llvm_text(text: str, name: str, *, is_opaque: bool, compresses: bool) -> str:
    """LLVM's text of one function. It returns 0, or 1 where there is no memory left."""
    (function,) = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return Translation(name, function, signature_of(text), is_opaque=is_opaque, compresses=compresses).whole()


class Translation(Calls):
    """Of one function."""

    def __init__(
        self, name: str, function: ast.FunctionDef, taken: Sequence[Taken], *, is_opaque: bool, compresses: bool
    ) -> None:
        super().__init__(is_opaque=is_opaque, compresses=compresses)
        self._name, self._function, self._taken = name, function, taken
        self._times = Counter(
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        self._ends: list[str] = []  # where the loops around continue once they are left
        self._blocks = 0
        self._is_left = False  # nothing more can happen in this block

    def whole(self) -> str:
        heads: list[str] = []
        for argument, taken in zip(self._function.args.args, self._taken, strict=True):
            name, kind = argument.arg, taken.kind
            if taken.is_array:
                heads += [f"{self.pointer_type(kind)} %{name}", f"i64 %{name}.length"]
                self.arrays[name] = Array(kind, f"%{name}", Value(I8, f"%{name}.length"))
            elif kind.is_bool:
                heads.append(f"i8 %{name}")
                self._set(name, self.converted(Value(KINDS["u1"], f"%{name}"), B1))
            else:
                heads.append(f"{kind.llvm} %{name}")
                self._set(name, Value(kind, f"%{name}"))
        self._block(self._function.body)
        return self.assembled(self._name, heads)

    # -- statements ---------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets, value):
                self._assign(targets, value)
            case ast.AugAssign(ast.Name(name), operator, value):
                old = self._read(name)
                self._set(name, self.computed(_OPERATORS[type(operator)], old, self.value(value), old.kind))
            case ast.Expr(ast.Call() as call):
                self.effect(call)
            case ast.If(test, then, otherwise):
                self._if(test, then, otherwise)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds), body):
                self._for(name, bounds, body)
            case ast.While(ast.Constant(True), body):
                self._while(body)
            case ast.Break():
                self._go(self._ends[-1])
            case ast.Pass():
                pass
            case _:
                raise Untranslatable(ast.unparse(statement))

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        match targets:
            case [ast.Name(name)] if isinstance(value, ast.Call) and self.is_array(value):
                self.arrays[name] = self.new_array(value)
                return
            case _:
                found = self.value(value)
        for target in targets:
            match target:
                case ast.Name(name):
                    self._set(name, found)
                case ast.Subscript(ast.Name(name), index):
                    array = self.arrays[name]
                    self.store(array, self.value(index), self.converted(found, array.kind))
                case _:
                    raise Untranslatable(ast.unparse(target))

    def _set(self, name: str, value: Value) -> None:
        """A name that is bound once to a number is that number."""
        if value.number is not None and self._times[name] == 1 and name not in self.slots:
            self.numbers[name] = value
            return
        slot = self.slot(name, value.kind)
        if value.kind != slot.kind and value.number is None:
            raise Untranslatable(f"{name}: {value.kind.name} where it was {slot.kind.name}")
        self.lines.append(f"  store {slot.kind.llvm} {self.converted(value, slot.kind).text}, {slot.pointer}")

    def _read(self, name: str) -> Value:
        if name in self.numbers:
            return self.numbers[name]
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
        self._again(head, body)
        self._begin(end)

    def _while(self, body: Sequence[ast.stmt]) -> None:
        """Only a break ends it."""
        head, end = self._label("head"), self._label("end")
        self._go(head)
        self._begin(head)
        self._inside(end, body)
        self._again(head, body)
        self._begin(end)

    def _inside(self, end: str, body: Sequence[ast.stmt]) -> None:
        self._ends.append(end)
        self._block(body)
        self._ends.pop()

    def _again(self, head: str, body: Sequence[ast.stmt]) -> None:
        """To a loop's next round. LLVM 22 makes vectors of a division behind a branch that do it only where their first
        lane takes the branch, if all lanes divide the same: what the others get is any bits, and so are addresses that
        are made of it. One by one divisions are done in any case."""
        if self._divides_behind_a_branch(body) and not self._is_left:
            scalar = self.fact('!{!"llvm.loop.vectorize.enable", i1 false}')
            loop = self.fact(f"distinct !{{%, !{scalar}}}")
            self.lines.append(f"  br label %{head}, !llvm.loop !{loop}")
            self._is_left = True
        self._go(head)

    def _divides_behind_a_branch(self, body: Sequence[ast.stmt]) -> bool:
        branches = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.If)]
        inside = (node for branch in branches for part in (*branch.body, *branch.orelse) for node in ast.walk(part))
        return any(self._may_divide_by_zero(node) for node in inside)

    def _may_divide_by_zero(self, node: ast.AST) -> bool:
        """As far as LLVM sees."""
        match node:
            case ast.Call(ast.Name("divide" | "remainder")):
                return True
            case ast.BinOp(_, ast.FloorDiv() | ast.Mod(), ast.Name(name)):
                return name not in self.numbers
            case ast.BinOp(_, ast.FloorDiv() | ast.Mod(), other):
                return not isinstance(other, ast.Constant)
            case _:
                return False

    # -- blocks -------------------------------------------------------------------------------------------

    def _label(self, word: str) -> str:
        self._blocks += 1
        return f"{word}.{self._blocks}"

    def _begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._is_left = False

    def _go(self, label: str) -> None:
        if not self._is_left:
            self.lines.append(f"  br label %{label}")
        self._is_left = True

    def _branch(self, condition: Value, yes: str, no: str) -> None:
        test = self.converted(condition, B1)
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
            case ast.BinOp(a, operator, b):
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
            case ast.Call():
                return self.call(node)
            case _:
                raise Untranslatable(ast.unparse(node))
