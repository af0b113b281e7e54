"""Texts that are much alike, each told by the lines that it shares with an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

# Of a text, in order: lines of its own, or (an earlier text's number, its first line, how many).
Parts: TypeAlias = "tuple[str | tuple[int, int, int], ...]"
_FEWEST = 3  # lines that are worth it


def shortened(texts: Sequence[str]) -> list[Parts]:
    """Each text by the earlier one that leaves it the least of its own, if any does."""
    found = list[Parts]()
    for number, text in enumerate(texts):
        whole: Parts = (text,)
        ways = [_by(earlier, texts[earlier], text) for earlier in range(number) if _name(texts[earlier]) == _name(text)]
        found.append(min([whole, *ways], key=own_size))
    return found


def own_size(parts: Parts) -> int:
    """Characters of its own, and as many for what it shares as stand in the module."""
    return sum(len(part) if isinstance(part, str) else len(str(part)) for part in parts)


def _name(text: str) -> str:
    """That of the entry point: other kernels share too little to look for it."""
    return text[text.index("\nfn ") :].partition("(")[0]


def _by(number: int, earlier: str, text: str) -> Parts:
    return tuple(_parts(number, earlier.split("\n"), text.split("\n")))


def _parts(number: int, earlier: Sequence[str], lines: Sequence[str]) -> Iterator[str | tuple[int, int, int]]:
    at = 0
    for block in SequenceMatcher(None, earlier, lines, autojunk=False).get_matching_blocks():
        is_end = block.size == 0
        if block.size < _FEWEST and not is_end:
            continue
        if block.b > at:
            yield "\n".join(lines[at : block.b])
        if not is_end:
            yield number, block.a, block.size
        at = block.b + block.size
