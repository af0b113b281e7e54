"""From a kernel's text to LLVM's: what the CPU and CUDA have in common. Each adds what its machine alone has."""
