"""Exported kernels, as WGSL or as PTX: code without duplicates, with the metadata that a host needs to launch them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate

import attrs

from ..kernel import ir
from ..kernel.passes.safe import guarded_outside_ours
from ..machine import Limits
from ..targets.cuda.compile import ComputeCapability, NvvmRefusal, compile_ptx, entry_name, text_of
from ..targets.cuda.shipped import SHIPPED_FOR, portable
from ..targets.kernel_text import stored_type
from ..targets.needs import kernel_named, require_limits
from ..targets.wgsl.kernel import lower_to_wgsl
from ..targets.wgsl.legalize import Origin
from ..targets.wgsl.text import uses_of
from ..types.errors import CapabilityError, InvalidArgumentError
from ..types.layout import Type
from .request import MOST_LANES

_WORD = 4
_FOR_EVERY = ", and an export is for every device"
LONG = ("u64", "i64", "f64")  # types of parameters of two words, as words are only aligned to 4 bytes


@attrs.frozen
class ExportedKernel:
    """A kernel's code. Binding 0 is the uniform struct of its parameters, the others are storage buffers. (For CUDA
    there are no bindings: it takes addresses of storage, then parameters without a header.)"""

    name: str  # of the entry point
    text: str
    group_size: int
    workgroup_bytes: int
    writes: tuple[bool, ...]  # whether each storage buffer is written to
    parameters: tuple[tuple[str, str], ...]  # names and types, of the header first
    lanes: int  # of a subgroup, at least; 0 if it uses none
    uses_subgroups: bool
    origins: tuple[Origin, ...] = attrs.field(eq=False)  # of the parameters after the header

    @property
    def places(self) -> list[int]:
        """The index of each parameter's first word: numbers of 64 bits have two, low first."""
        return [0, *accumulate(2 if type in LONG else 1 for _, type in self.parameters)][:-1]


class Kernels:
    """The kernels of one export, without duplicates."""

    def __init__(self, limits: Limits, make: Callable[[ir.Program], ExportedKernel]) -> None:
        """`make` compiles a program."""
        self.limits, self._make = limits, make
        self.all: list[ExportedKernel] = []
        self._numbers: dict[str, int] = {}  # by text
        self._read: dict[ir.Program, tuple[int, ExportedKernel]] = {}

    def of(self, program: ir.Program) -> tuple[int, ExportedKernel]:
        """A program's kernel and its index. Raises CapabilityError beyond the limits."""
        if program not in self._read:
            kernel = self._make(program)
            require_limits(
                kernel_named(program), self.limits, "every device", lambda limit, asked: _FOR_EVERY,
                group_size=kernel.group_size, workgroup_bytes=kernel.workgroup_bytes,
                storage_buffers=len(kernel.writes),
            )  # fmt: skip
            number = self._numbers.setdefault(kernel.text, len(self.all))
            if number == len(self.all):
                self.all.append(kernel)
            self._read[program] = number, kernel
        return self._read[program]


def wgsl_kernel(program: ir.Program, *, unrolled: bool = False) -> ExportedKernel:
    """Compiles a program to WGSL for any device."""
    legalized, shader = lower_to_wgsl(program, enable_line=True, in_registers=unrolled, lanes=MOST_LANES)
    legal = legalized.program
    held = sum((memory.length or 0) * 4 for memory in legal.memories if memory.space is ir.Space.WORKGROUP)
    if shader.uses_subgroups and not _lanes(program):
        raise CapabilityError(
            f"{kernel_named(program)} uses subgroups: to be exported, expected a Policy among its arguments that says "
            "of how many lanes at least, e.g. with `Needs(lanes=32)`"
        )
    text = re.sub("^(    )+", lambda blanks: " " * (len(blanks[0]) // 4), shader.text, flags=re.MULTILINE)
    return ExportedKernel(
        shader.entry, text, legal.group_size, held,
        tuple(shader.uses[memory].needs_write for memory in legal.storage),
        shader.parameters, _lanes(program), shader.uses_subgroups, legalized.origins,
    )  # fmt: skip


def _lanes(program: ir.Program) -> int:
    return max((needs.lanes for needs in program.needs), default=0)


def capability_of(name: str) -> ComputeCapability:
    """Parses an architecture such as "sm_90"; the oldest supported one if empty. Raises InvalidArgumentError."""
    found = re.fullmatch(r"sm_([0-9]{1,3})([0-9])", name or f"sm_{SHIPPED_FOR[0]}{SHIPPED_FOR[1]}")
    if found is None or (int(found[1]), int(found[2])) < SHIPPED_FOR:
        raise InvalidArgumentError(f"arch: expected a card of sm_80 or later, e.g. 'sm_90', found {name!r}")
    return int(found[1]), int(found[2])


def ptx_kernel(program: ir.Program, capability: ComputeCapability) -> ExportedKernel:
    """Compiles a program to PTX. The kernel takes addresses of its storage, then its parameters, without a header."""
    tested = guarded_outside_ours(program)
    text, uses = text_of(tested), uses_of(tested)
    try:
        ptx = compile_ptx(tested, capability)
    except NvvmRefusal as error:
        if "-arch" not in str(error):
            raise
        asked = "sm_{}{}".format(*capability)
        raise InvalidArgumentError(f"arch: expected a card that the NVVM here knows, found {asked!r}") from error
    if capability == SHIPPED_FOR:
        ptx = portable(ptx)
    fields = [(f"{memory.name}_length", Type.U32, Origin(length_of=memory)) for memory in text.lengths]
    fields += [(p.name, stored_type(p.type), Origin(p)) for p in tested.parameters]
    words = [
        Origin(origin.parameter, word, origin.length_of)
        for _, type, origin in fields
        for word in range(-(-type.size // _WORD))
    ]
    return ExportedKernel(
        entry_name(tested), ptx, tested.group_size, text.workgroup_bytes,
        tuple(uses[memory].needs_write for memory in tested.storage),
        tuple((name, f"{type.dtype.kind}{8 * type.size}") for name, type, _ in fields), _lanes(tested),
        _lanes(tested) > 0, tuple(words),
    )  # fmt: skip
