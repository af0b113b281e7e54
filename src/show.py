"""`gpusort show`: a kernel as each target gets to see it. Needs no device."""

from __future__ import annotations

from .algos.argsort import bitonic_argsort
from .algos.bitonic import bitonic_sort
from .algos.finish import extremes, places
from .algos.layout import Layout
from .algos.radix_sorts import radix_argsort, radix_sort
from .algos.reduce import reduce_rows
from .algos.reduce_axis import reduce_axis
from .algos.scan import scan_rows
from .algos.scan_axis import scan_axis
from .algos.sorts import BitonicRows, Placement, RadixRows, bits_of
from .kernel.launch import Launch, Schedule
from .kernel.specialise import specialise
from .targets.registry import FORMS
from .types.dtypes import ArrayKey, key_for, number_for
from .types.errors import InvalidArgumentError, UnsupportedTypeError
from .types.indices import ScanKind, SortOrder
from .types.keys import RankKey
from .types.monoids import ArgMin, Maximum, Minimum, Sum
from .types.params import BitonicPolicy, RadixPolicy, ReducePolicy, ScanPolicy

KEYS: dict[str, str] = {
    "bool": "?", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "f16": "f2", "f32": "f4", "f64": "f8", "datetime64": "M8[ns]", "timedelta64": "m8[ns]",
}  # fmt: skip

_LENGTH = 1 << 16  # enough that every kernel of a schedule has a part to play
_COLUMNS = Layout(1, _LENGTH, 60, 0, 60, 1)
_ROW = 60  # short enough for every kernel that sorts rows


def launches_for(dtype: str) -> dict[str, Launch]:
    """An example launch of every kernel that works on this dtype, by the kernel's name."""
    found: dict[str, Launch] = {}
    for schedule in (*_sorts(key_for(dtype)), *_sums(dtype), *_extremes(key_for(dtype))):
        for launch in schedule.launches:
            found.setdefault(launch.kernel.name, launch)
    return found


def _sorts(key: ArrayKey) -> list[Schedule]:
    """One of each way to sort, to say where elements come from, and to take values along."""
    order, ranks, bits = SortOrder.ASCENDING, RankKey(key), bits_of(key)
    sweeping = RadixPolicy(sweeps=True)
    rows = [
        algorithm.schedule(key, 2, _ROW, order, placement)
        for algorithm in (BitonicRows(), RadixRows())
        for placement in Placement
    ]
    return [
        bitonic_sort(key, 1, _LENGTH, order, BitonicPolicy()),
        *rows,
        bitonic_argsort(ranks, 1, _LENGTH, order, BitonicPolicy()),
        radix_sort(key, 1, _LENGTH, order, RadixPolicy(), bits),
        radix_sort(key, 1, _LENGTH, order, sweeping, bits),
        radix_sort(key, 2, _LENGTH, order, sweeping, bits),
        radix_argsort(ranks, 1, _LENGTH, order, sweeping, bits),
    ]


def _sums(dtype: str) -> list[Schedule]:
    try:
        total = Sum(number_for(dtype))
    except UnsupportedTypeError:  # dates are ordered, and have no sum
        return []
    return [
        reduce_rows(total, 1, _LENGTH, ReducePolicy()),
        reduce_axis(total, _COLUMNS, ReducePolicy()),
        scan_rows(total, 1, _LENGTH, ScanKind.INCLUSIVE, ScanPolicy()),
        scan_axis(total, _COLUMNS, ScanKind.INCLUSIVE, ScanPolicy()),
    ]


def _extremes(key: ArrayKey) -> list[Schedule]:
    policy = ReducePolicy()
    return [
        extremes(Minimum(key), 1, _LENGTH, policy),
        extremes(Maximum(key), 1, _LENGTH, policy),
        places(ArgMin(key), 1, _LENGTH, policy),
    ]


def kernel_names() -> tuple[str, ...]:
    """What can be shown."""
    return tuple(launches_for("u4"))


def text_of(kernel: str, key: str, form: str) -> str:
    """The text of a kernel. A reduction or scan is shown for a sum; a reduction of dates, for the least."""
    launches = launches_for(KEYS[key])
    if kernel not in launches:
        raise InvalidArgumentError(f"KERNEL: {kernel!r} is not made for {key}; there are {', '.join(launches)}")
    return FORMS[form](specialise(launches[kernel]))
