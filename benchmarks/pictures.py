"""The pictures of the documents: `python -m benchmarks.pictures --out FOLDER FILE…`.

One SVG for each machine, of its newest throughput file, and the layers of the package. A throughput picture shows
elements per second over elements, both by powers; a panel a dtype; each line labelled at its end.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from benchmarks.layers import picture_of_the_layers

_WIDTH, _HEIGHT = 420, 330  # of a panel
_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 52, 42, 258, 236
_STYLE = """
  text { fill: #4a5563; font: 12px system-ui, sans-serif } .title { font-weight: 600; fill: #2b3440 }
  .grid { stroke: #8a94a3; stroke-opacity: .25 } .line { fill: none; stroke-width: 2 }
  @media (prefers-color-scheme: dark) { text { fill: #b6bfca } .title { fill: #e6eaf0 } }
"""
_OURS = {"gpusort cpu": "#d1495b", "gpusort cuda": "#d1495b", "gpusort wgsl": "#e08e45"}
_OTHERS = ("#4a7fb5", "#6a9a5b", "#8f6bb0", "#7f8c8d", "#3a9a9a")
_DTYPES = {"u4": "uint32", "f8": "float64", "f4": "float32", "i8": "int64", "u8": "uint64"}


@attrs.frozen
class Series:
    """One line."""

    who: str
    points: tuple[tuple[float, float], ...]  # log2 of elements, log10 of elements a second


@attrs.frozen
class Panel:
    """All lines of a dtype, and what the axes reach."""

    title: str
    lines: Sequence[Series]

    @property
    def across(self) -> tuple[int, int]:
        xs = [x for line in self.lines for x, _ in line.points]
        return int(min(xs)), int(max(xs))

    @property
    def up(self) -> tuple[int, int]:
        ys = [y for line in self.lines for _, y in line.points]
        return math.floor(min(ys)), math.ceil(max(ys))

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a point lies in the panel."""
        (first, last), (low, high) = self.across, self.up
        return (
            _LEFT + (x - first) / max(1, last - first) * _PLOT_WIDTH,
            _TOP + (high - y) / max(1, high - low) * _PLOT_HEIGHT,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder for the pictures")
    parser.add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    pictures = {name: picture_of(json.loads(path.read_text())) for name, path in newest(arguments.files).items()}
    pictures["layers"] = picture_of_the_layers()
    for name, picture in pictures.items():
        path = arguments.out / f"{name}.svg"
        path.write_text(picture)
        print(path)


def newest(files: Sequence[Path]) -> dict[str, Path]:
    """The last file of each machine, by the name of its picture: the file's, without its date."""
    return {
        re.sub(r"-\d{4}-\d\d-\d\d[a-z]?$", "", path.stem): path for path in sorted(files, key=lambda path: path.stem)
    }


def picture_of(content: dict[str, Any]) -> str:
    """The SVG of a throughput file."""
    dtypes = list(dict.fromkeys(str(entry["dtype"]) for entry in content["series"]))
    panels = [Panel(_DTYPES.get(dtype, dtype), list(_lines(content, dtype))) for dtype in dtypes]
    what = f"{_machine(content)}, {content['where']}, {content['distribution']} keys, {content['date']}"
    width = _WIDTH * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT}" role="img">',
        f"<title>Elements sorted per second: {what}</title>",
        f"<style>{_STYLE}</style>",
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({number * _WIDTH} 0)">', *_panel(panel), "</g>"]
    parts += [f'<text x="{_LEFT}" y="{_HEIGHT - 4}">number of elements; {what}</text>', "</svg>"]
    return "\n".join(parts) + "\n"


def _machine(content: dict[str, Any]) -> str:
    """The card's name, or the processor's."""
    adapters = {entry["name"]: str(entry["adapter"]) for entry in content["machine"]["targets"]}
    on_card = content["where"] == "device resident"
    return adapters.get("cuda", "") if on_card else str(content["machine"]["processor"])


def _lines(content: dict[str, Any], dtype: str) -> Iterator[Series]:
    for entry in content["series"]:
        if entry["dtype"] == dtype:
            points = tuple((math.log2(count), math.log10(count / seconds)) for count, seconds in entry["points"])
            yield Series(entry["who"], points)


def _panel(panel: Panel) -> Iterator[str]:
    (first, last), (low, high) = panel.across, panel.up
    yield f'<text class="title" x="{_LEFT}" y="20">{panel.title}: elements sorted per second</text>'
    for power in range(low, high + 1):
        x, y = panel.place(first, power)
        yield f'<path class="grid" d="M{x:.1f} {y:.1f}h{_PLOT_WIDTH}"/>'
        yield f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{_shown(power)}</text>'
    for power in range(first, last + 1, 4):
        x, y = panel.place(power, low)
        yield f'<path class="grid" d="M{x:.1f} {y:.1f}v{-_PLOT_HEIGHT}"/>'
        yield f'<text x="{x:.1f}" y="{y + 17:.1f}" text-anchor="middle">2^{power}</text>'
    colours = _colours(panel.lines)
    for line in panel.lines:
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in (panel.place(*point) for point in line.points))
        yield f'<polyline class="line" stroke="{colours[line.who]}" points="{places}"/>'
    for line, y in _labels(panel):
        yield f'<text x="{_LEFT + _PLOT_WIDTH + 7}" y="{y + 4:.1f}" style="fill: {colours[line.who]}">{line.who}</text>'


def _colours(lines: Sequence[Series]) -> dict[str, str]:
    others = iter(_OTHERS * len(lines))
    return {line.who: _OURS.get(line.who) or next(others) for line in lines}


def _labels(panel: Panel, apart: float = 14) -> list[tuple[Series, float]]:
    """Each line with the height of its label: where it ends, moved down as far as those above it need."""
    ends = sorted(((panel.place(*line.points[-1])[1], line) for line in panel.lines), key=lambda end: end[0])
    placed: list[tuple[Series, float]] = []
    for y, line in ends:
        placed.append((line, max(y, placed[-1][1] + apart) if placed else y))
    return placed


def _shown(power: int) -> str:
    """10**7 as 10 M."""
    thousands = min(power // 3, 4)
    return f"{10 ** (power - 3 * thousands)} {('', 'k', 'M', 'G', 'T')[thousands]}".rstrip()


if __name__ == "__main__":
    main()
