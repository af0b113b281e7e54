"""Tests in several processes, which are forked once all tests are collected: pytest --side-by-side 3.

Collecting takes ten seconds: most of these go to importing what tests import, and to making their cases. pytest-xdist
has each of its processes collect all tests anew. Here they are collected once, and the processes are forked from that:
what was imported is shared, and a process begins with a test.

A file is one process's, so that what its tests share is made once; a process that is done with one takes the next. What
becomes of a test is told to the first process, which reports it as if it had run the test itself. A process that ends
amid a test fails that test, and another one goes on with what is left of the file.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import select
import signal
import struct
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import given, settings, strategies

OPTION = "--side-by-side"
WORKER = "GPUSORT_TEST_WORKER"  # in the environment of such a process: its number
_SIZE = struct.Struct("<I")
_Queue: TypeAlias = Sequence[Sequence[pytest.Item]]  # the tests of each file
_Place: TypeAlias = tuple[int, int]  # of a test: its file's number, and its own in that


def register(config: pytest.Config) -> None:
    """Has the tests run so if that is asked for."""
    count = cast("int", config.getoption(OPTION))
    if count > 0 and not config.option.collectonly:
        if not hasattr(os, "fork"):
            raise pytest.UsageError(f"{OPTION} takes processes that fork: leave it out")
        config.pluginmanager.register(_Parent(config, count), "side-by-side")


class _Parent:
    """Reports what becomes of the tests that its children run."""

    def __init__(self, config: pytest.Config, count: int) -> None:
        self.config, self.count = config, count
        self.children: dict[int, _Child] = {}  # by what is read of them

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted("errors while tests were collected")
        files: dict[Path, list[pytest.Item]] = {}
        for item in session.items:
            files.setdefault(item.path, []).append(item)
        queue, last = list(files.values()), os.pipe()
        _read_sources_once()
        gc.freeze()  # what there is now, stays: no collection looks at it again, in any of the processes
        # All that there is to do, in one pipe: whoever reads takes the next number.
        os.write(last[1], b"".join(map(_SIZE.pack, range(len(queue)))))
        os.close(last[1])
        try:
            for number in range(min(self.count, len(queue))):
                self._start(queue, last[0], number, [])
            while self.children:
                told = select.select([*self.children], [], [], 1)[0]
                # What a test has forked may hold the pipe of a process that is gone.
                for stream in told or [stream for stream, child in self.children.items() if child.is_gone()]:
                    self._hear(session, queue, last[0], stream, is_gone=not told)
                if session.shouldfail or session.shouldstop:
                    break
        except KeyboardInterrupt:
            for child in self.children.values():  # which have it, too: they end what their tests have started
                child.ended()
            self.children = {}
            raise
        finally:
            os.close(last[0])
            for child in self.children.values():
                os.kill(child.process, signal.SIGINT)
                child.ended()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _start(self, queue: _Queue, work: int, number: int, first: Sequence[_Place]) -> None:
        """Forks a process that begins with some tests, and then takes files."""
        stream, told = os.pipe()
        base: Path = cast("Any", self.config)._tmp_path_factory.getbasetemp()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads, which sleep here
            process = os.fork()
        if process == 0:
            status = 1
            try:
                for other in (stream, *self.children):
                    os.close(other)
                _run(self.config, told, work, queue, first, number, base)
                status = 0
            except (KeyboardInterrupt, BrokenPipeError):
                pass  # nobody wants to hear more
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(told)
        self.children[stream] = _Child(process, stream, number)

    def _hear(self, session: pytest.Session, queue: _Queue, work: int, stream: int, *, is_gone: bool) -> None:
        child = self.children[stream]
        heard = None if is_gone else child.hears()
        kind, told = ("gone", None) if heard is None else heard
        match kind:
            case "takes":
                child.taken.extend(cast("list[_Place]", told))
            case "begins":
                while child.taken[0] != told:
                    child.taken.pop(0)
            case "report":
                report = self.config.hook.pytest_report_from_serializable(config=self.config, data=told)
                report.node = child.node
                self.config.hook.pytest_runtest_logreport(report=report)
            case "warning":
                self.config.hook.pytest_warning_recorded.call_historic(kwargs=told)
            case _:
                del self.children[stream]
                status = child.ended()
                if kind == "gone":
                    self._lost(session, queue, child, status)
                    self._start(queue, work, child.number, child.taken[1:])

    def _lost(self, session: pytest.Session, queue: _Queue, child: _Child, status: int) -> None:
        """Reports the test in which a process ended, if it was in one."""
        if not child.taken:
            session.shouldstop = f"a process ended before its first test, with {status}"
            return
        file, place = child.taken[0]
        item = queue[file][place]
        words = f"the process ended amid this test, with {status}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", words, "call")
        cast("Any", report).node = child.node
        self.config.hook.pytest_runtest_logreport(report=report)


class _Node:
    """Where a report comes from, as pytest's own reporters expect it of one that comes from elsewhere."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"p{number}")
        self._workerinfocache = f"[process {number}]"


