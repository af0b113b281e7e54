"""The picture of the layers of the package: what is built on what. Boxes are as wide as their words need."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import attrs

WIDEST = 0.6  # of a letter, on average, in ems: fonts differ, and words are to stay inside with any
_NAME, _LINE = 14.0, 11.5  # sizes of letters
_PADDING, _GAP, _HEIGHT = 16, 30, 60
_STYLE = """
  rect { fill: #f3f6fa; stroke: #4a6fa5; stroke-width: 1.5; rx: 8 }
  .portable { fill: #e4ecf7 } .target { fill: #eaf4ea; stroke: #4d8a57 }
  text { fill: #1d2733; text-anchor: middle; font: 14px system-ui, sans-serif }
  .line { font-size: 11.5px; fill: #44505e }
  path { stroke: #7a8899; stroke-width: 1.5; fill: none; marker-end: url(#head) }
  #head path { fill: #7a8899; stroke: none; marker-end: none }
  @media (prefers-color-scheme: dark) {
    rect { fill: #1b222c; stroke: #7fa3d6 } .portable { fill: #22304a } .target { fill: #1d3324; stroke: #6fb27c }
    text { fill: #e6eaf0 } .line { fill: #b6bfca }
  }
"""


@attrs.frozen
class Box:
    """A name, and a line that says more."""

    name: str
    line: str
    kind: str = ""

    @property
    def width(self) -> float:
        return max(len(self.name) * _NAME, len(self.line) * _LINE) * WIDEST + _PADDING


@attrs.frozen
class Placed:
    """A box where it stands."""

    box: Box
    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    def text(self) -> Iterator[str]:
        kind = f' class="{self.box.kind}"' if self.box.kind else ""
        yield f'<rect{kind} x="{self.x:.0f}" y="{self.y:.0f}" width="{self.width:.0f}" height="{_HEIGHT}"/>'
        yield f'<text x="{self.middle:.0f}" y="{self.y + 26:.0f}">{self.box.name}</text>'
        yield f'<text class="line" x="{self.middle:.0f}" y="{self.y + 45:.0f}">{self.box.line}</text>'


LIBRARY = (
    Box("api", "array in, array out"),
    Box("operations", "axes, results, errors"),
    Box("algos", "kernels and launches", "portable"),
    Box("kernel", "reader, IR, checks", "portable"),
    Box("types", "scalars, keys, monoids", "portable"),
)
SCHEDULE = Box("schedule", "launches and buffers, as plain data")
TARGETS = (
    Box("cpu", "LLVM, all cores", "target"),
    Box("wgsl", "Vulkan, Metal, DX12", "target"),
    Box("cuda", "NVVM, PTX", "target"),
    Box("simulator", "finds data races", "target"),
    Box("python", "under a debugger", "target"),
)


def picture_of_the_layers() -> str:
    """Modules above, each using the next; what they hand over; and who runs it."""
    one = max(box.width for box in (*LIBRARY, *TARGETS))
    above, below = ([_placed(box, number, one, y) for number, box in enumerate(row)] for row, y in _ROWS)
    schedule = Placed(SCHEDULE, above[1].x, 115, above[3].x + one - above[1].x)
    width, height = above[-1].x + one + 10, below[0].y + _HEIGHT + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        "<title>The modules, the schedule that they make, and the targets that run it</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for placed in (*above, schedule, *below):
        parts += placed.text()
    for left, right in pairwise(above):
        parts.append(f'<path d="M{left.x + one:.0f} {left.y + 30:.0f}H{right.x - 2:.0f}"/>')
    for maker in above[2:4]:
        parts.append(f'<path d="M{maker.middle:.0f} {maker.y + _HEIGHT:.0f}V{schedule.y - 2:.0f}"/>')
    for number, runner in enumerate(below):
        start = schedule.middle + (number - 2) * 60
        parts.append(f'<path d="M{start:.0f} {schedule.y + _HEIGHT:.0f}L{runner.middle:.0f} {runner.y - 2:.0f}"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


_ROWS = ((LIBRARY, 10.0), (TARGETS, 225.0))


def _placed(box: Box, number: int, width: float, y: float) -> Placed:
    return Placed(box, 10 + number * (width + _GAP), y, width)
