"""Words of error messages that simulator and target "python" have in common."""

from __future__ import annotations

from collections.abc import Sequence

from ...kernel.span import Span


def located(span: Span, message: str, *also: Span) -> str:
    """A message that begins with file and line, and ends with the source lines concerned."""
    lines = [f"{span}: {message}"]
    locations = dict.fromkeys((str(location), location.text) for location in (span, *also))
    for location, text in locations:
        if text:
            lines.append(f"    {text}" if len(locations) == 1 else f"    {location}: {text}")
    return "\n".join(lines)


_MOST_RANGES = 8  # that a message has room for


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as ranges: `0-3, 6`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(low) if low == high else f"{low}-{high}" for low, high in runs[:_MOST_RANGES]]
    return ", ".join(shown) + (", …" if len(runs) > _MOST_RANGES else "")


def divergence(
    span: Span, what: str, arrive: Sequence[int], lack: Sequence[int], group: int, left: tuple[str, Span] | None
) -> str:
    """The message for a barrier or subgroup operation in divergent control flow."""
    message = (
        f"{what} is reached by some invocations of group {group} only: "
        f"local {ranges(arrive)} arrive, local {ranges(lack)} do not"
    )
    if left is None:
        return located(span, message)
    how, location = left
    return located(span, f"{message}; {how} {location}", location)
