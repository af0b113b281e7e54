"""The target "simulator": a lockstep interpreter in NumPy that reports races and other undefined behaviour."""