class _Child:
    """A process as its parent sees it."""

    def __init__(self, process: int, stream: int, number: int) -> None:
        self.process, self.stream, self.number = process, stream, number
        self.status: int | None = None  # once it is gone
        self.taken: list[_Place] = []  # the test it is in, and others that it is to run
        self.node = _Node(number)

    def hears(self) -> tuple[str, Any] | None:
        """The next that it tells; None once it has ended."""
        head = self._read(_SIZE.size)
        return None if head is None else pickle.loads(self._read(*_SIZE.unpack(head)) or b"")

    def _read(self, size: int) -> bytes | None:
        parts: list[bytes] = []
        while size:
            part = os.read(self.stream, size)
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def is_gone(self) -> bool:
        if self.status is None and (found := os.waitpid(self.process, os.WNOHANG))[0]:
            self.status = os.waitstatus_to_exitcode(found[1])
        return self.status is not None

    def ended(self) -> int:
        os.close(self.stream)
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        return self.status


class _Teller:
    """Tells the parent what a test's reports are, in the process that runs it."""

    def __init__(self, config: pytest.Config, told: int) -> None:
        self.config, self.told = config, told
        self.is_there = False  # as it is made known, it hears of all warnings before the fork, too

    def tell(self, kind: str, what: object = None) -> None:
        data = pickle.dumps((kind, what))
        data = _SIZE.pack(len(data)) + data
        while data:
            data = data[os.write(self.told, data) :]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data: Mapping[str, Any] = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.tell("report", data)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        if not self.is_there:
            return
        told = warnings.WarningMessage(  # without what holds it, which may not travel
            str(warning_message.message), UserWarning, warning_message.filename, warning_message.lineno
        )
        told.category = warning_message.category
        self.tell("warning", {"warning_message": told, "when": when, "nodeid": nodeid, "location": location})


def _run(
    config: pytest.Config,
    told: int,
    work: int,
    queue: _Queue,
    first: Sequence[_Place],
    number: int,
    base: Path,
) -> None:
    """Runs tests until there are none left."""
    plugins, private = config.pluginmanager, cast("Any", config)
    os.environ[WORKER] = str(number)
    private._tmp_path_factory._basetemp = base / f"p{number}"
    private._tmp_path_factory._basetemp.mkdir(exist_ok=True)
    capture = cast("Any", plugins.getplugin("capturemanager"))
    capture.stop_global_capturing()
    plugins.unregister(name="terminalreporter")
    plugins.unregister(name="side-by-side")
    teller = _Teller(config, told)
    plugins.register(teller)
    teller.is_there = True
    capture.start_global_capturing()  # into files of its own
    tests = _tests(work, queue, first, teller)
    following = next(tests, None)
    try:
        while following is not None:
            at, following = following, next(tests, None)
            teller.tell("begins", at)
            config.hook.pytest_runtest_protocol(item=_at(queue, at), nextitem=following and _at(queue, following))
        teller.tell("done")
    finally:
        cast("Any", queue[0][0].session)._setupstate.teardown_exact(None)  # where it was interrupted
        capture.stop_global_capturing()
        cast("Any", atexit)._run_exitfuncs()


@settings(max_examples=1, database=None)
@given(strategies.none())
def _read_sources_once(_: None) -> None:
    """At its first test, Hypothesis reads all modules for numbers and texts to draw: here, not in each process."""


def _tests(work: int, queue: _Queue, first: Sequence[_Place], teller: _Teller) -> Iterator[_Place]:
    taken = [*first]
    while True:
        teller.tell("takes", taken)
        yield from taken
        number = os.read(work, _SIZE.size)
        if not number:
            return
        (file,) = cast("tuple[int]", _SIZE.unpack(number))
        taken = [(file, place) for place in range(len(queue[file]))]


def _at(queue: _Queue, place: _Place) -> pytest.Item:
    return queue[place[0]][place[1]]
