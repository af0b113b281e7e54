"""Delta encoding of similar texts: each refers to the lines that it shares with an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

# A text, in order: literal lines, or (index of an earlier text, its first line, number of lines).
Parts: TypeAlias = "tuple[str | tuple[int, int, int], ...]"
_FEWEST = 3  # lines worth a reference


def delta_encoded(texts: Sequence[str]) -> list[Parts]:
    """Encodes each text against the earlier one that makes it shortest, or literally."""
    found = list[Parts]()
    for number, text in enumerate(texts):
        whole: Parts = (text,)
        ways = [_by(earlier, texts[earlier], text) for earlier in range(number) if _name(texts[earlier]) == _name(text)]
        found.append(min([whole, *ways], key=encoded_size))
    return found


def encoded_size(parts: Parts) -> int:
    """The encoded length, in characters."""
    return sum(len(part) if isinstance(part, str) else len(str(part)) for part in parts)


def _name(text: str) -> str:
    """The entry point's name. Kernels of different names share too little to be compared."""
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
