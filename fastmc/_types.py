"""Types that several public functions take."""
import os
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

Array: TypeAlias = np.ndarray[Any, Any]
Matrix: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix
FilePath: TypeAlias = str | os.PathLike[str]
RandomState: TypeAlias = int | np.random.Generator
