"""What users write, for `make types`: mypy checks the types of the results; nothing runs it."""
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

import fastmc
from fastmc.boosting import MultiBoostClassifier, solve_weights
from fastmc.losses import LossSpec, make_spec

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def linear(X: sp.csr_array, y: list[str], rng: np.random.Generator) -> fastmc.Model:
    model: fastmc.Model = fastmc.train(X, y, loss="topk", k=5, class_weight={"a": 2.0}, random_state=rng)
    gap: float = model.certificate.relative_gap
    gaps: Array = model.history["gap"]
    best: Array = model.predict_topk(X, k=2)
    error: float = model.topk_error(X, y, 2)
    model.save("model.npz")
    limit = error + gap + len(gaps) + len(best)
    return fastmc.train(X, y, C=2, init=model, callback=lambda state: state.seconds > limit)


def along_lambda(X: Array, y: Array) -> fastmc.Model:
    path: fastmc.RegularizationPath = fastmc.path(X, y, eps=0.1, validation=(X, y))
    columns: dict[str, Array] = path.columns()
    return path.model_at(float(path.lams[path.top1_error.argmin()]) + len(columns))


def boosted(H: Array) -> Iterator[float]:
    X, y = fastmc.load_svmlight("data.svm", dtype=np.float32)
    matrix: sp.csr_matrix = X
    fastmc.dump_svmlight(matrix, y, "copy.svm.bz2")
    w, info = solve_weights(H, y, C=10)
    bound: float = info["lower_bound"]
    model: MultiBoostClassifier = MultiBoostClassifier(n_rounds=5, C=bound).fit(X, y, sample_weight=w)
    return model.staged_score(X, y)


def loss() -> LossSpec:
    return make_spec("wtopk", n_classes=5, rho=[0.5, 0.3])
