"""The site's pages, without the tool that makes HTML of them: every public name is there, and links lead somewhere."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import gpusort
from docs.site.reference import PAGES, Page, index
from docs.site.stage import stage
from tests.documents import ROOT, anchors, links

USERS = ("gpusort", "gpusort.dask", "gpusort.multi", "gpusort.webgpu")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    stage(folder)
    return folder


def test_every_public_name_is_in_the_reference() -> None:
    ours = [name for page in PAGES if page.module == "gpusort" for name in page.names]
    public = set(vars(gpusort)["__all__"]) - {"multi", "webgpu"}  # modules, with pages of their own
    assert (public - set(ours), set(ours) - public, len(ours)) == (set(), set(), len(public))
    assert {page.module for page in PAGES} >= {"gpusort.webgpu", "gpusort.types.scalars", "gpusort.types.keys"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_in_the_reference_has_a_docstring(page: Page) -> None:
    home = import_module(page.module)
    assert [name for name in page.names if not getattr(home, name).__doc__] == []


def told(home: ModuleType, name: str) -> str:
    """A function's docstring, with those that it refers to."""
    text = getattr(home, name).__doc__ or ""
    return text + "".join(told(home, other) for other in re.findall(r"as\s+for\s+`(\w+)`", text))


@pytest.mark.parametrize("page", [page for page in PAGES if page.module in USERS], ids=lambda page: page.name)
def test_what_a_call_may_be_told_is_in_its_docstring(page: Page) -> None:
    home = import_module(page.module)
    functions = {name: getattr(home, name) for name in page.names if isinstance(getattr(home, name), FunctionType)}
    lacking = [
        f"{name}: {one.name}"
        for name, function in functions.items()
        for one in inspect.signature(function).parameters.values()
        if one.default is not one.empty and f"`{one.name}" not in told(home, name)
    ]
    assert lacking == []


def test_every_exception_is_in_the_reference() -> None:
    errors = import_module("gpusort.types.errors")
    named = {name for page in PAGES for name in page.names if name.endswith("Error")}
    assert named == {name for name in vars(errors) if name.endswith("Error")}


def test_fields_and_members_are_listed_with_what_is_said_of_them() -> None:
    text = next(page for page in PAGES if page.name == "algorithms").text()
    assert "::: gpusort.BitonicPolicy\n\n| field | default | |\n|---|---|---|\n" in text
    assert "| `tile` | `2048` | elements sorted in workgroup memory |" in text
    targets = next(page for page in PAGES if page.name == "targets").text()
    assert '| `name` | `required` | "cpu", "wgsl", "cuda", "simulator", "python" |' in targets
    assert "| `SUBGROUPS` | subgroup operations |" in targets
    assert all(f"]({page.name}.md)" in index() for page in PAGES)


def test_links_between_pages_lead_somewhere(pages: Path) -> None:
    """Those of the README, the documents, and all that they link to; the simulator's own reports are no links."""
    found = sorted(pages.rglob("*.md"))
    assert {path.name for path in found} >= {"index.md", "performance.md", "torch.md", "sorting.md", "bitonic.py.md"}
    lost: list[str] = []
    for page in found:
        for link in links(page):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.is_file() or (anchor and anchor not in anchors(target)):
                lost.append(f"{page.relative_to(pages)}: {link}")
    assert lost == []


def test_every_page_is_in_the_navigation(pages: Path) -> None:
    """And every entry of the navigation is a page."""
    text = (ROOT / "docs/site/mkdocs.yml").read_text()
    named = re.findall(r"^ +- (?:[\w ]+: )?(\S+\.md)$", text, re.MULTILINE)
    assert len(named) == len(set(named))
    there = {str(path.relative_to(pages)) for path in pages.rglob("*.md")}
    assert set(named) <= there
    assert {name for name in there if not name.startswith("source/")} <= set(named)
