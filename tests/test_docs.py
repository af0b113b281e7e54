"""What the documents show is true: Python blocks run, links lead somewhere, generated text is what is generated."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpusort import cli
from tests.documents import DOCUMENTS, ROOT, anchors, blocks, broken, lacking, languages, links, parted, unknown
from tests.loading import load
from tests.test_examples import EXAMPLES

PRINTED = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@pytest.fixture(scope="module")
def sources() -> str:
    return "\n".join(path.read_text() for folder in ("src", "examples") for path in (ROOT / folder).rglob("*.py"))


@each_document
def test_every_block_is_of_a_kind_that_is_checked(document: Path) -> None:
    """Programs for browsers are run by test_export_node.py."""
    assert languages(document) <= {"python", "pycon", "console", "text", "js"}


# Runs each program as `python FILE` does, but in a child of a process that has imported the libraries, and what most
# programs have imported of gpusort's in the end. wgpu takes half a second for that, and two more to parse the names of
# its types, which gpusort's target spares those who open it first.
_RUN_EACH = """
import os, runpy, sys
import gpusort, numpy
import gpusort.algos.choice, gpusort.api.files, gpusort.api.reducing, gpusort.api.sorting, gpusort.targets.cpu.kernels
import gpusort.targets.cpu.target, gpusort.targets.python.target, gpusort.targets.simulator.target
import wgpu.backends.wgpu_native
from gpusort.targets.wgsl.c_names import read_types_by_their_own_names
read_types_by_their_own_names()
for path in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        for number, kind in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(path + kind, os.O_WRONLY | os.O_CREAT), number)
        os.chdir(os.path.dirname(path))
        sys.argv = [path]
        runpy.run_path(path, run_name="__main__")
        sys.exit()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        print(path)
