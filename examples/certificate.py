"""What the certificate says: of the objective, of the weights and of single predictions."""
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import norm

import fastmc

DATA = Path(__file__).resolve().parents[1] / "data"
X, y = fastmc.load_svmlight(DATA / "stdlib.train.svm.bz2")
X_test, y_test = fastmc.load_svmlight(DATA / "stdlib.test.svm.bz2", n_features=X.shape[1])
lengths = norm(X_test, axis=1)

model = None
for tol in (1e-1, 1e-2, 1e-3, 1e-4):
    model = fastmc.train(X, y, C=0.1, tol=tol, init=model)  # goes on where the last one stopped
    primal, dual, gap, relative = model.certificate
    # The objective is lambda-strongly convex: lambda/2 ||W - W*||^2 is at most the gap.
    distance = np.sqrt(2 * gap / model.lam)
    # A difference of two scores is then off by at most sqrt(2) ||x|| distance. Where the best
    # score leads by more, the exact optimum predicts the same label.
    scores = np.sort(model.decision_function(X_test), axis=1)
    final = scores[:, -1] - scores[:, -2] > np.sqrt(2) * lengths * distance
    print(f"tol {tol:g}: optimum between {dual:.5f} and {primal:.5f}, relative gap {relative:.1e}; "
          f"||W - W*|| <= {distance:.2f} of {np.linalg.norm(model.weights):.2f}; "
          f"{final.mean():.1%} of the test labels are final; accuracy {model.score(X_test, y_test):.1%}")

# The history holds the same for each certificate along the way.
history = model.history
print("passes:", history["passes"].tolist(), "gaps:", [f"{gap:.1e}" for gap in history["gap"]])
