"""Dispatch: every public function is an operation on arrays, whose plan is looked up in one cache, or made.

A plan's key is the operation's settings, the target, and each array's kind and signature. A call may import what it
needs first, and an interrupt that strikes an import can leave the interpreter's lock held: see `release_import_lock`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from numpy import ndarray

from ..arrays.host import NUMPY, NumPyKind, SubclassKind
from ..arrays.kinds import Kind, Located, scope_of_all
from ..arrays.registry import kind_of_all, recognised
from ..operations.base import Operation
from ..targets.base import Target
from ..targets.registry import choose
from ..types.bounded import Bounded
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.import_lock import release_import_lock
from .plan import Plan, as_tuple, one_or_all, plan_for, require_all, require_writable, specs_of, view_to_write
from .prepared import Planning, PreparedCall, given_back

Maker: TypeAlias = Callable[..., Operation]
Settings: TypeAlias = tuple[object, ...]  # what cannot be hashed has its plan made anew
Wherever: TypeAlias = str | Target | Planning

_NUMPYS = NumPyKind, SubclassKind
AUTO = "auto"  # the default target; who looks a plan up compares by identity, which no argument of another type breaks

_MOST_PLANS = 1 << 10
_plans: Bounded[Hashable, Plan] = Bounded(_MOST_PLANS)
_MOST_DEVICES = 8
_devices: set[object] = set()  # callers' own, whose arrays such plans are for
find_plan = _plans.get  # by make, settings, target, and of each array of NumPy's its dtype and number of dimensions


def call(make: Maker, settings: Settings, target: Wherever, x: Any, y: Any = ...) -> object:
    """Applies an operation to one array or two. Settings that compare equal must be of one class, as they are a key."""
    try:
        kind: Any = None  # of arrays that are viewed as NumPy's, as tensors are
        like: Any = None
        if y is not ...:
            if type(x) is not ndarray or type(y) is not ndarray:
                return _on_two_viewed(make, settings, target, x, y)
            key: Hashable = make, settings, target, x.dtype, x.ndim, y.dtype, y.ndim  # as call_with keeps it
        elif type(x) is ndarray:  # without calls of NumPy's kind, which cost time
            key = make, settings, target, x.dtype, x.ndim
        else:
            kind, like = recognised("x", x)
            if kind is NUMPY:  # made of a list
                return call(make, settings, target, like)
            if kind.is_located:
                key, kind, x = (make, settings, target, kind, kind.signature(like)), None, like
            elif kind.is_host and type(target) is not Planning:
                x = kind.view(like)
                key = make, settings, target, x.dtype, x.ndim
            else:
                return _viewed(make, settings, target, ("x",), [(kind, like)], None)
        try:
            plan = find_plan(key)
        except TypeError:  # what cannot be hashed has its plan made anew
            plan = None
        if plan is None:
            found = call_with(make, settings, target, (x,) if y is ... else (x, y))
        else:
            run = plan.run  # which takes less time than a call of it as of a method
            found = run(x) if y is ... else run(x, y)
        if kind is None:
            return found
        if found.__class__ is not tuple:
            return kind.result(found, like)
        return _all_given_back(kind, as_tuple(found), like)
    except BaseException:
        release_import_lock()
        raise


def _all_given_back(kind: Any, found: tuple[Any, ...], like: Any) -> object:
    """Not in `call`, which takes longer where a comprehension shares its variables."""
    return tuple([kind.result(each, like) for each in found])


def _on_two_viewed(make: Maker, settings: Settings, target: Wherever, x: Any, y: Any) -> object:
    """By views of arrays of another library in the host's memory, where both are such."""
    kind: Any = kind_of_all((x, y))
    if kind is None or kind.is_located or not kind.is_host or type(target) is Planning:
        return call_with(make, settings, target, (x, y))
    try:
        first, second = kind.view(x), kind.view(y)
    except (InvalidArgumentError, UnsupportedTypeError):
        return call_with(make, settings, target, (x, y))  # which tells the argument's name
    found = call(make, settings, target, first, second)
    return one_or_all(given_back([(kind, x), (kind, y)], as_tuple(found), _said(make, settings, "like")))


def _said(make: Maker, settings: Settings, what: str) -> Any:
    """What the class of an operation says: the names of its arrays, for one."""
    said = getattr(getattr(make, "func", make), what, None)  # a partial's class, too
    return getattr(make(*settings), what) if said is None else said  # what a function makes tells it


