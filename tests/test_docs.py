"""What the documents show is true: Python blocks run, commands exist, generated text is what is generated."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!http)([^)#]+)\)")


def blocks(document: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(document.read_text()) if found == language]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run(document: Path, tmp_path: Path) -> None:
    """A block that quotes the source must stand in it; the others run one after another, as one program."""
    sources = "\n".join(path.read_text() for folder in ("src", "examples") for path in (ROOT / folder).rglob("*.py"))
    program = [text for text in blocks(document, "python") if text.strip() not in sources]
    path = tmp_path / "shown.py"
    path.write_text("\n".join(program))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text()):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
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
