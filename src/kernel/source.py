"""The Python source of a function, parsed once, and the names it can see."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from types import CellType, FunctionType
from typing import Any, TypeAlias

import attrs

from .outside import Outside
from .span import KernelError, Span


@attrs.frozen
class Source:
    """A function's syntax tree, with what turns its line numbers into the file's."""

    tree: ast.FunctionDef = attrs.field(eq=False)
    file: str
    first_line: int
    stores: dict[str, int] = attrs.field(eq=False)  # how many places assign each name; a parameter counts as one
    globals: dict[str, Any] = attrs.field(eq=False)  # the module's names, as they are now
    enclosing: dict[str, CellType] = attrs.field(eq=False)  # names of the function around it
    _spans: dict[ast.AST, Span] = attrs.field(factory=dict[ast.AST, Span], init=False, eq=False, repr=False)

    def span(self, node: ast.AST) -> Span:
        """Of a node of the tree: each is read many times over, for other arguments."""
        found = self._spans.get(node)
        if found is None:
            line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
            found = self._spans[node] = Span(self.file, self.first_line + line - 1, column)
        return found

    def outer(self, name: str, outside: Outside | None = None) -> object:
        """What a name means outside the function: a closure's cell, a global, a builtin. KeyError where nothing.

        `outside` notes that it was taken.
        """
        if name in self.enclosing:
            if outside is not None:
                outside.cell(self.enclosing[name])
            return self.enclosing[name].cell_contents
        if outside is not None:
            outside.name(self.globals, name)
        if name in self.globals:
            return self.globals[name]
        return vars(builtins)[name]


_Defaults: TypeAlias = "tuple[tuple[object, ...] | None, dict[str, object] | None]"
_signatures: dict[FunctionType, tuple[_Defaults, inspect.Signature]] = {}


def signature_of(function: FunctionType) -> inspect.Signature:
    """What a function takes: asked at every call that is read, and long in the making. Its defaults may change."""
    defaults: _Defaults = function.__defaults__, function.__kwdefaults__
    known = _signatures.get(function)
    if known is None or known[0][0] is not defaults[0] or known[0][1] is not defaults[1]:
        known = _signatures[function] = defaults, inspect.signature(function)
    return known[1]


@cache
def source_of(function: FunctionType) -> Source:
    """Reads a function's source from its file."""
    file = inspect.getsourcefile(function) or function.__code__.co_filename
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        span = Span(file, function.__code__.co_firstlineno)
        raise KernelError(
            span,
            f"expected the source of {function.__name__!r} in a file, e.g. a module; an interactive function has none",
        ) from None
    text = "".join(lines)
    if lines[0][:1].isspace():  # a method; its text may not be dedented, for a docstring's lines may stand anywhere
        text, first = "if True:\n" + text, first - 1
    try:
        tree = ast.parse(text).body[0]
    except SyntaxError:
        tree = None
    if isinstance(tree, ast.If):
        tree = tree.body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise KernelError(Span(file, first), "expected a plain function, e.g. `def helper(x: U32) -> U32: …`")
    enclosing = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    return Source(tree, file, first, _count_stores(tree), function.__globals__, enclosing)


def _count_stores(tree: ast.FunctionDef) -> dict[str, int]:
    parameters = (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)
    return Counter([*(argument.arg for argument in parameters), *_stored(tree)])


def _stored(tree: ast.AST) -> Iterator[str]:
    """The names that are assigned somewhere inside, as often as they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@lru_cache(maxsize=4096)
def escapes(statement: ast.stmt) -> bool:
    """Whether a `return` stands in the statement, or a `continue` of a loop around it."""
    if isinstance(statement, ast.Return | ast.Continue):
        return True
    if isinstance(statement, ast.For | ast.While):
        return any(isinstance(node, ast.Return) for node in ast.walk(statement))
    return any(escapes(inner) for inner in _blocks(statement))


def jumps_of(loop: ast.For | ast.While) -> list[ast.stmt]:
    """Each `break` and `continue` of this loop, and not of one inside it."""
    return [jump for statement in loop.body for jump in _jumps_in(statement)]


def _jumps_in(statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, ast.Break | ast.Continue):
        return [statement]
    if isinstance(statement, ast.For | ast.While):
        return []
    return [jump for inner in _blocks(statement) for jump in _jumps_in(inner)]


def _blocks(statement: ast.stmt) -> list[ast.stmt]:
    """The statements in a branch."""
    if isinstance(statement, ast.If):
        return [*statement.body, *statement.orelse]
    if isinstance(statement, ast.Match):
        return [inner for case in statement.cases for inner in case.body]
    return []


@lru_cache(maxsize=4096)
def stored_in(loop: ast.For | ast.While) -> Mapping[str, bool]:
    """The names that a loop sets; True for those that it or a loop inside it counts with."""
    names = dict.fromkeys(_stored(loop), False)
    for inner in ast.walk(loop):
        if isinstance(inner, ast.For):
            names |= {node.id: True for node in ast.walk(inner.target) if isinstance(node, ast.Name)}
    return names
