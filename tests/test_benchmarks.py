"""The side-by-side run, on small arrays: it ends, nothing fails, and what it writes has the form that is promised."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import compare, compare_cpu


def test_it_runs_and_writes_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    monkeypatch.setattr(sys, "argv", ["compare", "--largest", "1024", "--only", "cpu", "--json", str(path)])
    assert compare.main() == 0
    written = json.loads(path.read_text())
    assert {"processor", "python", "packages", "targets"} <= set(written["machine"])
    assert len(written["results"]) == len(list(compare_cpu.comparisons(1024)))
    for result in written["results"]:
        assert result["ratio"] == pytest.approx(result["peer_s"] / result["ours_s"])
    assert "0 failed" in capsys.readouterr().out
