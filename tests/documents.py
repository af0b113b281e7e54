"""The documents: their blocks, headings and links, and what a block of Python needs of the machine."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import gpusort

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_ON_A_CARD = ("cuda", "cuda:0")


def blocks(document: Path, language: str) -> list[str]:
    return [text for found, text in _BLOCK.findall(document.read_text()) if found == language]


def languages(document: Path) -> set[str]:
    return {found for found, _ in _BLOCK.findall(document.read_text())}


# -- links -----------------------------------------------------------------------------------------------


def prose(document: Path) -> str:
    """A document without its blocks and quoted code, in which a bracket is no link."""
    return re.sub(r"`[^`\n]+`", "code", _BLOCK.sub("", document.read_text()))


def links(document: Path) -> list[str]:
    """Those to the project's own files."""
    return [link for link in _LINK.findall(prose(document)) if not re.match(r"https?://", link)]


def anchors(document: Path) -> set[str]:
    """What a link may name after `#`, as GitHub makes it of headings."""
    found: list[str] = []
    for heading in _HEADING.findall(_BLOCK.sub("", document.read_text())):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return set(found)


def broken(document: Path) -> Iterator[str]:
    """The links that lead nowhere: no such file, or no such heading."""
    for link in links(document):
        name, _, anchor = link.partition("#")
        path = (document.parent / name).resolve() if name else document
        if not path.exists() or not path.is_relative_to(ROOT) or (anchor and anchor not in anchors(path)):
            yield link


# -- what a block needs ----------------------------------------------------------------------------------


def lacking(block: str) -> list[str]:
    """What of all that a block uses is not on this machine."""
    tree = ast.parse(block)
    modules = {name.split(".")[0] for name in _imported(tree)}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    here = {state.name for state in gpusort.targets() if not isinstance(state, gpusort.Unavailable)}
    needed = {"cuda"} if texts.intersection(_ON_A_CARD) or "cupy" in modules else set[str]()
    needed |= {"wgsl"} if "wgsl" in texts or "wgpu" in modules or "webgpu.open_device" in block else set()
    needed |= {"torchrun"} if "init_process_group" in block else set()
    return [*sorted(name for name in modules if find_spec(name) is None), *sorted(needed - here)]


def parted(shown: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The blocks that can run here, one after another; and the others, with what they lack.

    What uses a name that one of the others would have made lacks the same.
    """
    runnable: list[str] = []
    others: dict[str, list[str]] = {}
    makers: dict[str, list[str]] = {}  # names that are not made, and what their makers lack
    for text in shown:
        made, used = _names(text)
        lacked = lacking(text) or sorted({what for name in used for what in makers.get(name, ())})
        for name in made:
            if lacked:
                makers[name] = lacked
            else:
                makers.pop(name, None)
        if lacked:
            others[text] = lacked
        else:
            runnable.append(text)
    return runnable, others


def _names(block: str) -> tuple[set[str], set[str]]:
    """Those that a block makes, and those that it uses."""
    made, used = set[str](), set[str]()
    for node in ast.walk(ast.parse(block)):
        match node:
            case ast.Name(name, ast.Load()):
                used.add(name)
            case ast.Name(name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                made.add(name)
            case ast.Import(names) | ast.ImportFrom(names=names):
                made |= {alias.asname or alias.name.split(".")[0] for alias in names}
            case _:
                pass
    return made, used


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case _:
                pass


def unknown(program: str) -> Iterator[str]:
    """The names of gpusort's that a program uses and that are not there, and the calls that do not fit."""
    tree = ast.parse(program)
    known: dict[str, object] = {}
    for node in ast.walk(tree):
        home: object
        match node:
            case ast.Import(names):
                known |= {alias.asname or "gpusort": gpusort for alias in names if alias.name == "gpusort"}
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "gpusort":
                home = importlib.import_module(module)
                for alias in names:
                    if not hasattr(home, alias.name):
                        yield f"{module}.{alias.name}"
                    else:
                        known[alias.asname or alias.name] = getattr(home, alias.name)
            case _:
                pass
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(home := _found(node.value, known), ModuleType):
            if not hasattr(home, node.attr):
                yield ast.unparse(node)
        if isinstance(node, ast.Call) and callable(function := _found(node.func, known)):
            if not _fits(function, node):
                yield ast.unparse(node)


def _found(node: ast.expr, known: dict[str, object]) -> object:
    match node:
        case ast.Name(name):
            return known.get(name)
        case ast.Attribute(value, name):
            home = _found(value, known)
            return getattr(home, name, None) if isinstance(home, ModuleType) else None
        case _:
            return None


def _fits(function: object, call: ast.Call) -> bool:
    assert callable(function)
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return True
    settings = {keyword.arg: None for keyword in call.keywords if keyword.arg is not None}
    try:
        inspect.signature(function).bind(*([None] * len(call.args)), **settings)
        planned = _found(call.args[0], {"gpusort": gpusort}) if function is gpusort.plan else None
        if callable(planned):
            inspect.signature(planned).bind(*([None] * (len(call.args) - 1)), **settings)
    except TypeError:
        return False
    return True
