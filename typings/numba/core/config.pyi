# Read by name: which settings there are differs between versions.
