"""Replacing scikit-learn's LinearSVC(multi_class="crammer_singer").

Both minimise 1/2 ||W||^2 + C sum_i max_j (s_j - s_y + [j != y]), so the weights agree. Differences:

* tol: LinearSVC's is a violation of an optimality condition; here it is the relative duality gap,
  so that tol=1e-3 means: within 0.1 % of the optimum.
* max_iter counts passes over the data in both.
* With two classes coef_ has two rows here, one in LinearSVC. decision_function is the same.
* dual, penalty and multi_class are gone; random_state is 0 unless given.
"""
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from fastmc.estimators import MulticlassSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0)

# before
linear = LinearSVC(multi_class="crammer_singer", C=0.1, tol=1e-6, max_iter=100000, random_state=0)
# after
ours = MulticlassSVC(C=0.1, tol=1e-5)

for model in (linear, ours):
    model.fit(X_train, y_train)
    print(f"{type(model).__name__}: accuracy {model.score(X_test, y_test):.4f}")
print(f"largest difference of the weights: {np.abs(ours.coef_ - linear.coef_).max():.1e}")

# New here: how far the objective can be from the optimum, and more than one suggestion.
print(f"objective {ours.objective_:.5f}, at most {ours.duality_gap_:.1e} above the optimum")
print(f"right label among three: {ours.topk_score(X_test, y_test, k=3):.4f}")
