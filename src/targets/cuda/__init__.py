"""The target "cuda": NVIDIA cards, by Numba CUDA and cupy."""
