"""Compiled loops over host arrays, written in the language that the compiler of the CPU's kernels takes.

A loop is compiled when it is first needed, in some hundredths of a second, or found compiled on disk. It runs without
the GIL, and is one call into C: no signal handler runs in the middle of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

import attrs
import numpy as np

from ..addresses import address_of
from ..base import HostArray
from ..render import head_of


def place_of(array: HostArray) -> tuple[int, int]:
    """Where packed elements are, and how many: as our compiler's kernels take an array."""
    return address_of(array), array.size


PIECE = 1 << 16  # elements that are worth a call of Python's


@attrs.frozen(eq=False)
class Kernel:
    """A function in this process's memory."""

    function: Callable[..., int]
    address: int  # of its machine code
    was_kept: bool  # by an earlier process
    owner: object  # holds the code in memory

    def __call__(self, *arguments: int | float) -> None:
        """Takes numbers, and of each array where it lies and how many elements it has."""
        try:
            failed = self.function(*arguments)
        except ctypes.ArgumentError as error:  # which hides what converting a number raised, near the limit
            _, _, message = str(error).partition("RecursionError: ")
            raise RecursionError(message) if message else error from None
        if failed:
            raise MemoryError("no memory for a kernel's arrays")

    def on(self, *arguments: HostArray | int) -> Callable[..., None]:
        """The kernel with these as its first arguments, for calls that differ in the numbers behind: to look where an
        array lies takes as long as some thousand elements."""
        numbers = numbers_for(*arguments)

        def call(*rest: int, arrays: object = arguments) -> None:  # which holds the arrays
            self(*numbers, *rest)

        return call


def numbers_for(*arguments: HostArray | int) -> list[int]:
    """What a kernel takes for numbers and packed arrays."""
    found: list[int] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            found += place_of(argument)
        else:
            found.append(argument)
    return found


def compiled(name: str, takes: str, body: str) -> Kernel:
    """The loop with such a body. `takes` names what it is called with: "words: u4[], first: i8"."""
    from .compiler.loading import load_kernel  # loads LLVM

    arguments = [argument.split(": ") for argument in takes.split(", ")]
    typed = [(name, type.replace("[]", "[::1]")) for name, type in arguments]
    return load_kernel(name, head_of(name, typed) + body.strip("\n") + "\n", is_serial=True)


def inside(head: str, body: Iterable[str]) -> Iterator[str]:
    """Lines of a loop or a branch."""
    yield head
    for line in body:
        yield f"    {line}"


def text_of(lines: Iterable[str]) -> str:
    return "\n".join(inside("", lines)).lstrip("\n")


def numbers_of_plan(names: Sequence[str], unsigned: Container[str]) -> str:
    """Lines that name the numbers of a plan. Counts are unsigned, so that they are divided as such."""
    return "\n".join(
        f"    {name} = {f'u8(plan[{place}])' if name in unsigned else f'plan[{place}]'}"
        for place, name in enumerate(names)
    )
