"""Operations: a computation on arrays, independent of the array library and of the target.

It says what comes out of arrays of given shapes and dtypes, as NumPy has it, and raises every error of arguments there;
and what kernels are to be run on rows: the elements, along an axis or several, that one result depends on.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, cast

import attrs
import numpy as np

from ..algos.sizes import LARGEST_U32
from ..machine import TargetInfo
from ..types.deferred import call_signature
from ..types.dtypes import key_for, native
from ..types.elements import class_of, dtype_of, mismatch, scalar_of
from ..types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError
from ..types.keys import SortableKey
from ..types.layout import Type
from ..types.specs import DType, HostArray, Spec

if TYPE_CHECKING:
    from ..kernel.launch import Schedule

INDEX: DType = np.dtype(np.int64)


@attrs.frozen
class Output:
    """The description of a new array."""

    shape: tuple[int, ...]
    dtype: DType
    axes: tuple[int, ...]  # those of a row
    is_like: bool = False  # like the first input: of its order of axes, too
    is_scalar: bool = False  # one value may be given back as a scalar


@attrs.frozen
class Part:
    """The part of an array that a buffer of a schedule is bound to: `each` elements of every row."""

    array: int  # its number: inputs first, then outputs, then what is between works
    each: int
    first: int | None = None  # which element is the first of them, where each run takes the same: of one row, or of all


@attrs.frozen
class Copy:
    """A copy from one array to another, before the launches of a work."""

    to: int
    source: int
    first: int | None = None  # which element of the other, of one dimension, becomes the first; None: it is as large


def _made_once(schedule: Callable[[int], Schedule]) -> Callable[[int], Schedule]:
    """One schedule for as many rows: targets keep what they prepare by its identity."""
    return cache(schedule)


@attrs.frozen
class Work:
    """A schedule, and the rows that it runs on in batches."""

    rows: int
    together: int  # at most so many in a run
    schedule: Callable[[int], Schedule] = attrs.field(converter=_made_once)  # for so many rows
    parts: Mapping[str, Part]  # by buffer
    copies: tuple[Copy, ...] = ()  # before anything else
    as_it_lies: bool = False  # the inputs are handed over with their strides; there is one run

    @property
    def batches(self) -> Iterator[tuple[int, int]]:
        """The runs: of each the first row, and how many."""
        for first in range(0, self.rows, max(1, self.together)):
            yield first, min(self.together, self.rows - first)


@attrs.frozen
class Works:
    """Works in the order in which they run, and the intermediate arrays between them."""

    each: tuple[Work, ...]
    between: tuple[Output, ...] = ()  # packed, numbered after the outputs

    def __iter__(self) -> Iterator[Work]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def within(self, numbers: Sequence[int], first: int) -> tuple[Work, ...]:
        """The same works as part of another operation's, in which inputs and outputs have these numbers, and
        intermediate arrays are numbered from `first` on."""
        numbers = (*numbers, *range(first, first + len(self.between)))
        return tuple(
            attrs.evolve(
                work,
                parts={name: attrs.evolve(part, array=numbers[part.array]) for name, part in work.parts.items()},
                copies=tuple(attrs.evolve(c, to=numbers[c.to], source=numbers[c.source]) for c in work.copies),
            )
            for work in self.each
        )


class Operation(ABC):
    """The base of all operations. They compare and hash by value, as they are part of a plan's key."""

    names: ClassVar[tuple[str, ...]] = ("x",)  # of the inputs, as error messages have them
    like: ClassVar[tuple[int, ...]] = ()  # of results, whose name they have in a table: by default that of their place
    title: ClassVar[str] = ""  # the public function's name, if it is not that of the class
    reads_words: ClassVar[bool] = False  # whole ones of short elements, where memory begins with one
    commutes: bool = True  # whether elements of a row may be combined in any order

    @property
    def called(self) -> str:
        """The public function's name, for messages."""
        return self.title or type(self).__name__.lower()

    def simplest(self, *given: Spec) -> Operation:
        """An equivalent operation in its most specific form, e.g. a reduction by `Sum` as NumPy's sum."""
        return self

    def is_the_hosts(self, given: Spec) -> bool:
        """Whether the result depends on NumPy's order of additions, so that the host's fast path runs whatever the
        target: sums of times, which may overflow to NaT on the way."""
        return False

    def permuted(self, order: tuple[int, ...]) -> Operation | None:
        """The operation on its input transposed by `order`; None if it is not along a single axis."""
        axis: int | tuple[int, ...] | None = getattr(self, "axis", None)
        if axis is None or isinstance(axis, tuple):
            return None
        changed: Operation = attrs.evolve(cast(Any, self), axis=order.index(checked_axis(axis, len(order))))
        return changed

    def on_rows(self) -> Operation | None:
        """The operation on an array of two dimensions, along the last; None if it is not along axes."""
        return attrs.evolve(cast(Any, self), axis=1) if hasattr(self, "axis") else None

    def axes(self, given: Spec) -> tuple[int, ...]:
        """The axes of an input that make a row: all of them, unless the operation is along some."""
        return tuple(range(len(given.shape)))

    def rows(self, given: Spec) -> tuple[int, int]:
        """The number of rows of an input, and their length."""
        axes = self.axes(given)
        count = math.prod(size for axis, size in enumerate(given.shape) if axis not in axes)
        return count, math.prod(given.shape[axis] for axis in axes)

    @abstractmethod
    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        """Shapes and dtypes of the outputs. All argument errors are raised here."""

    @abstractmethod
    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        """The schedules to run."""

    def works_in_place(self, given: tuple[Spec, ...], info: TargetInfo) -> Works | None:
        """The works if the output is the input's memory; None if it cannot be."""
        return None

    def answer(self, *given: Spec) -> tuple[HostArray, ...] | None:
        """The outputs, if they follow from shapes and dtypes: where none has an element. Else None."""
        outputs = self.outputs(*given)
        if any(0 not in output.shape for output in outputs):
            return None
        return tuple(np.empty(output.shape, output.dtype) for output in outputs)


