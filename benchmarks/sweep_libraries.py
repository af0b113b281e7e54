"""The array libraries that a sweep goes over: how each makes an array, and what its user would call instead of ours."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle, islice
from typing import Any

import attrs
import numpy as np

from benchmarks import card
from benchmarks.arrays import Array
from benchmarks.timing import Work

Peer = Callable[[Any, Any, int | None], object]  # of the library's module, an array of it, and an axis


@attrs.frozen
class Function:
    """A function of ours by its name, and who does the same: by the same name, unless it is told here."""

    name: str
    numpy: Peer | None = None
    cupy: Peer | None = None
    torch: Peer | None = None
    data: Callable[[Array], Array] = lambda x: x  # of numbers from a normal distribution, or of any bits
    says: str = ""  # what is special about these data
    keywords: dict[str, object] = attrs.field(factory=dict[str, object])  # ours
    ours: Peer | None = None  # of our module, where more is to be said than an axis and these
    results: int = 1  # arrays that it gives
    told: int | None = None  # so many of them have one right answer; all, unless it is said
    is_of_rows: bool = False  # whether it takes arrays of one dimension alone
    exact: bool = True  # whether floats have one right answer
    kinds: str = "biuf"
    halves: bool = False  # whether float16 and other dtypes of fewer users are looked at, too

    @property
    def label(self) -> str:
        return f"{self.name} {self.says}".strip()

    def peer_of(self, library: str) -> Peer:
        found: Peer | None = {"numpy": self.numpy, "cupy": self.cupy or self.numpy, "torch": self.torch}[library]
        if found is not None:
            return found
        return in_torch(self.name) if library == "torch" else by_name(self.name)


def by_name(name: str) -> Peer:
    return lambda module, x, axis: getattr(module, name)(x, axis=axis)


def in_torch(name: str) -> Peer:
    def call(torch: Any, x: Any, axis: int | None) -> object:
        function = getattr(torch, name)
        return function(x) if axis is None else function(x, dim=axis)

    return call


class Library(ABC):
    """One kind of arrays, in one kind of memory."""

    name: str

    @abstractmethod
    def array(self, x: Array) -> Any:
        """A packed array of the host's, as one of the library's."""

    @abstractmethod
    def turned(self, x: Any) -> Any:
        """A view with the axes in reverse order."""

    @abstractmethod
    def to_host(self, result: Any) -> Array: ...

    @abstractmethod
    def peers(self, function: Function, x: Any, axis: int | None) -> Iterator[tuple[str, Work]]:
        """Calls that do the same with the same memory."""

    def clock(self, works: Sequence[Work], calls: int) -> float:
        """Seconds a call, of these by turns, the host's part included; who works on a device is waited for once, at the
        end."""
        self.wait()
        start = time.perf_counter()
        for work in islice(cycle(works), calls):
            work()
        self.wait()
        return (time.perf_counter() - start) / calls

    def wait(self) -> None:
        """Until a device has done all: here none."""
        return


class NumPy(Library):
    name = "numpy"

    def array(self, x: Array) -> Any:
        return x

    def turned(self, x: Any) -> Any:
        return x.T

    def to_host(self, result: Any) -> Array:
        return np.asarray(result)

    def peers(self, function: Function, x: Any, axis: int | None) -> Iterator[tuple[str, Work]]:
        call = function.peer_of("numpy")
        yield "numpy", lambda: call(np, x, axis)


class TorchOnHost(Library):
    name = "torch"

    def __init__(self) -> None:
        self._torch: Any = import_module("torch")

    def array(self, x: Array) -> Any:
        return self._torch.from_numpy(x)

    def turned(self, x: Any) -> Any:
        return x.permute(*reversed(range(x.ndim)))

    def to_host(self, result: Any) -> Array:
        return np.asarray(result)

    def peers(self, function: Function, x: Any, axis: int | None) -> Iterator[tuple[str, Work]]:
        call = function.peer_of("torch")
        yield "torch", lambda: call(self._torch, x, axis)
        yield from NumPy().peers(function, x.numpy(), axis)


class _OnDevice(Library):
    """The work of both libraries goes to their current streams, which are one here: the default one."""

    def __init__(self) -> None:
        self._cupy: Any = import_module("cupy")
        self._torch: Any = import_module("torch") if find_spec("torch") is not None else None

    def wait(self) -> None:
        self._cupy.cuda.runtime.deviceSynchronize()

    def peers(self, function: Function, x: Any, axis: int | None) -> Iterator[tuple[str, Work]]:
        in_cupy, call = self._cupy.asarray(x), function.peer_of("cupy")
        yield "cupy", lambda: call(self._cupy, in_cupy, axis)
        if self._torch is not None:
            tensor, other = self._torch.as_tensor(x, device="cuda"), function.peer_of("torch")
            yield "torch", lambda: other(self._torch, tensor, axis)


class CuPy(_OnDevice):
    name = "cupy"

    def array(self, x: Array) -> Any:
        return self._cupy.asarray(x)

    def turned(self, x: Any) -> Any:
        return x.T

    def to_host(self, result: Any) -> Array:
        found: Array = self._cupy.asnumpy(result)
        return found


class TorchOnDevice(_OnDevice):
    name = "torch-cuda"

    def array(self, x: Array) -> Any:
        return self._torch.from_numpy(x).cuda()

    def turned(self, x: Any) -> Any:
        return x.permute(*reversed(range(x.ndim)))

    def to_host(self, result: Any) -> Array:
        return np.asarray(result.cpu()) if hasattr(result, "cpu") else np.asarray(result)


def libraries() -> list[Library]:
    """Those found here."""
    found: list[Library] = [NumPy()]
    has_torch = find_spec("torch") is not None
    if has_torch:
        found.append(TorchOnHost())
    if card.is_here():
        found.append(CuPy())
        if has_torch and import_module("torch").cuda.is_available():
            found.append(TorchOnDevice())
    return found
