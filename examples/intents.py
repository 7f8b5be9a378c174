"""From raw text to five suggestions.

Needs scikit-learn. With FASTMC_DATA set to a folder that holds banking77.raw.csv.gz the texts are
customers' questions and the labels their intents; otherwise they are those of the embedded data:
the words of a function of Python's standard library, and the module it is from.
"""
import csv
import gzip
import os
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import fastmc
from fastmc.estimators import MulticlassSVC

DATA = Path(__file__).resolve().parents[1] / "data"


def questions(folder, part):
    """Questions to a bank and their intents."""
    with gzip.open(folder / "banking77.raw.csv.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == part]
    return [row["text"] for row in rows], [row["category"] for row in rows]


def functions(part):
    """The words of functions and the modules they are from."""
    words = (DATA / "stdlib.words.txt").read_text().split()
    names = dict(line.split("\t") for line in (DATA / "stdlib.classes.txt").read_text().splitlines())
    X, y = fastmc.load_svmlight(DATA / f"stdlib.{part}.svm.bz2", n_features=len(words))
    texts = [" ".join(words[word] for word in X.indices[start:end])
             for start, end in zip(X.indptr, X.indptr[1:])]
    return texts, [names[str(label)] for label in y]


folder = os.environ.get("FASTMC_DATA")
(texts, labels), (new_texts, new_labels) = [
    questions(Path(folder), part) if folder else functions(part) for part in ("train", "test")]

# loss="topk" cares whether the right label is among the five best, not where.
classifier = MulticlassSVC(loss="topk", k=5)
vectorizer = TfidfVectorizer(sublinear_tf=True)
pipeline = make_pipeline(vectorizer, classifier).fit(texts, labels)

rows = vectorizer.transform(new_texts)
for text, right, suggestions in zip(new_texts[:3], new_labels, classifier.predict_topk(rows[:3], k=5)):
    print(f"{text[:70]}\n    is of {right}; suggested: {', '.join(suggestions)}")
print(f"right label first: {pipeline.score(new_texts, new_labels):.1%}")
print(f"right label among five: {classifier.topk_score(rows, new_labels, k=5):.1%}")
