"""Choosing C along the regularization path."""
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fastmc
from fastmc.estimators import MulticlassSVCCV

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0)

# Cross-validation: one path for each fold holds the models of all C.
model = MulticlassSVCCV(Cs=[0.01, 0.03, 0.1, 0.3, 1.0], cv=5).fit(X_train, y_train)
for C, score in zip(model.Cs_, model.scores_.mean(axis=0)):
    print(f"C = {C:<5g} cross-validated accuracy {score:.4f}")
print(f"chosen: C = {model.C_:g}, test accuracy {model.score(X_test, y_test):.4f}")

# The path itself, with one part of the data held out: every C from 0 to 1, each certified to 5 %.
X_fit, X_held, y_fit, y_held = train_test_split(X_train, y_train, test_size=0.25, random_state=0)
path = fastmc.path(X_fit, y_fit, eps=0.05, lam_min=1 / len(y_fit), bias=1.0, validation=(X_held, y_held))
best = path.top1_error.argmin()
print(f"{len(path)} breakpoints, largest relative gap {path.relative_gap.max():.4f}")
print(f"best on the held-out part: C = {path.C[best]:.3g}, accuracy {1 - path.top1_error[best]:.4f}")
