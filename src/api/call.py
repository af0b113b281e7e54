"""Dispatch: every public function is an operation on arrays, whose plan is looked up in one cache, or made.

A plan's key is the operation's settings, the target, and each array's kind and signature. So a warm call looks into
one dictionary, for every kind of array, and then runs what was made ready.

A call may import what it needs first. An interrupt that strikes an import can leave the interpreter's import lock held
(see `release_import_lock`): then the next call would wait for a thread that loads code, and that one for the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import nullcontext
from typing import Any, TypeAlias

from numpy import ndarray

from ..arrays.host import NUMPY, SUBCLASS
from ..arrays.kinds import Kind, Located, is_deferred, is_viewed
from ..arrays.registry import recognised
from ..operations.base import Operation
from ..targets.base import Target
from ..targets.registry import choose
from ..types.bounded import Bounded
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.import_lock import release_import_lock
from .plan import Plan, as_tuple, require_writable, specs_of
from .planning import plan_for
from .prepared import Planning, PreparedCall

Maker: TypeAlias = Callable[..., Operation]
Settings: TypeAlias = tuple[object, ...]  # what cannot be hashed has its plan made anew
Wherever: TypeAlias = str | Target | Planning
Found: TypeAlias = dict[str, tuple[Kind, Any]]  # arrays by the names of their arguments, with their kinds; `out` last

_NO_SCOPE = nullcontext()
_MOST_PLANS = 1 << 10
_plans: Bounded[Hashable, Plan] = Bounded(_MOST_PLANS)
_runs: Bounded[Hashable, Callable[..., object]] = Bounded(_MOST_PLANS)  # each plan's function, for warm calls
find_run = _runs.get


def call(make: Maker, settings: Settings, target: Wherever, x: Any, short_key: Hashable = None) -> object:
    """Applies an operation to one array. Settings that compare equal must be of one class, as they are a key. With a
    `short_key` the plan's function is cached by that too, for callers who look it up themselves."""
    try:
        kind: Any = NUMPY
        if type(x) is ndarray:  # as in _key, without calling it
            key: Hashable = make, settings, target, x.dtype, x.ndim
        else:
            kind, x = recognised("x", x)
            if not kind.is_located:
                return _viewed(make, settings, target, kind, x)
            if kind is NUMPY:  # made of a list
                return call(make, settings, target, x)
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
    make: Maker, settings: Settings, target: Wherever, names: tuple[str, ...], arrays: tuple[Any, ...],
    out: Any = None, short_key: Hashable = None,
) -> object:  # fmt: skip
    """Applies an operation to several arrays, whose arguments have these names, or to one into `out`. In the latter
    case `short_key` gets a function that writes short arrays, see `WritesShort`."""
    try:
        kind: Any = NUMPY
        is_numpys = out is None or type(out) is ndarray
        for x in arrays:
            is_numpys = is_numpys and type(x) is ndarray
        if not is_numpys:
            found = _alike(dict(zip((*names, "out"), arrays if out is None else (*arrays, out), strict=False)))
            (kind, like), *others = found.values()
            if not kind.is_located or any(other is not kind for other, _ in others):
                return _viewed(make, settings, target, kind, like, found)
            arrays = tuple(found[name][1] for name in names)
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
        call_with(make, settings, target, ("x",), (x,), x, short_key)
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
    make: Maker, settings: Settings, target: Wherever, kind: Kind, like: Any, found: Found | None = None
) -> object:
    """A call with an array, or with several, of a library whose arrays are viewed as another's: results are converted
    back. Or one with lazy arrays."""
    out = None if found is None else found.get("out", (None, None))[1]
    if is_deferred(kind):
        if out is not None:
            raise UnsupportedTypeError("out: expected None for arrays of which nothing is computed yet")
        arrays = (like,) if found is None else tuple(array for _, array in found.values())
        return kind.deferred(make(*settings), target, arrays)
    with kind.scope(like) or _NO_SCOPE:
        if found is None and is_viewed(kind):
            result = call(make, settings, target, kind.view(like))
        else:
            result = _with_views(make, settings, target, found or {})
        if isinstance(result, PreparedCall):
            return result.viewed_as(kind, like, out)
        if out is not None or not is_viewed(kind):
            return result if out is None else out
        results = as_tuple(result)
        return kind.result(result, like) if len(results) == 1 else tuple([kind.result(each, like) for each in results])


def _with_views(make: Maker, settings: Settings, target: Wherever, found: Found) -> object:
    """A call with the views of arrays, and of `out`."""
    seen = {name: own.view(array, name) if is_viewed(own) else array for name, (own, array) in found.items()}
    if "out" in found:
        own, out = found["out"]
        if own.is_read_only(out):
            require_writable(own, "out", out, own.spec("out", out))
    where = seen.pop("out", None)
    return call_with(make, settings, target, (*seen,), (*seen.values(),), where)


def _alike(given: dict[str, Any]) -> Found:
    """The kinds of arrays and `out`, and the arrays, NumPy's made of lists. Raises UnsupportedTypeError unless all are
    of one kind."""
    found = {name: recognised(name, x) for name, x in given.items()}
    first, (kind, like) = next(iter(found.items()))
    for name, (own, array) in found.items():
        is_alike = own is kind or (own in (NUMPY, SUBCLASS) and kind in (NUMPY, SUBCLASS))
        if not is_alike or (name == "out" and array is not given["out"]):
            raise UnsupportedTypeError(
                f"{name}: expected an array of the same kind as {first}, {type(like).__name__}, found "
                f"{type(given[name]).__name__}"
            )
    return found


def _key(make: Maker, settings: Settings, target: object, kind: Located[Any], arrays: tuple[Any, ...]) -> Hashable:
    """The cache key of a plan. NumPy's arrays take a path without calls of their kind, which cost time."""
    if kind is NUMPY:
        if len(arrays) == 1:
            return make, settings, target, arrays[0].dtype, arrays[0].ndim
        if len(arrays) == 2:
            x, y = arrays
            return make, settings, target, x.dtype, x.ndim, y.dtype, y.ndim
    return make, settings, target, kind, *[kind.signature(array) for array in arrays]


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
