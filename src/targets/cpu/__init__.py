"""The CPU, vectorised: kernels by LLVM, the host's own loops by Numba."""
