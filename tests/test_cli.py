"""The command line: what it prints, where it colours, and its exit codes."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path

import numpy as np
import pytest

from gpusort import cli, demo, plan, sort_by_key
from gpusort.__main__ import main
from gpusort.api import sorting
from gpusort.external.progress import Progress
from gpusort.show import KEYS, kernel_names, launches_for
from gpusort.sort_command import Bar, duration, size
from gpusort.targets import registry
from gpusort.targets.base import Target
from gpusort.terminal import Terminal, Tone
from gpusort.types.errors import TargetUnavailableError
from gpusort.types.specs import HostArray
from tests.covering import few_cases
from tests.new_process import complaints

CHAINED_KEY = """
from gpusort.types.keys import UnsignedKey
from gpusort.types.scalars import U32

class Chained(UnsignedKey):
    def to_word(self, element):
        return element if 1 < element < 5 else U32(3)

KEY = Chained(U32, U32, 32)
"""


def gpusort(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, piped."""
    return subprocess.run(
        [sys.executable, "-m", "gpusort", *arguments], capture_output=True, text=True, check=False, timeout=120
    )


# -- demo -------------------------------------------------------------------------------------------------


def unavailable() -> Target:
    raise TargetUnavailableError("target 'wgsl' finds no adapter: it needs a driver")


@pytest.fixture
def few_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """One target that is quick to start, and one that is not here."""
    monkeypatch.setattr(demo, "NAMES", ("simulator", "wgsl"))
    opened = registry.target

    def target(name: str) -> Target:
        return unavailable() if name == "wgsl" else opened(name)

    monkeypatch.setattr(demo, "target", target)


@pytest.mark.usefixtures("few_targets")
def test_the_demo_sorts_every_case_and_says_who_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^host +\S+: .*NumPy", text, re.MULTILINE)
    assert re.search(r"^simulator\n  adapter lockstep .*\n  driver  NumPy", text, re.MULTILINE)
    titles = [case.title for case in demo.cases()]
    assert len(titles) == 6
    for title in titles:
        assert re.search(rf"^  PASSED {title}: \S+ \S+ \(first call \S+ \S+\)$", text, re.MULTILINE)
    assert "wgsl: not available: target 'wgsl' finds no adapter" in text
    assert text.splitlines()[-1] == "PASSED on simulator"
    assert "\x1b" not in text


@pytest.mark.usefixtures("few_targets")
def test_the_demo_shows_the_first_and_last_ten(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["demo"])
    lines = capsys.readouterr().out.splitlines()
    start = next(i for i, line in enumerate(lines) if "PASSED 1000 random u32:" in line)
    ordered = sorted(next(demo.cases()).values.tolist())
    assert lines[start + 1].split() == ["first", *map(str, ordered[:10])]
    assert lines[start + 2].split() == ["last", *map(str, ordered[-10:])]


@pytest.mark.usefixtures("few_targets")
def test_the_demo_fails_where_one_result_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = sorting.sort

    def wrong(x: HostArray, *, descending: bool, stable: bool, target: str) -> HostArray:
        found = right(x, descending=descending, stable=stable, target=target)
        if descending and found.dtype == "f4":
            found = found.copy()
            found[5:7] = found[6:4:-1]  # a zero of each sign changes places
        return found

    monkeypatch.setattr(demo, "sort", wrong)
    assert cli.main(["demo"]) == 1
    text = capsys.readouterr().out
    assert text.count("  PASSED ") == 5
    assert "  FAILED special f32, descending" in text
    assert text.splitlines()[-1] == "FAILED on simulator"


@pytest.mark.usefixtures("few_targets")
def test_the_demo_goes_on_where_a_target_breaks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> HostArray:
        raise RuntimeError("the card is on fire")

    monkeypatch.setattr(demo, "sort", broken)
    assert cli.main(["demo"]) == 1
    text = capsys.readouterr().out
    assert text.count("FAILED") == 7
    assert "FAILED 1000 random u32: RuntimeError: the card is on fire" in text


# -- targets ----------------------------------------------------------------------------------------------


def test_targets_are_listed_or_their_absence_explained() -> None:
    done = gpusort("targets")
    assert done.returncode == 0, done.stderr
    for name in registry.NAMES:
        assert re.search(rf"^{name}: \S", done.stdout, re.MULTILINE)
    assert "1,024 invocations" in done.stdout
    assert "\x1b" not in done.stdout


