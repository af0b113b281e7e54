"""Identifiers that generated WGSL must not use: keywords, reserved words, and the built-ins that it calls."""

from __future__ import annotations

_KEYWORDS = """
alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if
let loop override requires return struct switch true var while
"""

_RESERVED = """
NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become binding_array
cast catch class co_await co_return co_yield coherent column_major common compile compile_fragment concept
const_cast consteval constexpr constinit crate debugger decltype delete demote demote_to_helper do
dynamic_cast enum explicit export extends extern external fallthrough filter final finally friend from fxgroup
get goto groupshared highp impl implements import inline instanceof interface layout lowp macro macro_rules
match mediump meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation
non_coherent noncoherent noperspective null nullptr of operator package packoffset partial partition pass patch
pixelfragment precise precision premerge priv protected pub public readonly ref regardless register
reinterpret_cast require resource restrict self set shared sizeof smooth snorm static static_assert
static_cast std subroutine super target template this thread_local throw trait try type typedef typeid
typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly
yield
"""

# Predeclared in WGSL, or in the languages it is translated to: a variable of that name would shadow them. Types, then
# functions, then others.
_PREDECLARED = """
bool f16 f32 i32 u32 vec2 vec3 vec4 mat2x2 mat3x3 mat4x4 array atomic ptr sampler texture_1d texture_2d
bitcast abs acos all any asin atan ceil clamp cos countLeadingZeros countOneBits countTrailingZeros cross
distance dot exp exp2 floor fma fract length log log2 max min modf pow reflect round select sign sin sqrt step
tan tanh trunc atomicAdd atomicAnd atomicExchange atomicLoad atomicMax atomicMin atomicOr atomicStore
atomicXor storageBarrier subgroupAdd subgroupBallot subgroupExclusiveAdd subgroupShuffle workgroupBarrier
workgroupUniformLoad arrayLength function private read read_write storage uniform workgroup write float double
half int uint long short char unsigned signed void main0 input output texture buffer point line triangle
"""

RESERVED_NAMES = frozenset((_KEYWORDS + _RESERVED + _PREDECLARED).split())
