"""Numba compiler passes that never change a generated kernel, and are skipped to compile faster."""

from __future__ import annotations

# They handle closures, context managers, literal unrolling, array expressions and variables that change type, none of
# which a generated kernel has. Without them a kernel compiles in two thirds of the time, to the same code. Listed by
# name, so that Numba versions without some of them work too.
NO_EFFECT = frozenset(
    [
        "DeadBranchPrune", "FindLiterallyCalls", "GenericRewrites", "InlineClosureLikes", "InlineInlinables",
        "InlineOverloads", "LiteralPropagationSubPipelinePass", "LiteralUnroll", "MakeFunctionToJitFunction",
        "NopythonRewrites", "PreLowerStripPhis", "ReconstructSSA", "RewriteDynamicRaises", "RewriteSemanticConstants",
        "WithLifting",
    ]
)  # fmt: skip
