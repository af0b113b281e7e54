"""A file larger than the memory that its sort is given: records by a field, the places of the sorted ones, and a sort
that is stopped in the middle and goes on."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import gpusort

TRADE = np.dtype([("price", "<f4"), ("volume", "<i4"), ("time", "<M8[ms]")])
COUNT = 200_000


class Stopped(Exception):
    """As Ctrl-C would stop it."""


def stop_in_the_middle(progress: gpusort.Progress) -> None:
    if progress.fraction > 0.5:
        raise Stopped


def main() -> None:
    numbers = np.random.default_rng(1)
    trades = np.zeros(COUNT, TRADE)
    trades["price"] = numbers.integers(100, 200, COUNT) / 4
    trades["volume"] = numbers.integers(1, 50, COUNT)
    trades["time"] = np.arange(COUNT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, target, places = (folder / f"{file}.npy" for file in ("trades", "by-price", "places"))
        np.save(source, trades)
        try:
            gpusort.sort_file(source, target, by="price", memory="2M", resume=True, progress=stop_in_the_middle)
        except Stopped:
            print(f"stopped; {target.name} is {'there' if target.exists() else 'not there'}")
        steps: list[gpusort.Progress] = []
        gpusort.sort_file(source, target, by="price", memory="2M", resume=True, progress=steps.append)
        gpusort.argsort_file(source, places, by=["volume", "price"], descending=True, memory="2M")
        found = np.load(target, mmap_mode="r")  # nothing is read before it is looked at
        assert np.array_equal(found, trades[np.argsort(trades["price"], kind="stable")])
        best = trades[np.load(places)[0]]
        assert (best["volume"], best["price"]) == (
            trades["volume"].max(),
            trades["price"][trades["volume"] == 49].max(),
        )
        print(f"{COUNT:,} records by price, of equal ones the earlier first; most for most: {best}")
        assert steps[0].fraction > 0.5  # what was done was not done again


if __name__ == "__main__":
    main()
