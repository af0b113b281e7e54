"""What the reader says of mistakes: `file:line: expected …, e.g. …`, and the line itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusort.kernel.kernel import Kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role
from gpusort.kernel.source import source_of
from gpusort.kernel.span import KernelError
from gpusort.kernel.specialise import specialise
from gpusort.types.indices import SortOrder, Stage
from gpusort.types.scalars import U32
from tests import reader_mistakes

FILE = Path(reader_mistakes.__file__)
LINES = FILE.read_text().splitlines()

# By the kernel's name: all of the message behind `file:line: `.
MESSAGES = {
