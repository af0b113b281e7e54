"""What a sweep goes over: functions, dtypes, shapes, layouts, axes. A new operation joins by a line in FUNCTIONS."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from zlib import crc32

import attrs
import numpy as np

from benchmarks.arrays import Array
from benchmarks.sweep_libraries import Function, Library, by_name, in_torch
from gpusort.types.dtypes import number_for
from gpusort.types.monoids import Sum


def _near_one(x: Array) -> Array:
    """So that products neither vanish nor overflow."""
    return (1 + x * 1e-4).astype(x.dtype) if x.dtype.kind == "f" else x


def _sorted_in_torch(torch: Any, x: Any, axis: int | None) -> object:
    return torch.sort(x.flatten() if axis is None else x, dim=-1 if axis is None else axis).values


def _placed_in_torch(torch: Any, x: Any, axis: int | None) -> object:
    return torch.argsort(x.flatten() if axis is None else x, dim=-1 if axis is None else axis, stable=True)


def _added_in_torch(torch: Any, x: Any, axis: int | None) -> object:
    return torch.cumsum(x.flatten() if axis is None else x, dim=0 if axis is None else axis)


def _least_in_torch(torch: Any, x: Any, axis: int | None) -> object:
    return torch.amin(x) if axis is None else torch.amin(x, dim=axis)


def _most_in_torch(torch: Any, x: Any, axis: int | None) -> object:
    return torch.amax(x) if axis is None else torch.amax(x, dim=axis)


def _argsort(module: Any, x: Any, axis: int | None) -> object:
    return module.argsort(x, axis=axis, kind="stable")


def _sorted_down(module: Any, x: Any, axis: int | None) -> object:
    return module.flip(module.sort(x, axis=axis), axis=-1 if axis is None else axis)


def _sorted_down_in_torch(torch: Any, x: Any, axis: int | None) -> object:
    dim = -1 if axis is None else axis
    return torch.sort(x.flatten() if axis is None else x, dim=dim, descending=True).values


def _by_key(module: Any, x: Any, axis: int | None) -> object:
    order = module.argsort(x, kind="stable")
    return x[order], x[order]


def _by_key_in_torch(torch: Any, x: Any, axis: int | None) -> object:
    keys, order = torch.sort(x, stable=True)
    return keys, x[order]


def _two_runs(x: Array) -> Array:
    return np.concatenate([np.sort(half) for half in np.array_split(x.reshape(-1), 2)]).reshape(x.shape)


def _halves(x: Any) -> tuple[Any, Any]:
    middle = (len(x) + 1) // 2
    return x[:middle], x[middle:]


def _merged(module: Any, x: Any, axis: int | None) -> object:
    """By a sort that finds the runs, where there is such."""
    return module.sort(module.concatenate(_halves(x)), **({"kind": "stable"} if module is np else {}))


def _length(x: Any, axis: int | None) -> int:
    shape: tuple[int, ...] = tuple(x.shape)
    return math.prod(shape) if axis is None else shape[axis]


def _top(k: int) -> Function:
    """The k largest, or all there are. The last of a partition, and these in order, is what NumPy has for it."""

    def ours(gpusort: Any, x: Any, axis: int | None) -> object:
        return gpusort.top_k(x, min(k, _length(x, axis)), axis=axis)

    def parted(module: Any, x: Any, axis: int | None) -> object:
        x, along = (x.reshape(-1), -1) if axis is None else (x, axis)
        length = _length(x, along)
        last = [slice(None)] * x.ndim
        last[along] = slice(max(0, length - k), None)
        places = module.argpartition(x, max(0, length - k), axis=along)[tuple(last)]
        values = module.take_along_axis(x, places, axis=along)
        order = module.flip(module.argsort(values, axis=along), axis=along)
        return module.take_along_axis(values, order, axis=along), module.take_along_axis(places, order, axis=along)

    def in_torch(torch: Any, x: Any, axis: int | None) -> object:
        found = torch.topk(
            x.flatten() if axis is None else x, min(k, _length(x, axis)), dim=-1 if axis is None else axis
        )
        return found.values, found.indices

    return Function("top_k", says=f"of {k}", ours=ours, numpy=parted, torch=in_torch, results=2, told=1)


def _sum_of(x: Any) -> Any:
    """The monoid, made for the call, as a user makes it, who knows which number he has."""
    return Sum(_number_of(x.dtype))


@cache
def _number_of(dtype: Any) -> Any:
    return number_for(dtype if hasattr(dtype, "kind") else str(dtype).rpartition(".")[2])


def _reduced(gpusort: Any, x: Any, axis: int | None) -> object:
    return gpusort.reduce(x, _sum_of(x), axis=axis)


def _scanned(gpusort: Any, x: Any, axis: int | None) -> object:
    return gpusort.scan(x.reshape(-1) if axis is None else x, _sum_of(x), axis=axis or 0)


_SORT = Function("sort", torch=_sorted_in_torch, kinds="biufM", halves=True)
_ARGSORT = Function("argsort", numpy=_argsort, torch=_placed_in_torch, kinds="biufM", halves=True)
_TOP_10 = _top(10)
_MIN, _MAX = Function("min", torch=_least_in_torch), Function("max", torch=_most_in_torch)
_CUMSUM = Function("cumsum", exact=False, torch=_added_in_torch)


def _of_special_values() -> Iterator[Function]:
    """Of rows whose elements are not just any. (Of NaNs, NumPy's partition has the top where we have the end.)"""
    sorts = _SORT, _ARGSORT, _TOP_10
    special: dict[str, tuple[Callable[[Array], Array], tuple[Function, ...]]] = {
        "of equals": (np.ones_like, (*sorts, _CUMSUM)),
        "of both zeros": (lambda x: np.copysign(np.zeros_like(x), x), (*sorts, _MIN, _MAX)),
        "of NaNs": (lambda x: np.full_like(x, np.nan), (_SORT, _ARGSORT, _MIN, _MAX, _CUMSUM)),
        "of two values": (lambda x: (x > np.median(x)).astype(x.dtype), sorts),
        "of ascending": (np.sort, sorts),
        "of descending": (lambda x: np.sort(x)[::-1].copy(), sorts),
    }
    for says, (data, functions) in special.items():
        kinds = "f" if says in ("of both zeros", "of NaNs") else "biuf"
        for of in functions:
            label = f"{of.says} {says}".strip()
            yield attrs.evolve(of, says=label, data=data, kinds=kinds, is_of_rows=True, halves=of in sorts)


FUNCTIONS = (
    _SORT,
    _ARGSORT,
    Function("sort", says="descending", keywords={"descending": True}, numpy=_sorted_down, torch=_sorted_down_in_torch),
    Function(
        "sort_by_key",
        ours=lambda gpusort, x, _: gpusort.sort_by_key(x, x),
        numpy=_by_key,
        torch=_by_key_in_torch,
        results=2,
        is_of_rows=True,
    ),
    Function(
        "merge",
        ours=lambda gpusort, x, _: gpusort.merge(*_halves(x)),
        numpy=_merged,
        torch=lambda torch, x, _: torch.sort(torch.cat(_halves(x))).values,
        data=_two_runs,
        is_of_rows=True,
    ),
    _TOP_10,
    _top(64),
    Function("sum", exact=False),
    Function("prod", exact=False, data=_near_one),
    _MIN,
    _MAX,
    Function("argmin"),
    Function("argmax"),
    Function("any"),
    Function("any", says="of zeros", data=np.zeros_like),
    Function("all"),
    Function("all", says="of ones", data=np.ones_like),
    _CUMSUM,
    Function("reduce", says="by Sum", ours=_reduced, numpy=by_name("sum"), torch=in_torch("sum"), exact=False),
    Function("scan", says="by Sum", ours=_scanned, numpy=by_name("cumsum"), torch=_added_in_torch, exact=False),
    *_of_special_values(),
)
DTYPES = ("f4", "f8", "i4", "i8", "u1")
HALF = "f2"  # of the functions that say so
NUMPYS = ("u2", "M8[s]")  # the same, of NumPy's arrays alone
LAYOUTS = ("C", "Fortran", "strided", "cropped")
SHAPES: tuple[tuple[int, ...], ...] = (
    (10,), (1000,), (5000,), (100_000,), (1 << 20,), (1 << 22,),
    (10, 10), (3, 300), (300, 3), (100, 100), (10_000, 3), (16, 1000), (1000, 1000), (2000, 1500), (100_000, 8),
    (8, 100_000), (1_000_000, 3), (3, 1_000_000), (400_000, 24),
    (4, 5, 6), (64, 64, 64), (100, 3, 1000), (200, 100, 150),
)  # fmt: skip


@attrs.frozen
class Case:
    """One call that is compared."""

    library: Library
    function: Function
    dtype: str
    shape: tuple[int, ...]
    layout: str
    axis: int | None

    @property
    def name(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"{self.library.name} {self.function.label} {self.dtype} {shape} {self.layout} axis {self.axis}"

    def is_drawn(self, one_of: int) -> bool:
        """Whether it is one of the share that is looked at: always the same ones."""
        return crc32(self.name.encode()) % one_of == 0

    def host(self, number: int = 0) -> Array:
        """The array, packed: one of several of its kind."""
        return self.function.data(_numbers(self.dtype, self.shape, number))

    def array(self, host: Array) -> Any:
        """The same of the library's, in the layout."""
        library = self.library
        match self.layout:
            case "Fortran":
                return library.turned(library.array(np.ascontiguousarray(host.T)))
            case "strided":
                return library.array(np.repeat(host, 2, axis=-1))[..., ::2]
            case "cropped":
                return library.array(np.concatenate([host, host[..., :3]], axis=-1))[..., : host.shape[-1]]
            case _:
                return library.array(host)


def _numbers(dtype: str, shape: tuple[int, ...], number: int) -> Array:
    rng = np.random.default_rng([*shape, number] if number else shape)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    size = np.dtype(dtype).itemsize
    drawn = rng.integers(0, 256, int(np.prod(shape)) * size, np.uint8)
    return drawn.view(dtype).reshape(shape)


def cases(
    library: Library, chosen: Callable[[Case], bool], largest: int, one_of: dict[str, int] | int = 1
) -> Iterator[Case]:
    """All of at most so many elements that are chosen; of each layout one of so many."""
    for shape in SHAPES:
        if np.prod(shape) > largest:
            continue
        for dtype in (*DTYPES, HALF, *(NUMPYS if library.name == "numpy" else ())):
            for function in FUNCTIONS:
                if dtype not in DTYPES and not function.halves:
                    continue
                for layout in LAYOUTS if len(shape) > 1 else ("C", "strided"):
                    axes = (None, *range(len(shape))) if not function.is_of_rows else (0,) if len(shape) == 1 else ()
                    for axis in axes:
                        case = Case(library, function, dtype, shape, layout, axis)
                        share = one_of if isinstance(one_of, int) else one_of[layout]
                        if np.dtype(dtype).kind in function.kinds and chosen(case) and case.is_drawn(share):
                            yield case


def drawn_cases(
    library: Library, chosen: Callable[[Case], bool], largest: int, count: int, seed: int
) -> Iterator[Case]:
    """Cases between those of the table: functions, dtypes, shapes, layouts and axes are drawn at random."""
    rng = np.random.default_rng(seed)
    names = sorted({function.name for function in FUNCTIONS})
    for _ in range(count):
        name = rng.choice(names)
        variants = [function for function in FUNCTIONS if function.name == name]
        function = variants[rng.integers(len(variants))]
        dtypes = [*DTYPES, *((HALF, "i2") if function.halves else ())]
        dtype = str(rng.choice([name for name in dtypes if np.dtype(name).kind in function.kinds]))
        shape = _drawn_shape(rng, largest, 1 if function.is_of_rows else 3)
        layout = str(rng.choice(LAYOUTS if len(shape) > 1 else ("C", "strided")))
        axis = int(rng.integers(len(shape))) if function.is_of_rows or rng.integers(4) else None
        case = Case(library, function, dtype, shape, layout, axis)
        if chosen(case):
            yield case


def _drawn_shape(rng: np.random.Generator, largest: int, axes: int) -> tuple[int, ...]:
    """As many axes at most; any number of elements is as likely as twice as many."""
    parts = rng.dirichlet(np.ones(rng.integers(1, axes + 1))) * rng.uniform(3, math.log2(largest))
    return tuple(max(1, int(2**part)) for part in parts)
