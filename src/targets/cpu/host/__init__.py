"""Sorting, reducing and scanning of host arrays around NumPy's own loops, for the CPU target."""
