"""The CPU target: vectorised kernels compiled by LLVM, and fast paths on host arrays by NumPy and LLVM."""
