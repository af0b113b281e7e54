"""Elements as words that compare as integers and back, in compiled loops.

The words of plain elements are the elements with some bits turned over, less a number; those of floats are as
`FloatKey` has them. The constants of both come as an array of words. What is done to all words of a block is done where
they lie side by side, in vectors.
"""

from __future__ import annotations

from collections.abc import Iterator


def lines_of_bits(is_float: bool) -> Iterator[str]:
    """The constants by their names."""
    names = ("turned", "less", "magnitude", "infinity", "shift") if is_float else ("turned", "less")
    for place, name in enumerate(names):
        yield f"{name} = bits[{place}]"


def turned(word: str, element: str, is_float: bool) -> Iterator[str]:
    """An element in its place becomes a word. Signs of floats are turned over first, if they are to descend, but not of
    NaNs; then negatives get the order of numbers."""
    if not is_float:
        yield f"{element} = {word}({word}({element} ^ turned) - less)"
        return
    yield f"found = {element}"
    yield f"found = select({word}(found & magnitude) <= infinity, {word}(found ^ turned), found)"
    yield f"{element} = {word}({word}(found ^ {word}({word}(found >> shift) & magnitude)) - less)"


def ranked(word: str, element: str, is_float: bool) -> Iterator[str]:
    """The same, and elements that compare equal become one word: zeros of both signs, and all NaNs."""
    if not is_float:
        yield from turned(word, element, is_float)
        return
    yield f"found = {word}({element} & magnitude)"
    yield f"negative = {word}({word}({element} ^ turned) >> shift)"
    yield f"{element} = select(found <= infinity, {word}({word}(found ^ negative) - negative), magnitude)"


def turned_back(word: str, element: str, is_float: bool) -> Iterator[str]:
    if not is_float:
        yield f"{element} = {word}({word}({element} + less) ^ turned)"
        return
    yield f"found = {word}({element} + less)"
    yield f"found = {word}(found ^ {word}({word}(found >> shift) & magnitude))"
    yield f"{element} = select({word}(found & magnitude) <= infinity, {word}(found ^ turned), found)"
