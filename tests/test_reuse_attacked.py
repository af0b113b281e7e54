"""Whatever is taken from a result and kept, copied or called: no later result lies in memory that somebody holds."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import random
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import pytest

from gpusort.arrays import recycled as reuse
from tests.new_process import printed

# Setting an array's dtype or shape is on its way out of NumPy, and can be done for now.
pytestmark = pytest.mark.filterwarnings("ignore:.*(dtype|shape).*:DeprecationWarning")

BYTES = 1 << 14
DOUBLE = np.dtype(np.float64)
Result = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture(autouse=True)
def short_ones_are_kept_too(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gc.collect()
    reuse.KEPT.clear()
    reuse.LARGE.clear()
    monkeypatch.setattr(reuse, "_LEAST", 1 << 10)
    yield
    reuse.KEPT.clear()
    reuse.LARGE.clear()


def new(nbytes: int = BYTES) -> Result:
    return reuse.new_array((nbytes // 8,), DOUBLE)


def apart(first: Result, second: Result) -> bool:
    return not np.shares_memory(first, second)


class Sub(np.ndarray[Any, Any]):
    """An array of a user's own class."""


class Owner:
    """Describes an array's memory, and holds the array."""

    def __init__(self, array: Result) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


RISEN: list[object] = []


class Rising(np.ndarray[Any, Any]):
    """An array that comes back as it goes."""

    def __del__(self) -> None:
        RISEN.append(self[:])


def call_what_waits_for_the_end(result: Result) -> object:
    """Calls by hand what is called when a result's whole goes."""
    for reference in weakref.getweakrefs(result.base):
        callback: Any = reference.__callback__
        callback()
    return result


def raised(action: Callable[[], object]) -> bool:
    try:
        action()
    except (TypeError, ValueError, BufferError, AttributeError):
        return True
    return False


# Each gives something that holds the result's memory.
HOLDING: tuple[Callable[[Any], object], ...] = (
    lambda r: r,
    lambda r: r[3:9],
    lambda r: r.base,
    lambda r: r.base.base,
    lambda r: r.base.base[5:].view(np.ndarray),
    lambda r: memoryview(r.base.base),
    lambda r: memoryview(r)[2:],
    lambda r: r.data,
    lambda r: np.asarray(r.base.base),
    lambda r: np.asarray(memoryview(r.base)),
    lambda r: np.asarray(Owner(r.base.base)),
    lambda r: np.frombuffer(r.base.base, np.uint8),
    lambda r: np.lib.stride_tricks.as_strided(r, (2, 3), (8, 8)),
    lambda r: np.broadcast_to(r, (2, r.size)),
    np.nditer,
    lambda r: r.flat,
    lambda r: r.ctypes,
    lambda r: r.view(Sub)[1:],
    lambda r: r.base.base.view(Rising),
    (ctypes.c_char * 16).from_buffer,
    lambda r: (ctypes.c_char * 16).from_buffer(r.base.base),
    np.from_dlpack,
    lambda r: threading.Thread(target=print, args=(r.base.base,)),
    lambda r: {"cycle": [r.base.base]},
    call_what_waits_for_the_end,
    lambda r: (raised(lambda: r.base.base.resize(1)), r)[1],
)
# Each gives something with memory of its own, and tries what should do no harm.
COPYING: tuple[Callable[[Any], object], ...] = (
    lambda r: copy.copy(r.base.base),
    lambda r: copy.deepcopy(r.base.base),
    lambda r: copy.copy(r.base),
    copy.deepcopy,
    lambda r: pickle.loads(pickle.dumps(r.base.base)),
    lambda r: type(r.base.base)((r.nbytes,), np.uint8),
    lambda r: r.base.base.copy(),
    lambda r: weakref.ref(r.base.base),
    lambda r: weakref.finalize(r.base, len, ()).detach(),
    lambda r: raised(r.base.base.__del__) if hasattr(r.base.base, "__del__") else None,
    lambda r: setattr(r.base.base, "dtype", np.dtype(np.uint16)),
    lambda r: setattr(r.base.base, "shape", (2, -1)),
    lambda r: r.base.base.setflags(write=False),
)


