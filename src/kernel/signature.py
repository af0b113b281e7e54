"""Checks a kernel's signature and resolves its annotations: `cx`, then plain annotated parameters. This happens when a
launch is made, before any target is involved, so that all refuse the same kernels."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any, cast

import attrs

from ..types import invocation, memory, scalars
from ..types.deferred import annotations_of, call_signature, text_of
from .source import source_of
from .span import KernelError, Span, expected

_PAUSING = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


# Stands for an annotation that does not resolve: its name is imported for type checkers only, or local elsewhere.
UNKNOWN = object()


@attrs.frozen
class Parameter:
    """A parameter after `cx`, with its annotation resolved."""

    name: str
    annotation: object
    span: Span


# Names that annotations may use even if the module imports them only for type checkers.
_KNOWN_NAMES: Mapping[str, object] = {
    name: thing
    for module in (scalars, memory, invocation)
    for name, thing in vars(module).items()
    if getattr(thing, "__module__", None) == module.__name__
}


@cache
def parameters_of(function: FunctionType) -> tuple[Parameter, ...]:
    """The parameters that a launch's arguments are for. Raises KernelError where a function cannot be a kernel."""
    return _Signature(function).parameters()


class _Signature:
    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.name = function.__name__
        self.spans: dict[str, Span] = {}
        try:
            source = source_of(function)
        except KernelError as error:  # an interactive function has no source; the target "python" can run it anyhow
            self.span = error.span
            return
        self.span = source.span(source.tree)
        self.spans = {node.arg: source.span(node) for node in ast.walk(source.tree.args) if isinstance(node, ast.arg)}
        for node in _returns(source.tree):
            if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                expected(source.span(node), "a kernel to return nothing, e.g. `out[cx.global_id] = x`")

    def at(self, name: str) -> Span:
        return self.spans.get(name, self.span)

    def parameters(self) -> tuple[Parameter, ...]:
        raw = annotations_of(self.function)
        first, *names = self.function.__code__.co_varnames[: self.function.__code__.co_argcount] or ("",)
        self._require_plain()
        if not first or not self._is_invocation(first, raw):
            expected(
                self.at(first), f"`cx: Invocation` as the first parameter of kernel {self.name!r}, "
                f"found {repr(first) if first else 'none'}, e.g. "
                f"`def {self.name}(cx: Invocation, data: Storage[U32]) -> None:`",
            )  # fmt: skip
        if self._meaning("return", raw.get("return")) not in (None, type(None), UNKNOWN):
            expected(self.span, f"kernel {self.name!r} to return nothing, e.g. `-> None`")
        return tuple(self._parameter(name, raw) for name in names)

    def _parameter(self, name: str, raw: Mapping[str, object]) -> Parameter:
        if name not in raw:
            example = f"`{name}: Storage[U32]`"
            expected(self.at(name), f"an annotation for {name!r} of kernel {self.name!r}, e.g. {example}")
        annotation = self._meaning(name, raw[name])
        if (cast(object, typing.get_origin(annotation)) or annotation) is memory.Registers:
            expected(
                self.at(name), f"the registers {name!r} in the body of kernel {self.name!r}, for a launch has none to "
                f"hand over, e.g. `{name} = Registers(U32, 8)`",
            )  # fmt: skip
        return Parameter(name, annotation, self.at(name))

    def _require_plain(self) -> None:
        """Raises KernelError for a generator, a coroutine, and variadic, keyword-only or defaulted parameters."""
        function = self.function
        if function.__code__.co_flags & _PAUSING:
            expected(self.span, f"kernel {self.name!r} to run to its end, e.g. without `yield` and `async`")
        parameters = call_signature(function).parameters.values()
        odd = [(p.name, "") for p in parameters if p.kind is not p.POSITIONAL_OR_KEYWORD]
        odd += [(p.name, " without a default") for p in parameters if p.default is not p.empty]
        for name, what in odd:
            kernel = f"kernel {self.name!r}{what}"
            expected(self.at(name), f"plain parameters of {kernel}, found {name!r}, e.g. `{name}: Storage[U32]`")

    def _is_invocation(self, name: str, raw: Mapping[str, object]) -> bool:
        if name not in raw:
            return name == "cx"  # without an annotation, the name decides
        meaning = self._meaning(name, raw[name])
        if meaning is UNKNOWN:
            return text_of(raw[name]).endswith("Invocation")
        return isinstance(meaning, type) and issubclass(meaning, invocation.Invocation)

    def _meaning(self, name: str, annotation: object) -> object:
        """What an annotation resolves to; UNKNOWN where it does not."""
        function = self.function
        around: dict[str, object] = {}
        for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # not assigned yet
                around[free] = cell.cell_contents
        around |= {str(variable): variable for variable in getattr(function, "__type_params__", ())}
        holder: Any = SimpleNamespace(__annotations__={name: annotation})
        try:
            return typing.get_type_hints(holder, {**_KNOWN_NAMES, **function.__globals__}, around)[name]
        except (NameError, AttributeError, TypeError, SyntaxError):
            return UNKNOWN


def _returns(tree: ast.AST) -> Iterator[ast.Return]:
    """The `return` statements of a function itself, without those of nested functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            yield from _returns(node)
