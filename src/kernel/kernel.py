"""`@kernel`: marks a function as one that runs once for every invocation of a launch."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Concatenate, Generic, ParamSpec, cast

from ..types.invocation import Invocation
from .launch import Grid, Launch

P = ParamSpec("P")


class Kernel(Generic[P]):
    """A kernel. Calling it runs its body for one invocation, as plain Python; `launch` says what a target shall run.

    P is the kernel's signature behind `cx`, so that a launch with the wrong arguments is a type error.
    """

    def __init__(self, function: Callable[Concatenate[Invocation, P], None]) -> None:
        self.function = cast("FunctionType", function)
        self._call = function
        update_wrapper(self, function)

    def __call__(self, cx: Invocation, *args: P.args, **kwargs: P.kwargs) -> None:
        self._call(cx, *args, **kwargs)

    def launch(self, grid: Grid, *args: P.args, **kwargs: P.kwargs) -> Launch:
        """One launch of this kernel. Arguments are Buffers, Workgroup memory, structs, keys and policies."""
        if kwargs:
            raise TypeError(f"{self.name}: arguments of a launch are positional")
        wanted = self.function.__code__.co_argcount - 1
        if len(args) != wanted:
            raise TypeError(f"{self.name}: expected {wanted} arguments behind the grid, found {len(args)}")
        return Launch(self, grid, tuple(args))

    @property
    def name(self) -> str:
        return self.function.__name__

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def kernel(function: Callable[Concatenate[Invocation, P], None]) -> Kernel[P]:
    """Makes a kernel of a function whose first parameter is the invocation."""
    return Kernel(function)
