"""The commands of `python -m fastmc`: train, predict and info.

Exit codes: 0 success, 1 bad data or a bad model, 2 a wrong command line, 130 interrupted.
"""
import contextlib
import errno
import json
import math
import os
import sys
import tempfile
import time
import warnings

import numpy as np

import fastmc
from fastmc import _folds
from fastmc._arguments import (UsageError, info_parser, predict_parser, split_class_weights,
                               train_parser)
from fastmc._files import replacing
from fastmc._model import ModelError, check_k, is_native
from fastmc._model_text import text_labels
from fastmc._options import (C_RANGE, check_budgets, check_C_or_lam, check_range, check_solver,
                             lam_of)
from fastmc._problem import check_bias
from fastmc.losses import check_loss, make_spec
from fastmc.svmlight import SvmlightError

USAGE = """usage: python -m fastmc train   [options] training_file [model_file]
       python -m fastmc predict [options] test_file model_file output_file
       python -m fastmc info    [options] model_file

Linear multi-class classifiers with a certificate of how far they are from optimal.
Data files are in LIBSVM format, plain or .gz, .bz2, .xz.
`python -m fastmc train --help` lists the options of a command; --version tells the version."""

# Rows scored at a time by `predict`.
BLOCK = 8192


class InputError(Exception):
    """Something wrong with the data: exit 1."""


