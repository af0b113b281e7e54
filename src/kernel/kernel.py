"""`@kernel`: a function that runs once for every invocation of a launch (SIMT), and its launches."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Concatenate, Generic, ParamSpec, cast

from ..types.errors import UnsupportedTypeError
from ..types.invocation import Invocation
from .arguments import check_arguments
from .launch import Grid, Launch
from .signature import parameters_of

P = ParamSpec("P")


class Kernel(Generic[P]):
    """A kernel. A call runs its body for one invocation, as plain Python; `launch` describes a run on a target. P is
    the kernel's signature after `cx`, so that a launch with the wrong arguments is a type error."""

    def __init__(self, function: Callable[Concatenate[Invocation, P], None]) -> None:
        self.function = _plain_function(function)
        self._call = function
        update_wrapper(self, function)

    def __call__(self, cx: Invocation, *args: P.args, **kwargs: P.kwargs) -> None:
        self._call(cx, *args, **kwargs)

    def launch(self, grid: Grid, *args: P.args, **kwargs: P.kwargs) -> Launch:
        """Describes a launch; nothing runs. Arguments are Buffers, Workgroup memory, structs, keys and policies. Raises
        KernelError for an argument that does not match its annotation."""
        parameters = parameters_of(self.function)
        if kwargs:
            raise TypeError(f"{self.name}: arguments of a launch are positional")
        if len(args) != len(parameters):
            raise TypeError(f"{self.name}: expected {len(parameters)} arguments behind the grid, found {len(args)}")
        if not isinstance(cast(object, grid), Grid):
            example = "`Grid(groups=4, group_size=64)`"
            raise UnsupportedTypeError(f"{self.name}: expected a grid first, e.g. {example}, found {grid!r}")
        check_arguments(self.function, parameters, args)
        return Launch(self, grid, args)

    @property
    def name(self) -> str:
        return self.function.__name__

    def __reduce__(self) -> str:
        """Pickled and copied by name, as functions are."""
        return self.function.__qualname__

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def _plain_function(function: object) -> FunctionType:
    """Raises UnsupportedTypeError for objects without source of their own, such as functions wrapped by a decorator."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        raise UnsupportedTypeError(f"kernel: expected a plain function right below @kernel, found {function!r}")
    return function


def kernel(function: Callable[Concatenate[Invocation, P], None]) -> Kernel[P]:
    """Makes a kernel of a function whose first parameter is the invocation."""
    return Kernel(function)
