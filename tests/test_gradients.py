"""What torch's gradients are told of tensors that gpusort writes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

import gpusort

sort, sort_inplace = cast(Any, gpusort.sort), cast(Any, gpusort.sort_inplace)
REFUSED = "expected an array that can be written, found one that requires grad"
CHANGED = "modified by an inplace operation"


@pytest.fixture(name="torch")
def installed() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed")


def test_a_tensor_is_not_written_to_while_its_gradient_is_recorded(torch: Any) -> None:
    leaf = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    x = torch.tensor([3.0, 1.0, 2.0])
    for like in (leaf, leaf * 1, torch.nn.Parameter(x.clone())):
        for wrong, name in (
            (lambda: sort_inplace(like), "x"),  # noqa: B023
            (lambda: sort(x, out=like), "out"),  # noqa: B023
            (lambda: gpusort.plan(sort, x, out=like), "out"),  # noqa: B023
        ):
            with pytest.raises(gpusort.InvalidArgumentError, match=f"^{name}: {REFUSED}"):
                wrong()
        assert like.tolist() == [3.0, 1.0, 2.0]
    with torch.no_grad():
        sort_inplace(leaf)
    assert leaf.tolist() == [1.0, 2.0, 3.0]
    assert leaf.requires_grad


def test_what_was_saved_for_a_gradient_is_not_used_once_it_is_sorted(torch: Any) -> None:
    """Otherwise the gradient would be wrong without a word."""
    x = torch.tensor([3.0, 1.0, 2.0])
    writes: list[Callable[[Any], object]] = [
        sort_inplace,
        lambda saved: sort(x, out=saved),
        lambda saved: gpusort.plan(sort, x, out=saved)(x),
    ]
    for write in writes:
        weights = torch.ones(3, requires_grad=True)
        saved = torch.tensor([9.0, 7.0, 8.0])
        loss = (weights * saved).sum()
        write(saved)
        with pytest.raises(RuntimeError, match=CHANGED):
            loss.backward()


def test_a_prepared_calls_result_is_not_used_for_a_gradient_once_it_is_overwritten(torch: Any) -> None:
    call = gpusort.plan(sort, torch.tensor([3.0, 1.0, 2.0]))
    weights = torch.ones(3, requires_grad=True)
    loss = (weights * call(torch.tensor([3.0, 1.0, 2.0]))).sum()
    loss.backward()
    assert weights.grad.tolist() == [1.0, 2.0, 3.0]
    loss = (weights * call(torch.tensor([3.0, 1.0, 2.0]))).sum()
    call(torch.tensor([6.0, 4.0, 5.0]))
    with pytest.raises(RuntimeError, match=CHANGED):
        loss.backward()


def test_tensors_of_inference_mode_are_sorted_in_place(torch: Any) -> None:
    with torch.inference_mode():
        x = torch.tensor([3.0, 1.0, 2.0])
        sort_inplace(x)
    sort_inplace(x, descending=True)
    assert x.tolist() == [3.0, 2.0, 1.0]
