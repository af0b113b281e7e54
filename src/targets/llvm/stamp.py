"""What a compiler's results depend on besides the text: its own sources."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def stamp_of(files: Iterable[Path]) -> str:
    """A digest of this package's sources and these, which a target adds."""
    common = Path(__file__).parent.glob("*.py")
    digests = (hashlib.sha256(file.read_bytes()).digest() for file in (*sorted(common), *sorted(files)))
    return hashlib.sha256(b"".join(digests)).hexdigest()
