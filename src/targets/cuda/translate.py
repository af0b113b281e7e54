"""A kernel's source as LLVM IR for NVVM: the small language that text.py and writer.py write, and nothing beyond it.

A variable that is assigned once is its value: writer.py lets none be read where that may not have happened. Each other
one is a slot on the stack, which NVVM makes a register of.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

from llvmlite import ir

from .expressions import Expressions, Memory, Slot, Untranslatable
from .kinds import BOOLEAN, SCALARS, Pointer, Private, Scalar, Shared
from .lower import I32, call
from .memory import SHARED

_DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
    "v64:64:64-v128:128:128-n16:32:64"
)
_IR_VERSION = (2, 0, 3, 2)  # of NVVM IR, and of its debug metadata
_SIGNATURE = re.compile(r'^SIGNATURE = "void\((.*)\)"$', re.MULTILINE)


def llvm_text(source: str, entry: str, group_size: int) -> str:
    """The module with one kernel, by the name `entry`."""
    (function,) = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    module = ir.Module(entry)
    module.triple, module.data_layout = "nvptx64-nvidia-cuda", _DATA_LAYOUT
    version = [ir.Constant(I32, number) for number in _IR_VERSION]
    module.add_named_metadata("nvvmir.version").add(module.add_metadata(version))
    kernel = _Translation(module, function, _taken(source), entry).kernel
    for name, value in (("kernel", 1), ("maxntidx", group_size)):
        mark = module.add_metadata([kernel, ir.MetaDataString(module, name), ir.Constant(I32, value)])
        module.add_named_metadata("nvvm.annotations").add(mark)
    return str(module)


def _taken(source: str) -> list[Scalar | Pointer]:
    """What the kernel takes, in order."""
    signature = _SIGNATURE.search(source)
    if signature is None:
        raise Untranslatable("no signature")
    words = filter(None, signature[1].split(", "))
    return [Pointer(SCALARS[word[:-1]]) if word.endswith("*") else SCALARS[word] for word in words]


class _Translation(Expressions):
    """Of one function."""

    def __init__(
        self, module: ir.Module, function: ast.FunctionDef, taken: Sequence[Scalar | Pointer], entry: str
    ) -> None:
        types = [kind.element.llvm.as_pointer() if isinstance(kind, Pointer) else kind.llvm for kind in taken]
        self.kernel = ir.Function(module, ir.FunctionType(ir.VoidType(), types), entry)
        self._entry = ir.IRBuilder(self.kernel.append_basic_block("entry"))
        start = self.kernel.append_basic_block("start")
        super().__init__(ir.IRBuilder(start))
        self._times = Counter(argument.arg for argument in function.args.args)
        self._times.update(
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        self._ends: list[ir.Block] = []  # where the loops around continue once they are left
        for argument, kind, value in zip(function.args.args, taken, self.kernel.args, strict=True):
            if isinstance(kind, Pointer):
                self.memories[argument.arg] = Memory(kind, value)
            else:
                self._set(argument.arg, kind, value)
        self._block(function.body)
        self.builder.ret_void()
        self._entry.branch(start)

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(ast.Attribute(attr=place), "array"), shape)):
                self.memories[name] = self._array(place, shape)
            case ast.Assign([ast.Name(name)], value):
                self._set(name, *self.value(value))
            case ast.Assign([ast.Subscript(ast.Name(name), index)], value):
                memory = self.memories[name]
                kind, stored = self.value(value)
                if kind != memory.kind.element:
                    raise Untranslatable(f"{ast.unparse(statement)}: of {kind}")
                self.builder.store(stored, self.element(memory, index))
            case ast.Expr(ast.Call() as called) if ast.unparse(called.func) == "cuda.syncthreads":
                call(self.builder, "llvm.nvvm.barrier0", ir.VoidType(), ())
            case ast.Expr(ast.Call() as called):
                self.called(called)
            case ast.If(test, then, otherwise):
                self._if(test, then, otherwise)
            case ast.While(test, body):
                self._while(test, body)
            case ast.Break():
                self._leave(self._ends[-1])
            case ast.Pass():
                pass
            case _:
                raise Untranslatable(ast.unparse(statement))

    def _set(self, name: str, kind: Scalar, value: ir.Value) -> None:
        if self._times[name] == 1:
            self.fixed[name] = kind, value
            return
        slot = self.slots.get(name)
        if slot is None:
            slot = self.slots[name] = Slot(kind, self._entry.alloca(kind.llvm, name=name))
        if slot.kind != kind:
            raise Untranslatable(f"{name}: {kind} where it was {slot.kind}")
        self.builder.store(value, slot.pointer)

    def _array(self, place: str, shape: Sequence[ast.expr]) -> Memory:
        """Workgroup memory, whose length 0 stands for what the launch asks for; or registers."""
        match shape:
            case [ast.Constant(int() as length), ast.Name(name)]:
                element = SCALARS[name]
            case _:
                raise Untranslatable(ast.unparse(ast.Tuple(list(shape))))
        kind, pointer = ir.ArrayType(element.llvm, length), element.llvm.as_pointer()
        if place == "local":
            return Memory(Private(element), self._entry.bitcast(self._entry.alloca(kind), pointer))
        module = self.kernel.module
        memory = ir.GlobalVariable(module, kind, f"workgroup_{len(self.memories)}", SHARED)
        memory.align = element.bytes
        if length:
            memory.initializer = ir.Constant(kind, ir.Undefined)
        return Memory(Shared(element), self.builder.bitcast(memory, element.llvm.as_pointer(SHARED)))

    # -- control flow -------------------------------------------------------------------------------------

    def _if(self, test: ast.expr, then: Sequence[ast.stmt], otherwise: Sequence[ast.stmt]) -> None:
        yes, end = self._new("then"), self._new("end")
        no = self._new("else") if otherwise else end
        self._branch(test, yes, no)
        self._at(yes)
        self._block(then)
        self._leave(end)
        if otherwise:
            self._at(no)
            self._block(otherwise)
            self._leave(end)
        self._at(end)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        """The test stands before the loop and at its end, which spares a jump each time round."""
        inside, end = self._new("loop"), self._new("end")
        self._branch(test, inside, end)
        self._at(inside)
        self._ends.append(end)
        self._block(body)
        self._ends.pop()
        if not self.builder.block.is_terminated:
            self._branch(test, inside, end)
        self._at(end)

    def _branch(self, test: ast.expr, yes: ir.Block, no: ir.Block) -> None:
        match test:
            case ast.Constant(True):
                self.builder.branch(yes)
            case ast.UnaryOp(ast.Not(), operand):
                self._branch(operand, no, yes)
            case _:
                kind, value = self.value(test)
                if kind != BOOLEAN:
                    raise Untranslatable(f"{ast.unparse(test)}: of {kind}")
                self.builder.cbranch(value, yes, no)

    def _new(self, name: str) -> ir.Block:
        return self.kernel.append_basic_block(name)

    def _at(self, block: ir.Block) -> None:
        self.builder.position_at_end(block)

    def _leave(self, to: ir.Block) -> None:
        if not self.builder.block.is_terminated:
            self.builder.branch(to)
