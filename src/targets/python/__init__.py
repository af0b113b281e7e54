"""The kernel's own Python, as it stands."""
