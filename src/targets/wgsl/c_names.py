"""Makes wgpu's first calls in a process faster: its C binding looks at no more names than a C type's text has.

To read a type such as `WGPULimits *`, cffi parses a typedef for each of some 400 names that it knows in front of the
text, which takes 15 milliseconds, and wgpu-py asks for 40 types before a first kernel has run: half of what the first
call costs. Names that are not in the text have no part in how it is read. This uses private names of cffi: without them
nothing is changed.
"""

from __future__ import annotations

import copy
import re
import sys

from ..uninterrupted import import_uninterrupted

BACKEND = "wgpu.backends.wgpu_native._api"
_PARSER, _PARSE, _KNOWN = "_parser", "_parse", "_declarations"
_WORD = re.compile(r"\w+")


def read_types_by_their_own_names() -> None:
    """Of wgpu-py's binding, where that is there and as expected."""
    try:
        import_uninterrupted("wgpu.backends.auto")
    except Exception:  # wgpu says what is missing where it is asked for an adapter
        return
    narrow(getattr(sys.modules.get(BACKEND), "ffi", None))


def narrow(ffi: object) -> None:
    """Has a binding read a text with the names that it has. Again is as once."""
    parser: object = getattr(ffi, _PARSER, None)
    whole = getattr(type(parser), _PARSE, None)
    if not callable(whole) or not isinstance(getattr(parser, _KNOWN, None), dict) or _PARSE in vars(parser):
        return

    def parse(text: str) -> object:
        """By a copy that knows few names: whoever interrupts it leaves the parser itself as it was."""
        known, few = getattr(parser, _KNOWN), copy.copy(parser)
        words = (f"typedef {word}" for word in _WORD.findall(text))
        setattr(few, _KNOWN, {word: known[word] for word in words if word in known})
        return whole(few, text)

    setattr(parser, _PARSE, parse)