"""


def test_python_blocks_run(tmp_path: Path, sources: str) -> None:
    """A block that quotes the source must stand in it; the others run one after another, as one program.

    What stands behind a `print` is what it prints, perhaps with a remark after it. A block that needs a library or a
    device which is not here is left out.
    """
    programs: dict[Path, str] = {}
    for number, document in enumerate(DOCUMENTS):
        runnable, _ = parted([text for text in blocks(document, "python") if text.strip() not in sources])
        if runnable:
            path = tmp_path / str(number) / f"shown_{document.stem.replace('-', '_')}.py"
            path.parent.mkdir()
            path.write_text("\n".join(runnable))
            programs[path] = path.read_text()
    command = [sys.executable, "-c", _RUN_EACH, *map(str, programs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    failed = [Path(line) for line in done.stdout.splitlines()]
    assert not failed, "\n".join(f"{path.name}: {path.with_suffix('.py.err').read_text()}" for path in failed)
    for path, program in programs.items():
        shown = path.with_suffix(".py.out").read_text()
        printed = iter(shown.splitlines())
        for expected in PRINTED.findall(program):
            is_next = (expected == line or re.match(rf"{re.escape(line)}[,:;] ", expected) for line in printed if line)
            assert any(is_next), f"{path.name}: {expected!r} is not what comes next in\n{shown}"


@each_document
def test_blocks_that_are_left_out_are_told_of(document: Path, sources: str) -> None:
    _, others = parted([text for text in blocks(document, "python") if text.strip() not in sources])
    if others:
        lacked = sorted({what for names in others.values() for what in names})
        pytest.skip(f"blocks that need what is not here: {len(others)}: {', '.join(lacked)}")


@each_document
def test_what_cannot_run_here_names_what_there_is(document: Path, sources: str) -> None:
    """Every block compiles, on any machine, and uses names and arguments that gpusort has."""
    program = "\n".join(text for text in blocks(document, "python") if text.strip() not in sources)
    compile(program, str(document), "exec")
    assert list(unknown(program)) == []


@pytest.mark.parametrize(
    ("program", "wrong"),
    [
        ("import gpusort\ngpusort.sort(x, axis=0)", []),
        ("import gpusort\ngpusort.sort(x, axes=0)", ["gpusort.sort(x, axes=0)"]),
        ("import gpusort\ngpusort.sorted(x)", ["gpusort.sorted"]),
        ("import gpusort as g\ng.webgpu.upload(x)", ["g.webgpu.upload"]),
        ("from gpusort.types.scalars import U32, U33", ["gpusort.types.scalars.U33"]),
        ("import gpusort\ngpusort.plan(gpusort.sort, x, axis=0)", []),
        ("import gpusort\ngpusort.plan(gpusort.sort, x, k=2)", ["gpusort.plan(gpusort.sort, x, k=2)"]),
    ],
)
def test_a_wrong_name_or_argument_is_found(program: str, wrong: list[str]) -> None:
    assert list(unknown(program)) == wrong


def test_what_a_block_needs_is_seen() -> None:
    first, second, third, fourth = "import no_such_library as n", "x = n.y", "x = 1", "print(x)"
    runnable, others = parted([first, second, third, fourth])
    assert runnable == [third, fourth]
    assert others == {first: ["no_such_library"], second: ["no_such_library"]}
    assert lacking("import no_such_library") == ["no_such_library"]
    assert lacking("import numpy as np\nprint(np.zeros(3))") == []
    assert ("cuda" in lacking("import numpy\ntarget = 'cuda'")) == ("cuda" in lacking("device = 'cuda:0'"))


@each_document
def test_sessions_are_what_python_answers(document: Path) -> None:
    session = "\n".join(blocks(document, "pycon"))
    parsed = doctest.DocTestParser().get_doctest(session, {}, document.name, str(document), 0)
    answers: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(parsed, out=answers.append).failed == 0, "".join(answers)


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    assert list(broken(document)) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """By its file, or by its heading; a bracket in code is none."""
    text = "# A `b`: c\n## A b c\n[x](#a-b-c) [x](#a-b-c-1) [x](#a-b) [x](no.md) `[x](y.md)` [x](https://no.where/)\n"
    path = tmp_path / "page.md"
    path.write_text(text)
    assert links(path) == ["#a-b-c", "#a-b-c-1", "#a-b", "no.md"]
    assert anchors(path) == {"a-b-c", "a-b-c-1"}
    readme = ROOT / "README.md"
    assert "gpusort" in anchors(readme)
    assert [link for link in broken(path) if link == "no.md"]


def test_every_document_is_linked_to() -> None:
    targets = {
        (document.parent / link.partition("#")[0]).resolve() for document in DOCUMENTS for link in links(document)
    }
    assert [str(document.relative_to(ROOT)) for document in DOCUMENTS[1:] if document not in targets] == []


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


def test_the_architecture_gives_sizes_that_are_about_right() -> None:
    """Lines of the files of a row of its tables, together: within an eighth, so that small changes need no edit."""
    docs, wrong = ROOT / "docs", list[str]()
    rows = re.findall(r"^\| (\[.*\.py\]\(.*?\)) \| (\d+) \|", (docs / "architecture.md").read_text(), re.MULTILINE)
    for named, lines in rows:
        size = sum(len((docs / file).read_text().splitlines()) for file in re.findall(r"\]\((.*?)\)", named))
        if abs(size - int(lines)) > max(15, size // 8):
            wrong.append(f"{named}: {size}, not {lines}")
    assert len(rows) >= 18
    assert wrong == []


@each_document
def test_shown_output_is_what_comes_out(
    document: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A console block is a command and what it prints; a line of `...` stands for any lines."""
    monkeypatch.chdir(ROOT)
    for text in blocks(document, "console"):
        command, _, expected = text.partition("\n")
        assert command.startswith("$ python -m gpusort "), command
        assert cli.main(command.split()[4:]) == 0
        shown = capsys.readouterr().out
        pattern = r"(?:.*\n)*?".join(re.escape(part) for part in re.split(r"^\.\.\.\n", expected, flags=re.MULTILINE))
        assert re.search(pattern, shown), f"{command}\n{shown}"


