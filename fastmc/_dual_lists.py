"""A as lists of beta = -alpha at the wrong classes of each sample, and as matrices."""
import numpy as np
import scipy.sparse as sp

from fastmc._solver_base import modules


def betas(dual, label):
    """CSR arrays of beta = -alpha at the wrong classes, from A."""
    coo = dual.tocoo()
    keep = (coo.coords[1] != label[coo.coords[0]]) & (coo.data < 0)
    matrix = sp.csr_array((-coo.data[keep], (coo.coords[0][keep], coo.coords[1][keep])), shape=dual.shape)
    return matrix.indptr, matrix.indices, matrix.data


def alphas(indptr, classes, beta, label, n_classes):
    """A as a CSR array, from the lists of beta."""
    n, shape = len(label), (len(label), n_classes)
    wrong = sp.csr_array((-beta, classes, indptr), shape=shape)
    # Summed in the order of classes: who starts from A gets the same A.
    wrong.sort_indices()
    rows = np.repeat(np.arange(n), np.diff(indptr))
    own = sp.csr_array((np.bincount(rows, -wrong.data, n), label, np.arange(n + 1)), shape=shape)
    dual = wrong + own
    dual.eliminate_zeros()
    return dual


def weights_of_lists(indptr, classes, beta, problem, lam_n, engine):
    """W(A) in float64, from the lists of beta."""
    kernels = modules(engine)
    rows = kernels["dual_rows"].DualRows(problem.n_samples, problem.n_classes)
    rows.set_rows(indptr, classes, beta)
    weights = np.zeros((problem.n_weights, problem.n_classes))
    kernels["objective"].add_rows(problem.samples(engine), rows, weights, lam_n, 0)
    return weights
