"""Lays out the pages of the site: `python -m docs.site.stage FOLDER`. `make docs` makes HTML of them.

README.md is the first page, docs/ the others, and the reference is generated. Files of the project that a page links to
become pages too, so that every link of the site leads somewhere without a server for the source.
"""

from __future__ import annotations

import re
import shutil
import sys
from os.path import relpath
from pathlib import Path

from docs.site.reference import PAGES, index

ROOT = Path(__file__).parent.parent.parent
_LINK = re.compile(r"(\]\()([^()\s]+)(\))")


def place_of(path: Path) -> str:
    """Where a file of the project lies in the site."""
    inside = path.relative_to(ROOT)
    if inside == Path("README.md"):
        return "index.md"
    if inside.parts[0] == "docs" and inside.suffix in (".md", ".svg"):
        return str(Path(*inside.parts[1:]))
    if path.is_dir():
        return f"source/{inside}/index.md"
    if inside.suffix == ".py":
        return f"source/{inside}.md"
    return f"source/{inside}"


def stage(folder: Path) -> None:
    """Writes all pages into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    waiting = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    done: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in done:
            done.add(path)
            waiting += _write(path, folder)
    for name, text in (("index", index()), *((page.name, page.text()) for page in PAGES)):
        _file(folder / "reference" / f"{name}.md").write_text(text)


def _write(path: Path, folder: Path) -> list[Path]:
    """Writes the page of a file, and gives the files that it links to."""
    place = place_of(path)
    page = _file(folder / place)
    if path.is_dir():
        names = "\n".join(f"- `{found.name}`" for found in sorted(path.iterdir()) if found.name != "__pycache__")
        page.write_text(f"# {path.relative_to(ROOT)}\n\n{names}\n")
    elif path.suffix == ".py":
        page.write_text(f"# {path.relative_to(ROOT)}\n\n````python\n{path.read_text()}````\n")
    elif path.suffix == ".md":
        linked: list[Path] = []

        def moved(link: re.Match[str]) -> str:
            name, mark, anchor = link[2].partition("#")
            target = (path.parent / name).resolve()
            if not name or not target.exists() or not target.is_relative_to(ROOT):
                return link[0]
            linked.append(target)
            return f"{link[1]}{relpath(place_of(target), Path(place).parent)}{mark}{anchor}{link[3]}"

        page.write_text(_LINK.sub(moved, path.read_text()))
        return linked
    else:
        shutil.copy(path, page)
    return []


def _file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
