"""A monoid of one's own: log-sum-exp in one reading, without overflow; of all elements, and of all so far."""

from __future__ import annotations

import attrs
import numpy as np

import gpusort
from gpusort.kernel.language import F32, U32, exp

Floats = np.ndarray[tuple[int], np.dtype[np.float32]]


@attrs.frozen
class Scaled:
    """The sum of e**x over some elements, as `total * e**peak`."""

    peak: F32
    total: F32


@attrs.frozen
class LogSumExp:
    """Satisfies Monoid[F32, Scaled]."""

    element: type[F32] = F32
    state: type[Scaled] = Scaled

    def identity(self) -> Scaled:
        return Scaled(F32(-3.0e38), F32(0.0))

    def lift(self, element: F32, index: U32) -> Scaled:
        return Scaled(element, F32(1.0))

    def combine(self, a: Scaled, b: Scaled) -> Scaled:
        peak = a.peak if a.peak > b.peak else b.peak
        return Scaled(peak, a.total * exp(a.peak - peak) + b.total * exp(b.peak - peak))


def log_sum_exp(x: Floats, where: str = "cpu") -> float:
    state = gpusort.reduce(x, LogSumExp(), target=where)
    return float(state["peak"] + np.log(state["total"]))


def running_log_sum_exp(x: Floats, where: str = "cpu") -> Floats:
    """Of every element and all before it."""
    states = gpusort.scan(x, LogSumExp(), target=where)
    found: Floats = states["peak"] + np.log(states["total"])
    return found


def main(where: str = "cpu") -> None:
    x = np.linspace(-50, 90, 1000, dtype=np.float32)
    wide = x.astype(np.float64)
    expected = float(wide.max() + np.log(np.exp(wide - wide.max()).sum()))
    found = log_sum_exp(x, where)
    print(found, expected)
    assert abs(found - expected) < 1e-3
    assert np.allclose(running_log_sum_exp(x, where), np.logaddexp.accumulate(wide), atol=1e-3)


if __name__ == "__main__":
    main()
