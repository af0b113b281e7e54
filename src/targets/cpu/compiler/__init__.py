"""From a kernel's text to machine code, by LLVM alone."""
