"""Prepared calls: for those who make the same call a million times, or record it into a graph.

call = gpusort.plan(gpusort.sort, x, axis=0)
y = call(x)  # nothing is compiled, looked up or allocated; y is the same array every time
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from functools import cache, partial
from inspect import Parameter
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, SupportsIndex, TypeAlias, TypeVar, cast, overload

import attrs
import numpy as np
from numpy.typing import NDArray

from ..arrays.kinds import Kind, Located, scope_of_all
from ..arrays.registry import recognised
from ..types.deferred import call_signature
from ..types.errors import GpusortError, InvalidArgumentError, UnsupportedTypeError
from ..types.specs import Spec, comes_to_host
from .plan import Cost, Plan, one_or_all, require_all, require_fitting, specs_of, view_to_write

if TYPE_CHECKING:
    from .mapped import MappedCall

P = ParamSpec("P")
S = TypeVar("S", bound=Sized)
G = TypeVar("G", bound=np.generic)
R_co = TypeVar("R_co", covariant=True)


Given: TypeAlias = Sequence[tuple[Kind, Any]]  # the caller's arrays, with their kinds


def given_back(given: Given, results: Sequence[Any], like: Sequence[int]) -> list[object]:
    """Each result such as the array that `Operation.like` says, or that of its place, or as the first."""
    found: list[object] = []
    for number, x in enumerate(results):
        number = like[number] if number < len(like) else number
        kind, own = given[number if number < len(given) else 0]
        found.append(kind.result(x, own))
    return found


@attrs.frozen(eq=False, repr=False)
class PreparedCall(Generic[R_co]):
    """A call made ready for arrays of one kind, shape, dtype and layout. It owns its results, and overwrites them.

    They are such as the function gives, but for a scalar: that is an array of no dimension here.
    """

    plan: Plan
    located: Located[Any]  # what the plan works on
    specs: tuple[Spec, ...]
    layouts: list[object]  # by which arrays are known to be as they were planned for
    outs: Sequence[Any]
    kinds: Sequence[Kind]  # those of the caller's arrays
    results: Sequence[Any]  # the same as `outs`, of the caller's kinds
    result_kinds: Sequence[Kind] = ()  # which ones, where any array is viewed as another's

    @classmethod
    def of(cls, plan: Plan, kind: Located[Any], arrays: Sequence[Any], outs: Sequence[Any] | None) -> PreparedCall[Any]:
        specs = specs_of(kind, plan.operation, arrays)
        outputs = plan.operation.outputs(*specs)
        if outs is not None:
            require_fitting(kind, outs, outputs)
        if any(comes_to_host(output.dtype, specs) for output in outputs):
            raise UnsupportedTypeError("plan: results of several fields come in the host's memory")
        with kind.scope(arrays[0]):
            plan.make_ready(arrays)
            outs = plan.new_outputs(arrays) if outs is None else outs
        return cls(plan, kind, specs, [kind.layout(x) for x in arrays], outs, (kind,) * len(specs), outs)

    def viewed_as(self, given: Given, out: object) -> PreparedCall[Any]:
        """The same for arrays of kinds that are viewed as those of this one's."""
        results = given_back(given, self.outs, self.plan.operation.like) if out is None else [out]
        copied = [like for kind, like in given if out is None and kind.copies]
        copied += [made for made, held in zip(results, self.outs, strict=True) if _is_a_copy(made, held)]
        if copied:
            raise UnsupportedTypeError(
                f"plan: results are written anew by every call, as arrays like {type(copied[0]).__name__} cannot be"
            )
        found = [recognised("out", x)[0] for x in results]
        return attrs.evolve(self, kinds=[kind for kind, _ in given], results=results, result_kinds=found)

    @overload  # of scalars none has a length
    def __call__(self: PreparedCall[S], *arrays: object) -> S: ...
    @overload
    def __call__(self: PreparedCall[G], *arrays: object) -> NDArray[G]: ...
    @overload
    def __call__(self, *arrays: object) -> R_co: ...
    def __call__(self, *arrays: object) -> object:
        """Runs the call and returns its results, the same arrays each time: those given as `out`, or its own."""
        if self.result_kinds:
            kinds = self.kinds
            self._require_kinds(kinds, arrays)
            _require_mapped_once(arrays, self.results)
            given = [*zip(kinds, arrays, strict=True)]
            with scope_of_all([*given, *zip(self.result_kinds, self.results, strict=True)]):
                views = [kind.view(x, name) for name, (kind, x) in zip(self.plan.operation.names, given, strict=True)]
                # Seen anew: a tensor may have other memory since, as by `share_memory_`, which frees what it had.
                self._run(views, [*map(view_to_write, self.result_kinds, self.results)])
        else:
            self._run(arrays, self.outs)
        self.kinds[0].tell_written(self.results)
        return one_or_all(self.results)

    def _run(self, arrays: Sequence[Any], outs: Sequence[Any]) -> None:
        try:
            is_known = [*map(self.located.layout, arrays)] == self.layouts
        except AttributeError:  # no array at all, or one of another library
            is_known = False
        if not is_known:
            self._require_kinds([self.located] * len(self.kinds), arrays)
            found = specs_of(self.located, self.plan.operation, arrays)
            if found != self.specs or not all(map(self._is_as_aligned, count(), found)):
                wanted, given = ("; ".join(map(_told, specs)) for specs in (self.specs, found))
                raise InvalidArgumentError(f"arrays: expected such as were planned for, {wanted}, found {given}")
        self.plan.into(arrays, outs)

    def _is_as_aligned(self, number: int, found: Spec) -> bool:
        """Whether an array begins where as many neighbours can be read at once as of the one planned for: by copies,
        and by operations that read words."""
        planned = self.specs[number]
        if number in self.plan.copied_inputs:
            return found.origin == planned.origin
        return found.is_on_words or not (planned.is_on_words and self.plan.operation.reads_words)

    def _require_kinds(self, wanted: Sequence[Kind], arrays: Sequence[object]) -> None:
        names = self.plan.operation.names
        require_all(names, arrays)
        for name, own, x in zip(names, wanted, arrays, strict=True):
            kind, array = recognised(name, x)
            if kind is not own or array is not x:
                hint = "; np.asarray makes one of it" if kind is own else ""
                raise UnsupportedTypeError(
                    f"{name}: expected an array such as was planned for, found {type(x).__name__}{hint}"
                )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.plan.operation}: {'; '.join(map(_told, self.specs))}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UnsupportedTypeError(
            "a prepared call belongs to this process and its device, and cannot be pickled or copied; hand over the "
            "function and its settings, and call gpusort.plan there"
        )

    def encode(self, encoder: Any, /, *arrays: object) -> R_co:
        """Records the call into a command encoder of wgpu, for arrays of `gpusort.webgpu`: in passes of its own, which
        run when the caller submits them. Gives the arrays that hold the results then."""
        with self.kinds[0].recording(encoder):
            return self(*arrays)

    @property
    def cost(self) -> Cost:
        """Launches, temporary bytes and bytes moved."""
        return self.plan.cost()


