"""LLVM, by way of llvmlite: optimises, writes machine code, loads it. Importing this loads llvmlite."""

from __future__ import annotations

import ctypes
from functools import lru_cache

import attrs
import llvmlite
import llvmlite.binding as llvm


@attrs.frozen(eq=False)
class Machine:
    """This processor, and the code that is loaded."""

    target: llvm.TargetMachine
    engine: llvm.ExecutionEngine
    target_features: str
    about: str  # all that machine code depends on besides its text

    @property
    def is_opaque(self) -> bool:
        """Whether LLVM's pointers have no types. In LLVM 15 and 16 llvmlite keeps them."""
        return llvm.llvm_version_info[0] >= 17

    @property
    def compresses(self) -> bool:
        """Whether AVX-512 compresses vectors of 32 and 64 bits."""
        return "+avx512f" in self.target_features.split(",")

    @property
    def has_halves(self) -> bool:
        """Whether there are instructions that make float32 of float16, and back."""
        return self.target.triple.startswith("aarch64") or "+f16c" in self.target_features.split(",")

    def code(self, text: str, speed: int) -> bytes:
        """An object file. `speed` is LLVM's level of optimisation: 2 or 3."""
        return self.target.emit_object(self.optimised(text, speed))

    def optimised(self, text: str, speed: int) -> llvm.ModuleRef:
        """A text's module, from which this processor's code is written."""
        module = llvm.parse_assembly(text)
        module.triple = self.target.triple
        module.data_layout = str(self.target.target_data)
        module.verify()
        if self.is_opaque:
            builder = llvm.create_pass_builder(self.target, llvm.create_pipeline_tuning_options(speed_level=speed))
            builder.getModulePassManager().run(module, builder)
        else:
            self._by_older_passes(module, speed)
        return module

    def _by_older_passes(self, module: llvm.ModuleRef, speed: int) -> None:
        """LLVM 15's newer passes crash where Mesa has loaded an LLVM 15 of its own."""
        passes, builder = llvm.create_module_pass_manager(), llvm.create_pass_manager_builder()
        builder.opt_level, builder.loop_vectorize = speed, True
        self.target.add_analysis_passes(passes)
        builder.populate(passes)
        passes.run(module)

    def load(self, code: bytes, name: str) -> int:
        """The address of a function."""
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        return self.engine.get_function_address(name)


def target_for(triple: str, cpu: str, features: str) -> llvm.TargetMachine:
    """What writes code for a processor, to be loaded where this process finds room."""
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="static" if triple.startswith("x86") else "default",
        codemodel="jitdefault", jit=True,
    )  # fmt: skip


# What has scalable vectors, or implies them, by how LLVM's names begin.
_SCALABLE = ("sve", "sme", "ssve", "f32mm", "f64mm")


def features_here(triple: str) -> str:
    """What this processor has beside what its name says; on ARM without its scalable vectors. A system may hide those
    that the name promises, of which LLVM 15 hears nothing. And where they are longer than 128 bits, LLVM 22 loses half
    of a sum of bytes: it adds the upper half of the whole register, not of the 128 bits that it has summed in
    (llvm/llvm-project#204939)."""
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know them of this processor
        features = llvm.FeatureMap()
    if triple.startswith("aarch64"):
        found = [name for name in features if name.startswith(_SCALABLE)]
        features.update(dict.fromkeys((*found, "sve"), False))
    return features.flatten()


@lru_cache(maxsize=1)
def machine() -> Machine:
    """The process's one. It is never freed, not even at the interpreter's end: llvmlite's finalisers learn of that end
    from `atexit`, which calls nothing that is registered while it runs. So they fail where llvmlite is imported only
    then, by a thread that loads loops while the process ends or by a call in an exit handler."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
    features = features_here(triple)
    target = target_for(triple, cpu, features)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    about = repr((triple, cpu, features, llvmlite.__version__, llvm.llvm_version_info))
    found = Machine(target, engine, features, about)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(found))
    return found
