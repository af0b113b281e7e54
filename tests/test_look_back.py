"""What a tile of a sweep adds up from the tiles before it: their own counts, back to the last prefix sum. It waits for
those that have published nothing in this pass. In a simulator they all have, before any tile looks: here some have not.
"""

from __future__ import annotations

import numpy as np
import pytest

from gpusort.algos.radix_sweep import COUNT, OWN, UP_TO_HERE, look_back, status_word
from gpusort.algos.sweep_state import IS_ODD
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.targets.simulator import lockstep
from gpusort.targets.simulator.target import Simulator
from gpusort.types.errors import IterationLimitError
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.params import RadixPolicy
from gpusort.types.scalars import U32

# The words of one digit in tiles, one after the other, and what the next tile finds: None where it waits.
TILES: dict[str, tuple[list[int], int | None]] = {
    "a prefix sum": ([UP_TO_HERE | 7], 7),
    "none of a digit": ([UP_TO_HERE, OWN, OWN], 0),
    "the most that are counted": ([UP_TO_HERE | COUNT], COUNT),
    "own counts behind a prefix sum": ([UP_TO_HERE | 7, OWN | 5, OWN | 1, OWN | 11], 24),
    "the last of two prefix sums": ([UP_TO_HERE | 7, UP_TO_HERE | 20, OWN | 3], 23),
    "what lies before a prefix sum": ([0, 0, UP_TO_HERE | 20, OWN | 3], 23),
    "nothing yet": ([UP_TO_HERE | 7, 0], None),
    "a count of the pass before": ([UP_TO_HERE | 7, COUNT], None),
    "nothing behind some": ([UP_TO_HERE | 7, 0, OWN | 1, OWN | 11], None),
    "no prefix sum": ([0, OWN | 5], None),
}


@kernel
def looking(
    cx: Invocation, state: Storage[U32], found: Storage[U32], tile: U32, phase_bit: U32, policy: RadixPolicy
) -> None:
    found[cx.local_id] = look_back(state, status_word(cx, tile, policy), phase_bit, policy)


@pytest.mark.parametrize("lookback", [1, 2, 3, 5])
@pytest.mark.parametrize("phase_bit", [0, IS_ODD])
@pytest.mark.parametrize("tiles", TILES)
def test_what_earlier_tiles_have(monkeypatch: pytest.MonkeyPatch, tiles: str, phase_bit: int, lookback: int) -> None:
    """For one of two digits; of the other, all tiles before have none."""
    words, expected = TILES[tiles]
    state = np.zeros((lookback + len(words), 2), np.uint32)
    state[lookback:, 0] = UP_TO_HERE
    state[lookback:, 1] = words
    state ^= phase_bit
    policy = RadixPolicy(1, 2, strand=1, subgroups=False, lookback=lookback)
    status, found = Buffer("state", U32, state.size, Role.INOUT), Buffer("found", U32, 2, Role.OUTPUT)
    launch = looking.launch(Grid(1, 2), status, found, U32(len(words)), U32(phase_bit), policy)
    results = np.zeros(2, np.uint32)
    arrays = {"state": state.reshape(-1), "found": results}
    monkeypatch.setattr(lockstep, "MOST_ROUNDS", len(words) + 1)
    simulator = Simulator()
    if expected is None:
        with pytest.raises(IterationLimitError):
            simulator.run(Schedule((status, found), (launch,)), arrays)
    else:
        simulator.run(Schedule((status, found), (launch,)), arrays)
        assert results.tolist() == [0, expected]