class AlongAxis(Operation):
    """An operation along one axis, or on the flattened array."""

    axis: int | None
    takes_scalars: bool = False  # an array of no dimensions for a row of one, as NumPy's function does

    def axes(self, given: Spec) -> tuple[int, ...]:
        ndim = len(given.shape)
        if self.axis is None:
            return tuple(range(ndim))
        axis = checked_axis(self.axis, 1 if self.takes_scalars and not ndim else ndim)
        return (axis,) if ndim else ()

    def output(self, given: Spec, dtype: DType, length: int | None = None, *, is_like: bool = False) -> Output:
        """A new array of the input's shape, or flattened, with its rows or others of a length."""
        axes = self.axes(given)
        if self.axis is None or not given.shape:
            return Output((given.size if length is None else length,), dtype, (0,))
        shape = given.shape if length is None else tuple(length if n in axes else s for n, s in enumerate(given.shape))
        return Output(shape, dtype, axes, is_like)


def checked_axis(axis: int, ndim: int) -> int:
    """The axis as a non-negative int. Raises numpy.exceptions.AxisError if it is out of range."""
    if not hasattr(type(axis), "__index__"):  # of a function of one's own, which has not asked
        raise UnsupportedTypeError(f"axis: expected an int, found {axis!r}")
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim, "axis")
    return axis % ndim


