"""Dispatch: every public function is an operation on arrays, whose plan is looked up in one cache, or made.

A plan's key is the operation's settings, the target, and each array's kind and signature. So a warm call looks into
one dictionary, for every kind of array, and then runs what was made ready.

A call may import what it needs first. An interrupt that strikes an import can leave the interpreter's import lock held
(see `release_import_lock`): then the next call would wait for a thread that loads code, and that one for the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias, cast

from numpy import ndarray

from ..arrays.host import NUMPY, SUBCLASS
from ..arrays.kinds import Kind, Located, is_deferred, is_viewed
from ..arrays.registry import CHOSEN, KNOWN, recognised
from ..operations.base import Operation
from ..targets.base import Target
from ..targets.registry import choose
from ..types.bounded import Bounded
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.import_lock import release_import_lock
from .plan import Plan, as_tuple, one_or_all, require_writable, specs_of
from .planning import plan_for
from .prepared import Planning, PreparedCall

Maker: TypeAlias = Callable[..., Operation]
Settings: TypeAlias = tuple[object, ...]  # what cannot be hashed has its plan made anew
Wherever: TypeAlias = str | Target | Planning
Names: TypeAlias = tuple[str, ...]

_ONE = ("x",)
_NO_SCOPE = nullcontext()
_MOST_PLANS = 1 << 10
_plans: Bounded[Hashable, Plan] = Bounded(_MOST_PLANS)
_runs: Bounded[Hashable, Callable[..., object]] = Bounded(_MOST_PLANS)  # each plan's function, for warm calls
find_run = _runs.get


def call(make: Maker, settings: Settings, target: Wherever, x: object, short_key: Hashable = None) -> object:
    """Applies an operation to one array. Settings that compare equal must be of one class, as they are a key. With a
    `short_key` the plan's function is cached by that too, for callers who look it up themselves."""
    try:
        if type(x) is ndarray:  # as in _key, without calling it
            kind: Located[Any] = NUMPY
            key: Hashable = make, settings, target, x.dtype, x.ndim
        else:
            cls = type(x)
            found = KNOWN.get(cls)
            if found is None:
                choose_kind = CHOSEN.get(cls)
                found, x = recognised("x", x) if choose_kind is None else (choose_kind("x", x), x)
            if not found.is_located:
                return _viewed(make, settings, target, _ONE, (found,), (x,))
            if found is NUMPY:  # made of a list
                return call(make, settings, target, x)
            kind = cast("Located[Any]", found)
            key = make, settings, target, kind, kind.signature(x)
        try:
            run = find_run(key)
        except TypeError:  # what cannot be hashed has its plan made anew
            run = None
        if run is None:
            return _run_anew(make, settings, target, kind, (x,))
        if short_key is not None:
            _runs[short_key] = run
        return run(x)
    except BaseException:
        release_import_lock()
        raise


def call_with(
    make: Maker, settings: Settings, target: Wherever, arrays: tuple[object, ...], out: object = None,
    short_key: Hashable = None,
) -> object:  # fmt: skip
    """Applies an operation to several arrays, or to one into `out`. In the latter case `short_key` gets a function that
    writes short arrays, see `WritesShort`."""
    try:
        kind = _common_kind(arrays, arrays[0] if out is None else out)
        if kind is None:
            names = make(*settings).names
            kinds, arrays = _alike(names, arrays, out)
            if not kinds[0].is_located or kinds.count(kinds[0]) < len(kinds):
                return _viewed(make, settings, target, names, kinds, arrays, out)
            kind = cast("Located[Any]", kinds[0])
        try:
            key = _key(make, settings, target, kind, arrays)
            run, plan = (find_run(key), None) if out is None else (None, _plans.get(key))
        except TypeError:  # what cannot be hashed has its plan made anew
            run = plan = None
        if run is not None:
            if short_key is not None:
                _runs[short_key] = run
            return run(*arrays)
        if plan is None:
            return _run_anew(make, settings, target, kind, arrays, out)
        if short_key is not None and plan.into_short is not None:
            _runs[short_key] = plan.into_short
        plan.into(arrays, (out,))
        return out
    except BaseException:
        release_import_lock()
        raise


def call_in_place(make: Maker, settings: Settings, target: Wherever, x: object, short_key: Hashable = None) -> None:
    """Applies an operation to one array, into the same. What is wrong with that is said of `x`."""
    try:
        call_with(make, settings, target, (x,), x, short_key)
    except (InvalidArgumentError, UnsupportedTypeError):
        kind, array = recognised("x", x)
        if array is not x:
            raise UnsupportedTypeError(f"x: expected an array to sort in place, found {type(x).__name__}") from None
        require_writable(kind, "x", x, kind.spec("x", x))
        raise


def _run_anew(
    make: Maker, settings: Settings, target: Wherever, kind: Located[Any], arrays: tuple[Any, ...], out: object = None
) -> object:
    """A call whose function is not cached: by its plan, which may be; or the call is prepared, and not run."""
    outs = None if out is None else (out,)
    if isinstance(target, Planning):
        return target.prepared(planned(make, settings, target.target, kind, arrays), kind, arrays, outs)
    plan = planned(make, settings, target, kind, arrays)
    if outs is None:
        return plan.function(*arrays)
    plan.into(arrays, outs)
    return out