def call_with(make: Maker, settings: Settings, target: Wherever, arrays: tuple[Any, ...], out: Any = None) -> object:
    """Applies an operation to several arrays, or to one into `out`."""
    try:
        given = arrays if out is None else (*arrays, out)
        kind: Any = kind_of_all(given)
        if kind is None or not kind.is_located:
            names = _said(make, settings, "names")
            require_all(names, arrays)
            names = (*names, "out")
            found = _alike(names, given)
            kind = found[0][0]
            if not kind.is_located or any(own is not kind for own, _ in found):
                return _viewed(make, settings, target, names, found, out)
            arrays = tuple([array for _, array in found[: len(arrays)]])
        key: Any = make, settings, target
        if kind is NUMPY:
            for x in arrays:
                key += x.dtype, x.ndim
        else:
            key = *key, kind, *map(kind.signature, arrays)
        try:
            plan = find_plan(key)
        except TypeError:
            key = plan = None
        if plan is None:
            if isinstance(target, Planning):
                where = target.inner(arrays).target
                plan = _plan_of(make, settings, where, kind, arrays, keeps_scratch=True)
                return PreparedCall.of(plan, kind, arrays, None if out is None else (out,))
            plan = _plan_of(make, settings, target, kind, arrays)
            if key is not None:
                _keep(key, plan, kind.device(arrays[0]))
        if out is None:
            return plan.run(*arrays)
        plan.into(arrays, (out,))
        kind.tell_written((out,))
        return out
    except BaseException:
        release_import_lock()
        raise


def call_in_place(make: Maker, settings: Settings, target: Wherever, x: object) -> None:
    """Applies an operation to one array, into the same. What is wrong with that is said of `x`, and of no `out`."""
    try:
        call_with(make, settings, target, (x,), x)
        return
    except (InvalidArgumentError, UnsupportedTypeError) as error:
        refused = error
    kind, array = recognised("x", x)
    if array is not x:
        raise UnsupportedTypeError(f"x: expected an array to sort in place, found {type(x).__name__}")
    require_writable(kind, "x", x, kind.spec("x", x))
    raise refused


def _plan_of(
    make: Maker, settings: Settings, target: str | Target, kind: Located[Any], arrays: tuple[Any, ...], *,
    keeps_scratch: bool = False,
) -> Plan:  # fmt: skip
    operation = make(*settings)
    specs = specs_of(kind, operation, arrays)
    operation = operation.simplest(*specs)
    operation.outputs(*specs)  # which raises what is wrong with the arguments
    where = choose(target, specs[0].memory, kind.device(arrays[0]))
    return plan_for(operation, kind, specs, arrays, where, keeps_scratch)


def _keep(key: Hashable, plan: Plan, device: object | None) -> None:
    """For later calls. With a plan the caller's device stays open, whose arrays it is for."""
    if device is not None and device not in _devices:
        if len(_devices) >= _MOST_DEVICES:
            forget_plans()
        _devices.add(device)
    _plans[key] = plan


def find_also(short: Hashable, key: Hashable) -> None:
    """The plan of a key, if there is one, by a shorter one too: for callers who look it up themselves."""
    plan = find_plan(key)
    if plan is not None:
        _plans[short] = plan


def _alike(names: tuple[str, ...], given: tuple[Any, ...]) -> list[tuple[Kind, Any]]:
    """The kinds of arrays and of `out`, which must be alike, and the arrays, NumPy's made of lists."""
    found: list[tuple[Kind, Any]] = []
    for name, x in zip(names, given, strict=False):
        own, array = recognised(name, x)
        kind = found[0][0] if found else own
        is_alike = own is kind or (isinstance(own, _NUMPYS) and isinstance(kind, _NUMPYS))
        if not is_alike or (array is not x and name == "out"):
            wanted, given_instead = _told_apart(found[0][1], x)
            raise UnsupportedTypeError(
                f"{name}: expected an array of the same kind as {names[0]}, {wanted}, found {given_instead}"
            )
        found.append((own, array))
    return found


def _told_apart(one: object, other: object) -> tuple[str, str]:
    """The classes of two arrays: with their libraries, or else their devices, where both have the same name."""
    names, homes = zip(*[(type(x).__name__, type(x).__module__.partition(".")[0]) for x in (one, other)], strict=True)
    if names[0] != names[1]:
        return names[0], names[1]
    if homes[0] != homes[1]:
        return f"{names[0]} of {homes[0]}", f"{names[1]} of {homes[1]}"
    here, there = (getattr(x, "device", "another device") for x in (one, other))
    return f"{names[0]} on {here}", f"{names[1]} on {there}"


def _viewed(
    make: Maker, settings: Settings, target: Wherever, names: tuple[str, ...], found: list[tuple[Kind, Any]], out: Any
) -> object:
    """A call with arrays of a library that are viewed as another's, and results given back; or with lazy ones."""
    kind, like = found[0]
    if kind.is_deferred:
        if out is not None:
            raise UnsupportedTypeError("out: expected None for arrays of which nothing is computed yet")
        return kind.deferred(make(*settings), target, tuple([x for _, x in found]))
    if isinstance(target, Planning):
        target = target.inner([x for _, x in found[: len(found) - (out is not None)]])
    with scope_of_all(found):
        given = found if out is None else found[:-1]
        views = [own.view(x, name) for name, (own, x) in zip(names, given, strict=False)]
        place = None if out is None else view_to_write(*found[-1])
        place = views[0] if out is like else place
        result = call_with(make, settings, target, tuple(views), place)
        if isinstance(result, PreparedCall):
            return result.viewed_as(given, out)
        if out is None:
            return one_or_all(given_back(given, as_tuple(result), _said(make, settings, "like")))
        kind.tell_written((out,))
        return out


def forget_plans() -> None:
    """Empties the plan cache: after tuning, or when targets or libraries change."""
    _plans.clear()
    _devices.clear()
