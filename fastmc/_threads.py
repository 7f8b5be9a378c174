"""Work on slices by several threads; the kernels release the GIL."""
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait

from fastmc import _team


def count_threads(n_threads):
    """The number asked for; for 0 that of the cores that this process may use."""
    if n_threads:
        return n_threads
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # joblib and others tell their workers this way how many are left for each.
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, max(1, int(allowed))) if allowed.isdecimal() else cores


def over_blocks(work, n_rows, block, n_threads, pool=None):
    """Call `work` with slices of at most `block` of the rows, n_threads at a time (0: all cores)."""
    over_slices(work, [slice(at, min(at + block, n_rows)) for at in range(0, n_rows, block)], n_threads, pool)


def over_slices(work, slices, n_threads, pool=None):
    """Call `work` with each of the slices, n_threads at a time (0: all cores).

    The calling thread is one of them; the others are from the pool, or started for this.
    """
    n_threads = min(count_threads(n_threads), len(slices))
    if n_threads <= 1:
        for rows in slices:
            work(rows)
    elif pool is None:
        with ThreadPoolExecutor(n_threads - 1) as pool:
            take_turns(work, slices, pool, n_threads)
    else:
        take_turns(work, slices, pool, n_threads)


def take_turns(work, slices, pool, n_threads):
    waiting, team = deque(slices), _team.Team(n_threads)

    def serve():
        team.spread()
        while waiting:
            try:
                rows = waiting.popleft()
            except IndexError:
                return
            work(rows)

    calls = [pool.submit(serve) for _ in range(n_threads - 1)]
    try:
        serve()
    finally:
        # After an error nobody begins another slice, and all have ended when it comes out.
        waiting.clear()
        wait(calls)
    for call in calls:
        call.result()
