"""Dispatch: every public function is an operation on arrays, whose plan is looked up in one cache, or made.

A plan's key is the operation's settings, the target, and each array's kind and signature. So a warm call looks into
one dictionary, for every kind of array, and then runs what was made ready.

A call may import what it needs first. An interrupt that strikes an import can leave the interpreter's import lock held
(see `release_import_lock`): then the next call would wait for a thread that loads code, and that one for the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar, cast

from numpy import ndarray

from ..arrays.host import NUMPY, SUBCLASS
from ..arrays.kinds import Kind, is_deferred
from ..arrays.registry import CHOSEN, KNOWN, recognised
from ..operations.base import Operation
from ..targets.base import Target
from ..targets.registry import choose
from ..types.bounded import Bounded
from ..types.errors import UnsupportedTypeError
from ..types.import_lock import release_import_lock
from .plan import Arrays, Plan, require_writable
from .planning import plan_for
from .prepared import Planning

Maker: TypeAlias = Callable[..., Operation]
Settings: TypeAlias = tuple[object, ...]  # what cannot be hashed has its plan made anew

T = TypeVar("T")

_MOST_PLANS = 1 << 10
_plans: Bounded[Hashable, Plan] = Bounded(_MOST_PLANS)
_runs: Bounded[Hashable, Callable[..., object]] = Bounded(_MOST_PLANS)  # each plan's function, for warm calls
find_run = _runs.get


def call(
    make: Maker, settings: Settings, target: str | Target | Planning, x: object, short_key: Hashable = None
) -> object:
    """Applies an operation to one array. Settings that compare equal must be of one class, as they are a key. With a
    `short_key` the plan's function is cached by that too, for callers who look it up themselves."""
    try:
        try:
            if type(x) is ndarray:  # as in _key, without calling it
                run = find_run((make, settings, target, x.dtype, x.ndim))
            else:
                cls = type(x)
                kind = KNOWN.get(cls)
                if kind is None and (choose := CHOSEN.get(cls)) is not None:
                    kind = choose("x", x)
                run = None if kind is None else find_run((make, settings, target, kind, kind.signature(x)))
        except TypeError:  # what cannot be hashed has its plan made anew
            run = None
        if run is not None:
            if short_key is not None:
                _runs[short_key] = run
            return run(x)
        kind, array = recognised("x", x)
        if is_deferred(kind):
            return kind.deferred(make(*settings), target, (array,))
        plan = planned(make, settings, target, (kind,), (array,))
        return plan.function(array) if type(target) is not Planning else target.prepared(plan, kind, (array,), None)
    except BaseException:
        release_import_lock()
        raise


def call_with(
    make: Maker, settings: Settings, target: str | Target | Planning, arrays: tuple[object, ...], out: object = None,
    short_key: Hashable = None,
) -> object:  # fmt: skip
    """Applies an operation to several arrays, or to one into `out`. In the latter case `short_key` gets a function that
    writes short arrays, see `WritesShort`."""
    try:
        if out is None:
            run = _met(_runs, make, settings, target, _kind_of(arrays), arrays)
            if run is not None:
                if short_key is not None:
                    _runs[short_key] = run
                return run(*arrays)
        else:
            met = _met(_plans, make, settings, target, _kind_of((*arrays, out)), arrays)
            if met is not None:
                _keep_writer(short_key, met)
                met.into(arrays, (out,))
                return out
        kinds, arrays = _alike(make(*settings).names, arrays)
        if is_deferred(kinds[0]):
            if out is not None:
                raise UnsupportedTypeError("out: expected None for arrays of which nothing is computed yet")
            return kinds[0].deferred(make(*settings), target, arrays)
        plan = planned(make, settings, target, kinds, arrays)
        if out is not None:
            kind, found = recognised("out", out)
            if found is not out or not _are_alike(kind, kinds[0]):
                raise UnsupportedTypeError(
                    f"out: expected an array of x's kind, {type(arrays[0]).__name__}, found {type(out).__name__}"
                )
        if type(target) is Planning:
            return target.prepared(plan, kinds[0], arrays, None if out is None else (out,))
        if out is None:
            return plan(*arrays)
        plan.into(arrays, (out,))
        return out
    except BaseException:
        release_import_lock()
        raise


