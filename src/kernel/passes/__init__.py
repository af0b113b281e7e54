"""Analyses and transformations of the IR that more than one target uses."""
