"""Reading LIBSVM text: fastmc by one thread and several, and scikit-learn, in one run, turn by turn.

    FASTMC_DATA=folder python benchmarks/svmlight.py [--repeats 5] [--threads 2] [--memory]

Prints the least time of each over the repeats and its ratio to one thread of fastmc, for the text
plain and packed. --memory adds the peak memory by one thread and several while a file of
1e6 rows x 20 features is read, over the size of the CSR arrays (Linux only: the peak is
read from /proc).
"""
import argparse
import bz2
import datetime
import gzip
import os
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy
import sklearn
from sklearn.datasets import load_svmlight_file

import fastmc
from fastmc.svmlight import load_svmlight

NAME = "news20_bydate_tfidf.train.svm"

PEAK = """
import sys
from fastmc.svmlight import load_svmlight

def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))

before = peak()
X, y = load_svmlight(sys.argv[1], n_threads=int(sys.argv[2]))
print(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes, peak() - before)
"""


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or "unknown processor"


def print_header():
    print(f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, {platform.system()}")
    print(f"Python {platform.python_version()}, fastmc {fastmc.__version__}, "
          f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}")


def seconds(read, path, **options):
    start = time.perf_counter()
    read(path, **options)
    return time.perf_counter() - start


def measure_speed(folder, repeats, n_threads):
    packed = os.path.join(os.environ["FASTMC_DATA"], NAME + ".bz2")
    plain = os.path.join(folder, NAME)
    with bz2.open(packed) as text, open(plain, "wb") as copy, gzip.open(plain + ".gz", "wb", 6) as zipped:
        data = text.read()
        copy.write(data)
        zipped.write(data)
    megabytes = len(data) / 1e6
    print(f"{NAME}: {megabytes:.1f} MB, least of {repeats}")
    for path in (plain, plain + ".gz", packed):
        one, several, theirs = [], [], []
        for _ in range(repeats):
            one.append(seconds(load_svmlight, path))
            several.append(seconds(load_svmlight, path, n_threads=n_threads))
            theirs.append(seconds(load_svmlight_file, path))
        for name, times in (("1 thread", one), (f"{n_threads} threads", several), ("scikit-learn", theirs)):
            print(f"  {os.path.splitext(path)[1]:5} {name:13} {min(times):.4f} s  "
                  f"({megabytes / min(times):.0f} MB/s), {min(times) / min(one):.2f} times 1 thread")


def measure_memory(folder, n_threads):
    path = os.path.join(folder, "million.svm")
    rng = np.random.default_rng(0)
    with open(path, "w") as stream:
        for _ in range(1000):
            indices = np.arange(20) * 50 + rng.integers(1, 51, (1000, 20))
            for row, values in zip(indices.tolist(), rng.random((1000, 20)).tolist()):
                entries = " ".join(f"{index}:{value:.5f}" for index, value in zip(row, values))
                stream.write(f"{row[0] % 7} {entries}\n")
    print(f"1e6 rows x 20 features: {os.path.getsize(path) / 1e6:.0f} MB of text")
    for threads in (1, n_threads):
        command = [sys.executable, "-c", PEAK, path, str(threads)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        size, extra = map(int, run.stdout.split())
        print(f"  {threads} thread{'s' * (threads > 1)}: CSR arrays {size / 1e6:.0f} MB, "
              f"peak {extra / 1e6:.0f} MB, ratio {extra / size:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="at least 3")
    parser.add_argument("--threads", type=int, default=2, help="of the second measurement of fastmc")
    parser.add_argument("--memory", action="store_true", help="also measure peak memory")
    options = parser.parse_args()
    if options.repeats < 3:
        parser.error("--repeats must be at least 3")
    if "FASTMC_DATA" not in os.environ:
        parser.error("the environment variable FASTMC_DATA must name the folder of data sets")
    print_header()
    with tempfile.TemporaryDirectory() as folder:
        measure_speed(folder, options.repeats, options.threads)
        if options.memory:
            measure_memory(folder, options.threads)


if __name__ == "__main__":
    main()