def checked_axes(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The axes to reduce over, as non-negative ints in ascending order; None means all."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple):
        return () if ndim == 0 and axis in (0, -1) else (checked_axis(axis, ndim),)  # NumPy lets the former pass
    found = sorted(checked_axis(number, ndim) for number in axis)
    if len(set(found)) < len(found):
        raise InvalidArgumentError(f"axis: expected each axis once, found {axis}")
    return tuple(found)


def single(
    schedule: Schedule, parts: Mapping[str, Part], copies: tuple[Copy, ...] = (), *, as_it_lies: bool = False
) -> Work:
    """A work of a single run."""
    return Work(1, 1, lambda _: schedule, parts, copies, as_it_lies)


def copying(*copies: Copy) -> Work:
    """A work that copies, and nothing else."""
    from ..kernel.launch import Schedule

    return single(Schedule((), ()), {}, copies)


def rows_together(length: int, nbytes: int, groups: int, info: TargetInfo, name: str = "x") -> int:
    """Rows per launch, by a row's elements, bytes in the largest buffer and workgroups; CapabilityError for none."""
    asked = (
        (length, LARGEST_U32, "elements"),
        (nbytes, info.limits.storage_bytes, "bytes of one buffer"),
        (groups, info.limits.groups, "workgroups"),
    )
    for found, most, what in asked:
        if found > most:
            raise CapabilityError(
                f"{name}: a row of {length} elements takes {found} {what}, more than target {info.name!r} has: {most}"
            )
    return min(most // max(1, found) for found, most, _ in asked)


def require_readable(name: str, given: Spec, element: Any, reader: str) -> None:
    """Raises UnsupportedTypeError unless the dtype is the element's, or that of unsigned words of its bits."""
    found, wanted = native(given.dtype), dtype_within(reader, "element", element)
    if found != wanted and not (wanted.kind == "u" and found.itemsize == wanted.itemsize and found.kind in "biufmM"):
        others = f", or another of {wanted.itemsize} bytes" if wanted.kind == "u" else ""
        if found.itemsize == wanted.itemsize and found.kind in "cSUV" and not found.names:  # complex numbers, texts
            viewed = "np.dtype([...], align=True)" if wanted.names else repr(wanted.name)
            others = f" ({name}.view({viewed}) has its bytes)"
        others = f" ({name}.astype(np.dtype([...], align=True)) has it)" if _is_packed(found, wanted) else others
        raise UnsupportedTypeError(f"{name}: expected dtype {wanted}{others}, as {reader} takes, found {given.dtype}")


def _is_packed(found: DType, wanted: DType) -> bool:
    """Whether these are the same fields, at other places."""
    fields = [[(n, x[0]) for n, x in dict(dtype.fields or {}).items()] for dtype in (found, wanted)]
    return fields[0] == fields[1] != []


def dtype_within(reader: str, member: str, element: Any) -> DType:
    """The dtype of a class that a key or a monoid has; raises UnsupportedTypeError for one that is no element."""
    try:
        return dtype_of(element)
    except TypeError as error:
        raise UnsupportedTypeError(f"{reader}: {member}: {error}") from error


def require_methods(of: object, **counts: int) -> None:
    """Raises UnsupportedTypeError for a key or a monoid of which a method does not take so many arguments."""
    for name, count in counts.items():
        method: Any = getattr(of, name)
        # As it stands in its class a method is asked once, and not for each plan.
        plain = isinstance(method, MethodType) and isinstance(method.__func__, FunctionType)
        try:
            (_signature_of(method.__func__) if plain else call_signature(method)).bind(*range(count + plain))
        except TypeError as error:
            raise UnsupportedTypeError(
                f"{type(of).__name__}.{name}: expected a method that takes self and {count} more: {error}"
            ) from None


_signature_of = lru_cache(maxsize=256)(call_signature)


def key_of(
    name: str, given: Spec, wished: SortableKey[Any, Any] | None, by_numbers: bool = False
) -> SortableKey[Any, Any]:
    """The caller's key, checked against the dtype; without one, the key of NumPy's order. `by_numbers`: words must be
    numbers, as they are stored with indices or combined; else anything that compares."""
    if wished is None:
        return key_for(given.dtype, name)
    reader = type(wished).__name__
    require_readable(name, given, wished.element, reader)
    dtype_within(reader, "word", wished.word)
    require_methods(wished, to_word=1, from_word=1, to_rank=1, mirrored=1)
    if (wrong := mismatch(wished.word, wished.greatest)) is not None:
        raise UnsupportedTypeError(f"{reader}: greatest: {wrong}")
    bits, most = getattr(wished, "bits", None), 8 * dtype_of(wished.word).itemsize
    if bits is not None and (type(bits) is not int or not 1 <= bits <= most):
        raise InvalidArgumentError(f"{reader}: bits: expected 1 to the {most} bits of a word, found {bits!r}")
    if by_numbers and scalar_of(wished.word) not in (Type.U32, Type.U64):
        raise UnsupportedTypeError(
            f"key: expected words of U32 or U64, found {class_of(wished.word).__name__} in {reader}; words of other "
            "classes are for merges and sort(..., algorithm=Bitonic()) without stable=True, by keys that are not lossy"
        )
    return wished
