"""`gpusort show`: a kernel as each target gets to see it. Needs no device."""

from __future__ import annotations

from .algos.bitonic import bitonic_sort
from .algos.reduce import reduce_rows
from .algos.scan import scan_rows
from .kernel.launch import Launch
from .kernel.specialise import specialise
from .targets.registry import FORMS
from .types.dtypes import key_for, number_for
from .types.errors import InvalidArgumentError, UnsupportedTypeError
from .types.indices import ScanKind, SortOrder
from .types.monoids import Sum
from .types.params import BitonicPolicy, ReducePolicy, ScanPolicy

KEYS: dict[str, str] = {
    "bool": "?", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "f16": "f2", "f32": "f4", "f64": "f8", "datetime64": "M8[ns]", "timedelta64": "m8[ns]",
}  # fmt: skip

_LENGTH = 1 << 16  # enough that every kernel of a schedule has a part to play


def launches_for(dtype: str) -> dict[str, Launch]:
    """An example launch of every kernel that works on this dtype, by the kernel's name."""
    schedules = [bitonic_sort(key_for(dtype), 1, _LENGTH, SortOrder.ASCENDING, BitonicPolicy())]
    try:
        total = Sum(number_for(dtype))
    except UnsupportedTypeError:  # dates are ordered, and have no sum
        pass
    else:
        schedules.append(reduce_rows(total, 1, _LENGTH, ReducePolicy()))
        schedules.append(scan_rows(total, 1, _LENGTH, ScanKind.INCLUSIVE, ScanPolicy()))
    found: dict[str, Launch] = {}
    for schedule in schedules:
        for launch in schedule.launches:
            found.setdefault(launch.kernel.name, launch)
    return found


def kernel_names() -> tuple[str, ...]:
    """What can be shown."""
    return tuple(launches_for("u4"))


def text_of(kernel: str, key: str, form: str) -> str:
    """The text of a kernel. A reduction or scan is shown for a sum."""
    launches = launches_for(KEYS[key])
    if kernel not in launches:
        raise InvalidArgumentError(f"KERNEL: {kernel!r} is not made for {key}; there are {', '.join(launches)}")
    return FORMS[form](specialise(launches[kernel]))