_COMMAND = re.compile(r"(?:^    |`)((?:python -m (?:gpusort|benchmarks|web)|gpusort|make)\b[^\n`#]*)", re.MULTILINE)


@each_document
def test_commands_that_are_not_run_are_there(document: Path) -> None:
    """In indented blocks and in the text: options of `gpusort`, targets of make, modules of `python -m`."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in _COMMAND.findall(document.read_text()):
        words = shlex.split(command)
        match words:
            case ["make", "-C", folder]:
                assert (ROOT / folder / "Makefile").exists(), command
            case ["make", *rest]:
                assert {word for word in rest if "=" not in word} <= targets, command
            case ["gpusort", *rest] | ["python", "-m", "gpusort", *rest]:
                if len(rest) > 1 and not {"--help", "KERNEL", "FILE"} & set(rest):
                    cli.command_parser().parse_args(rest)
            case ["python", "-m", module, *_]:
                assert find_spec(module) is not None, command
            case _:
                pass  # a name, such as gpusort.sort


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
    others = ROOT / "src" / "targets" / "wgsl" / "browser.py"  # where they are wgpu's, and become ours
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py") if path != others)
    for name, bases in re.findall(r"^class (\w+Error)\((.*)\):", sources, re.MULTILINE):
        base = bases.removeprefix("GpusortError, ")
        assert name == "GpusortError" or f"| `{name}` | `{base}` |" in table, name


def test_the_first_figures_are_those_of_the_results() -> None:
    first = (ROOT / "README.md").read_text().partition("![")[0]
    found = re.search(
        r"in (\d\.\d) ms .*?\*\*(\d\.\d\d) times as fast as CUB\*\*\s+\(\[results\]\((.+?)\)\)", first, re.DOTALL
    )
    assert found is not None
    line = re.search(r"^cuda sort u4 268435456 .*$", (ROOT / found[3]).read_text(), re.MULTILINE)
    assert line is not None
    measured = re.search(r" (\d\.\d+) ms +CUB .* (\d\.\d\d)x", line[0])
    assert measured is not None
    assert (f"{float(measured[1]):.1f}", measured[2]) == (found[1], found[2])


def test_the_comparison_has_the_same_ratios() -> None:
    """Of the results file that README names: the least and the greatest of sorts beside CUB, and a scan."""
    first = (ROOT / "README.md").read_text()
    named = re.search(r"\[results\]\((benchmarks/results/\S+?)\)", first)
    assert named is not None
    measured = (ROOT / named[1]).read_text()
    sorts = re.findall(r"^cuda sort \w\w (?:16777216|268435456) .* CUB .* (\d\.\d\d)x", measured, re.MULTILINE)
    scans = re.findall(r"^cuda cumsum f4 268435456 .* CUB .* (\d\.\d\d)x", measured, re.MULTILINE)
    assert len(sorts) > 1
    text = " ".join((ROOT / "docs" / "comparison.md").read_text().split())
    assert f"sorts {min(sorts)} to {max(sorts)} times as fast" in text
    assert f"scans at {scans[0]} of CUB's speed" in text


@each_document
def test_a_name_beside_a_file_is_in_the_file(document: Path) -> None:
    """In a row of a table that links to modules, and where it says "`name` in [file](file.py)"."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    said = [(line, line) for line in text.splitlines() if line.startswith("|")]
    said += re.findall(r"(`[\w.]+`) (?:in|of) (\[[^\]]*\]\([^)]*\))", text)
    for names, links_ in said:
        files = [document.parent / file for file in re.findall(r"\]\(([^)#]+\.py)\)", links_)]
        code = "".join(file.read_text() for file in files)
        for name in re.findall(r"`(?!\w+\.py`)([A-Za-z_][\w.]{2,})`", names) if files else ():
            assert name.rpartition(".")[2] in code, f"{name} is not in {', '.join(map(str, files))}"
