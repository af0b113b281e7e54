"""NVIDIA cards, through Numba CUDA."""
