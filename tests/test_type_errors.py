"""What mypy and pyright must object to, and nothing else: the lines marked `# E: mypy's code, pyright's rule`.

A call of an overloaded function may break two of pyright's rules, which are joined by `+`.
What documents say of keys and monoids of one's own is checked by mypy, too: it finds nothing there.
The folder has a configuration of its own for pyright: strict, but for the two rules by which a mistake is reported once
more where its result, of unknown type, is used.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import blocks

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tests" / "type_errors"
FILES = sorted(str(path.relative_to(ROOT)) for path in FOLDER.glob("*.py"))
# As the Python that is here: the stubs of its NumPy may be for no older one.
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
MARK = re.compile(r"# E: (?P<mypy>[\w-]+), (?P<pyright>[\w+]+)$")
MYPY = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")

# file, line, code
Finding = tuple[str, int, str]


def marked(checker: str) -> list[Finding]:
    """What a checker is expected to find."""
    return [
        (file, number, code)
        for file in FILES
        for number, line in enumerate((ROOT / file).read_text().splitlines(), 1)
        if (match := MARK.search(line))
        for code in match[checker].split("+")
    ]


def run(*command: str) -> str:
    """A checker's words. It ends with 1 where it finds errors; anything else is a failure of its own."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def found_by_mypy(folder: Path) -> list[Finding]:
    programs = [folder / f"{name}.py" for name in ("own-key", "own-monoid", "rows-and-columns")]
    for program in programs:
        program.write_text("\n".join(blocks(ROOT / "docs" / "howto" / f"{program.stem}.md", "python")))
    how = ("--strict", "--no-pretty", "--no-error-summary", "--python-version", VERSION)
    said = run("mypy", *how, *FILES, *map(str, programs))
    lines = [line for line in said.splitlines() if ": note: " not in line]
    matches = [MYPY.match(line) for line in lines]
    assert all(matches), lines
    return [(match["file"], int(match["line"]), match["code"]) for match in matches if match]


def found_by_pyright() -> list[Finding]:
    how = ("--outputjson", "--pythonpath", sys.executable, "--pythonversion", VERSION)
    report = json.loads(run("pyright", *how, "-p", str(FOLDER)))
    return [
        (str(Path(found["file"]).relative_to(ROOT)), found["range"]["start"]["line"] + 1, found.get("rule", ""))
        for found in report["generalDiagnostics"]
    ]


def test_there_is_something_to_find() -> None:
    assert len(marked("mypy")) >= 30


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_checker_finds_what_is_marked_and_nothing_else(checker: str, tmp_path: Path) -> None:
    found = found_by_mypy(tmp_path) if checker == "mypy" else found_by_pyright()
    assert sorted(set(found)) == sorted(marked(checker))
