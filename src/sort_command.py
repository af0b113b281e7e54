"""`gpusort sort`: sorts a file, with a progress bar."""

from __future__ import annotations

import argparse
import math
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from .external.progress import Progress
from .terminal import Terminal, Tone
from .types.errors import InvalidArgumentError

_STEPS = 10  # lines of progress if this is no terminal


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help=".npy; Parquet or Arrow; or, with --dtype, raw elements")
    command.add_argument("-o", "--output", metavar="OUT", help="(default: FILE with .sorted, or .argsort, in its name)")
    command.add_argument("--by", action="append", metavar="NAME", help="a field or column to sort by; may be repeated")
    command.add_argument("--descending", action="store_true")
    command.add_argument("--stable", action="store_true", help="keep equal floats of different bits in their order")
    command.add_argument("--argsort", action="store_true", help="write the indices that sort the file instead")
    command.add_argument("--memory", default="auto", help="such as 600M (default: half of what is free)")
    command.add_argument("--target", default="auto", help="what sorts a piece (default: the CPU)")
    command.add_argument("--scratch", metavar="FOLDER", help="for temporary files (default: the folder of OUT)")
    command.add_argument(
        "--resume", action="store_true", help="resume a sort that was killed; if this fails, keep its work"
    )
    command.add_argument("--dtype", help="of a raw file, such as f4 or >i8")


def run(options: argparse.Namespace) -> int:
    """Runs the command, with progress on standard error."""
    from .api.files import argsort_file, sort_file

    if "-" in (options.file, options.output):  # elsewhere a word for a pipe, and not for a file of that name
        raise InvalidArgumentError("-: expected files, as pipes cannot be sorted; a file of that name is ./-")
    source = Path(options.file)
    function = argsort_file if options.argsort else partial(sort_file, stable=options.stable)
    kind = ".argsort.npy" if options.argsort else f".sorted{source.suffix}"
    target = source.parent / (source.stem + kind) if options.output is None else Path(options.output)
    bar = Bar(Terminal(sys.stderr))
    began = time.perf_counter()
    try:
        function(
            source, target, by=options.by, descending=options.descending, memory=options.memory,
            target_device=options.target, scratch=options.scratch, resume=options.resume, progress=bar.show,
            dtype=options.dtype,
        )  # fmt: skip
    finally:
        bar.end()
    Terminal().line(f"{target}: {size(source.stat().st_size)} sorted in {duration(time.perf_counter() - began)}")
    return 0


class Bar:
    """A progress bar on a terminal, a line at every tenth elsewhere."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._next = 1
        self._is_read = True

    def show(self, progress: Progress) -> None:
        """Shows progress; stops doing so if the stream fails, e.g. a closed pipe, which must not abort the sort."""
        if self._is_read:
            try:
                self._show(progress)
            except OSError:
                self._is_read = False

    def _show(self, progress: Progress) -> None:
        text = (
            f"{progress.fraction:4.0%}  {progress.step:7}  {size(progress.rate)}/s  "
            f"{duration(progress.seconds_left)} left"
        )
        if self._terminal.is_live:
            filled = int(24 * progress.fraction)
            bar = self._terminal.toned("━" * filled, Tone.GOOD) + self._terminal.toned("━" * (24 - filled), Tone.QUIET)
            self._terminal.note(f"{bar} {text}")
        elif progress.fraction * _STEPS >= self._next:
            self._next = int(progress.fraction * _STEPS) + 1
            self._terminal.line(text)

    def end(self) -> None:
        if self._is_read:
            with suppress(OSError):
                self._terminal.forget_note()


def size(nbytes: float) -> str:
    """A size with three digits and a unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.3g} TiB"


def duration(seconds: float) -> str:
    if math.isinf(seconds):
        return "?"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