def call_in_place(make: Maker, settings: Settings, target: str | Target, x: object, short_key: Hashable = None) -> None:
    try:
        known = _kind_of((x,))
        met = _met(_plans, make, settings, target, known, (x,))
        if known is not None and met is not None and not known.is_read_only(x):
            _keep_writer(short_key, met)
            met.into((x,), (x,))
            return
        kind, array = recognised("x", x)
        if array is not x:
            raise UnsupportedTypeError(f"x: expected an array to sort in place, found {type(x).__name__}")
        plan = planned(make, settings, target, (kind,), (array,))
        require_writable(kind, "x", array, kind.spec("x", array))
        plan.into((array,), (array,))
    except BaseException:
        release_import_lock()
        raise


def _keep_writer(short_key: Hashable, plan: Plan) -> None:
    if short_key is not None and plan.into_short is not None:
        _runs[short_key] = plan.into_short


def _kind_of(arrays: Arrays) -> Kind | None:
    """The one kind of arrays of a class that was seen before; None if it is another, or they are of several."""
    first = cast("type[object]", type(arrays[0]))
    for array in arrays:
        if type(array) is not first:
            return None
    kind = KNOWN.get(first)
    if kind is None and (choose := CHOSEN.get(first)) is not None:
        try:
            kinds = {choose("x", array) for array in arrays}
        except UnsupportedTypeError:  # to be refused by its own name
            return None
        return kinds.pop() if len(kinds) == 1 else None
    return kind


def _met(
    kept: Bounded[Hashable, T], make: Maker, settings: Settings, target: str | Target | Planning, kind: Kind | None,
    arrays: Arrays,
) -> T | None:  # fmt: skip
    """A cache lookup; None for a miss."""
    try:
        return None if kind is None else kept.get(_key(make, settings, target, kind, arrays))
    except TypeError:  # what cannot be hashed has its plan made anew
        return None


def _key(make: Maker, settings: Settings, target: object, kind: Kind, arrays: Arrays) -> Hashable:
    """The cache key of a plan. NumPy's arrays take a path without calls of their kind, which cost time."""
    if kind is NUMPY:
        if len(arrays) == 1:
            return make, settings, target, arrays[0].dtype, arrays[0].ndim
        if len(arrays) == 2:
            x, y = arrays
            return make, settings, target, x.dtype, x.ndim, y.dtype, y.ndim
    return make, settings, target, kind, *[kind.signature(array) for array in arrays]


def _alike(names: tuple[str, ...], arrays: tuple[object, ...]) -> tuple[tuple[Kind, ...], tuple[Any, ...]]:
    """Kinds and arrays, NumPy's made of lists; raises UnsupportedTypeError unless all are of one kind."""
    found = [recognised(name, x) for name, x in zip(names, arrays, strict=True)]
    first, like = found[0]
    for (kind, array), name in zip(found, names, strict=True):
        if kind is not first and not _are_alike(kind, first):
            raise UnsupportedTypeError(
                f"{name}: expected an array of the {names[0]}' kind, {type(like).__name__}, found "
                f"{type(array).__name__}"
            )
    return tuple([kind for kind, _ in found]), tuple([array for _, array in found])


def _are_alike(kind: Kind, other: Kind) -> bool:
    return kind is other or (kind in (NUMPY, SUBCLASS) and other in (NUMPY, SUBCLASS))


def planned(
    make: Maker, settings: Settings, target: str | Target | Planning, kinds: tuple[Kind, ...], arrays: tuple[Any, ...]
) -> Plan:
    """The plan of a call, from the cache or made and cached. Settings that do not hash have it made each time."""
    if isinstance(target, Planning):
        target = cast("str | Target", target.target)
    key = _key(make, settings, target, kinds[0], arrays)
    try:
        plan = _plans.get(key)
        can_be_kept = True
    except TypeError:
        plan, can_be_kept = None, False
    if plan is None:
        operation = make(*settings)
        specs = tuple(k.spec(name, array) for k, name, array in zip(kinds, operation.names, arrays, strict=True))
        operation = operation.simplest(*specs)
        operation.outputs(*specs)
        plan = plan_for(operation, kinds[0], specs, choose(target, specs[0].memory, kinds[0].device(arrays[0])))
        if can_be_kept:
            _plans[key] = plan
    elif key not in _runs:
        _runs[key] = plan.function  # from the second call on, for by then it is known what a call takes
    return plan


def forget_plans() -> None:
    """Empties the plan cache: after tuning, or when targets or libraries change."""
    _plans.clear()
    _runs.clear()
