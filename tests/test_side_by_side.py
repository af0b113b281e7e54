"""Tests that run in several processes forked from one are reported as they are in that one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.packed import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")

_CONFTEST = """
from tests import side_by_side

def pytest_addoption(parser):
    parser.addoption(side_by_side.OPTION, type=int, default=0)

def pytest_configure(config):
    side_by_side.register(config)
"""
_ENDS = """
import os, warnings
import pytest

@pytest.fixture(scope="session", params=["a", "b"])
def made(request, tmp_path_factory):
    where = tmp_path_factory.mktemp("made")
    yield where
    print("torn down", request.param)

def test_passes(made):
    assert made.exists()

def test_ends():
    os._exit(7)

def test_goes_on(record_property):
    record_property("told", "of the test")
    warnings.warn("to the reader")

def test_fails():
    print("said before")
    assert [1, 2] == [1, 3]
"""
_OTHER = """
import os, time
import pytest

@pytest.fixture
def broken():
    raise ValueError("set-up")

def test_errs(broken): pass
def test_skips(): pytest.skip("for a reason")
@pytest.mark.xfail
def test_is_expected_to_fail(): assert False
def test_ends_last():
    if not os.fork(): time.sleep(3)  # what holds the pipe
    os._exit(8)
"""
_LATER = """
def test_later(): pass
"""


def _run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    for name, text in {"conftest": _CONFTEST, "test_ends": _ENDS, "test_other": _OTHER, "test_so": _LATER}.items():
        (folder / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, f"--rootdir={folder}", "-p", "no:cacheprovider", "-ra"]
    command += ["-o", "junit_family=xunit1"]
    unrelated = ["-p", "no:hypothesispytest", "-p", "no:benchmark", "-p", "no:xdist", "-p", "no:cov"]
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, *unrelated, *options], cwd=folder, env=own, capture_output=True, text=True, timeout=100, check=False
    )


def test_what_becomes_of_tests_is_told(tmp_path: Path) -> None:
    done = _run(tmp_path, "--side-by-side", "2", f"--junitxml={tmp_path / 'report.xml'}")
    assert done.returncode == 1, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert re.search("3 failed, 4 passed, 1 skipped, 1 xfailed, 1 warning, 1 error", last), done.stdout
    assert "FAILED test_ends.py::test_ends - the process ended amid this test, with 7" in done.stdout
    for words in ("said before", "At index 1 diff: 2 != 3", "UserWarning: to the reader", "ValueError: set-up"):
        assert words in done.stdout
    cases = {case.get("name"): case for case in ElementTree.parse(tmp_path / "report.xml").iter("testcase")}
    assert set(cases) == {
        "test_passes[a]", "test_passes[b]", "test_ends", "test_goes_on", "test_fails", "test_errs", "test_skips",
        "test_is_expected_to_fail", "test_ends_last", "test_later",
    }  # fmt: skip
    told = cases["test_goes_on"].find("properties/property")
    assert told is not None
    assert told.get("value") == "of the test"


def test_the_first_failure_may_be_the_end(tmp_path: Path) -> None:
    done = _run(tmp_path, "--side-by-side", "1", "-x")
    assert done.returncode == 1, done.stderr
    assert "stopping after 1 failures" in done.stdout
    assert "test_fails" not in done.stdout
