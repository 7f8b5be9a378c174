"""The losses by name: what the user asks for, and the family member that computes it."""
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastmc import _losses, reference
from fastmc._types import Array

# name: (class of the kernel and the mirror, which of k and rho it takes)
LOSSES = {
    "maxhinge": ("UsunierLoss", None),
    "structured": ("UsunierLoss", None),
    "topk": ("TopKLoss", "k"),
    "usunier": ("UsunierLoss", "k"),
    "wtopk": ("TopKLoss", "rho"),
    "wusunier": ("UsunierLoss", "rho"),
}
ALIASES = {"crammer_singer": "maxhinge"}


@dataclass(frozen=True)
class LossSpec:
    """One loss for one number of classes.

    Attributes
    ----------
    name : str
        A key of `LOSSES`.
    rho : tuple of float
        Rank weights, one per class, non-increasing, the last one zero.
    own_class : bool
        Top-k type: whether the own class can hold one of the ranks.
    """

    name: str
    rho: tuple[float, ...]
    own_class: bool = True

    def __str__(self) -> str:
        ranks = ", ".join(f"{r:.4g}" for r in self.rho[: min(self.n_ranks, 6)])
        more = ", .." if self.n_ranks > 6 else ""
        return f"loss={self.name!r} of rank weights ({ranks}{more}), own_class={self.own_class}"

    @property
    def family(self) -> str:
        return LOSSES[self.name][0]

    @property
    def n_ranks(self) -> int:
        return sum(r > 0 for r in self.rho)

    def make(self, engine: str = "cython") -> Any:
        """The object that computes this loss, of the kernel or of the mirror."""
        module = _losses if engine == "cython" else reference.losses
        args = (self.own_class,) if self.family == "TopKLoss" else ()
        return getattr(module, self.family)(len(self.rho), np.array(self.rho), *args)


def check_loss(loss: str, k: int = 1, rho: ArrayLike | None = None, own_class: bool = True) -> str:
    """Check the loss parameters that do not depend on the data; return the loss's name.

    Raises
    ------
    ValueError
        Naming the argument and its value.
    """
    name = ALIASES.get(loss, loss) if isinstance(loss, str) else loss
    if not isinstance(name, str) or name not in LOSSES:
        valid = ", ".join([*LOSSES, *ALIASES])
        raise ValueError(f"loss={loss!r} is unknown; valid losses: {valid}")
    takes = LOSSES[name][1]
    if not isinstance(k, numbers.Integral) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k={k!r} must be a whole number of at least 1")
    if takes != "k" and k != 1:
        raise ValueError(f"loss={loss!r} takes no k (got k={k}); topk and usunier do")
    if (rho is not None) != (takes == "rho"):
        verb = "needs" if takes == "rho" else "takes no"
        raise ValueError(f"loss={loss!r} {verb} rho; wtopk and wusunier are the weighted losses")
    if LOSSES[name][0] != "TopKLoss" and not own_class:
        raise ValueError(f"own_class=False is for topk and wtopk, not loss={loss!r}")
    if rho is not None:
        _check_rho(rho)
    return name


def _check_rho(rho: ArrayLike) -> Array:
    try:
        rho = np.asarray(rho, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"rho={rho!r} must be a sequence of numbers") from None
    if rho.ndim != 1:
        raise ValueError(f"rho has shape {rho.shape}, expected one dimension")
    if not np.isfinite(rho).all() or (rho < 0).any() or (np.diff(rho) > 0).any():
        raise ValueError(f"rho={rho.tolist()} must be finite, non-negative and non-increasing")
    if not rho.size or rho[0] == 0:
        raise ValueError(f"rho={rho.tolist()} must start with a positive weight")
    return rho


def make_spec(loss: str, n_classes: int, k: int = 1, rho: ArrayLike | None = None,
              own_class: bool = True) -> LossSpec:
    """The LossSpec of checked parameters for `n_classes` classes.

    Raises
    ------
    ValueError
        If k or rho does not fit the number of classes.
    """
    name = check_loss(loss, k, rho, own_class)
    if k > n_classes - 1:
        raise ValueError(f"k={k} must be at most n_classes - 1 = {n_classes - 1}")
    padded = np.zeros(n_classes)
    if rho is not None:
        rho = _check_rho(rho)
        rho = rho[: np.count_nonzero(rho)]
        if len(rho) > n_classes - 1:
            raise ValueError(f"rho has {len(rho)} positive weights; {n_classes} classes "
                             f"allow at most {n_classes - 1}")
        padded[: len(rho)] = rho
    else:
        padded[:k] = 1.0 / k
    return LossSpec(name, tuple(padded.tolist()), bool(own_class))
