"""What ranks tell one another beside elements: whether they were called alike, and whether one of them has failed.

Ranks of different dtypes or orders would exchange bytes that mean something else to the receiver; and one that refuses
its arguments, or fails on the way, would leave the others waiting for it. So every gather has a byte more from each
rank, which says whether its values follow or why there are none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from ..external.cuts import Array
from ..types.errors import InvalidArgumentError, RankFailedError, UnsupportedTypeError
from .communicators import Communicator

_VALUES, _REFUSED, _FAILED = range(3)  # the last byte of what a rank tells


def gathered(communicator: Communicator, values: Array) -> list[Array]:
    """All ranks' values, of one dtype. Raises an error on every rank if one has failed."""
    told = [np.asarray(one) for one in _told(communicator, values, _VALUES)]
    for rank, one in enumerate(told):
        if one[-1] == _REFUSED:
            raise InvalidArgumentError(f"communicator: rank {rank} has refused its arguments")
        if one[-1] == _FAILED:
            raise RankFailedError(f"communicator: rank {rank} has failed: {one[:-1].tobytes().decode()}")
    return [one[:-1].copy().view(values.dtype) for one in told]


def tell_failure(communicator: Communicator, error: BaseException) -> None:
    """Tells all ranks, in the gather that they are at or will come to, that this one raises an error."""
    refuses = isinstance(error, InvalidArgumentError | UnsupportedTypeError)
    text = np.frombuffer(f"{type(error).__name__}: {error}".encode(), np.uint8)
    _told(communicator, text, _REFUSED if refuses else _FAILED)


def agreed_lengths(communicator: Communicator, length: int, call: Sequence[object]) -> list[int]:
    """The lengths of all ranks' arrays. Raises InvalidArgumentError on every rank if one was called otherwise than
    others: `call` says how, in words that do not depend on the process."""
    told = np.stack(gathered(communicator, np.array([length, _digest(call)], np.int64)))
    mine = told[communicator.rank, 1]
    others = np.flatnonzero(told[:, 1] != mine).tolist()
    if (told[:, 1] != told[0, 1]).any():
        raise InvalidArgumentError(
            "communicator: expected the same function on every rank, with the same arguments but for the elements, and "
            f"arrays of the same dtypes; rank {communicator.rank} was called otherwise than {others[0]}"
        )
    lengths: list[int] = told[:, 0].tolist()
    return lengths


def _told(communicator: Communicator, values: Array, how: int) -> Sequence[Array]:
    return communicator.gather(np.append(np.ascontiguousarray(values).view(np.uint8), np.uint8(how)))


def _digest(call: Sequence[object]) -> int:
    return int.from_bytes(hashlib.sha256(repr(tuple(call)).encode()).digest()[:7], "little")
