"""External sort of a file of fixed-size elements: sorted runs, exact splitters (cuts.py), then buckets.

All data is read twice and written twice; if it fits into memory, once. Unlike in a merge, buckets are independent and
have known positions in the result: they can be sorted out of order, and an interrupted one is done again alone.
"""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np

from .direct import Bytes, DirectFile, buffer_for, whole_pages
from .disk_space import raising_disk_full, require_disk_space
from .formats import Layout, header_for
from .passes import Endpoints, Passes
from .plans import Plan
from .progress import Report
from .scratch import Scratch
from .work import Work


@attrs.frozen(eq=False)
class FileSort:
    """The sort of one file."""

    source: Path
    layout: Layout
    target: Path
    work: Work
    scratch: Scratch
    report: Report | None

    def run(self, memory: int) -> None:
        """Sorts. The result is renamed to the target when it is complete."""
        whole = self.layout.count * self.work.result.itemsize
        with raising_disk_full(whole, self.scratch.folder.parent, self.target.parent), self.scratch as scratch, scratch:
            scratch.lock()
            if scratch.keep and scratch.is_published():
                return
            plan = Plan.within(memory, self.layout.count, self.work)
            self._run(scratch.resumed_plan(self.work.describe(), plan))
            scratch.publish()

    def _run(self, plan: Plan) -> None:
        header = header_for(self.target, self.work.result, self.layout.count)
        count, spilled = self.layout.count, self.work.spilled.itemsize
        whole = len(header) + count * self.work.result.itemsize
        spill = count * spilled if count > plan.run else 0
        runs_file = self.scratch.folder / "runs"
        self.scratch.require_kept("run ", runs_file, spill)
        self.scratch.require_kept("bucket", self.scratch.part, whole)
        require_disk_space({runs_file: whole_pages(spill), self.scratch.part: whole_pages(whole)})
        with (
            DirectFile(self.source) as given,
            DirectFile(runs_file, write=True) as runs,
            DirectFile(self.scratch.part, write=True) as made,
        ):
            runs.reserve(whole_pages(spill))
            made.reserve(whole_pages(whole))
            if header:
                page = buffer_for(len(header))
                page[: len(header)] = np.frombuffer(header, np.uint8)
                made.write(page, len(header), 0)

            def sampled(start: int, stop: int) -> Bytes:
                return given.read_elements(np.dtype(np.uint8), self.layout.start + start, stop - start)

            ends = Endpoints(given, self.layout.start, runs, made, len(header), sampled)
            Passes(self.work, count, plan, ends, self.scratch, self.report).run()
            made.cut_off(whole)