# -- show -------------------------------------------------------------------------------------------------

SIGNS = {
    "ir": "kernel bitonic_step, 256",
    "cpu": "def ",
    "wgsl": "@compute",
    "cuda": "def ",
    "ptx": ".entry",
}


@pytest.mark.parametrize("form", SIGNS)
def test_a_kernel_is_shown_in_every_form(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    if form == "ptx":
        pytest.importorskip("cuda.bindings", reason="PTX is compiled by NVVM")
    assert cli.main(["show", "bitonic_step", "--key", "u32", "--target", form]) == 0
    assert SIGNS[form] in capsys.readouterr().out


@pytest.mark.parametrize("form", SIGNS)
def test_kernels_of_ones_own_are_shown(
    form: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "ptx":
        pytest.importorskip("cuda.bindings", reason="PTX is compiled by NVVM")
    (tmp_path / "shown_kernels.py").write_text(
        "from gpusort.kernel.language import *\n\n\n"
        "@kernel\ndef first(cx: Invocation, data: Storage[U32]) -> None:\n    data[cx.global_id] = U32(1)\n\n\n"
        "@kernel\ndef second(cx: Invocation, data: Storage[U32]) -> None:\n    data[cx.global_id] = U32(2)\n\n\n"
        "def three(n: int) -> Schedule:\n"
        "    data, grid = Buffer('data', U32, n, Role.INOUT), Grid(n // 256, 256)\n"
        "    return Schedule((data,), tuple(one.launch(grid, data) for one in (first, second, first)))\n\n\n"
        "made = three(512)\n"
    )
    monkeypatch.chdir(tmp_path)
    shown: list[str] = []
    for name in ("three", "made"):
        assert cli.main(["show", f"shown_kernels:{name}", "--target", form]) == 0
        shown.append(capsys.readouterr().out)
    sign = SIGNS[form].partition(" bitonic")[0]
    assert [len(re.findall(rf"^.*{re.escape(sign)}", text, re.MULTILINE)) for text in shown] == [2, 2]
    for arguments, message in (
        (["shown_kernels:first"], r"KERNEL: expected a Schedule, or a function .*, found .*first"),
        (["shown_kernels:fourth"], r"KERNEL: 'shown_kernels:fourth' cannot be imported: .* no attribute 'fourth'"),
        (["shown_kernels:three", "--key", "u32"], r"--key: expected none for a schedule of your own, found 'u32'"),
    ):
        assert cli.main(["show", *arguments]) == 1
        assert re.match(f"gpusort: {message}", capsys.readouterr().err)


def shown_for(key: str) -> list[str]:
    """All kernels for one key; for the others every fifth, from another one on for each key."""
    kernels = list(launches_for(KEYS[key]))
    return kernels if key == "u32" else kernels[list(KEYS).index(key) % 5 :: 5]


@few_cases(pairs=False)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("form", ["ir", "cpu", "wgsl", "cuda"])
def test_kernels_are_shown_for_every_key(form: str, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    for kernel in shown_for(key):
        if form == "wgsl" and key == "f64" and kernel.startswith(("reduce", "scan")):
            continue  # WGSL has no 64-bit floats to add
        assert cli.main(["show", kernel, "--key", key, "--target", form]) == 0
        assert len(capsys.readouterr().out.splitlines()) > 5


def test_without_a_name_the_kernels_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show"]) == 0
    listed = capsys.readouterr().out.split()
    assert listed == list(kernel_names())


def test_every_kernel_of_the_algorithms_is_listed() -> None:
    algorithms = Path(cli.__file__).with_name("algos")
    written = {
        name
        for file in algorithms.glob("*.py")
        for name in re.findall(r"^@kernel\ndef (\w+)\(", file.read_text(), re.MULTILINE)
    }
    assert len(written) > 20
    assert written == set(kernel_names())


def test_as_much_of_a_name_as_is_unique_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "reduce_"]) == 0
    assert capsys.readouterr().out.startswith("kernel reduce_columns")


def test_a_plan_counts_what_lies_between_launches(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.zeros(1000, np.uint32)
    assert cli.main(["plan", "sort_by_key", "--key", "u32", "--shape", "1000", "--on", "cpu"]) == 0
    found = plan(sort_by_key, x, x, target="simulator").cost.temporary_bytes
    assert capsys.readouterr().out.splitlines()[-1] == f"temporary: {found:,} bytes" == "temporary: 16,000 bytes"


def test_a_plan_by_a_key_of_ones_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by the dtype of the elements; by a lossy one elements are gathered."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_keys.py").write_text(
        "from tests.key_cases import AbsoluteFirst\nclass Lossy(AbsoluteFirst):\n    is_lossy = True\nNUMBER = 3\n"
    )

    def told(call: str, key: str) -> str:
        code = cli.main(["plan", call, "--key", key, "--shape", "1000", "--on", "cpu"])
        shown = capsys.readouterr()
        assert (code, shown.out) == (1, "") or (code, shown.err) == (0, "")
        return shown.err or shown.out

    for call in ("sort", "argsort", "max", "merge"):
        assert told(call, "own_keys:AbsoluteFirst") == told(call, "i32")
    for call, gathers in (("sort", True), ("argsort", False), ("min", True), ("argmin", False)):
        assert ("take_elements" in told(call, "own_keys:Lossy")) == gathers
    for call, key, complaint in (
        ("sum", "own_keys:Lossy", "--key: expected none without the operation 'sort' or .*, found own_keys:Lossy"),
        ("sort", "own_keys:NUMBER", "--key: expected a SortableKey, .*, found 3, which has no element"),
        ("sort", "own_keys:nothing", "--key: 'own_keys:nothing' cannot be imported"),
        ("sort", "i31", "--key: expected one of bool, .* or module:attribute, found 'i31'"),
    ):
        assert re.match(f"gpusort: {complaint}", told(call, key))


# -- files ------------------------------------------------------------------------------------------------


def test_a_file_is_sorted_beside_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nobody watches, progress is a line at every tenth, on standard error."""
    x = np.random.default_rng(1).standard_normal(30_000)
    np.save(tmp_path / "x.npy", x)
    assert cli.main(["sort", str(tmp_path / "x.npy"), "--memory", "64k", "--descending"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "x.sorted.npy"), np.sort(x)[::-1])
    shown = capsys.readouterr()
    assert re.fullmatch(r".*x\.sorted\.npy: 234 KiB sorted in \d+\.\d s\n", shown.out)
    lines = shown.err.splitlines()
    assert 5 <= len(lines) <= 10
    assert re.fullmatch(r" *\d+%  runs     [\d.]+ [KMG]iB/s  \d+\.\d s left", lines[0])
    assert re.fullmatch(r"100%  buckets  [\d.]+ [KMG]iB/s  0\.0 s left", lines[-1])


def test_places_of_a_raw_file(tmp_path: Path) -> None:
    x = np.arange(5, dtype=">i2")[::-1]
    source = tmp_path / "x.bin"
    source.write_bytes(x.tobytes())
    assert cli.main(["sort", str(source), "--dtype", ">i2", "--argsort"]) == 0
    assert np.load(tmp_path / "x.argsort.npy").tolist() == [4, 3, 2, 1, 0]
    assert cli.main(["sort", str(source), "--dtype", ">i2", "-o", str(source), "--resume"]) == 0
    assert np.fromfile(source, ">i2").tolist() == [0, 1, 2, 3, 4]


def test_what_is_sorted_by_is_told_of_in_the_words_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, records = tmp_path / "x.npy", tmp_path / "records.npy"
    np.save(plain, np.zeros(3, "f4"))
    np.save(records, np.zeros(3, [("price", "f4"), ("id", "i4")]))
    for arguments, message in (
        ([plain, "--by", "price"], "elements of dtype float32 have no fields to sort by, found price"),
        ([records, "--by", "prize", "--by", "id"], "expected one or more of price, id, found prize, id"),
        ([records], "expected one or more of price, id, found nothing"),
    ):
        assert cli.main(["sort", *map(str, arguments)]) == 1
        assert capsys.readouterr().err == f"gpusort: --by: {message}\n"


def test_a_file_without_elements_is_sorted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.zeros(0))
    for options in ((), ("--argsort",)):
        assert cli.main(["sort", str(tmp_path / "x.npy"), *options]) == 0
    assert np.load(tmp_path / "x.sorted.npy").shape == np.load(tmp_path / "x.argsort.npy").shape == (0,)
    assert re.match("100%  buckets  0 B/s  0.0 s left", capsys.readouterr().err)


@pytest.mark.usefixtures("plain_environment")
def test_on_a_terminal_progress_is_a_line_that_changes() -> None:
    screen = Screen()
    bar = Bar(Terminal(screen))
    bar.show(Progress(3 << 30, 4 << 30, 10.0, 1e8, "runs"))
    assert re.search(r"\x1b\[32m━{18}\x1b\[0m.* 75%  runs     95\.4 MiB/s  10\.7 s left", screen.getvalue())
    bar.show(Progress(0, 0, 10.0, 0.0, "runs"))  # of no elements
    assert re.search(r"━{24}\x1b\[0m.* 100%  runs     0 B/s  0\.0 s left", screen.getvalue())
    bar.end()
    assert screen.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (99.4, "99.4 s"), (100, "2 min"), (6000, "1 h 40 min"), (float("inf"), "?")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("nbytes", "text"), [(0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"), (5 << 40, "5 TiB")])
def test_sizes(nbytes: int, text: str) -> None:
    assert size(nbytes) == text


# -- mistakes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "quicksort"), r"gpusort: KERNEL: there is no kernel 'quicksort'; `gpusort show` lists them"),
        (("sort", "/dev/null"), r"gpusort: FILE: /dev/null is not a regular file"),
        (("sort", "nowhere.npy"), r"gpusort: FILE: there is no file: '/.*/nowhere.npy'"),
        (("sort", ""), r"gpusort: FILE: .* is not a regular file"),
        (("sort", "-"), r"gpusort: -: expected files, as pipes cannot be sorted; a file of that name is \./-"),
        (("sort", __file__, "--output", "-"), r"gpusort: -: expected files"),
        (("sort", __file__), r"gpusort: --dtype: .* is a raw file, whose dtype must be given, e.g. 'f4'"),
        (("sort", __file__, "--memory", "3x"), r"gpusort: --memory: expected a number of bytes, .*, found '3x'"),
        (("sort", __file__, "--target", "tpu"), r"gpusort: --target: expected 'auto', 'cpu', .*, found 'tpu'"),
        (
            ("sort", __file__, "--output", "/no/where"),
            r"gpusort: --output: expected a file in an existing .*/no/where",
        ),
        (("sort", __file__, "--dtype", "u1", "--output", ""), r"gpusort: --output: expected a file"),
        (("tune", "--target", "tpu"), r"gpusort: --target: expected 'auto', 'cpu', .*, found 'tpu'"),
        (("export", "sort", "--out", "x", "--keys", "u31"), r"gpusort: --keys: expected some of u8, .*, found 'u31'"),
        (("export", "sort", "--out", "x", "--subgroups", "3"), r"gpusort: --subgroups: expected 0, or .*, found 3"),
        (("export", "shuffle", "--out", "x"), r"gpusort: OPERATION: expected some of sort, .*, found 'shuffle'"),
        (("sort", "x" * 300), r"gpusort: .*File name too long"),
        (("show", "bitonic"), r"gpusort: KERNEL: 'bitonic' may be bitonic_tile, bitonic_step, .*"),
        (
            ("plan", "sort", "--shape", "99999999999999999999"),
            r"gpusort: --shape: expected at most .* bytes, found '9+'",
        ),
        (("plan", "merge", "--shape", "3,3"), r"gpusort: --key, --shape: expected an array of one dimension, found"),
        (("plan", "sum", "--shape", "3", "--key", "datetime64"), r"gpusort: --key, --shape: cannot add or multiply"),
        (("plan", "sort", "--shape", "9" * 5000), r"gpusort: --shape: expected at most .* bytes, found '9+'"),
        (("plan", "sort", "--shape", "٣,3"), r"gpusort: --shape: expected sizes such as 1000,300, found '٣,3'"),
        (("plan", "sort", "--shape", "3²"), r"gpusort: --shape: expected sizes such as 1000,300, found '3²'"),
        (("export", "sort", "--out", "x", "--rows", "١٠"), r"gpusort: --rows: expected lengths .*, found '١٠'"),
        (("export", "top_k", "--out", "x", "--k", "9,١"), r"gpusort: --k: expected numbers such as 10, found '9,١'"),
        (("sort", __file__, "--memory", "٦٠٠M"), r"gpusort: --memory: expected a number of bytes, .*, found '٦٠٠M'"),
        (("sort", __file__, "--memory", "600\u212a"), r"gpusort: --memory: expected a number of bytes, .*, found '600"),
        (("show", "bitonic_step", "--key", "c64"), r"gpusort: --key: expected one of bool, u8, .*, found 'c64'"),
        (("show", "scan_totals", "--key", "datetime64"), r"gpusort: KERNEL: 'scan_totals' is not made for datetime64"),
        (("show", "reduce_columns", "--key", "f64", "--target", "wgsl"), r"gpusort: .*64-bit float"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.match(message, shown.err)
    assert "Traceback" not in shown.err


def test_a_mistake_in_ones_own_kernel_is_told_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chained_key.py").write_text(CHAINED_KEY)
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main(["export", "sort", "--keys", "chained_key:KEY", "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().err
    assert re.match(r"gpusort: .*chained_key\.py:\d+: expected one comparison at a time, .*\n    return ", shown)
    assert "Traceback" not in shown


@pytest.mark.parametrize("text", ["٢", "1_0", "two", "-"])
def test_an_int_is_of_ascii_digits(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["plan", "sort", "--shape", "3,3", f"--axis={text}"])
    assert f"argument --axis: expected an int, found {text!r}" in capsys.readouterr().err
    assert cli.main(["plan", "sort", "--shape", "3,3", "--axis", "-2"]) == 0


def test_an_unknown_command_prints_the_usage() -> None:
    done = gpusort("sortify")
    assert done.returncode == 2
    assert "usage: gpusort" in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_options_print_the_usage_of_their_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["plan", "sort", "--shape", "10", "--descending"])
    said = capsys.readouterr().err
    assert said.startswith("usage: gpusort plan ")
    assert said.endswith("gpusort plan: error: unrecognized arguments: --descending\n")


def test_ctrl_c_while_the_command_line_is_read_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "command_parser", interrupt)
    assert main() == 130


def test_ctrl_c_while_the_command_line_is_imported_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Struck(MetaPathFinder):
        def find_spec(self, fullname: str, path: object, target: object = None) -> None:
            if fullname == "gpusort.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "gpusort.cli")
    monkeypatch.setattr(sys, "meta_path", [Struck(), *sys.meta_path])
    assert main() == 130


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "demo" in capsys.readouterr().out


def test_a_reader_that_leaves_early_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m gpusort show bitonic_registers --target cuda | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("streams", ["2>&1 | head -1", ">&- 2>&-", "2>/dev/full"])
def test_a_sort_that_nobody_watches_any_more_is_done(streams: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(200_000.0)[::-1])
    command = f"set -o pipefail; {sys.executable} -m gpusort sort x.npy --memory 400k {streams}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, check=False, timeout=120)
    assert done.returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "x.sorted.npy"), np.arange(200_000.0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "x.sorted.npy"]


@few_cases(pairs=False)
@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("command", ["--help", "sort --help", "show", "targets"])
def test_a_reader_that_has_seen_enough_is_no_failure(command: str, buffered: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m gpusort {command} | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "PYTHONUNBUFFERED": buffered},
    )  # fmt: skip
    assert (done.stdout, complaints(done.stderr)) == ("0\n", "")


@pytest.mark.parametrize("words", ["show", "--version", "sort --help"])
def test_a_disk_that_takes_no_more_lines_is_one_line(words: str) -> None:
    command = f"{sys.executable} -m gpusort {words} > /dev/full"
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, timeout=120, env=environment
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "gpusort: No space left on device"
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


# -- colours ----------------------------------------------------------------------------------------------


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("plain_environment")
def test_a_terminal_gets_colours_and_notes() -> None:
    screen = Screen()
    terminal = Terminal(screen)
    assert terminal.toned("well", Tone.GOOD) == "\x1b[32mwell\x1b[0m"
    terminal.note("compiling")
    terminal.forget_note()
    assert "compiling" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


@pytest.mark.usefixtures("plain_environment")
def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert Terminal(Screen()).toned("well", Tone.GOOD) == "well"


@pytest.mark.usefixtures("plain_environment")
def test_a_pipe_gets_plain_lines_and_no_notes() -> None:
    pipe = io.StringIO()
    terminal = Terminal(pipe)
    terminal.note("compiling")
    terminal.forget_note()
    terminal.line(terminal.toned("well", Tone.GOOD))
    assert pipe.getvalue() == "well\n"


@pytest.mark.parametrize(
    ("coding", "line"), [("utf-8", "ü \\udcff\n"), ("ascii", "\\xfc \\udcff\n")], ids=["utf-8", "ascii"]
)
def test_a_name_that_is_no_text_is_written_all_the_same(coding: str, line: str) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, coding, newline="\n")
    Terminal(stream).line("ü \udcff")
    assert written.getvalue().decode() == line
