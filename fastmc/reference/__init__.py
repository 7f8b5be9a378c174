"""Pure-Python mirror of the Cython kernels: `fastmc.reference.X` mirrors `fastmc._X`.

Same names, arguments and order of operations, in plain loops over Python floats, so results
agree bit for bit. It carries the formulas; `engine="reference"` runs it.
"""
from fastmc.reference import (active_set, batches, bcfw, dual_rows, fcd, fw, losses, objective, order, predict,
                              samples, sdca, stumps)

__all__ = ["active_set", "batches", "bcfw", "dual_rows", "fcd", "fw", "losses", "objective", "order", "predict",
           "samples", "sdca", "stumps"]
