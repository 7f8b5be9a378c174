"""Train, predict and the command line, as installed: smoke.py DATA_FOLDER, from any folder."""
import os
import subprocess
import sys
import tempfile

import fastmc

data = os.path.abspath(sys.argv[1])
train, test = (os.path.join(data, f"stdlib.{part}.svm.bz2") for part in ("train", "test"))
X, y = fastmc.load_svmlight(train)
X_test, y_test = fastmc.load_svmlight(test, n_features=X.shape[1])
model = fastmc.train(X, y, loss="topk", k=5)
assert model.status == "converged" and model.topk_error(X_test, y_test, k=5) < 0.06, model
with tempfile.TemporaryDirectory() as folder:
    for words in (["train", "-q", train, "stdlib.model"], ["predict", test, "stdlib.model", "labels.txt"]):
        subprocess.run([sys.executable, "-m", "fastmc", *words], cwd=folder, check=True)
    with open(os.path.join(folder, "labels.txt")) as file:
        assert len(file.readlines()) == len(y_test)
print("fastmc", fastmc.__version__, "from", os.path.dirname(fastmc.__file__))
