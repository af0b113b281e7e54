"""Whether a function's file still has its source: it may have been edited since the function was imported from it.

Python runs what was imported, but a kernel is compiled from what its file says now. So where the file has been written
since this package was imported, the source is compiled to Python's own code, which is compared with the function's.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import NoReturn, cast

from ..forks import IMPORTED_AT
from .span import KernelError, Span

_MANGLED = re.compile(r"^_[^\W_]\w*?(?=__)")  # what a class's name adds to its private ones


def require_unedited(function: FunctionType, file: str, tree: ast.FunctionDef) -> None:
    """Raises KernelError if the file has been edited, and its function is not this one any more."""
    if is_newer(file) and not _is_source(function, file, tree):
        refuse_edited(function, file)


def refuse_edited(function: FunctionType, file: str) -> NoReturn:
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


def _is_source(function: FunctionType, file: str, tree: ast.FunctionDef) -> bool:
    code = function.__code__
    around = ast.parse(f"def around({', '.join(code.co_freevars)}): pass")
    cast(ast.FunctionDef, around.body[0]).body = [tree]
    made = compile(around, file, "exec", flags=code.co_flags & annotations.compiler_flag, dont_inherit=True)
    return any(_meaning(found) == _meaning(code) for found in _codes(made) if found.co_name == code.co_name)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _meaning(code: CodeType) -> tuple[object, ...]:
    """What a function does, wherever its lines are."""
    constants = [repr(constant) for constant in code.co_consts if not isinstance(constant, CodeType)]
    names = (*code.co_names, "", *code.co_varnames, "", *code.co_freevars)
    return code.co_code, [_MANGLED.sub("", name) for name in names], constants