@pytest.mark.parametrize("attack", [*HOLDING, *COPYING])
def test_what_is_taken_from_a_result_never_makes_two_of_it(attack: Callable[[Result], object]) -> None:
    first = new()
    taken = attack(first)
    second = new()
    assert apart(first, second)
    del taken
    assert apart(first, new())
    assert apart(second, new())


@pytest.mark.parametrize("attack", HOLDING)
def test_what_holds_the_memory_of_a_result_that_is_gone_keeps_it(attack: Callable[[Result], object]) -> None:
    first = new()
    address = first.ctypes.data
    held = attack(first)
    del first
    later = [new() for _ in range(4)]
    assert address not in [array.ctypes.data for array in later]
    del held


@attrs.define
class Held:
    """Something that holds the memory at an address, where a number stands."""

    thing: object
    address: int
    number: float

    def is_untouched(self) -> bool:
        return ctypes.c_double.from_address(self.address).value == self.number


@pytest.mark.parametrize("seed", range(4))
def test_any_mix_of_attacks(seed: int) -> None:
    choice = random.Random(seed)
    held: list[Held] = []
    addresses: list[int] = []
    for step in range(1500):
        result = new(choice.choice((BYTES, BYTES, BYTES + 4096, 2 * BYTES)))
        addresses.append(result.ctypes.data)
        assert (result.flags.writeable, result.flags.aligned, result.dtype) == (True, True, DOUBLE)
        result[...] = step
        for _ in range(choice.randrange(3)):
            attack = choice.choice(HOLDING)
            held.append(Held(attack(result), result.ctypes.data, float(step)))
        for _ in range(choice.randrange(3)):
            choice.choice(COPYING)(result)
        del result
        while len(held) > choice.randrange(1, 9):
            held.pop(choice.randrange(len(held)))
        if step % 50 == 0:
            RISEN.clear()
        assert all(one.is_untouched() for one in held), step
    assert len(set(addresses)) < len(addresses) // 2, "memory is handed on, or nothing is shown"


def test_threads_attack_side_by_side() -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        choice, held = random.Random(seed), list[Held]()
        for step in range(400):
            result = new()
            result[...] = number = float(seed * 1000 + step)
            held.append(Held(choice.choice(HOLDING)(result), result.ctypes.data, number))
            choice.choice(COPYING)(result)
            del result
            if len(held) > 3:
                held.pop(choice.randrange(len(held)))
            if not all(one.is_untouched() for one in held):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    RISEN.clear()
    assert not wrong


@pytest.mark.parametrize("change", COPYING[-3:])
def test_a_block_that_was_reshaped_or_locked_is_not_handed_on(change: Callable[[Result], object]) -> None:
    first = new()
    change(first)
    del first
    assert len(reuse.KEPT) == 1
    second = new()
    assert not len(reuse.KEPT), "it is let go of, and takes no block's place"
    assert (second.flags.writeable, second.shape, second.dtype) == (True, (BYTES // 8,), DOUBLE)


def test_where_references_are_not_counted_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "_COUNTED", False)
    assert new().base is None


def test_the_end_of_the_interpreter_is_quiet() -> None:
    code = (
        "import numpy as np; from gpusort.arrays import recycled as reuse\n"
        "class Last:\n"
        "    def __init__(self): self.r = reuse.new_array((1 << 22,), np.dtype('f8'))\n"
        "    def __del__(self): self.r[:3] = 1; del self.r; reuse.new_array((1 << 22,), np.dtype('f8'))[:3] = 2\n"
        "import builtins; builtins.last = Last(); reuse.last = Last(); last.again = last\n"
    )
    assert printed(code, fresh=True) == ""
