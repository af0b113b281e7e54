"""The on-disk cache of compiled kernels and tuning results: location, trust checks, authenticated files."""
