"""Pure-Python mirror of the Cython kernels."""
