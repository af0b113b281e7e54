"""Static analysis: whether a kernel can synchronise (barriers, subgroup operations), and so needs threads.
Synchronisation goes through the kernel's `cx`. If each use of it reads an id, or passes it to a helper that does no
more, invocations can run one after another. Whatever is not understood counts as synchronising (conservative)."""

from __future__ import annotations

import ast
from functools import cache
from types import FunctionType, MethodType

from ...kernel.ir import Builtin
from ...kernel.source import Source, source_of
from ...kernel.span import KernelError

_IDS = frozenset({"global_id", *(builtin.value for builtin in Builtin)})


@cache
def may_wait(function: FunctionType, position: int = 0) -> bool:
    """Whether a function may synchronise through its parameter at this position, the `cx`. Memoised."""
    try:
        source = source_of(function)
    except KernelError:
        return True
    parameters = [*source.tree.args.posonlyargs, *source.tree.args.args]
    if position >= len(parameters):
        return True
    name = parameters[position].arg
    harmless = sum(_harmless_uses(node, name, source, function) for node in ast.walk(source.tree))
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(source.tree))
    return harmless < uses


def _harmless_uses(node: ast.AST, name: str, source: Source, function: FunctionType) -> int:
    """The number of uses of the parameter directly below this node that do not synchronise."""
    if isinstance(node, ast.Attribute):
        return int(_is(node.value, name) and node.attr in _IDS)
    if isinstance(node, ast.Call):
        positions = [i for i, argument in enumerate(node.args) if _is(argument, name)]
        helper = _resolved(node.func, source) if positions else None
        if isinstance(helper, MethodType):  # a classmethod, e.g. `ThreadId.of(cx)`: its first parameter is the class
            bound: object = helper.__func__
            helper, positions = bound, [position + 1 for position in positions]
        if isinstance(helper, FunctionType) and helper is not function:
            return sum(not may_wait(helper, position) for position in positions)
    return 0


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _resolved(node: ast.expr, source: Source) -> object:
    """The global object that a name or dotted name refers to; None if unknown."""
    if isinstance(node, ast.Name):
        try:
            return source.outer(node.id)
        except (KeyError, ValueError):
            return None
    if isinstance(node, ast.Attribute):
        return getattr(_resolved(node.value, source), node.attr, None)
    return None
