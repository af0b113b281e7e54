"""Whether a kernel's invocations ever wait for each other, as its source tells.

Whoever waits does so through the `cx` that a kernel is handed. Where every use of it is an id, or hands
it to a helper of which the same holds, nobody waits and the invocations may run one after another. What
is not understood counts as waiting: that is right too, only slower.
"""

from __future__ import annotations

import ast
from functools import cache
from types import FunctionType, MethodType

from ...kernel.source import Source, source_of
from ...kernel.span import KernelError

_IDS = frozenset(
    {"local_id", "group_id", "group_size", "num_groups", "global_id", "lane", "subgroup_id", "subgroup_size"}
)


@cache
def may_wait(function: FunctionType, position: int = 0) -> bool:
    """Whether the function waits through its parameter at this position, the kernel's `cx`."""
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
    """How many uses of the parameter are right below this node, and do not wait."""
    if isinstance(node, ast.Attribute):
        return int(_is(node.value, name) and node.attr in _IDS)
    if isinstance(node, ast.Call):
        places = [i for i, argument in enumerate(node.args) if _is(argument, name)]
        helper = _meaning(node.func, source) if places else None
        if isinstance(helper, MethodType):  # a classmethod, e.g. `ThreadId.of(cx)`: the class comes first
            bound: object = helper.__func__
            helper, places = bound, [place + 1 for place in places]
        if isinstance(helper, FunctionType) and helper is not function:
            return sum(not may_wait(helper, place) for place in places)
    return 0


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _meaning(node: ast.expr, source: Source) -> object:
    """What a name or a dotted name stands for outside the function; None where it is not known."""
    if isinstance(node, ast.Name):
        try:
            return source.outer(node.id)
        except (KeyError, ValueError):
            return None
    if isinstance(node, ast.Attribute):
        return getattr(_meaning(node.value, source), node.attr, None)
    return None
