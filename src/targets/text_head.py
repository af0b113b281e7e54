"""The head of a text for the compiler of CPU and CUDA, which host loops have too: so this imports nothing."""

from __future__ import annotations

from collections.abc import Sequence


def head_of(about: str, arguments: Sequence[tuple[str, str]]) -> str:
    """All of a text above its function's body; the arguments are names and types."""
    names, types = (", ".join(part) for part in zip(*arguments, strict=True)) if arguments else ("", "")
    return f'''"""{about}. Generated; do not edit."""

SIGNATURE = "void({types})"


def kernel({names}):
'''