def _is_a_copy(made: object, held: Any) -> bool:
    """Whether a result is no view of the memory that is written to: some subclasses of NumPy's array make copies."""
    return isinstance(made, np.ndarray) and held.size > 0 and not np.may_share_memory(cast(Any, made), held)


def _require_mapped_once(arrays: Sequence[Any], outs: Sequence[Any]) -> None:
    maps, mapped_outs = ([x for x in given if x.__class__ is np.memmap] for given in (arrays, outs))
    if not (maps and mapped_outs):
        return
    is_twice = mapped_call().are_mapped_twice
    if any(is_twice(x, out) for x in maps for out in mapped_outs):
        raise InvalidArgumentError("out: expected x itself, or an array apart from it; here a file is mapped twice")


@cache
def mapped_call() -> type[MappedCall]:
    """What knows of memory-mapped arrays: imported when first needed, as few need it, and held for calls at the
    interpreter's end, when nothing is imported any more."""
    from .mapped import MappedCall

    return MappedCall


def _told(spec: Spec) -> str:
    lies = "" if spec.strides is None else f" with strides {spec.strides}"
    begins = f", {spec.origin} bytes behind an aligned address" if spec.origin else ""
    return f"{spec.dtype} of shape {spec.shape}{lies}{begins}{'' if spec.is_aligned else ', not aligned'}"


