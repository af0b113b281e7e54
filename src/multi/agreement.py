"""What ranks tell one another before a collective sort: their lengths, and a digest of what they were asked to do.

Ranks of different dtypes or orders would exchange bytes that mean something else to the receiver; and a rank that
refuses its arguments would leave the others waiting for it. So all of them hear of it, in the gather of the lengths.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from ..external.agreed_cuts import HostArray
from ..types.errors import InvalidArgumentError
from .driving import Communicator

REFUSED: HostArray = np.array([-1, 0], np.int64)  # told by a rank whose arguments are wrong


def agreed_lengths(communicator: Communicator, length: int, call: Sequence[object]) -> list[int]:
    """The lengths of all ranks' arrays. Raises InvalidArgumentError on every rank if one has refused its arguments, or
    was called otherwise than this one: `call` says how, in words that do not depend on the process."""
    told = np.stack([np.asarray(told) for told in communicator.gather(np.array([length, _digest(call)], np.int64))])
    refused = np.flatnonzero(told[:, 0] < 0).tolist()
    if refused:
        raise InvalidArgumentError(f"communicator: rank {refused[0]} has refused its arguments")
    if (told[:, 1] != told[0, 1]).any():
        mine = told[communicator.rank, 1]
        others = np.flatnonzero(told[:, 1] != mine).tolist()
        raise InvalidArgumentError(
            "communicator: expected the same function on every rank, with the same arguments but for the elements, and "
            f"arrays of the same dtypes; rank {communicator.rank} was called otherwise than {others[0]}"
        )
    return [int(length) for length in told[:, 0]]


def _digest(call: Sequence[object]) -> int:
    return int.from_bytes(hashlib.sha256(repr(tuple(call)).encode()).digest()[:7], "little")
