"""How the simulator words what it finds: the source line, the memory and element, the invocations."""

from __future__ import annotations

from collections.abc import Sequence

from ...kernel.span import Span
from .races import Access, Invoker, Race


def located(span: Span, message: str, *also: Span) -> str:
    """A message that begins with its place and ends with the source lines concerned."""
    lines = [f"{span}: {message}"]
    places = dict.fromkeys((str(place), place.text) for place in (span, *also))
    for place, text in places:
        if text:
            lines.append(f"    {text}" if len(places) == 1 else f"    {place}: {text}")
    return "\n".join(lines)


def invocations(found: Sequence[Invoker]) -> str:
    """The first invocation concerned, and how many more there are."""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"invocation {found[0]}{more}"


def ranges(numbers: Sequence[int], most: int = 8) -> str:
    """Numbers in order, runs drawn together: `0-3, 6`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(low) if low == high else f"{low}-{high}" for low, high in runs[:most]]
    return ", ".join(shown) + (", …" if len(runs) > most else "")


def race(span: Span, memory: str, element: int, access: Access, by: Invoker, found: Race, other: Span) -> str:
    """Two accesses that nothing orders."""
    between = "one workgroup, with no barrier between" if by.group == found.other.group else "two workgroups"
    return located(
        span,
        f"data race on element {element} of {memory}: {access.value} here by invocation {by}, "
        f"{found.other_access.value} by invocation {found.other} at {other} ({between})",
        other,
    )


def divergence(
    span: Span,
    what: str,
    arrive: Sequence[int],
    lack: Sequence[int],
    group: int,
    left: tuple[str, Span] | None,
) -> str:
    """A barrier or subgroup operation that only some of those who must take part have reached."""
    message = (
        f"{what} is reached by some invocations of group {group} only: "
        f"local {ranges(arrive)} arrive, local {ranges(lack)} do not"
    )
    if left is None:
        return located(span, message)
    how, place = left
    return located(span, f"{message}; {how} {place}", place)
