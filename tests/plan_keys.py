"""What plans are found by, of any array: of one that is viewed, that is its view's."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

from gpusort.arrays.kinds import Kind, Located, Viewed


def located(kind: Kind, x: Any) -> tuple[Located[Any], Any]:
    """As what plans work on an array."""
    return (kind.base, kind.view(x)) if isinstance(kind, Viewed) else (cast("Located[Any]", kind), x)


def signature_of(kind: Kind, x: Any) -> Hashable:
    found, seen = located(kind, x)
    return found.signature(seen)


def layout_of(kind: Kind, x: Any) -> object:
    found, seen = located(kind, x)
    return found.layout(seen)
