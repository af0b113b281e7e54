"""What test_pyodide.py asks of gpusort, as it runs inside Pyodide: arrays come and go as text."""

from __future__ import annotations

import base64
import json
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

import gpusort

Array = npt.NDArray[Any]  # of any dtype


class Sent(TypedDict):
    dtype: str
    shape: list[int]
    bytes: str


class Case(TypedDict):
    call: str  # a function of gpusort
    arrays: list[Sent]
    settings: dict[str, Any]  # as the function takes them
    way: str  # "waits", "stays" on the device and is fetched, or "refused"


def sent(array: Array | np.generic) -> Sent:
    flat = np.ascontiguousarray(array)
    return {"dtype": array.dtype.str, "shape": [*array.shape], "bytes": base64.b64encode(flat.tobytes()).decode()}


def received(given: Sent) -> Array:
    found: Array = np.frombuffer(base64.b64decode(given["bytes"]), np.dtype(given["dtype"])).reshape(given["shape"])
    return found


async def answers(asked: str) -> str:
    """Of cases, as JSON: for each all that came out, or the error."""
    cases: list[Case] = json.loads(asked)
    return json.dumps([await _answer(case) for case in cases])


_devices: list[Any] = []  # one for all that stays


async def _answer(case: Case) -> list[Sent] | str:
    arrays: list[Any] = [received(given) for given in case["arrays"]]
    function = getattr(gpusort, case["call"])
    try:
        if case["way"] == "stays":
            if not _devices:
                _devices.append(await gpusort.webgpu.open_device())
            arrays = [gpusort.webgpu.asarray(array, _devices[0]) for array in arrays]
        found = function(*arrays, **case["settings"])
        parts: list[Any] = [*found] if isinstance(found, tuple) else [found]
        return [sent(await part.fetch() if case["way"] == "stays" else part) for part in parts]
    except gpusort.GpusortError as error:
        return f"{type(error).__name__}: {error}"
