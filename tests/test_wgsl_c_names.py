"""C types are read as before where cffi looks at the names in their texts alone, and more quickly."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from gpusort.targets import registry
from gpusort.targets.wgsl import c_names
from gpusort.targets.wgsl.c_names import narrow
from tests.opened import or_skip

DECLARED = """
typedef struct LimitsImpl { unsigned size; } Limits;
typedef Limits *LimitsPointer;
typedef enum Kind { KIND_A, KIND_B = 5 } Kind;
typedef void (*Callback)(Kind, Limits const *, void *);
typedef unsigned long long Wide;
struct Plain { Wide wide; Callback call; };
"""
TYPES = (
    "Limits *", "Limits[]", "Limits [3]", "LimitsPointer", "LimitsPointer *", "Kind", "Wide", "Callback", "uint32_t[]",
    "void(Kind, Limits const *, void *)", "Limits *(*)(Kind, struct Plain *, Wide)", "struct Plain *", "char []",
    "enum Kind", "intptr_t", "const char * const *", "struct LimitsImpl", "int(Wide, ...)",
)  # fmt: skip
WRONG = ("Limit *", "Missing[]", "Limits Limits *", "*", "struct")


def ffi_of(declared: str = DECLARED) -> Any:
    """A binding of cffi, which has no stubs here."""
    ffi = pytest.importorskip("cffi").FFI()
    ffi.cdef(declared)
    return ffi


def test_types_are_those_that_they_were() -> None:
    before, after = ffi_of(), ffi_of()
    narrow(after)
    assert "_parse" in vars(after._parser)
    for text in TYPES:
        assert after._typeof(text, True).cname == before._typeof(text, True).cname  # callbacks' types too
    assert after.typeof("Limits") is after.typeof(after.new("Limits *")[0])
    for text in WRONG:
        with pytest.raises(Exception) as expected:
            before.typeof(text)
        with pytest.raises(type(expected.value)):
            after.typeof(text)


def test_what_is_declared_later_counts_too() -> None:
    ffi = ffi_of()
    narrow(ffi)
    narrow(ffi)
    ffi.cdef("typedef struct { Limits limits; Wide count; } More; int used(More *, Kind);")
    assert ffi.sizeof("More") == 16
    assert ffi.new("More *", {"count": 7}).count == 7


def test_it_takes_less_time() -> None:
    many = DECLARED + "".join(f"typedef struct S{k} {{ int a; }} T{k};\n" for k in range(400))
    seconds: list[float] = []
    for is_narrow in (False, True):
        ffi = ffi_of(many)
        if is_narrow:
            narrow(ffi)
        start = time.thread_time()
        for k in range(5):
            ffi.typeof(f"T{k} *")
        seconds.append(time.thread_time() - start)
    assert seconds[1] < seconds[0] / 3


class Elsewhere:
    """A parser that keeps its names in another place."""

    def _parse(self, text: str) -> str:
        return text


def test_a_parser_of_another_kind_is_left_alone() -> None:
    parser = Elsewhere()
    narrow(SimpleNamespace(_parser=parser))
    assert not vars(parser)


@pytest.mark.parametrize("other", [None, object()])
def test_other_bindings_are_left_alone(other: object) -> None:
    narrow(other)


@pytest.fixture
def wgsl() -> None:
    or_skip(registry.target, "wgsl")


def test_the_binding_of_wgpu_is_narrowed_where_a_device_is_opened(wgsl: None) -> None:
    backend: Any = sys.modules[c_names.BACKEND]
    assert "_parse" in vars(backend.ffi._parser), "wgpu or cffi names its parts otherwise"
