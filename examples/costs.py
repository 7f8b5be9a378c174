"""Mistakes that cost more than others: a tumour that is missed is worse than a false alarm."""
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastmc.estimators import MulticlassSVC

data = load_breast_cancer()
X, y = data.data, data.target_names[data.target]

# Rows are the true classes, columns the predicted ones, both sorted: benign, malignant.
cost = np.array([[0.0, 1.0],
                 [10.0, 0.0]])

for name, given in (("equal costs", None), ("given costs", cost)):
    model = make_pipeline(StandardScaler(), MulticlassSVC(cost=given, max_iter=10000))
    table = confusion_matrix(y, cross_val_predict(model, X, y, cv=5))
    print(f"{name}: {table[1, 0]} missed, {table[0, 1]} false alarms, "
          f"mean cost {(cost * table).sum() / len(y):.3f}")
