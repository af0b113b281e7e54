"""Code generation helpers of all targets that emit text: indented lines, heads, unique names, operation tables."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from ..types.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..kernel import ir  # which the host's own loops do without, that have their text by Lines

# How a target emits an operation: a template such as "{0} + {1}", or a function of the node and its emitted operands.
Emit: TypeAlias = "Callable[[ir.Apply, Sequence[str]], str]"
Row: TypeAlias = "str | Emit"


class Lines:
    """Accumulates indented source lines."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def add(self, text: str = "") -> None:
        self._lines.append("    " * self._depth + text if text else "")

    @contextmanager
    def nested(self, head: str, end: str = "") -> Generator[None]:
        """Encloses what is indented below a head; `end` closes it, in a language with braces. In Python, where a head
        ends in a colon, nothing is `pass`."""
        self.add(head)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before and head.endswith(":"):
            self.add("pass")
        self._depth -= 1
        if end:
            self.add(end)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def head_of(about: str, arguments: Sequence[tuple[str, str]]) -> str:
    """All of a text for llvm/ above its function's body; the arguments are names and types."""
    names, types = (", ".join(part) for part in zip(*arguments, strict=True)) if arguments else ("", "")
    return f'''"""{about}. Generated; do not edit."""

SIGNATURE = "void({types})"


def kernel({names}):
'''


@lru_cache(maxsize=4096)
def plain_name(wanted: str, not_first: str = "") -> str:
    """A similar name that LLVM's text, PTX, C and WGSL have too, where Python's own may be of any language's letters.
    It begins with none of those in `not_first`. A keyword may be wanted: what `__or__` gives is called `or`."""
    plain = re.sub(r"\W", "_", wanted, flags=re.ASCII).lstrip(not_first)
    return plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"v_{plain}"


class Names:
    """Assigns each object, by identity, a unique name: the wanted one, with a number appended if it is taken."""

    def __init__(self, reserved: frozenset[str], not_first: str = "") -> None:
        self._taken, self._not_first = set(reserved), not_first
        self._names: dict[int, tuple[str, object]] = {}  # with the object itself, so that its id lasts
        self._numbers: dict[str, int] = {}  # the last ones appended: a kernel may have thousands of one name

    def of(self, thing: object, wanted: str) -> str:
        known = self._names.get(id(thing))
        if known is not None:
            return known[0]
        wanted = plain_name(wanted, self._not_first)
        count = self._numbers.get(wanted, 1)
        name = wanted if count == 1 else f"{wanted}_{count}"
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._numbers[wanted] = count
        self._taken.add(name)
        self._names[id(thing)] = name, thing
        return name


def render_operation(target: str, table: Mapping[str, Row], node: ir.Apply, operands: Sequence[str]) -> str:
    """Emits an operation by the target's table. Raises CapabilityError if it has no row for it."""
    row = table.get(node.op.name)
    if row is None:
        raise CapabilityError(f"{node.span}: target {target!r} has no operation {node.op.name!r}")
    return row.format(*operands) if isinstance(row, str) else row(node, operands)
