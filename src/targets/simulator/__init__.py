"""All invocations in lockstep, in NumPy, with every mistake reported."""
