"""Make the data set of Python's own library: which module is a function from?

    python data/make_stdlib.py [--out FOLDER]

A document is the source of one function or method, its label the top-level
module or package that holds it.  Only the standard library is needed, and the
same library sources give the same bytes: nothing depends on the order of a
folder's listing or on hash randomisation.
"""
import argparse
import ast
import bz2
from collections import Counter, defaultdict
import hashlib
import json
import math
import os
from pathlib import Path
import re
import sys
import sysconfig
import tokenize

LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "turtledemo"}
# A signature and one short line say little of where they come from.
MIN_WORDS = 10        # words in a document, repetitions counted
MIN_DOCUMENTS = 40    # documents in a class
MIN_DF = 3            # training documents that hold a word
TEST_SHARE = 0.2

MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# "\nfirst" must give "first", not "nfirst".
ESCAPE = re.compile(r"\\[A-Za-z]")
# "parseHTTPHeader" gives parse, HTTP, Header.  ASCII letters only.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def library_files(root):
    """Pairs (module name, path) of the library's sources, in a fixed order."""
    found = []
    for path in Path(root).rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        # Whatever else lies in the folder (a vendor's additions, settings
        # of the build) is not part of the library.
        if parts[0] in sys.stdlib_module_names and not LEFT_OUT & set(parts):
            found.append((parts, path))
    return [(parts[0], path) for parts, path in sorted(found)]


def outer_functions(node):
    """Functions and methods below a node; one inside another is its part."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
        else:
            yield from outer_functions(child)


def function_sources(source):
    """The text of each function, with decorators, docstring and comments."""
    # Not splitlines(), which also breaks at form feeds where ast does not.
    lines = source.split("\n")
    for node in outer_functions(ast.parse(source)):
        first = min([node.lineno] + [d.lineno for d in node.decorator_list])
        yield "\n".join(lines[first - 1:node.end_lineno])


def split_words(text):
    """Lower-case words of two letters or more; mail addresses are dropped."""
    text = ESCAPE.sub(" ", MAIL.sub(" ", text))
    return [w.lower() for w in WORD.findall(text) if len(w) > 1]


def hash_of(words, purpose):
    """A digest of a text; the purposes give unrelated orders."""
    text = purpose + ":" + " ".join(words)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def read_documents(root):
    """Documents as (class name, words), no two with the same words.

    Also the digest of the sources that hold a function: with it anyone can
    tell whether another Python starts from the same texts.
    """
    documents, seen, digest = [], set(), hashlib.sha256()
    for name, path in library_files(root):
        with tokenize.open(path) as file:
            source = file.read()
        texts = list(function_sources(source))
        if texts:
            relative = path.relative_to(root).as_posix()
            digest.update(f"{relative}\n{source}".encode())
        for words in map(split_words, texts):
            # The features know no order, so neither does this comparison.
            bag = " ".join(sorted(words))
            if len(words) >= MIN_WORDS and bag not in seen:
                seen.add(bag)
                documents.append((name, words))
    return documents, digest.hexdigest()


def split_documents(documents):
    """Train and test part of the large enough classes, each class alike."""
    by_class = defaultdict(list)
    for name, words in documents:
        by_class[name].append((name, words))
    train, test = [], []
    for name in sorted(by_class):
        members = sorted(by_class[name], key=lambda d: hash_of(d[1], "split"))
        if len(members) >= MIN_DOCUMENTS:
            n_test = round(TEST_SHARE * len(members))
            test += members[:n_test]
            train += members[n_test:]
    for part in (train, test):
        part.sort(key=lambda d: hash_of(d[1], "order"))
    return train, test


def inverse_frequencies(train):
    """The smoothed idf of each word kept, words in alphabetical order."""
    counts = Counter(word for _, words in train for word in set(words))
    return {word: math.log((1 + len(train)) / (1 + counts[word])) + 1
            for word in sorted(counts) if counts[word] >= MIN_DF}


def weigh(words, idf):
    """Unit-length tf-idf weights, the term frequency taken as 1 + log(tf)."""
    counts = Counter(word for word in words if word in idf)
    weights = {word: (1 + math.log(counts[word])) * idf[word]
               for word in sorted(counts)}
    norm = math.sqrt(sum(value * value for value in weights.values()))
    return {word: value / norm for word, value in weights.items()}


def make_rows(documents, idf):
    """Pairs (class name, features as LIBSVM text)."""
    index = {word: i for i, word in enumerate(idf, start=1)}
    return [(name, " ".join(f"{index[word]}:{value:.5g}"
                            for word, value in weigh(words, idf).items()))
            for name, words in documents]


def make_files(root):
    """The contents of all files by name, and the record of the making."""
    documents, digest = read_documents(root)
    train, test = split_documents(documents)
    idf = inverse_frequencies(train)
    train, test = make_rows(train, idf), make_rows(test, idf)
    # Texts that differ in rare words alone have become equal.
    known = {features for _, features in train} | {""}
    test = [row for row in test if row[1] not in known]

    names = sorted({name for name, _ in train})
    label = {name: i for i, name in enumerate(names, start=1)}
    svm = ["".join(f"{label[name]} {features}\n" for name, features in part)
           for part in (train, test)]
    made = {
        "implementation": sys.implementation.name,
        "version": list(sys.version_info[:3]),
        "sources_sha256": digest,
        "classes": len(names),
        "words": len(idf),
        "train": len(train),
        "test": len(test),
    }
    texts = {
        "stdlib.classes.txt": "".join(f"{label[n]}\t{n}\n" for n in names),
        "stdlib.words.txt": "".join(f"{word}\n" for word in idf),
        "stdlib.json": json.dumps(made, indent=2) + "\n",
    }
    files = {name: text.encode("ascii") for name, text in texts.items()}
    for name, text in zip(("train", "test"), svm):
        files[f"stdlib.{name}.svm.bz2"] = bz2.compress(text.encode("ascii"), 9)
    return files, made


def write_files(folder, files):
    """Write all files under passing names first, so that none is left half."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / (name + ".part")).write_bytes(content)
    for name in files:
        os.replace(folder / (name + ".part"), folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FOLDER",
                        default=Path(__file__).resolve().parent,
                        help="where the files go (default: beside the script)")
    folder = parser.parse_args().out
    files, made = make_files(Path(sysconfig.get_path("stdlib")))
    write_files(folder, files)
    for key, value in made.items():
        print(f"{key}: {value}")


if __name__ == "__main__":
    main()
