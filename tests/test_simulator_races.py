"""The race detector against its definition: all pairs of accesses, one by one."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from gpusort.targets.simulator.races import ONE_BARRIER, Access, RaceDetector, keys_of
from gpusort.types.invocation import Invoker
from tests.covering import few_cases

GROUPS, GROUP_SIZE, ELEMENTS = 3, 4, 5
ATOMIC = (Access.ATOMIC_READ, Access.ATOMIC_WRITE)
READS = (Access.READ, Access.ATOMIC_READ)


@attrs.frozen
class Touch:
    """One access of one invocation to one element, after so many barriers of its workgroup."""

    by: Invoker
    barriers: int
    element: int
    kind: Access
    site: int

    def races_with(self, other: Touch) -> bool:
        ordered = self.by.group == other.by.group and (self.by == other.by or self.barriers != other.barriers)
        harmless = (self.kind in ATOMIC and other.kind in ATOMIC) or (self.kind in READS and other.kind in READS)
        return self.element == other.element and not ordered and not harmless


@few_cases(can=lambda case: int(str(case["seed"])) < 100)
@pytest.mark.parametrize("seed", range(300))
def test_the_first_race_is_found_and_is_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    locals_ = np.tile(np.arange(GROUP_SIZE, dtype=np.uint32), GROUPS)
    groups = np.repeat(np.arange(GROUPS, dtype=np.uint32), GROUP_SIZE)
    keys, barriers = keys_of(groups, locals_), np.zeros(GROUPS, np.int64)
    kinds = rng.permutation(np.array(list(Access)))[: rng.integers(1, 5)]
    so_far: list[Touch] = []
    in_step, together = seed % 3 > 0, 0  # whether all workgroups pass a barrier at once, and how many
    apart = seed % 3 == 1  # whether each workgroup has elements of its own
    detector = RaceDetector(ELEMENTS, of_one_group=apart)
    for site in range(30):
        if rng.random() < 0.4:  # a workgroup passes a barrier
            group = rng.integers(GROUPS)
            barriers[in_step | (np.arange(GROUPS) == group)] += 1
            keys[in_step | (groups == group)] += ONE_BARRIER
            together += in_step
        kind: Access = rng.choice(kinds)
        lanes = np.flatnonzero(rng.random(len(keys)) < rng.choice([0.1, 0.5, 1.0]))
        alone = rng.random() < 0.7  # otherwise nearly all is a race at once
        elements = (lanes if alone else rng.integers(0, ELEMENTS, len(lanes))) % ELEMENTS
        elements = np.where(groups[lanes] == elements % GROUPS, elements, -1) if alone or apart else elements
        lanes, elements = lanes[elements >= 0], elements[elements >= 0].astype(np.int64)
        now = [
            Touch(Invoker(int(groups[i]), int(locals_[i])), int(barriers[groups[i]]), int(element), kind, site)
            for i, element in zip(lanes, elements, strict=True)
        ]
        expected = any(a.races_with(b) for a in now for b in (*so_far, *now))
        found = detector.access(elements, keys[lanes], kind, site, together)
        assert (found is not None) == expected
        if found is not None:
            mine = now[found.position]
            named = [
                touch
                for touch in (*so_far, *now)
                if (touch.by, touch.kind, touch.site) == (found.other, found.other_access, found.other_site)
            ]
            assert any(mine.races_with(touch) for touch in named)
            return
        so_far += now
