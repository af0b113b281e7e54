"""The arrays that callers hand in and get back, one module a library. What the front asks of them is in kinds.py."""
