"""Exact block maximisation by several threads, in plain Python by one: the mirror of `fastmc._batches`."""
from fastmc.reference.sdca import Step, add_squares, extrapolate


def batch_pass(workers, weights, rows, gaps, gains, order, start, stop, lam_n, smoothing, momentum, batch, pool,
               bounds, last=None, squares=None):
    """A slice of a pass in batches: all steps of a batch start from the W before it.

    Steps of a batch cannot see each other, whoever takes them, and scores are sums over parts of the
    features, as many whatever the number of threads, so that the result depends neither on that number
    nor on their timing. W = W(A) as after `sdca_pass`. Where samples of a batch are alike, the steps
    together go too far, and the dual may fall.

    Parameters
    ----------
    workers : list of (Samples, Loss)
        Scratch for each thread; the samples are cut up into parts.
    weights, rows, gaps, gains, order, start, stop, lam_n, smoothing, momentum
        As in `sdca_pass`; no sample twice in a batch.
    batch : int
        Samples in a batch.
    pool : Executor
        Threads, one fewer than workers: the calling thread is one as well. Not needed here.
    bounds : ndarray of intp, shape (n_parts + 1,)
        The rows of W at which the parts of the features begin, and their number.
    last : ndarray like weights, or None
        If given, the slice is the first of its pass: W is extrapolated, and kept here, before anything else.
    squares : ndarray of float64, shape (n_parts, stride), or None
        If given, the slice is the last: the squares of W after it are added, column by column in each part.
    """
    samples, loss = workers[0]
    if last is not None:
        extrapolate(samples, weights, last, momentum)
    step = Step(samples, loss, rows, gaps, gains, lam_n, smoothing, momentum)
    for at in range(start, stop, batch):
        batch_samples = [order.next(position) for position in range(at, min(at + batch, stop))]
        changes = [step.take(i, _scores(samples, i, weights), weights.dtype.type) for i in batch_samples]
        for i, coef in zip(batch_samples, changes):
            samples.load(i)
            samples.update(coef, weights)
    for part in range(0 if squares is None else len(squares)):
        add_squares(samples, weights[bounds[part]: bounds[part + 1]], squares[part])


def _scores(samples, i, weights):
    """The scores of sample i, summed part by part."""
    samples.load_part(i, 0)
    scores = samples.scores(weights)
    for part in range(1, samples.n_parts):
        samples.load_part(i, part)
        scores = [score + more for score, more in zip(scores, samples.scores(weights))]
    return scores
