"""A process whose first use of compiled loops is interrupted while LLVM is imported, and which sorts again."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np

import gpusort


class Rung(BaseException):
    """What the handler raises."""


def ring(*_: object) -> None:
    raise Rung


class Bell:
    """Finds no module, but sends a signal when one of its is looked for that comes in the middle."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "llvmlite.binding.targets":
            os.kill(os.getpid(), signal.SIGALRM)
        return None


if __name__ == "__main__":
    faulthandler.dump_traceback_later(200, exit=True)
    signal.signal(signal.SIGALRM, ring)
    os.environ["GPUSORT_THREADS"] = "1"  # else a thread of its own imports it while NumPy serves
    sys.meta_path.insert(0, Bell())
    given = np.random.default_rng(1).integers(0, 1 << 32, 1 << 20, np.uint32)
    gpusort.sort(given)  # a process's first is left to NumPy
    x = given.copy()
    try:
        gpusort.sort_inplace(x)
    except Rung:
        print("interrupted")
    gpusort.sort_inplace(x)
    assert (x == np.sort(given)).all()
    print("sorted")
