"""Python code run in a process of its own, which must end in time."""

from __future__ import annotations

import os
import subprocess
import sys


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