def main(argv=None):
    """Run one command line; return its exit code.

    Parameters
    ----------
    argv : list of str or None
        The words after the program's name, by default those of this process.

    Returns
    -------
    int
        0 success, 1 bad data or a bad model, 2 a wrong command line, 130 interrupted.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        with warnings_as_lines():
            code = run(argv)
        sys.stdout.flush()
        return code
    except SystemExit as end:  # the parser's: --help or a wrong option
        return end.code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output is gone; keep Python from complaining once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (InputError, ModelError, SvmlightError) as error:
        return fail(str(error))
    except OSError as error:
        name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return fail(f"{name}{error.strerror or error}")
    except MemoryError as error:
        return fail(f"not enough memory: {error}")


def fail(message):
    """Tell the one line of an error; return the exit code of bad data."""
    print(f"ERROR: {' '.join(message.split())}", file=sys.stderr)
    return 1


def run(argv):
    commands = {"train": (train_parser, train), "predict": (predict_parser, predict),
                "info": (info_parser, info)}
    first = argv[0] if argv else ""
    if first in ("-h", "--help", "--version"):
        print(f"fastmc {fastmc.__version__}" if first == "--version" else USAGE)
        return 0
    if first not in commands:
        reason = "a command is missing"
        if first:
            state = "is not available yet" if first == "path" else "is unknown"
            reason = f"command {first!r} {state}"
        print(f"{USAGE}\n\nerror: {reason}", file=sys.stderr)
        return 2
    make_parser, command = commands[first]
    parser, words = make_parser(), argv[1:]
    try:
        class_weight = None
        if first == "train":
            words, class_weight = split_class_weights(words)
        args = parser.parse_args(words)
        args.class_weight = class_weight
        return command(args)
    except UsageError as error:
        parser.error(str(error))


@contextlib.contextmanager
def warnings_as_lines():
    """Show Python's warnings as lines `WARNING: ...`, equal ones once."""
    shown = set()

    def show(message, *details):
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            print(f"WARNING: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        yield


# train

def train(args):
    options = train_options(args)
    cross_validating = args.folds is not None
    model_file = args.model_file or os.path.basename(args.training_file) + ".model"
    outputs = [] if cross_validating else [model_file, args.trace, args.plot]
    check_files([args.training_file, args.cost], outputs)
    cost = None if args.cost is None else read_cost(args.cost)
    began = time.perf_counter()
    X, y = fastmc.load_svmlight(args.training_file)
    load_seconds = time.perf_counter() - began
    if not cross_validating and not is_native(model_file):
        check_text_labels(args.training_file, y, model_file)
    options["cost"] = check_cost_size(args.cost, cost, y)
    if cross_validating:
        return cross_validate(args, X, y, options)
    check_for_data(options, y)
    if args.trace or args.plot:
        # Asking for the certificate makes the history have a row per pass.
        options["callback"] = lambda state: state.certificate and False
    began = time.perf_counter()
    model = fit(args.training_file, X, y, options)
    train_seconds = time.perf_counter() - began
    model.save(model_file)
    if args.trace:
        model.history.to_csv(args.trace)
    if args.plot:
        model.history.plot(args.plot)
    facts = {"training_file": args.training_file, "nnz": X.nnz, **model_facts(model),
             "load_seconds": load_seconds, "train_seconds": train_seconds,
             "model_file": model_file, "trace": args.trace, "plot": args.plot}
    report(args, facts, train_text)
    return 0


def train_options(args):
    """The arguments of fastmc.train, all checked that can be without the data."""
    for wrong, message in (
            (args.find_C, "-C: finding C is not available yet"),
            (args.n_threads != 1, f"-m {args.n_threads}: threads are not available yet"),
            (args.seed < 0, f"--seed {args.seed} must be at least 0"),
            (args.folds is not None and args.folds < 2, f"-v {args.folds} must be at least 2"),
            (args.folds is not None and (args.trace or args.plot),
             "--trace and --plot are not for cross-validation"),
            (args.bias == 0.0, "-B 0: a constant feature of value 0 changes nothing; give a "
                               "positive value, or -1 for no bias")):
        if wrong:
            raise UsageError(message)
    if args.plot:
        check_plot(args.plot)
    loss = {"loss": args.loss, "k": args.k, "rho": args.rho, "own_class": not args.no_own_class}
    bias = None if -math.inf < args.bias < 0.0 else args.bias
    with usage_errors():
        if check_loss(**loss) == "structured" and args.cost is None:
            raise ValueError("loss='structured' needs --cost")
        check_C_or_lam(args.C, args.lam)
        check_range("smoothing", args.smoothing, 0.0, C_RANGE[1], "at least")
        check_solver(args.solver, args.sampling)
        check_budgets(args.tol, args.max_passes, args.max_time)
        check_bias(bias)
    verbose = int(sys.stderr.isatty() and not args.quiet)
    return {**loss, "C": args.C, "lam": args.lam, "smoothing": args.smoothing,
            "solver": args.solver, "sampling": args.sampling, "tol": args.tol,
            "max_passes": args.max_passes, "max_time": args.max_time, "bias": bias,
            "class_weight": args.class_weight, "random_state": args.seed, "verbose": verbose}


@contextlib.contextmanager
def usage_errors(prefix=""):
    """A ValueError about an option is one about the command line."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"{prefix}{error}") from None


def check_plot(path):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("--plot needs matplotlib: pip install 'fastmc[plot]'") from None
    kinds = Figure().canvas.get_supported_filetypes()
    if os.path.splitext(path)[1][1:].lower() not in kinds:
        raise UsageError(f"--plot {path}: the name must end in one of {', '.join(sorted(kinds))}")


def check_files(inputs, outputs, devices=False):
    """See to it, before the work, that each output can be written and is no other of our files.

    A model or a table must be a file; `devices` allows /dev/stdout, /dev/null and pipes too.
    """
    used = {os.path.realpath(path) for path in inputs if path}
    for path in outputs:
        if path is None:
            continue
        check_writable(path, devices)
        real = os.path.realpath(path)
        if real in used:
            raise UsageError(f"{path} would be written over another file of this command")
        used.add(real)


def check_writable(path, devices):
    code = None
    if os.path.isdir(path):
        code = errno.EISDIR
    elif is_device(path):
        if not devices:
            raise OSError(errno.EINVAL, "not a regular file", path)
        code = None if os.access(path, os.W_OK) else errno.EACCES
    else:
        try:
            tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()
        except OSError as error:
            code = error.errno
    if code is not None:
        raise OSError(code, os.strerror(code), path)


def is_device(path):
    """Whether there is something else than a file, such as a pipe."""
    return os.path.exists(path) and not os.path.isfile(path)


def check_text_labels(path, y, model_file):
    try:
        text_labels(np.unique(y), model_file)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def check_for_data(options, y, prefix=""):
    """Check the options whose range depends on the number of samples and classes."""
    n_classes = len(np.unique(y))
    if n_classes < 2:
        return  # a fault of the data, which train() tells
    with usage_errors(prefix):
        make_spec(options["loss"], n_classes, options["k"], options["rho"], options["own_class"])
        lam_of(options["C"], options["lam"], len(y))


def fit(path, X, y, options):
    try:
        return fastmc.train(X, y, **options)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def read_cost(path):
    """The square matrix of numbers in a file."""
    with open(path, "rb") as file:
        lines = file.read().rstrip().split(b"\n")
    matrix = np.empty((len(lines), len(lines)))
    for row, line in enumerate(lines):
        words = line.split()
        if len(words) != len(lines):
            raise InputError(f"{path}, line {row + 1}: {len(words)} numbers in one of "
                             f"{len(lines)} rows; the matrix must be square")
        for column, word in enumerate(words):
            matrix[row, column] = cost_value(word, f"{path}, line {row + 1}", row == column)
    return matrix


def cost_value(word, place, own):
    text = word.decode("ascii", "backslashreplace")
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise InputError(f"{place}: '{text}' is not a finite number of at least 0")
    if own and value != 0.0:
        raise InputError(f"{place}: '{text}' stands on the diagonal; the own class must cost 0")
    return value


def check_cost_size(path, cost, y):
    n_classes = len(np.unique(y))
    if cost is not None and len(cost) != n_classes:
        raise InputError(f"{path}: {len(cost)} rows, but the training data has {n_classes} "
                         "classes")
    return cost


def cross_validate(args, X, y, options):
    if args.folds > len(y):
        raise UsageError(f"-v {args.folds}: there are {len(y)} samples only")
    k = args.k if args.rho is None else np.count_nonzero(args.rho)
    fold = _folds.stratified_folds(y, args.folds, np.random.default_rng(args.seed))
    for number in range(args.folds):
        others = y[fold != number]
        if k > 1 or len(np.unique(others)) > 1:
            check_for_data(options, others, f"-v {args.folds}: without fold {number + 1}, ")
    try:
        ranked = _folds.cross_predict(X, y, fold, k, options)
    except ValueError as error:
        raise InputError(f"{args.training_file}: {error}") from None
    facts = {"training_file": args.training_file, "n_samples": len(y), "folds": args.folds,
             **accuracies(ranked, y)}
    report(args, facts, lambda facts: accuracy_lines(facts, "Cross Validation "))
    return 0


# predict

def predict(args):
    if args.probabilities != 0:
        raise UsageError(f"-b {args.probabilities}: these models give no probabilities")
    if args.k < 1:
        raise UsageError(f"-k {args.k} must be at least 1")
    check_files([args.test_file, args.model_file], [args.output_file], devices=True)
    model = fastmc.load_model(args.model_file)
    with usage_errors():
        check_k(args.k, len(model.classes_))
    X, y = fastmc.load_svmlight(args.test_file, n_features=model.n_features_in_, ignore_extra=True)
    blocks = range(0, len(y), BLOCK)
    ranked = np.concatenate([model.predict_topk(X[at:at + BLOCK], args.k) for at in blocks])
    text = {label: label_text(label) for label in model.classes_.tolist()}
    opening = open if is_device(args.output_file) else replacing
    with opening(args.output_file, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(" ".join([text[label] for label in row]) + "\n" for row in ranked.tolist())
    facts = {"test_file": args.test_file, "model_file": args.model_file,
             "output_file": args.output_file, "n_samples": len(y), **accuracies(ranked, y)}
    report(args, facts, accuracy_lines)
    return 0


def label_text(label):
    """A label as the data files write it: whole numbers without a point."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def accuracies(ranked, y):
    """Counts and fractions of the rows whose label is among the first ranks."""
    k = ranked.shape[1]
    found = (ranked == y[:, None]).cumsum(axis=1)
    shown = [j for j in (2, 3, 5, 10) if j < k] + [k] * (k > 1)
    correct = {j: int(found[:, j - 1].sum()) for j in (1, *shown)}
    return {"accuracy": correct[1] / len(y), "correct": correct[1],
            "topk_accuracy": {str(j): correct[j] / len(y) for j in shown},
            "topk_correct": {str(j): correct[j] for j in shown}}


def accuracy_lines(facts, prefix=""):
    n = facts["n_samples"]
    count = "" if prefix else f" ({facts['correct']}/{n})"
    yield f"{prefix}Accuracy = {100 * facts['accuracy']:g}%{count}"
    for k, accuracy in facts["topk_accuracy"].items():
        count = "" if prefix else f" ({facts['topk_correct'][k]}/{n})"
        yield f"{prefix}Top-{k} accuracy = {100 * accuracy:g}%{count}"


# info and reports

def info(args):
    model = fastmc.load_model(args.model_file)
    args.quiet = False
    facts = {"model_file": args.model_file, **model_facts(model),
             "classes": model.classes_.tolist(), "warm_start": model.dual_ is not None}
    report(args, facts, info_text)
    return 0


def model_facts(model):
    certificate = model.certificate or fastmc.Certificate(*[None] * 4)
    rho = None if model.spec is None else model.spec.rho[:model.spec.n_ranks]
    return {"n_samples": model.n_samples, "n_features": model.n_features_in_,
            "n_classes": len(model.classes_), "loss": model.loss, "rho": rho,
            "own_class": None if model.spec is None else model.spec.own_class,
            "C": model.C, "lam": model.lam, "smoothing": model.smoothing,
            "bias": model.bias or None, "solver": model.solver, "status": model.status,
            "n_passes": model.n_passes, **certificate._asdict()}


def report(args, facts, to_lines):
    """Print the facts, as one JSON object or as text."""
    if args.json:
        print(json.dumps(facts, default=str))
    elif not args.quiet:
        for line in to_lines(facts):
            print(line)


def train_text(facts):
    yield ("n = {n_samples}, d = {n_features}, m = {n_classes}, nnz = {nnz}, "
           "loaded in {load_seconds:.2f} s".format(**facts))
    yield "passes = {n_passes} ({status}), trained in {train_seconds:.2f} s".format(**facts)
    yield certificate_text(facts)
    for key, name in (("model_file", "model"), ("trace", "trace"), ("plot", "plot")):
        if facts[key]:
            yield f"{name} = {facts[key]}"


def certificate_text(facts):
    text = "primal = {primal:.9g}, dual = {dual:.9g}, relative gap = {relative_gap:.3g}"
    return text.format(**facts)


def info_text(facts):
    classes = " ".join(label_text(label) for label in facts["classes"][:20])
    more = " ..." if facts["n_classes"] > 20 else ""
    yield f"classes = {facts['n_classes']}: {classes}{more}"
    yield f"features = {facts['n_features']}"
    yield f"bias = {'none' if facts['bias'] is None else format(facts['bias'], 'g')}"
    if facts["loss"] is None:
        yield "loss = unknown"
    else:
        ranks = ", ".join(f"{weight:g}" for weight in facts["rho"][:20])
        without = "" if facts["own_class"] else ", without the own class"
        yield f"loss = {facts['loss']}, rank weights {ranks}{without}"
    for key in ("C", "lam", "smoothing"):
        if facts[key] is not None and facts["loss"] is not None:
            yield f"{key} = {facts[key]:g}"
    for key, name in (("solver", "solver"), ("n_samples", "samples"), ("n_passes", "passes"),
                      ("status", "status")):
        if facts[key] is not None:
            yield f"{name} = {facts[key]}"
    yield certificate_text(facts) if facts["primal"] is not None else "certificate = none"
    yield f"dual = {'kept, training can go on from it' if facts['warm_start'] else 'none'}"
