"""The target "cuda": NVIDIA cards, by NVVM and cupy."""
