"""Python code run in a process of its own, which must end in time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence


def run_new(code: str, *, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    """What it printed, and how it ended: by an error, by a signal, or never."""
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def printed(code: str, *, timeout: float = 300, **environment: str) -> str:
    """What a process printed that ended well and complained of nothing."""
    done = run_new(code, timeout=timeout, **environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-2000:]
    return done.stdout.strip()


def end_well_side_by_side(command: Sequence[str], count: int, *, timeout: float) -> None:
    """Starts so many processes, which wait for a line, lets them go at once, and sees that none complains."""
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
        for _ in range(count)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        _, said = process.communicate(timeout=timeout)
        assert (process.returncode, said) == (0, "")
