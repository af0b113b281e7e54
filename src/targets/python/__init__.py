"""The target "python": kernels run as plain Python functions."""
