"""The files of tests that are nearest to a module, by what imports what: for `make mutate`, where nobody has measured
what the tests reach."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import attrs

ROOT = Path(__file__).parent.parent


@attrs.frozen
class _Imports:
    """Which files import each file, and how many of ours each imports, by their paths in the tree."""

    of: Mapping[Path, frozenset[Path]]
    importers: Mapping[Path, frozenset[Path]]


def nearest(module: Path, tests: Iterable[Path]) -> list[Path]:
    """The files of tests that import a module, or what imports it, in as few steps as possible first; of these the one
    that is named as the module, and then those that import the least else."""
    imports, distance = _imports(), {module: 0}
    last = [module]
    while last:
        last = sorted({one for path in last for one in imports.importers.get(path, ())} - distance.keys())
        distance |= dict.fromkeys(last, max(distance.values()) + 1)
    found = [test for test in tests if test in distance]
    return sorted(found, key=lambda test: (not _is_named(test, module), distance[test], len(imports.of[test]), test))


def _is_named(test: Path, module: Path) -> bool:
    return test.stem.removeprefix("test_").startswith(module.stem)


@cache
def _imports() -> _Imports:
    files = [path.relative_to(ROOT) for folder in ("src", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    ours = [path for path in files if "node_modules" not in path.parts]
    of = {path: frozenset(_imported(path)) - {path} for path in ours}
    importers = {path: frozenset(other for other, found in of.items() if path in found) for path in ours}
    return _Imports(of, importers)


def _imported(path: Path) -> Iterator[Path]:
    """The files that a file imports, and those of what it imports from packages."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ImportFrom):
            above = path.parts[: len(path.parts) - node.level] if node.level else ()
            within = (node.module or "").replace("gpusort", "src", 1) if not node.level else node.module or ""
            package = Path(*above, *within.split("."))
            for place in (package, *(package / alias.name for alias in node.names)):
                for file in (place.with_suffix(".py"), place / "__init__.py"):
                    if (ROOT / file).exists():
                        yield file
