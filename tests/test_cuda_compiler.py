"""The CUDA target's own compiler, from a kernel's source to NVVM's LLVM IR: what it refuses, and what it loads."""

from __future__ import annotations

import pytest

from gpusort.targets.cuda.compile import NvvmRefusal, ptx_of
from gpusort.targets.cuda.function import llvm_text
from gpusort.targets.llvm.numbers import Untranslatable
from tests.new_process import printed

HEAD = 'SIGNATURE = "void(u4*, f4, u4)"\n\ndef kernel(data, scale, count):\n'


def translated(*lines: str, head: str = HEAD) -> str:
    return llvm_text(head + "".join(f"    {line}\n" for line in lines), "gpusort_mine", 32)


MISTAKES = {
    "operands of two types": "x = f4(scale + count)",
    "no such intrinsic": "x = multiplied(count, count)",
    "no such name": "x = count_of_all",
    "a variable of two types": "count = scale",
    "an element of another type": "data[count] = scale",
    "an index that is no integer": "data[scale] = count",
    "a condition that is no truth value": "while count: break",
    "a float as an integer": "x = u4(scale)",
    "an operator": "x = u4(count**count)",
    "a statement of another language": "del count",
    "a memory of another length": "tile = cuda.shared.array(count, u4)",
    "no literal where one chooses the instructions": "x = match_low_bits(count, count, count)",
    "what computes nothing": "x = store_workgroup(data, count, count, count)",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_no_kernel_of_ours_has_is_refused(mistake: str) -> None:
    with pytest.raises(Untranslatable):
        translated(MISTAKES[mistake])


def test_a_source_without_a_signature_is_refused() -> None:
    with pytest.raises(Untranslatable, match="no signature"):
        translated("pass", head="def kernel(data):\n")


def test_special_numbers_and_conversions() -> None:
    """Of each variable twice, so that it lies where its values are written to."""
    assigned = ("f4(-inf)", "f8(scale)", "i8(-5)", "f4(count < 9)", "f4(i4(count))", "f8(nan)", "True")
    text = translated(*(f"v{k} = {value}" for _ in range(2) for k, value in enumerate(assigned)))
    for found in ("0xFFF0000000000000", "fpext float", "i64 -5", "uitofp i1", "sitofp i32", "0x7FF8000000000000"):
        assert text.count(found) == 2
    assert ".entry gpusort_mine(" in ptx_of(text, (9, 0))


def test_only_a_variable_that_is_assigned_again_lies_in_memory() -> None:
    assert "alloca" not in translated("x = u4(count + count)", "data[x] = x")
    assert "alloca" in translated("x = u4(count + count)", "x = count", "data[x] = x")


def test_each_workgroup_memory_has_a_name_that_is_the_same_each_time() -> None:
    lines = (
        "a = cuda.shared.array(4, u4)",
        "b = cuda.shared.array(0, u8)",
        "store_workgroup(b, count, count, u8(count))",
    )
    text = translated(*lines)
    assert text == translated(*lines)
    ptx = ptx_of(text, (8, 0))
    assert ".extern .shared .align 8 .b8 workgroup_2[];" in ptx
    assert "st.shared.u64" in ptx


def test_nvvm_says_what_it_objects_to() -> None:
    with pytest.raises(NvvmRefusal, match="expected '='"):
        ptx_of(translated("x = count").replace("ret void", "ret void %nothing"), (9, 0))


def test_neither_numba_nor_llvmlite_takes_part() -> None:
    check = (
        "import sys\n"
        "from gpusort.kernel.specialise import specialise\n"
        "from gpusort.algos.bitonic import bitonic_sort\n"
        "from gpusort.targets.cuda.compile import compile_uncached\n"
        "from gpusort.types.dtypes import key_for\n"
        "from gpusort.types.indices import SortOrder\n"
        "from gpusort.types.params import BitonicPolicy\n"
        "launch = bitonic_sort(key_for('u4'), 1, 300, SortOrder.ASCENDING, BitonicPolicy()).launches[0]\n"
        "assert '.entry' in compile_uncached(specialise(launch).program, (9, 0))\n"
        "print({'numba', 'llvmlite', 'cupy'} & set(sys.modules))"
    )
    assert printed(check) == "set()"
