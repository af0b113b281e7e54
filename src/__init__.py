"""Sorting and reducing on every machine from one typed Python kernel."""
