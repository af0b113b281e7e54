"""The source of a function: its syntax tree, parsed once, and the names in scope. Queries about jumps and assignments
in a tree. The check that the file still has the code that was imported."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any, NoReturn, cast

import attrs

from ..forks import IMPORTED_AT, OwnLock
from ..types.deferred import call_signature, load
from .captures import Captures, Made, contents_of, is_made_of, made_of
from .span import KernelError, Span


@attrs.frozen(eq=False)
class Source:
    """A function's syntax tree, with its file."""

    tree: ast.FunctionDef
    file: str
    parameters: tuple[str, ...]
    stores: dict[str, int]  # by name: the assignments to it, a parameter being one
    globals: dict[str, Any]  # the module's namespace itself, not a copy
    enclosing: dict[str, CellType]  # variables of enclosing functions
    _spans: dict[ast.AST, Span] = attrs.field(factory=dict[ast.AST, Span], init=False, repr=False)

    def span(self, node: ast.AST) -> Span:
        """A node's position. Memoised, as a helper's tree is read again for each call of it."""
        found = self._spans.get(node)
        if found is None:
            place = cast(Any, node)
            found = self._spans[node] = Span(self.file, place.lineno, place.col_offset)
        return found

    def outer(self, name: str, captures: Captures) -> object:
        """Resolves a free variable: a closure's cell, a global or a builtin; raises KeyError for none. `captures`
        records it."""
        if name in self.enclosing:
            captures.cell(self.enclosing[name])
            return contents_of(self.enclosing[name])
        load(self.globals, name)
        captures.name(self.globals, name)
        if name in self.globals:
            return self.globals[name]
        return vars(builtins)[name]


_signatures: dict[FunctionType, tuple[Made, inspect.Signature]] = {}


def signature_of(function: FunctionType) -> inspect.Signature:
    """A function's signature, memoised, as `inspect` is slow; made again if the function was replaced in place."""
    known = _signatures.get(function)
    if known is None or not is_made_of(function, *known[0]):
        known = _signatures[function] = made_of(function), call_signature(function)
    return known[1]


_parsing = OwnLock()


def parsed(text: str) -> ast.Module:
    """`ast.parse` under a lock: Python 3.11 keeps one recursion counter for the parsers of all threads, and raises a
    SystemError if two run at once."""
    with _parsing.held:
        return ast.parse(text)


def source_of(function: FunctionType) -> Source:
    """Parses a function's source. Raises KernelError where its file has none, or it is no plain function."""
    return _source_of(function, function.__code__)


@cache
def _source_of(function: FunctionType, code: CodeType) -> Source:
    file = inspect.getsourcefile(function) or code.co_filename
    try:
        lines, _ = inspect.findsource(function)
    except (OSError, TypeError):
        if is_newer(file):  # edited, and shorter than it was
            refuse_edited(function, file)
        raise KernelError(Span(file, code.co_firstlineno), _no_source(function, file)) from None
    tree = _functions_in("".join(lines)).get((code.co_name, code.co_firstlineno))
    if not isinstance(tree, ast.FunctionDef):
        if is_newer(file) and code.co_name != "<lambda>":
            refuse_edited(function, file)
        line = code.co_firstlineno if tree is None else tree.lineno
        raise KernelError(Span(file, line), "expected a plain function, e.g. `def helper(x: U32) -> U32: …`")
    if is_newer(file) and not _is_in(file, code):
        refuse_edited(function, file)
    enclosing = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    parameters = tuple([one.arg for one in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)])
    stores = Counter([*parameters, *_stored(tree)])
    return Source(tree, file, parameters, stores, function.__globals__, enclosing)


@lru_cache(maxsize=32)
def _functions_in(text: str) -> Mapping[tuple[str, int], ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a file by what their code has too: the name, and the first line, which may be a decorator's."""
    try:
        nodes: list[ast.AST] = [parsed(text)]
    except SyntaxError:  # in the midst of an edit
        return {}
    for node in nodes:  # the list grows as it is walked
        nodes += [inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, ast.expr)]
    for node in reversed(nodes):  # a class behind those inside it
        if isinstance(node, ast.ClassDef) and (owner := node.name.lstrip("_")):
            _mangle_names(node, owner)
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {(one.name, (*one.decorator_list, one)[0].lineno): one for one in functions}


