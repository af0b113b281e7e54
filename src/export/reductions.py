"""Exportable reductions and scans: NumPy's by name, and those of the user's monoids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from ..algos.fit import fitted_reduce, fitted_scan_policy
from ..algos.reduce import reduce_rows
from ..algos.scan import scan_rows
from ..kernel.launch import Schedule
from ..machine import TargetInfo
from ..types.dtypes import number_for
from ..types.elements import dtype_of, leaves
from ..types.errors import CapabilityError
from ..types.finishes import AsItIs, Finish, finish_of
from ..types.indices import ScanKind
from ..types.keys import ranked
from ..types.layout import Type
from ..types.monoids import AllTrue, AnyTrue, Maximum, Minimum, Monoid, Product, RunningSum, Sum
from ..types.params import ReducePolicy, ScanPolicy
from ..types.searches import ArgMax, ArgMin
from .variants import TYPES, Request, Variant

_NAMES = {"data": ("data",), "results": ("into",)}
_OF_NUMBERS: Mapping[str, Callable[[Any], Monoid[Any, Any]]] = {"sum": Sum, "prod": Product}
_OF_KEYS: Mapping[str, Callable[[Any], Monoid[Any, Any]]] = {
    "min": Minimum, "max": Maximum, "argmin": ArgMin, "argmax": ArgMax,
}  # fmt: skip
_OF_TRUTHS: Mapping[str, Callable[[Any], Monoid[Any, Any]]] = {"any": AnyTrue, "all": AllTrue}
REDUCTIONS = (*_OF_NUMBERS, *_OF_KEYS, *_OF_TRUTHS)


def reductions(operation: str, request: Request) -> Iterator[Variant]:
    """One of NumPy's reductions, for every requested type."""
    for name, key in request.keys.items():
        if operation in _OF_NUMBERS:
            if name in TYPES:  # no sum of a user's key
                monoid = _OF_NUMBERS[operation](number_for(TYPES[name]))
                yield _reduction(f"{operation} {name}", monoid, finish_of(cast(Any, monoid)), request.info)
        elif operation in _OF_TRUTHS:
            if name in TYPES:  # nor a zero
                truth = _OF_TRUTHS[operation](ranked(key))
                made = _reduction(f"{operation} {name}", truth, finish_of(cast(Any, truth)), request.info)
                yield made.with_result("bool", 1)
        else:
            monoid = _OF_KEYS[operation](ranked(key))
            made = _reduction(f"{operation} {name}", monoid, finish_of(cast(Any, monoid)), request.info, shortest=1)
            is_element = operation in ("min", "max") and name in TYPES
            yield made.with_result(name, 1) if is_element else made


def user_reductions(request: Request) -> Iterator[Variant]:
    """Reductions by the user's monoids, to their states."""
    for name, monoid in request.monoids.items():
        yield _reduction(f"reduce {name}", monoid, AsItIs(monoid.state), request.info)


def cumsums(request: Request) -> Iterator[Variant]:
    """NumPy's cumulative sum."""
    for name in request.keys:
        if name in TYPES:
            monoid = RunningSum(number_for(TYPES[name]))
            yield _scan(f"cumsum {name}", monoid, finish_of(cast(Any, monoid)), ScanKind.INCLUSIVE, request.info)


def user_scans(request: Request) -> Iterator[Variant]:
    """Scans by the user's monoids, inclusive and exclusive."""
    for name, monoid in request.monoids.items():
        for kind in ScanKind:
            label = f"scan {name}{' exclusive' if kind is ScanKind.EXCLUSIVE else ''}"
            yield _scan(label, monoid, AsItIs(monoid.state), kind, request.info)


def _reduction(
    name: str, monoid: Monoid[Any, Any], finish: Finish[Any, Any], info: TargetInfo, shortest: int = 0
) -> Variant:
    _require_no_doubles(name, monoid)
    policy = fitted_reduce(ReducePolicy(subgroups=bool(info.capabilities)), monoid.state, info)

    def make(length: int) -> Schedule:
        return reduce_rows(monoid, 1, length, policy, finish)

    return Variant(name, make, None, _NAMES, shortest).with_result(*_result_of(finish.result))


def _scan(name: str, monoid: Monoid[Any, Any], finish: Finish[Any, Any], kind: ScanKind, info: TargetInfo) -> Variant:
    _require_no_doubles(name, monoid)
    policy = fitted_scan_policy(ScanPolicy(subgroups=bool(info.capabilities)), monoid.state, info)
    make = partial(_scanned, monoid, kind, policy, finish)
    return Variant(name, make, None, _NAMES).with_result(*_result_of(finish.result))


def _scanned(
    monoid: Monoid[Any, Any], kind: ScanKind, policy: ScanPolicy, finish: Finish[Any, Any], length: int
) -> Schedule:
    return scan_rows(monoid, 1, length, kind, policy, finish)


def _result_of(result: object) -> tuple[str, int]:
    """The type and number of a result's scalars; U32 words if they are of several types."""
    dtype = dtype_of(result)
    parts = {leaf.type for leaf in leaves(result)}
    each = np.dtype(np.uint32) if len(parts) > 1 else leaves(result)[0].type.dtype
    name = next((name for name, code in TYPES.items() if np.dtype(code) == each), "u8")
    return name, dtype.itemsize // np.dtype(TYPES[name]).itemsize


def _require_no_doubles(name: str, monoid: Monoid[Any, Any]) -> None:
    if any(leaf.type is Type.F64 for element in (monoid.element, monoid.state) for leaf in leaves(element)):
        raise CapabilityError(f"operations: {name!r} calculates with 64-bit floats, which WebGPU does not have")
