"""What the documents show is true: Python blocks run, commands exist, generated text is what is generated."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpusort
from tests.test_examples import EXAMPLES, load

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!http)([^)#]+)\)")
PRINTED = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def blocks(document: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(document.read_text()) if found == language]


@each_document
def test_every_block_is_of_a_kind_that_is_checked(document: Path) -> None:
    assert {found for found, _ in BLOCK.findall(document.read_text())} <= {"python", "pycon", "console", "text"}


@each_document
def test_python_blocks_run(document: Path, tmp_path: Path) -> None:
    """A block that quotes the source must stand in it; the others run one after another, as one program.

    What stands behind a `print` is what it prints, perhaps with a remark after it.
    """
    sources = "\n".join(path.read_text() for folder in ("src", "examples") for path in (ROOT / folder).rglob("*.py"))
    program = "\n".join(text for text in blocks(document, "python") if text.strip() not in sources)
    if 'target="wgsl"' in program and "wgsl" not in {here.name for here in gpusort.targets()}:
        pytest.skip("target 'wgsl' is not here, and the document uses it")
    path = tmp_path / "shown.py"
    path.write_text(program)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    printed = iter(done.stdout.splitlines())
    for shown in PRINTED.findall(program):
        assert any(shown == line or re.match(rf"{re.escape(line)}[,:;] ", shown) for line in printed if line), (
            f"{shown!r} is not what comes next in\n{done.stdout}"
        )


@each_document
def test_sessions_are_what_python_answers(document: Path) -> None:
    session = "\n".join(blocks(document, "pycon"))
    parsed = doctest.DocTestParser().get_doctest(session, {}, document.name, str(document), 0)
    answers: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(parsed, out=answers.append).failed == 0, "".join(answers)


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text()):
        assert (document.parent / target).exists(), target


def test_files_that_the_architecture_names_exist() -> None:
    """By any end of their path: `ir.py` is `src/kernel/ir.py`."""
    paths = [f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.rglob("src/**/*.py")]
    paths += [f"/examples/{path.name}" for path in EXAMPLES.glob("*.py")]
    for named in re.findall(r"[\w/.-]*\w\.py\b", (ROOT / "docs" / "architecture.md").read_text()):
        assert any(path.endswith(f"/{named.removeprefix('../')}") for path in paths), named


def test_the_architecture_names_every_module_of_the_compiler() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    modules = {path for path in (ROOT / "src" / "kernel").rglob("*.py") if path.name != "__init__.py"}
    assert {path for path in modules if f"](../{path.relative_to(ROOT).as_posix()})" not in text} == set()


@each_document
def test_shown_output_is_what_comes_out(document: Path) -> None:
    """A console block is a command and what it prints; a line of `...` stands for any lines."""
    for text in blocks(document, "console"):
        command, _, expected = text.partition("\n")
        assert command.startswith("$ python -m gpusort "), command
        done = subprocess.run(
            [sys.executable, *command.split()[2:]], capture_output=True, text=True, cwd=ROOT, check=True
        )
        pattern = r"(?:.*\n)*?".join(re.escape(part) for part in re.split(r"^\.\.\.\n", expected, flags=re.MULTILINE))
        assert re.search(pattern, done.stdout), f"{command}\n{done.stdout}"


@pytest.fixture(scope="module")
def reports() -> list[str]:
    """What the simulator says of the examples that are wrong, with paths as the documents write them."""
    mistakes = load(EXAMPLES / "mistakes.py")
    found = [load(EXAMPLES / "race.py").report(), *map(mistakes.report, mistakes.LAUNCHES)]
    return [" ".join(report.replace(f"{ROOT}/", "").split()) for report in found]


@each_document
def test_shown_reports_are_what_is_reported(document: Path, reports: list[str]) -> None:
    for text in blocks(document, "text"):
        assert " ".join(text.split()) in reports


def test_every_exception_is_in_the_table() -> None:
    table = (ROOT / "docs" / "errors.md").read_text()
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for name, bases in re.findall(r"^class (\w+Error)\((.*)\):", sources, re.MULTILINE):
        base = bases.removeprefix("GpusortError, ")
        assert name == "GpusortError" or f"| `{name}` | `{base}` |" in table, name
