"""Runs pipelines under real signals, whose handler raises; prints what became of it.

`python -m tests.pipeline_storm 100`: so many pipelines.
"""

from __future__ import annotations

import faulthandler
import random
import signal
import sys
import time
from contextlib import closing

from gpusort.external.pipeline import ahead, run_pipeline
from tests.striking import soon, threads

_SECONDS = 120  # more is a hang
_STAGE = 0.0005  # seconds
_LONGEST = 0.003


class Rung(BaseException):
    """What the handler raises."""


class Storm:
    """Pipelines, one after another."""

    def __init__(self) -> None:
        self.is_running = False
        self.struck = self.at_work = self.errors = 0

    def ring(self, *_: object) -> None:
        if self.is_running:
            raise Rung

    def stage(self, *_: object) -> None:
        time.sleep(_STAGE)
        self.at_work += not self.is_running  # its pipeline is over

    def once(self, workers: int) -> None:
        try:
            self.is_running = True
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, _LONGEST), random.choice((0, 0, 1e-4)))
            made = closing(ahead(map(self.stage, range(3))))
            with made as values, made:

                def load(piece: int, slot: int) -> None:
                    next(values)

                run_pipeline(range(3), load, self.stage, self.stage, workers=workers)
        except Rung:
            self.struck += 1
        except Exception:
            self.errors += 1
        self.is_running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(2 * _STAGE)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(_SECONDS, exit=True)
    storm = Storm()
    signal.signal(signal.SIGALRM, storm.ring)
    for turn in range(int(sys.argv[1])):
        storm.once(1 + turn % 3)
    soon(lambda: threads() == 1, seconds=5)
    told = {"struck": storm.struck, "at work": storm.at_work, "other errors": storm.errors, "threads": threads()}
    for what, value in told.items():
        print(f"{what}: {value}")
