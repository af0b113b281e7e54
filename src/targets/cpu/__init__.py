"""Vectorised CPU, through Numba."""
