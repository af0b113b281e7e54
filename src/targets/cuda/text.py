"""Code generation: a program as the text of one kernel, in the subset of Python that function.py reads.

Storage is passed as raw pointers, loops stay loops. Workgroup memory beyond CUDA's 48 KiB of static shared memory is
dynamic: each memory has an offset from one base, and the launch asks for the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...kernel import ir
from ...kernel.passes.overlay import overlaid
from ...kernel.passes.scopes import Scopes
from ...kernel.passes.uniform import check_uniform
from ..kernel_text import TYPE_NAMES, described, literal, stored_type
from ..render import Lines, head_of
from .writer import WARP, BodyWriter, lane_mask

STATIC_BYTES = 48 * 1024  # the most static shared memory that CUDA allows
_ALIGNMENT = 16  # bytes, of each workgroup memory: enough for any type

_OWN_NUMBERS: Mapping[ir.Builtin, str] = {
    ir.Builtin.LOCAL_ID: "local_id = u4(cuda.threadIdx.x)",
    ir.Builtin.LANE: f"lane = u4(local_id & u4({WARP - 1}))",
    ir.Builtin.SUBGROUP_ID: f"subgroup_id = u4(local_id >> {WARP.bit_length() - 1})",
    ir.Builtin.GROUP_ID: "group_id = u4(cuda.blockIdx.x)",
    ir.Builtin.NUM_GROUPS: "num_groups = u4(cuda.gridDim.x)",
}


@attrs.frozen
class KernelText:
    """A module's source, and what the host needs to launch its kernel. Kernel parameters: storage in the program's
    order, then the lengths that it reads, then its parameters."""

    source: str
    lengths: tuple[ir.Memory, ...]
    workgroup_bytes: int
    dynamic_bytes: int  # dynamic shared memory to ask for at launch: all of workgroup_bytes, or 0 if static


def kernel_text(program: ir.Program) -> KernelText:
    """The program as a module that defines `kernel` and its `SIGNATURE`."""
    check_uniform(program)
    program = overlaid(program)
    places, nbytes = _workgroup_places(program)
    offsets = places if nbytes > STATIC_BYTES else {}
    writer = BodyWriter(program, offsets)
    body = writer.body()
    prologue = _prologue(program, writer, offsets)
    lengths = tuple(memory for memory in program.storage if memory in writer.lengths)
    arguments = [
        *((writer.memory(memory), f"{TYPE_NAMES[stored_type(memory.type)]}*") for memory in program.storage),
        *((writer.lengths[memory], "u4") for memory in lengths),
        *((writer.parameter(parameter), TYPE_NAMES[parameter.type]) for parameter in program.parameters),
    ]
    return KernelText(head_of(described(program), arguments) + prologue + body, lengths, nbytes, nbytes * bool(offsets))


def _workgroup_places(program: ir.Program) -> tuple[dict[ir.Memory, int], int]:
    """Each workgroup memory's offset from a common base, in its elements; and the bytes of all."""
    offsets, nbytes = dict[ir.Memory, int](), 0
    for memory in program.memories:
        if memory.space is ir.Space.WORKGROUP:
            offsets[memory] = nbytes // memory.type.size
            nbytes += -(-_length(memory) * memory.type.size // _ALIGNMENT) * _ALIGNMENT
    return offsets, nbytes


def _length(memory: ir.Memory) -> int:
    assert memory.length is not None, memory
    return max(memory.length, 1)


def _prologue(program: ir.Program, writer: BodyWriter, offsets: Mapping[ir.Memory, int]) -> str:
    """Declarations above the body: invocation indices, memories, constants and variables."""
    lines, used = Lines(1), set(writer.identities)
    if writer.lanes_vary or used & {ir.Builtin.LANE, ir.Builtin.SUBGROUP_ID}:
        used.add(ir.Builtin.LOCAL_ID)
    for builtin, form in _OWN_NUMBERS.items():
        if builtin in used:
            lines.add(form)
    if writer.lanes_vary:
        whole, rest = program.group_size // WARP * WARP, program.group_size % WARP
        lines.add(f"lanes = select(local_id < u4({whole}), {lane_mask(WARP)}, {lane_mask(rest)})")
    for memory in program.memories:
        if memory.space is not ir.Space.STORAGE:
            place = "local" if memory.space is ir.Space.REGISTERS else "shared"
            length = 0 if memory in offsets else _length(memory)  # 0 means dynamic shared memory
            element = TYPE_NAMES[stored_type(memory.type)]
            lines.add(f"{writer.memory(memory)} = cuda.{place}.array({length}, {element})")
    for binding in writer.constants.bindings():
        lines.add(binding)
    inner = Scopes(program).inner
    for variable in program.variables:
        # Where only some branches assign a variable, it has a value in the others too.
        if variable not in inner:
            lines.add(f"{writer.variable(variable)} = {literal(0, variable.type)}")
    return lines.text()
