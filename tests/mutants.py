"""What `make mutate` changes in a file: operators and constants, and conditions, statements and returns."""

from __future__ import annotations

import ast
import enum
import itertools
from collections.abc import Collection, Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parent.parent
SWAPPED: dict[type[ast.operator | ast.cmpop], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
}  # fmt: skip
NEGATED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">="), ast.LtE: ("<=", ">"), ast.Gt: (">", "<="), ast.GtE: (">=", "<"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
CHOOSING = ("choice.py",)  # whose own constants are numbers for speed
_LEAVING = ast.Return | ast.Raise | ast.Continue | ast.Break


class Kind(enum.StrEnum):
    """What a mutant changes."""

    OPERATOR = "operator"  # another operator
    CONSTANT = "constant"  # one more
    CONNECTIVE = "connective"  # `and` for `or`
    COMPARISON = "comparison"  # one that is true where it was false
    NEGATION = "negation"  # a `not` that was there is gone, or one is added to a condition
    STATEMENT = "statement"  # an assignment, a call, an `if` that leaves, or a `raise` is gone
    RETURN = "return"  # a return before the end of a function is gone


@attrs.frozen
class Mutant:
    """One place in a file, from a line and column to another, in bytes, and what stands there instead, in as many
    lines."""

    kind: Kind
    path: Path
    line: int
    start: int
    last_line: int
    end: int
    text: str

    def source(self) -> str:
        lines = (ROOT / self.path).read_bytes().splitlines(keepends=True)
        before, after = lines[self.line - 1][: self.start], lines[self.last_line - 1][self.end :]
        added = "\n" * (self.last_line - self.line - self.text.count("\n"))
        lines[self.line - 1 : self.last_line] = [before + (self.text + added).encode() + after]
        return b"".join(lines).decode()

    def __str__(self) -> str:
        was = (ROOT / self.path).read_text().splitlines()[self.line - 1 : self.last_line]
        becomes = self.source().splitlines()[self.line - 1 : self.last_line]
        old, new = (" ".join(word for line in lines for word in line.split()) for lines in (was, becomes))
        return f"{self.path}:{self.line}: {old}  ->  {new}"


def mutants(path: Path, kinds: Collection[Kind] = tuple(Kind)) -> Iterator[Mutant]:
    """Those of these kinds in a file, but for what annotations and messages say."""
    tree = _without_tuning(path, ast.parse((ROOT / path).read_text()))
    maker = _Maker(path)
    for node in _all_but_defaults(tree):
        yield from (found for found in maker.of(node) if found.kind in kinds)


class _Maker:
    """Makes the mutants of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = (ROOT / path).read_bytes().splitlines()

    def of(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED:
                yield from self._between(Kind.OPERATOR, left, right, *SWAPPED[type(op)])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if type(op) in SWAPPED:
                    yield from self._between(Kind.OPERATOR, left, right, *SWAPPED[type(op)])
                if type(op) in NEGATED:
                    yield from self._between(Kind.COMPARISON, left, right, *NEGATED[type(op)])
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                yield self._instead(Kind.CONSTANT, node, str(value + 1))
            case ast.BoolOp(op=op, values=values):
                was, becomes = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                for left, right in itertools.pairwise(values):
                    yield from self._between(Kind.CONNECTIVE, left, right, was, becomes)
                for operand in values:
                    yield from self._with_not(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._instead(Kind.NEGATION, node, f"({self._text(operand)})")
            case ast.IfExp(test=test) | ast.While(test=test):
                yield from self._with_not(test)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from self._with_not(test)
            case ast.If(test=test, body=body, orelse=orelse):
                yield from self._with_not(test)
                if isinstance(body[-1], _LEAVING) and not orelse:
                    yield self._instead(Kind.STATEMENT, node, "pass")
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self._instead(Kind.STATEMENT, node, "pass")
            case ast.FunctionDef(body=body):
                yield from self._leaving(body, is_whole=True)
            case _:
                pass

    def _leaving(self, body: list[ast.stmt], *, is_whole: bool) -> Iterator[Mutant]:
        """Of a block: what raises, and returns but for that at the end of a function, where they are not all that an
        `if` does: such an `if` is a mutant itself."""
        for at, statement in enumerate(body):
            match statement:
                case ast.Raise():
                    yield self._instead(Kind.STATEMENT, statement, "pass")
                case ast.Return() if not (is_whole and at == len(body) - 1):
                    yield self._instead(Kind.RETURN, statement, "pass")
                case ast.If(body=[ast.Return() | ast.Raise()], orelse=[]) | ast.FunctionDef() | ast.ClassDef():
                    pass
                case _:
                    for block in _blocks(statement):
                        yield from self._leaving(block, is_whole=False)

    def _with_not(self, condition: ast.expr) -> Iterator[Mutant]:
        """`not` before a condition, where no other mutant is the same."""
        match condition:
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Compare(ops=[_]) | ast.Name(id="TYPE_CHECKING"):
                pass
            case _:
                yield self._instead(Kind.NEGATION, condition, f"(not ({self._text(condition)}))")

    def _between(self, kind: Kind, left: ast.expr, right: ast.expr, was: str, becomes: str) -> Iterator[Mutant]:
        """Of an operator, by its operands: it stands between them, and maybe parentheses."""
        number, first = left.end_lineno or 0, left.end_col_offset or 0
        while number <= right.lineno:
            last = right.col_offset if number == right.lineno else None
            at = self.lines[number - 1].find(was.encode(), first, last)
            if at >= 0:
                yield Mutant(kind, self.path, number, at, number, at + len(was), becomes)
                return
            number, first = number + 1, 0

    def _instead(self, kind: Kind, node: ast.expr | ast.stmt, text: str) -> Mutant:
        last_line, end = node.end_lineno or 0, node.end_col_offset or 0
        return Mutant(kind, self.path, node.lineno, node.col_offset, last_line, end, text)

    def _text(self, node: ast.expr) -> str:
        lines = self.lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"\n".join(lines).decode()


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    match statement:
        case ast.If(body=body, orelse=other) | ast.For(body=body, orelse=other) | ast.While(body=body, orelse=other):
            yield from (body, other)
        case ast.With(body=body):
            yield body
        case ast.Try(body=body, handlers=handlers, orelse=other, finalbody=last):
            yield from (body, other, last, *(handler.body for handler in handlers))
        case ast.Match(cases=cases):
            yield from (case.body for case in cases)
        case _:
            pass


def _without_tuning(path: Path, tree: ast.Module) -> ast.Module:
    """A file without the constants of the module, if these are numbers for speed."""
    if path.name in CHOOSING:
        tree.body = [node for node in tree.body if not isinstance(node, ast.Assign)]
    return tree


def _all_but_defaults(node: ast.AST) -> Iterator[ast.AST]:
    """All below, but for annotations and aliases of types, the text of messages, and the defaults of fields, which are
    numbers for speed."""
    yield node
    left_out = [getattr(node, name, None) for name in ("annotation", "returns")]
    if isinstance(node, ast.ClassDef):
        left_out += [field.value for field in node.body if isinstance(field, ast.AnnAssign)]
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Call(func=ast.Attribute(value=ast.Name("attrs"), attr="field")) | ast.JoinedStr():
                pass
            case ast.AnnAssign(annotation=ast.Name("TypeAlias")):
                pass
            case ast.AnnAssign(value=value) if value is not None and value in left_out:
                pass
            case _ if child not in left_out:
                yield from _all_but_defaults(child)
            case _:
                pass
