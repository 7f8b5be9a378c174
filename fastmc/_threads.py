"""Work on blocks of rows by several threads; the kernels release the GIL."""
import os
from concurrent.futures import ThreadPoolExecutor


def over_blocks(work, n_rows, block, n_threads):
    """Call `work` with slices of at most `block` of the rows, n_threads at a time (0: all cores)."""
    slices = [slice(at, min(at + block, n_rows)) for at in range(0, n_rows, block)]
    n_threads = min(n_threads or os.cpu_count() or 1, len(slices))
    if n_threads <= 1:
        for rows in slices:
            work(rows)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, slices))
