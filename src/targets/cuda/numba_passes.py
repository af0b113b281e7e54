"""Which of Numba's passes find nothing in kernels."""

from __future__ import annotations

# They look for closures, for contexts, for constants and expressions of whole arrays, and for variables that change
# their type: each walks the whole kernel, and some have Numba look at all of it anew. That is a third of the time that
# a kernel takes to compile, to the same code. By name: what a version lacks is not missed.
FIND_NOTHING = frozenset(
    [
        "DeadBranchPrune", "FindLiterallyCalls", "GenericRewrites", "InlineClosureLikes", "InlineInlinables",
        "InlineOverloads", "LiteralPropagationSubPipelinePass", "LiteralUnroll", "MakeFunctionToJitFunction",
        "NopythonRewrites", "PreLowerStripPhis", "ReconstructSSA", "RewriteDynamicRaises", "RewriteSemanticConstants",
        "WithLifting",
    ]
)  # fmt: skip
