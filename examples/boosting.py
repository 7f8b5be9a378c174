"""MultiBoost: a weighted vote of decision stumps for each class."""
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from fastmc.estimators import MultiBoostClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

model = MultiBoostClassifier(n_rounds=100).fit(X_train, y_train)
boosted = model.model_  # the classifier of fastmc.boosting, with all it knows
for rounds, score in enumerate(boosted.staged_score(X_test, y_test), start=1):
    if rounds in (1, 10, model.n_rounds_):
        print(f"after {rounds} rounds: test accuracy {score:.4f}")

# No vote of any number of stumps has an objective below the bound.
print(f"objective {model.objective_:.2f}, bound over all stumps {model.global_lower_bound_:.2f}")

counts = boosted.feature_counts()
top = np.argsort(-counts, kind="stable")[:3]
print(f"{(counts > 0).sum()} of 64 pixels used, most often: "
      + ", ".join(f"row {pixel // 8} column {pixel % 8}" for pixel in top))
