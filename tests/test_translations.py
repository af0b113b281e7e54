"""Every kernel of every key is taken by Tint and by naga, and translated to MSL, HLSL, valid SPIR-V and GLSL."""

from __future__ import annotations

import re
import shutil

import attrs
import pytest

from tests.exported import node
from web.translations import BACK_ENDS, PAGE, VALIDATOR, Text, answers, page, texts


@pytest.fixture(scope="module")
def asked(pytestconfig: pytest.Config) -> list[Text]:
    """Of every dtype with --whole, else of a tenth of them."""
    node()
    return list(texts(1 if pytestconfig.getoption("--whole") else 10))


def test_every_kernel_is_translated(asked: list[Text], pytestconfig: pytest.Config) -> None:
    """And the document says so: python -m web.translations writes it anew. With --whole the document is compared to
    the letter; else it must have the kernels."""
    whole = bool(pytestconfig.getoption("--whole"))
    assert len(asked) > (500 if whole else 80)
    found, has_validator = answers(asked), shutil.which(VALIDATOR) is not None
    refused = [
        f"{text.kernel} of {text.dtype}, {name}: {answer.get(name, 'not reached')}"
        for text, answer in zip(asked, found, strict=True)
        for name in BACK_ENDS
        if name != VALIDATOR or has_validator
        if answer.get(name) != ""
    ]
    assert not refused, "\n".join(refused)
    written = PAGE.read_text("utf-8")
    assert {text.kernel for text in asked} == set(re.findall(r"^\| `(\w+)`", written, re.MULTILINE))
    if not whole:
        return
    if not has_validator:
        pytest.skip("spirv-val is not here, so the document cannot be compared; install spirv-tools")
    assert page(asked, found) == written


def test_what_is_wrong_is_refused(asked: list[Text]) -> None:
    """By each of the two: neither is silent about a text that is none, or that uses what it has not got."""
    right = next(text for text in asked if text.kernel == "radix_count")
    wrong = attrs.evolve(right, text=right.text.replace("workgroupBarrier", "workgroupBarier"))
    uniform = attrs.evolve(
        right, text=right.text.replace("workgroupBarrier()", "if (local_id == 0u) { workgroupBarrier(); }", 1)
    )
    subgroups = next(text for text in asked if text.subgroups)
    found = answers([right, wrong, uniform, attrs.evolve(subgroups, subgroups=False)])
    assert set(found[0].values()) == {""}
    assert "workgroupBarier" in found[1]["Tint"]
    assert "workgroupBarier" in found[1]["naga"]
    assert "uniform control flow" in found[2]["Tint"]
    assert "subgroups" in found[3]["Tint"]
