"""A kernel's text as a module of LLVM IR for NVVM: what CUDA alone has of arrays, registers and functions."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ..llvm.calls import Operand
from ..llvm.numbers import I8, KINDS, U4, U8, WRAPPING, Kind, Value, literal
from ..llvm.places import Array
from ..llvm.translate import Translation
from .lanes import Lanes
from .memory import SHARED, SharedMemory

_DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
    "v64:64:64-v128:128:128-n16:32:64"
)
_IR_VERSION = "!{i32 2, i32 0, i32 3, i32 2}"  # of NVVM IR, and of its debug metadata
# Where a hardware register is read, by what a kernel's text calls it.
_REGISTERS: Mapping[str, str] = {
    "cuda.threadIdx.x": "tid.x", "cuda.blockIdx.x": "ctaid.x", "cuda.gridDim.x": "nctaid.x",
}  # fmt: skip
# Any NaN would become the one without a sign and with all bits set.
_ROUND_TO_HALF = (
    "{ .reg .pred p; .reg .b32 w; .reg .b16 n; cvt.rn.f16.f32 $0, $1; mov.b32 w, $1; shr.u32 w, w, 16; "
    "and.b32 w, w, 0x8000; or.b32 w, w, 0x7E00; cvt.u16.u32 n, w; setp.nan.f32 p, $1, $1; selp.b16 $0, n, $0, p; }"
)


def llvm_text(text: str, entry: str, group_size: int) -> str:
    """The module with one kernel, by the name `entry`."""
    return _Function(text).whole(entry, group_size)


class _Function(Lanes, SharedMemory, Translation):
    """NVVM's LLVM is old: its pointers have types, and nothing negates a float."""

    in_bounds: ClassVar[str] = ""

    def __init__(self, text: str) -> None:
        super().__init__(text, is_opaque=False)
        self._globals: list[str] = []

    def whole(self, entry: str, group_size: int) -> str:
        heads = self.translated()
        kernel = f"void ({', '.join(head.partition(' %')[0] for head in heads)})* @{entry}"
        version = self.fact(_IR_VERSION)
        marks = [
            self.fact(f'!{{{kernel}, !"{name}", i32 {value}}}')
            for name, value in (("kernel", 1), ("maxntidx", group_size))
        ]
        lines = [
            'target triple = "nvptx64-nvidia-cuda"',
            f'target datalayout = "{_DATA_LAYOUT}"',
            *self._globals,
            *self.declared,
            f"define void @{entry}({', '.join(heads)}) {{",
            "entry.0:",
            *self.first,
            "  br label %body.0",
            "body.0:",
            *self.lines,
            "  ret void",
            "}",
            f"!nvvmir.version = !{{!{version}}}",
            f"!nvvm.annotations = !{{{', '.join(f'!{mark}' for mark in marks)}}}",
            *self.facts,
        ]
        return "\n".join(lines) + "\n"

    def new_array(self, name: str, given: Sequence[ast.expr]) -> Array | None:
        match name, given:
            case "cuda.local.array", [ast.Constant(int() as length), ast.Name(kind)]:
                return self.on_stack(KINDS[kind], length)
            case "cuda.shared.array", [ast.Constant(int() as length), ast.Name(kind)]:
                return self._shared(KINDS[kind], length)
            case _:
                return None

    def _shared(self, kind: Kind, length: int) -> Array:
        """Workgroup memory. Length 0 stands for what the launch asks for."""
        block, name = f"[{length} x {kind.llvm}]", f"@workgroup_{len(self.arrays)}"
        linkage, start = ("", " undef") if length else ("external ", "")
        self._globals.append(f"{name} = {linkage}addrspace({SHARED}) global {block}{start}, align {kind.bytes}")
        types = [self.pointer_type(type, SHARED) for type in (block, kind.llvm)]
        return Array(kind, self.named(f"bitcast {types[0]} {name} to {types[1]}"), space=SHARED)

    def value(self, node: ast.expr, wanted: Kind | None = None) -> Value:
        match node:
            case ast.Attribute() if (register := _REGISTERS.get(ast.unparse(node))) is not None:
                return self.made(U4, self.function(f"llvm.nvvm.read.ptx.sreg.{register}", "i32", []))
            case _:
                return super().value(node, wanted)

    def call(self, name: str, given: Sequence[Operand]) -> Value | None:
        match name, given:
            case "half_to_float", [Value() as half]:
                bits = [self.converted(half, KINDS["u2"])]
                return self.made(KINDS["f4"], self.assembly("cvt.f32.f16 $0, $1;", "=f,h", "float", bits, lasts=False))
            case "float_to_half", [Value() as number]:
                rounded = self.assembly(_ROUND_TO_HALF, "=h,f", "i16", [number], lasts=False)
                return self.made(KINDS["u2"], rounded)
            case "multiply_rounded", [Value() as a, Value() as b]:
                return self._rounded(a, b)
            case "byte", [Value() as word, Value() as place, Value(number=int() as form)]:
                return self._byte(word, place, form)
            case _:
                return super().call(name, given)

    # -- arithmetic ---------------------------------------------------------------------------------------

    def computed(self, operator: str, a: Value, b: Value, wanted: Kind | None) -> Value:
        """What integers are computed in 64 bits NVVM narrows again where it sees that the range allows; and where it is
        part of an address it need not."""
        if operator in WRAPPING and not (a.kind.is_float or b.kind.is_float or a.kind.is_bool):
            wanted = I8 if a.kind.is_signed else U8
        return super().computed(operator, a, b, wanted)

    def negative(self, value: Value) -> Value:
        if value.kind.is_float and value.number is None:
            return self.computed("-", literal(-0.0, value.kind), value, value.kind)
        return super().negative(value)

    def root(self, word: str, value: Value) -> Value:
        """By NVIDIA's libdevice."""
        type = value.kind.llvm
        call = self.function(f"__nv_{word}{'f' if value.kind.bits == 32 else ''}", type, [(type, value.text)])
        return self.made(value.kind, call)

    def _rounded(self, a: Value, b: Value) -> Value:
        """A float product that is rounded by itself: never contracted to a fused multiply-add, which rounds
        differently."""
        type = a.kind.llvm
        name = f"llvm.nvvm.mul.rn.{'f' if a.kind.bits == 32 else 'd'}"
        return self.made(a.kind, self.function(name, type, [(type, a.text), (type, b.text)]))

    def _byte(self, word: Value, place: Value, form: int) -> Value:
        """Byte `place` of a word (0 is the lowest), by byte permute: selectors 0 to 3 are bytes of the word, 4 to 7 are
        zeros. `form`, 0 or 1, chooses between two selectors that mean the same: the assembler does not merge common
        subexpressions of different forms."""
        selector = self.made(U4, f"or i32 {place.text}, {(0x4440, 0x5550)[form]}")
        return self.made(U4, self.assembly("prmt.b32 $0, $1, 0, $2;", "=r,r,r", "i32", [word, selector]))
