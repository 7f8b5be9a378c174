"""Reading LIBSVM text: fastmc by one thread and several, and scikit-learn, in one run, turn by turn.

    FASTMC_DATA=folder python benchmarks/svmlight.py [--repeats 5] [--threads 2] [--memory]

Prints the least time of each over the repeats and its ratio to one thread of fastmc, for the text
plain and packed. --memory adds the peak memory by one thread and several while a file of 1e6 rows x 20 features is read, over the size of the
CSR arrays (Linux only: the peak is read from /proc).
"""
import argparse
import bz2
import datetime
import os
import platform
import shutil
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
X, y = load_svmlight(sys.argv[1])
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


def seconds(read, path):
    start = time.perf_counter()
    read(path)
    return time.perf_counter() - start


def measure_speed(folder, repeats):
    path = os.path.join(folder, NAME)
    with bz2.open(os.path.join(os.environ["FASTMC_DATA"], NAME + ".bz2")) as packed:
        with open(path, "wb") as plain:
            shutil.copyfileobj(packed, plain)
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(seconds(load_svmlight, path))
        theirs.append(seconds(load_svmlight_file, path))
    megabytes = os.path.getsize(path) / 1e6
    print(f"{NAME}: {megabytes:.1f} MB, least of {repeats}")
    print(f"  fastmc        {min(ours):.4f} s  ({megabytes / min(ours):.0f} MB/s)")
    print(f"  scikit-learn  {min(theirs):.4f} s  ({megabytes / min(theirs):.0f} MB/s)")
    print(f"  ratio         {min(theirs) / min(ours):.1f}")


def measure_memory(folder):
    path = os.path.join(folder, "million.svm")
    rng = np.random.default_rng(0)
    with open(path, "w") as stream:
        for _ in range(1000):
            indices = np.arange(20) * 50 + rng.integers(1, 51, (1000, 20))
            for row, values in zip(indices.tolist(), rng.random((1000, 20)).tolist()):
                entries = " ".join(f"{index}:{value:.5f}" for index, value in zip(row, values))
                stream.write(f"{row[0] % 7} {entries}\n")
    command = [sys.executable, "-c", PEAK, path]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    size, extra = map(int, run.stdout.split())
    print(f"1e6 rows x 20 features: {os.path.getsize(path) / 1e6:.0f} MB of text")
    print(f"  CSR arrays    {size / 1e6:.0f} MB")
    print(f"  peak          {extra / 1e6:.0f} MB")
    print(f"  ratio         {extra / size:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="at least 3")
    parser.add_argument("--memory", action="store_true", help="also measure peak memory")
    options = parser.parse_args()
    if options.repeats < 3:
        parser.error("--repeats must be at least 3")
    if "FASTMC_DATA" not in os.environ:
        parser.error("the environment variable FASTMC_DATA must name the folder of data sets")
    print_header()
    with tempfile.TemporaryDirectory() as folder:
        measure_speed(folder, options.repeats)
        if options.memory:
            measure_memory(folder)


if __name__ == "__main__":
    main()