@attrs.define(eq=False, repr=False)
class Planning:
    """Passed in place of a target: the call is then prepared, and not run. It equals the target, by which a user's
    function may choose what to call; but no plan is kept by it."""

    target: Any
    given: tuple[object, ...] | None = None  # what a user's function was called with, and hands over as it is
    was_used: bool = False

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other or bool(self.target == other)

    def __repr__(self) -> str:
        return f"what gpusort.plan hands over in place of {self.target!r}"

    def inner(self, arrays: Sequence[object]) -> Planning:
        """What the call is prepared with. Raises UnsupportedTypeError for other arrays than the user's function was
        given: the prepared call would not do to its arrays what the function does to them first."""
        if self.given is not None:
            if self.was_used:
                raise UnsupportedTypeError("function: expected one call of gpusort in it, found another")
            handed = self.given[: len(arrays)]
            if len(handed) < len(arrays) or any(x is not y for x, y in zip(handed, arrays, strict=True)):
                raise UnsupportedTypeError(
                    "function: expected one that hands over the arrays it is given, in their order, to gpusort, found "
                    "one that hands over others: compute them first, and plan for these"
                )
        self.was_used = True
        return Planning(self.target)


def plan(function: Callable[P, R_co], /, *arrays: P.args, **settings: P.kwargs) -> PreparedCall[R_co]:
    """Prepares the call `function(*arrays, **settings)`, without making it: chooses the algorithm, and allocates
    results and scratch. The first run compiles what is not compiled yet. A prepared call takes arrays of the same kind,
    shape, dtype and layout, and writes into the same results each time: `out`, or its own. What is callable of yours (a
    function, a method, an object) can be prepared if it passes its arrays and its `target` to one call of gpusort, and
    returns the result unchanged."""
    is_ours = check_planned(function)
    planning = Planning(settings.get("target", "auto"), None if is_ours else arrays)
    try:
        found = cast(Callable[..., object], function)(*arrays, **{**settings, "target": planning})
    except Exception as error:
        if planning.was_used and not isinstance(error, GpusortError):
            error.add_note("gpusort.plan: a function gets a PreparedCall in place of results, and must return it")
        raise
    if not isinstance(found, PreparedCall):
        does_not = "return what gpusort gives, as it is" if planning.was_used else "hand its target over to gpusort"
        raise UnsupportedTypeError(f"function: {function!r} does not {does_not}")
    return cast(PreparedCall[R_co], found)


# Of the modules of this package all have functions whose calls can be prepared, but these.
_OTHERS = (__name__, f"{__package__}.files")


def check_planned(function: object) -> bool:
    """Whether it is one of ours. Raises for a function that cannot be prepared, and names what to write instead."""
    home, name = getattr(function, "__module__", None), getattr(function, "__name__", None)
    is_ours = str(home).startswith(f"{__package__}.") and home not in _OTHERS
    is_the_packages = str(home).partition(".")[0] == str(__package__).partition(".")[0]
    is_users = callable(function) and not is_the_packages and not isinstance(cast(object, function), partial)
    if (is_ours and name != "sort_inplace") or (is_users and _takes_target(function)):
        return is_ours
    found = repr(function)
    if isinstance(function, PreparedCall):
        found = "a prepared call: it can be called as it is"
    elif isinstance(function, partial):
        found = "a functools.partial: hand over its settings by name, as in gpusort.plan(gpusort.sort, x, axis=0)"
    elif is_users:
        found = f"{function!r}, which has no target to hand over to gpusort"
    elif is_ours:
        found = "gpusort.sort_inplace: plan gpusort.sort with out=x, which sorts in place"
    elif is_the_packages:
        found = f"{home}.{name}, whose calls have nothing to be prepared"
    raise UnsupportedTypeError(
        f"function: expected one of gpusort's functions of arrays, e.g. gpusort.sort, found {found}"
    )


def _takes_target(function: Any) -> bool:
    """By its name, or as any other. Some in C do not say what they take."""
    try:
        found = call_signature(function).parameters
    except ValueError:
        return False
    return "target" in found or any(parameter.kind is Parameter.VAR_KEYWORD for parameter in found.values())
