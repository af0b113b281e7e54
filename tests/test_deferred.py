"""Modules of users' whose annotations have no value yet, or never, and whose imports come late: read as any other."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from types import ModuleType

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.kernel.kernel import Kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.kernel.span import KernelError
from gpusort.types import deferred
from gpusort.types.elements import fields_of
from gpusort.types.memory import Workgroup
from gpusort.types.scalars import F32, U32
from tests.loading import load

# Annotations are strings by the import, and from Python 3.14 on they are evaluated when they are asked for.
_LATER: list[str] = ["from __future__ import annotations", *([""] if sys.version_info >= (3, 14) else [])]
_NAMES = """
from typing import TYPE_CHECKING, Protocol
import attrs
import gpusort
from gpusort.kernel.kernel import kernel
from gpusort.types.keys import UnsignedKey
if TYPE_CHECKING:
    from gpusort.types.invocation import Invocation
    from gpusort.types.memory import Storage
    from gpusort.types.scalars import U32
    from somewhere import Limit, Nowhere, NowhereInvocation, Which

class Named(Protocol):
    label: Nowhere

@attrs.frozen
class Inner:
    added: U32

@attrs.frozen
class Outer:
    inner: Inner
    factor: Which

def helper(x: Nowhere, y: U32) -> Nowhere:
    return x + y

@kernel
def add(cx: Invocation, data: Storage[U32], inner: Inner, named: Named) -> None:
    data[cx.global_id] = helper(data[cx.global_id], inner.added)

@kernel
def odd(cx: Nowhere, data: Storage[U32]) -> None:
    pass

@kernel
def even(cx: NowhereInvocation, data: tuple[Storage[Nowhere], Later]) -> None:
    pass

class Later:
    pass

@attrs.frozen
class Backwards(UnsignedKey):
    def to_word(self, element: Nowhere) -> Nowhere:
        return ~self.word(element)
    def from_word(self, word: Nowhere) -> Nowhere:
        return self.element(~word)

def sorts(x: Nowhere, *, target: Which = None) -> Nowhere:
    return gpusort.sort(x, target=target)
"""
DATA = Buffer("data", U32, 4, Role.INOUT)


def _module(folder: Path, text: str) -> ModuleType:
    file = folder / "users.py"
    file.write_text(text)
    return load(file)


@pytest.fixture(params=_LATER, ids=lambda head: "strings" if head else "lazy")
def users(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setitem(sys.modules, "users", ModuleType("users"))
    return _module(tmp_path, f"{request.param}\n{_NAMES}")


def _run(kernel: Kernel[...], *given: object) -> list[int]:
    data = np.arange(4, dtype=np.uint32)
    launch = kernel.launch(Grid(1, 4), DATA, *given)
    gpusort.target("simulator").run(Schedule((DATA,), (launch,)), {"data": data})
    return data.tolist()


def test_names_that_are_imported_for_checkers_only(users: ModuleType) -> None:
    @attrs.frozen
    class WithLabel:
        label: str

    assert _run(users.add, users.Inner(U32(7)), WithLabel("x")) == [7, 8, 9, 10]
    with pytest.raises(KernelError, match=r"expected Inner for 'inner' of kernel 'add'"):
        users.add.launch(Grid(1, 4), DATA, U32(1), WithLabel("x"))
    with pytest.raises(KernelError, match=r"expected Named for 'named' of kernel 'add'"):
        users.add.launch(Grid(1, 4), DATA, users.Inner(U32(7)), U32(1))


def test_the_languages_own_names_are_known_though_imported_for_checkers_only(users: ModuleType) -> None:
    for wrong in (Buffer("data", F32, 4, Role.INOUT), Workgroup(U32, 4), U32(1)):
        with pytest.raises(KernelError, match=r"expected .*Storage\[U32\].* for 'data' of kernel 'add'"):
            users.add.launch(Grid(1, 4), wrong, users.Inner(U32(7)), users.Inner(U32(7)))


@pytest.mark.parametrize("name", ["odd", "even"])
def test_the_invocation_is_told_by_its_name(users: ModuleType, name: str) -> None:
    if name == "even":
        assert _run(users.even) == [0, 1, 2, 3]
    else:
        with pytest.raises(KernelError, match="expected `cx: Invocation` as the first parameter of kernel 'odd'"):
            _run(users.odd)


def test_a_field_of_an_unknown_type_is_named(users: ModuleType) -> None:
    assert fields_of(users.Inner) == {"added": U32}
    with pytest.raises(TypeError, match="types of Outer's fields that module 'users' has, found 'Which'"):
        fields_of(users.Outer)


def test_a_key_and_an_operation(users: ModuleType) -> None:
    x = np.arange(4, dtype=np.uint32)
    assert gpusort.sort(x, key=users.Backwards(U32, U32, 32), target="python").tolist() == [3, 2, 1, 0]
    assert gpusort.plan(users.sorts, x)(x).tolist() == [0, 1, 2, 3]


# What Python 3.15 has a word for; a stand-in for it shows what is done on any Python.
_LAZY: list[str] = ["lazy from helpers import twice"] if hasattr(types, "LazyImportType") else []
_HELPERS = """
from gpusort.types.scalars import U32

def twice(x: U32) -> U32:
    return x + x
"""
_IMPORTS = """
from gpusort.kernel.kernel import kernel
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import U32
{late}
@kernel
def double(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = twice(data[cx.global_id])
"""


class _StandIn:
    """As Python's own, which is the import's until its name is used."""

    def resolve(self) -> object:
        return importlib.import_module("helpers").twice


@pytest.mark.parametrize("late", ["", *_LAZY])
def test_what_has_not_been_imported_yet(late: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("users", "helpers"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    del sys.modules["helpers"]
    (tmp_path / "helpers.py").write_text(_HELPERS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    users = _module(tmp_path, _IMPORTS.format(late=late))
    if not late:
        monkeypatch.setattr(deferred, "STAND_IN", _StandIn)
        vars(users)["twice"] = _StandIn()
    assert "helpers" not in sys.modules
    assert _run(users.double) == [0, 2, 4, 6]
    assert vars(users)["twice"] is sys.modules["helpers"].twice  # as where Python itself has come to the name
