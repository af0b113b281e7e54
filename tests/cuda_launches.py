"""Launches on a stand-in for a card: the source of a kernel run by plain Python, a generator an invocation."""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from types import CodeType
from typing import Any

import numpy as np

from gpusort.kernel.source import parsed
from tests.cuda_stand_in import KINDS, WARP, Group, Invocation, Kind, Meeting, Memory, Pointer, Scalar


def _signature(source: str) -> Sequence[Kind | Pointer]:
    """What a kernel takes, as its source says."""
    words = source.partition('SIGNATURE = "void(')[2].partition(")")[0].split(", ")
    return [Pointer(KINDS[word[:-1]]) if word.endswith("*") else KINDS[word] for word in words if word]


def arguments_at(source: str, pointers: int) -> list[Scalar | Memory]:
    """A kernel's arguments, from memory that holds a pointer to each, as the driver reads them."""
    signature = _signature(source)
    places = (ctypes.c_uint64 * len(signature)).from_address(pointers)
    return [_read(kind, place) for kind, place in zip(signature, places, strict=True)]


def _read(kind: Kind | Pointer, place: int) -> Scalar | Memory:
    if isinstance(kind, Pointer):
        return Memory(ctypes.c_uint64.from_address(place).value, kind.kind)
    raw = (ctypes.c_uint8 * kind.dtype.itemsize).from_address(place)
    return np.frombuffer(bytes(raw), kind.dtype)[0]


class _Meetings(ast.NodeTransformer):
    """Makes a kernel a generator: it waits wherever it calls what others are waited for in."""

    NAMES = frozenset({
        "syncthreads", "ballot", "match", "match_low_bits", "match_and_rank", "shuffle", "shuffle_xor", "shuffle_up",
        "shuffle_down", "lanes_add", "lanes_exclusive_add",
    })  # fmt: skip

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return ast.YieldFrom(node) if name in self.NAMES else node


@lru_cache(maxsize=256)
def _code(source: str) -> CodeType:
    text = source[source.index("def kernel(") :] + "\n    if False:\n        yield\n"  # also where nobody meets
    return compile(ast.fix_missing_locations(_Meetings().visit(parsed(text))), "<kernel>", "exec")


@cache
def _used_in(code: CodeType) -> frozenset[str]:
    """The global names of a text and of its functions."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*map(_used_in, inner))


def run_kernel(source: str, groups: int, group_size: int, values: Sequence[Any], dynamic_bytes: int) -> None:
    """One launch, workgroup by workgroup."""
    code = _code(source)
    for group_id in range(groups):
        warps = [Meeting(min(WARP, group_size - first)) for first in range(0, group_size, WARP)]
        group = Group(group_size, ctypes.create_string_buffer(max(dynamic_bytes, 1)), Meeting(group_size), warps)
        with np.errstate(all="ignore"):
            _take_turns(
                [_started(code, Invocation(group, local, group_id, groups), values) for local in range(group_size)]
            )


def _started(code: CodeType, invocation: Invocation, values: Sequence[Any]) -> Iterator[None]:
    names = invocation.names(_used_in(code))
    exec(code, names)
    found: Iterator[None] = names["kernel"](*values)
    return found


def _take_turns(invocations: Sequence[Iterator[None]]) -> None:
    """Each as far as where it waits, again and again. Those that have ended are waited for in vain."""
    turns = 0
    while invocations:
        invocations = [one for one in invocations if next(one, _ENDED) is not _ENDED]
        turns += 1
        assert turns < _PATIENCE, "invocations wait for others that do not come"


_ENDED = object()
_PATIENCE = 100_000  # turns