def _mangle_names(tree: ast.AST, owner: str) -> None:
    """Mangles private names, as Python does within a class: `x.__y` is `x._Owner__y`."""
    for node in ast.walk(tree):
        for field in ("attr", "id", "arg"):  # of an attribute, a name, and a parameter or an argument by name
            name = getattr(node, field, None)
            if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
                setattr(node, field, f"_{owner}{name}")


def _no_source(function: FunctionType, file: str) -> str:
    expected = f"expected the source of {function.__name__!r} in a file, e.g. a module"
    if not file.endswith((".py", ".pyc")):
        return f"{expected}; an interactive function has none"
    package = function.__module__.partition(".")[0]
    return (
        f"{expected}: kernels are compiled from it, and this file is not there. A program of compiled modules needs "
        f"its .py files too, with PyInstaller by module_collection_mode={{{package!r}: 'pyz+py'}}"
    )


def _stored(tree: ast.AST) -> Iterator[str]:
    """The names of all assignments inside, with repetitions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@lru_cache(maxsize=4096)
def escapes(statement: ast.stmt) -> bool:
    """Whether a statement may end its block early: it has a `return`, or a `continue` of an enclosing loop."""
    if isinstance(statement, ast.Return | ast.Continue):
        return True
    if isinstance(statement, ast.For | ast.While):
        return any(isinstance(node, ast.Return) for node in ast.walk(statement))
    return any(any(map(escapes, side)) for side in _sides(statement))


def paths_through(statement: ast.stmt) -> int:
    """How many paths through a statement reach the next one: one for each side of a branch that does not end in a jump,
    1 for other statements, 0 for a jump itself."""
    if isinstance(statement, ast.If | ast.Match):
        return sum(all(map(paths_through, side)) for side in _sides(statement))
    return not isinstance(statement, ast.Return | ast.Continue | ast.Break)


def jumps(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body has a `break` or a `continue`, not counting those of nested loops."""
    return any(isinstance(one, ast.Break | ast.Continue) or any(map(jumps, _sides(one))) for one in body)


def _sides(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The branches of an `if` or a `match`."""
    if isinstance(statement, ast.If):
        return [statement.body, statement.orelse]
    return [case.body for case in statement.cases] if isinstance(statement, ast.Match) else []


@lru_cache(maxsize=4096)
def stored_in(loop: ast.For | ast.While) -> Mapping[str, bool]:
    """The names that a loop assigns; True for loop variables, its own and those of nested loops."""
    names = dict.fromkeys(_stored(loop), False)
    for inner in ast.walk(loop):
        if isinstance(inner, ast.For):
            names |= {node.id: True for node in ast.walk(inner.target) if isinstance(node, ast.Name)}
    return names


def refuse_edited(function: FunctionType, file: str) -> NoReturn:
    """Raises KernelError: Python runs the code that was imported, and a kernel would be compiled from what the file has
    now."""
    raise KernelError(
        Span(file, function.__code__.co_firstlineno),
        f"expected {function.__name__!r} as it was imported, but its file has been edited since: start the program "
        "anew, or reload the module",
    )


def is_newer(file: str) -> bool:
    """Whether a file has been written since this package was imported."""
    try:
        return os.stat(file).st_mtime > IMPORTED_AT
    except (OSError, ValueError):
        return False


def _is_in(file: str, code: CodeType) -> bool:
    """Whether a file, compiled now, has this code object's bytecode at the same line."""
    found = (one for one in _compiled(file, "".join(linecache.getlines(file))) if one.co_name == code.co_name)
    return any(one.co_firstlineno == code.co_firstlineno and _meaning(one) == _meaning(code) for one in found)


@lru_cache(maxsize=4)
def _compiled(file: str, text: str) -> tuple[CodeType, ...]:
    """All code objects of a file. The whole file is compiled, as the bytecode of a call depends on the file's
    imports."""
    try:
        return tuple(_codes(compile(text, file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):  # in the midst of an edit
        return ()


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _meaning(code: CodeType) -> tuple[object, ...]:
    """The parts of a code object that decide what it does, without positions."""
    constants = [repr(constant) for constant in code.co_consts if not isinstance(constant, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants
