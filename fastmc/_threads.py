"""Work on blocks of rows by several threads; the kernels release the GIL."""
import os
from concurrent.futures import ThreadPoolExecutor


def count_threads(n_threads):
    """The number asked for; for 0 that of the cores that this process may use."""
    if n_threads:
        return n_threads
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # joblib and others tell their workers this way how many are left for each.
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, max(1, int(allowed))) if allowed.isdecimal() else cores


def over_blocks(work, n_rows, block, n_threads):
    """Call `work` with slices of at most `block` of the rows, n_threads at a time (0: all cores)."""
    over_slices(work, [slice(at, min(at + block, n_rows)) for at in range(0, n_rows, block)], n_threads)


def over_slices(work, slices, n_threads):
    """Call `work` with each of the slices, n_threads at a time (0: all cores)."""
    n_threads = min(count_threads(n_threads), len(slices))
    if n_threads <= 1:
        for rows in slices:
            work(rows)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, slices))
