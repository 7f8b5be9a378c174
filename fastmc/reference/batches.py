"""Exact block maximisation by several threads, in plain Python by one: the mirror of `fastmc._batches`."""
from fastmc.reference.sdca import Step


def batch_pass(shares, rows, gaps, gains, order, start, stop, lam_n, smoothing, momentum, batch, pool):
    """A slice of a pass in batches: all steps of a batch start from the W before it.

    Steps of a batch cannot see each other, whoever takes them, so that the result depends neither on the
    number of threads nor on their timing. W = W(A) as after `sdca_pass`. Where samples of a batch are
    alike, the steps together go too far, and the dual may fall.

    Parameters
    ----------
    shares : list of Share
        What each thread has: `samples`, `loss`, and `weights` of the classes from `first` on,
        float32 or float64, shape (n_features, width), updated in place.
    rows, gaps, gains, order, start, stop, lam_n, smoothing, momentum
        As in `sdca_pass`; no sample twice in a batch.
    batch : int
        Samples in a batch.
    pool : Executor
        Threads, as many as shares; not needed here.
    """
    for at in range(start, stop, batch):
        batch_samples = [order.next(position) for position in range(at, min(at + batch, stop))]
        changes = [_change(shares, Step(shares[0].samples, shares[0].loss, rows, gaps, gains, lam_n, smoothing,
                                        momentum), i) for i in batch_samples]
        for i, coef in zip(batch_samples, changes):
            for share in shares:
                share.samples.load(i)
                share.samples.update(coef[share.first: share.first + share.weights.shape[1]], share.weights)


def _change(shares, step, i):
    """What the step of sample i changes, one number for each column of the shares."""
    scores = []
    for share in shares:
        share.samples.load(i)
        scores += share.samples.scores(share.weights)
    return step.take(i, scores, shares[0].weights.dtype.type)