def _viewed(
    make: Maker, settings: Settings, target: Wherever, names: Names, kinds: Sequence[Kind], arrays: tuple[Any, ...],
    out: object = None,
) -> object:  # fmt: skip
    """A call with arrays that are viewed as another library's, and its results converted back; or with lazy ones."""
    kind, like = kinds[0], arrays[0]
    if is_deferred(kind):
        return kind.deferred(make(*settings), target, arrays)
    with kind.scope(like) or _NO_SCOPE:
        if is_viewed(kind) and len(kinds) == 1:
            found = call(make, settings, target, kind.view(like))
        else:
            given = zip(kinds, (*arrays, out), (*names, "out"), strict=False)
            seen = [own.view(array, name) if is_viewed(own) else array for own, array, name in given]
            if out is not None and kinds[-1].is_read_only(out):
                require_writable(kinds[-1], "out", out, kinds[-1].spec("out", out))
            where = None if out is None else seen.pop()
            found = call_with(make, settings, target, tuple(seen), where)
        if isinstance(found, PreparedCall):
            return found.viewed_as(kind, like, out)
        if out is not None or not is_viewed(kind):
            return found if out is None else out
        return one_or_all([kind.result(values, like) for values in as_tuple(found)])


def _key(make: Maker, settings: Settings, target: object, kind: Located[Any], arrays: tuple[Any, ...]) -> Hashable:
    """The cache key of a plan. NumPy's arrays take a path without calls of their kind, which cost time."""
    if kind is NUMPY:
        if len(arrays) == 1:
            return make, settings, target, arrays[0].dtype, arrays[0].ndim
        if len(arrays) == 2:
            x, y = arrays
            return make, settings, target, x.dtype, x.ndim, y.dtype, y.ndim
    return make, settings, target, kind, *[kind.signature(array) for array in arrays]


def _common_kind(arrays: tuple[object, ...], other: object) -> Located[Any] | None:
    """The kind that plans work on, if all arrays are of one class, that was seen before, and of that kind; else
    None."""
    first = type(other)
    for array in arrays:
        if type(array) is not first:
            return None
    kind = KNOWN.get(first)
    if kind is None and (choose_kind := CHOSEN.get(first)) is not None:
        try:
            kind = choose_kind("x", other)
            if any(choose_kind("x", array) is not kind for array in arrays):
                return None
        except UnsupportedTypeError:  # to be refused by its own name
            return None
    return cast("Located[Any]", kind) if kind is not None and kind.is_located else None


def _alike(names: Names, arrays: tuple[object, ...], out: object) -> tuple[list[Kind], tuple[Any, ...]]:
    """Kinds of arrays and `out`, and the arrays, NumPy's made of lists. Raises UnsupportedTypeError unless all are of
    one kind."""
    first, like = recognised(names[0], arrays[0])
    kinds, given = [first], [like]
    for name, x in zip(names[1:], arrays[1:], strict=True):
        kind, array = recognised(name, x)
        if kind is not first and not _are_alike(kind, first):
            raise UnsupportedTypeError(
                f"{name}: expected an array of the {names[0]}' kind, {type(like).__name__}, found "
                f"{type(array).__name__}"
            )
        kinds.append(kind)
        given.append(array)
    if out is not None:
        if is_deferred(first):
            raise UnsupportedTypeError("out: expected None for arrays of which nothing is computed yet")
        kind, array = recognised("out", out)
        if array is not out or not _are_alike(kind, first):
            raise UnsupportedTypeError(
                f"out: expected an array of x's kind, {type(like).__name__}, found {type(out).__name__}"
            )
        kinds.append(kind)
    return kinds, tuple(given)


def _are_alike(kind: Kind, other: Kind) -> bool:
    return kind is other or (kind in (NUMPY, SUBCLASS) and other in (NUMPY, SUBCLASS))


def planned(make: Maker, settings: Settings, target: str | Target, kind: Located[Any], arrays: tuple[Any, ...]) -> Plan:
    """The plan of a call, from the cache or made and cached. Settings that do not hash have it made each time."""
    key = _key(make, settings, target, kind, arrays)
    try:
        plan = _plans.get(key)
        can_be_kept = True
    except TypeError:
        plan, can_be_kept = None, False
    if plan is None:
        operation = make(*settings)
        specs = specs_of(kind, operation, arrays)
        operation = operation.simplest(*specs)
        operation.outputs(*specs)
        plan = plan_for(operation, kind, specs, choose(target, specs[0].memory, kind.device(arrays[0])))
        if can_be_kept:
            _plans[key] = plan
    elif key not in _runs:
        _runs[key] = plan.function  # from the second call on, for by then it is known what a call takes
    return plan


def forget_plans() -> None:
    """Empties the plan cache: after tuning, or when targets or libraries change."""
    _plans.clear()
    _runs.clear()
