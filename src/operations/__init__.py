"""What can be asked of arrays: a frozen value each, which knows algorithms, but no target and no array library."""
