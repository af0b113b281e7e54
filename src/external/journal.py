"""A sort's journal, for crash recovery.

Its first line (a manifest) says what is sorted by which plan; each further line names a completed step, so a killed
sort resumes after the last complete line. An fsync after every step would be slow, so there is one about every second,
recorded by a line "synced": after a power loss (another boot id) only lines before the last such line count.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import cast

import attrs

from ..types.errors import InvalidArgumentError
from .direct import naming
from .plans import Plan
from .versions import Facts, is_at

_SYNCED, _STOPPED = "synced", "stopped "
_SECONDS = 1.0  # between two fsyncs: the work that a power loss may undo


class NoJournal:
    """The journal of a sort that cannot be resumed."""

    def __init__(self) -> None:
        self.done: set[str] = set()

    def mark(self, step: str, sync: Callable[[], object], *, now: bool = False) -> None:
        """Journals a completed step. `sync` is called if an fsync is due, or `now`: it must make all data written so
        far durable."""

    def sync(self, sync: Callable[[], object]) -> None:
        """Makes data and journal durable, in this order."""


class Journal(NoJournal):
    """A journal in a file, which its sort holds open."""

    def __init__(self, path: Path, file: FileIO) -> None:
        super().__init__()
        self.durable: list[str] = []  # an earlier call's lines that can be relied on, in order
        self._path, self._file = path, file
        self._last_sync = time.monotonic()

    def close(self) -> None:
        self._file.close()

    @property
    def is_there(self) -> bool:
        """Whether nobody has removed or replaced it."""
        return is_at(self._path, self._file)

    @property
    def lines(self) -> list[str]:
        text = self._path.read_text("utf-8", "replace")
        return text.split("\n")[:-1]  # without an incomplete last line

    def has(self, word: str) -> bool:
        """Whether it has a line that begins with a word."""
        return any(line.startswith(word) for line in self.lines[1:])

    @property
    def _manifest(self) -> Facts:
        with suppress(ValueError, TypeError):
            first: Facts = json.loads(self.lines[0])
            if {"of", "plan", "boot"} <= set(first):
                return first
        raise InvalidArgumentError(f"resume: {self._path.parent} has no journal that can be read: do not resume")

    @property
    def sorted_before(self) -> Facts:
        """What an earlier call has sorted. Raises InvalidArgumentError if it cannot be read."""
        return cast("Facts", self._manifest["of"])

    def begin(self, identity: Facts, plan: Plan) -> None:
        """Begins anew, with a manifest."""
        with naming(self._path):
            os.ftruncate(self._file.fileno(), 0)
        self.write(json.dumps({"of": identity, "plan": attrs.asdict(plan), "boot": _boot()}))

    def resume(self, identity: Facts) -> Plan:
        """Takes over what an earlier call has done, by the plan that is returned. Raises InvalidArgumentError if it has
        sorted something else."""
        if self.sorted_before != json.loads(json.dumps(identity)):
            raise InvalidArgumentError(
                f"resume: {self._path.parent} was left by a sort of other data, or with other arguments: use the same, "
                "or do not resume"
            )
        lines = self.lines[1:]
        self.durable = lines if self._manifest["boot"] == _boot() else _before_last(_SYNCED, lines)
        self.done = set(self.durable)
        return Plan(**cast("dict[str, int]", self._manifest["plan"]))

    def note_stop(self, stamps: Facts) -> None:
        """Notes how files are left."""
        self.write(f"{_STOPPED}{json.dumps(stamps)}")

    @property
    def stamps(self) -> Facts:
        """How the last call has left files, if it has noted that since the system was started."""
        last = self.lines[-1]
        is_known = last.startswith(_STOPPED) and self._manifest["boot"] == _boot()
        return cast("Facts", json.loads(last.removeprefix(_STOPPED))) if is_known else {}

    def mark(self, step: str, sync: Callable[[], object], *, now: bool = False) -> None:
        self.done.add(step)
        self.write(step)
        if now or time.monotonic() - self._last_sync > _SECONDS:
            self.sync(sync)

    def sync(self, sync: Callable[[], object]) -> None:
        sync()
        self.write(_SYNCED)
        with naming(self._path):
            os.fsync(self._file.fileno())
        self._last_sync = time.monotonic()

    def write(self, line: str) -> None:
        with naming(self._path):
            os.write(self._file.fileno(), f"{line}\n".encode())


def _boot() -> str:
    """The boot id; a random one, equal to none, where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.urandom(8).hex()


def _before_last(word: str, lines: list[str]) -> list[str]:
    return lines[: len(lines) - lines[::-1].index(word) - 1] if word in lines else []
