"""Which adapter the target "wgsl" takes: never OpenGL unless it is asked for, and software only under its name."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

from gpusort import tuning
from gpusort.machine import TargetInfo
from gpusort.targets import registry
from gpusort.targets.wgsl import device
from gpusort.types.errors import TargetUnavailableError
from gpusort.types.specs import Memory

wgpu: Any = pytest.importorskip("wgpu")


class Info(dict[str, Any]):
    """What wgpu tells of an adapter: an item's name is an attribute's, too."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def adapter(name: str, backend: str, power: str) -> Any:
    return SimpleNamespace(
        info=Info(device=name, backend_type=backend, adapter_type=power, description=f"driver of {name}")
    )


CARD, CARD_GL = adapter("Card 9", "Vulkan", "DiscreteGPU"), adapter("Card 9", "OpenGL", "DiscreteGPU")
PIPE, PIPE_GL = adapter("llvmpipe", "Vulkan", "CPU"), adapter("llvmpipe", "OpenGL", "CPU")
EMBEDDED_GL, SWIFT = adapter("Card 9", "OpenGLES", "Unknown"), adapter("SwiftShader Device", "Vulkan", "Unknown")


@pytest.mark.parametrize(
    ("asked", "there", "taken"),
    [
        ("", [PIPE_GL, PIPE, CARD_GL, CARD], CARD),
        ("", [PIPE_GL, PIPE], PIPE),
        ("", [CARD_GL, PIPE], PIPE),
        ("", [CARD_GL], None),
        ("  ", [PIPE_GL], None),
        ("", [EMBEDDED_GL], None),
        ("llvmpipe", [PIPE_GL, CARD], None),
        ("llvmpipe", [PIPE_GL, PIPE, CARD], PIPE),
        ("card 9", [PIPE, CARD_GL], None),
        ("OpenGL", [PIPE, PIPE_GL, CARD, CARD_GL], CARD_GL),
        ("opengl, cpu", [PIPE, PIPE_GL, CARD_GL], PIPE_GL),
    ],
)
def test_opengl_is_taken_only_where_it_is_asked_for(
    asked: str, there: list[Any], taken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(device.ADAPTER_VARIABLE, asked)
    if taken is not None:
        assert device.preferred_adapter(there) is taken
        return
    with pytest.raises(TargetUnavailableError, match=r"finds OpenGL alone: .*needs a Vulkan.*ADAPTER=OpenGL to take"):
        device.preferred_adapter(there)


def test_one_thread_at_a_time_looks_for_adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two, wgpu-native would abort the process."""
    looking, most = [0], [0]

    def enumerate_adapters_sync() -> list[Any]:
        looking[0] += 1
        most[0] = max(most[0], looking[0])
        time.sleep(0.05)
        looking[0] -= 1
        return [PIPE]

    monkeypatch.setattr(
        device, "wgpu", SimpleNamespace(gpu=SimpleNamespace(enumerate_adapters_sync=enumerate_adapters_sync))
    )
    with ThreadPoolExecutor(4) as pool:
        assert [one.result() for one in [pool.submit(device.choose_adapter) for _ in range(4)]] == [PIPE] * 4
    assert most == [1]


def test_software_is_known_by_its_kind_or_name() -> None:
    assert [device.is_software(one.info) for one in (CARD, CARD_GL, PIPE, PIPE_GL, SWIFT)] == [0, 0, 1, 1, 1]


def _targets(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gpusort", "targets"],
        env={**os.environ, **environment},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = "\n" + done.stdout
    return lines[lines.index("\nwgsl: ") : lines.index("\ncuda: ")]


def test_without_vulkan_the_target_is_not_available_and_says_why() -> None:
    nowhere = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent", device.ADAPTER_VARIABLE: ""}
    said = _targets(**nowhere)
    if sys.platform == "linux":
        assert said.startswith("\nwgsl: not available: target 'wgsl' finds ")
        assert "needs a Vulkan" in said
    if "llvmpipe" in said:  # the system's OpenGL is software, and is named as that where it is asked for
        assert "driver            OpenGL, in software, " in _targets(**{**nowhere, device.ADAPTER_VARIABLE: "opengl"})


def test_targets_say_what_is_software() -> None:
    (info,) = [state for state in registry.targets() if state.name == "wgsl"]
    if not isinstance(info, TargetInfo):
        pytest.skip(info.reason)
    assert info.is_software == ("in software" in info.driver)
    assert info.is_software or "llvmpipe" not in info.adapter


def test_nothing_chooses_wgsl_by_itself() -> None:
    assert registry.choose("auto", Memory.HOST) is registry.target("cpu")


@pytest.mark.parametrize("is_software", [True, False])
def test_software_is_tuned_only_by_name(
    is_software: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv("GPUSORT_CACHE_DIR", str(tmp_path))
    measured: list[object] = []
    said: list[str] = []
    info = attrs.evolve(registry.target("cpu").info, name="wgsl", adapter="Pipe", is_software=is_software)
    target: Any = SimpleNamespace(info=info, device_seconds=np.empty)
    monkeypatch.setattr(tuning, "_TUNED", ("wgsl",))

    def targets(wanted: object) -> list[object]:
        return [target]

    monkeypatch.setattr(tuning, "_targets", targets)

    def tuned_sorts(*given: object) -> list[object]:
        measured.append(given)
        return []

    monkeypatch.setattr(tuning, "_tuned_sorts", tuned_sorts)
    tuning.tune(report=said.append)
    assert bool(measured) != is_software
    assert ("wgsl: left out, for Pipe is software; name the target to measure it" in said) == is_software
    tuning.tune("wgsl", report=None)
    assert measured


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (RuntimeError("no thread"), "no thread"),
        (wgpu.GPUError("lost at once"), "lost"),
        (MemoryError(), "out of memory"),
    ],
)
def test_an_adapter_that_has_no_device_for_us_is_a_target_that_is_not_there(
    failure: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise failure

    refusing = SimpleNamespace(request_device_sync=refuse)
    monkeypatch.setattr(device, "choose_adapter", lambda: refusing)
    monkeypatch.setattr(device, "device_request", lambda _: {})
    with pytest.raises(TargetUnavailableError, match=f"target 'wgsl' cannot open a device: {told}"):
        device.open_device()
