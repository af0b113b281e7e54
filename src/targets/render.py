"""What the text-making targets share: lines with indentation, names that do not collide, expressions by table."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from ..kernel import ir
from ..types.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Generator

# How a target writes an operation: "{0} + {1}", or a function of the node and its rendered operands.
Row: TypeAlias = str | Callable[[ir.Apply, Sequence[str]], str]


class Lines:
    """Source text under construction."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def add(self, text: str = "") -> None:
        self._lines.append("    " * self._depth + text if text else "")

    @contextmanager
    def indented(self) -> Generator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


class Names:
    """Gives every object a name of its own: the one it wants, or that with a number behind it."""

    def __init__(self, reserved: frozenset[str]) -> None:
        self._taken = set(reserved)
        self._names: dict[int, str] = {}
        self._kept: list[object] = []  # keeps the ids above alive

    def of(self, thing: object, wanted: str) -> str:
        known = self._names.get(id(thing))
        if known is not None:
            return known
        if not wanted.isidentifier() or keyword.iskeyword(wanted):
            raise ValueError(f"{wanted!r} is no name to generate source with")
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        self._names[id(thing)] = name
        self._kept.append(thing)
        return name


def render_operation(target: str, table: Mapping[str, Row], node: ir.Apply, operands: Sequence[str]) -> str:
    """One operation by the target's table; an absent row is a thing the target cannot do."""
    row = table.get(node.op.name)
    if row is None:
        raise CapabilityError(f"{node.span}: target {target!r} has no operation {node.op.name!r}")
    return row.format(*operands) if isinstance(row, str) else row(node, operands)
