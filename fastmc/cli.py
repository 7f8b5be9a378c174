"""The commands of `python -m fastmc`: train, predict, path, boost and info.

Exit codes: 0 success, 1 bad data or a bad model, 2 a wrong command line, 130 interrupted.
"""
import contextlib
import math
import os
import sys
import time
import warnings

import numpy as np

import fastmc
from fastmc import _folds
from fastmc._arguments import (UsageError, boost_parser, in_options, info_parser, path_parser,
                               predict_parser, program, split_class_weights, train_parser)
from fastmc._command_files import (InputError, check_cost_size, check_files, check_text_labels,
                                   is_device, read_cost, read_names)
from fastmc._files import replacing
from fastmc._model import ModelError, check_k, is_native, own_ranks, positions, top_ranks
from fastmc._options import (check_budgets, check_C_or_lam, check_count, check_range, check_smoothing,
                            check_solver, lam_of)
from fastmc._path import check_path
from fastmc._plot import picture_kind, plot_predictions
from fastmc._problem import check_bias
from fastmc._reports import (accuracies, accuracy_lines, boost_facts, boost_info_text, boost_text,
                             heaviest_features, info_text, label_text, model_facts, path_facts,
                             path_text, predict_text, report, search_facts, search_text, train_text)
from fastmc._scoring import Watch, score_blocks
from fastmc.boosting import MultiBoostClassifier
from fastmc.losses import check_loss, make_spec
from fastmc.svmlight import SvmlightError

USAGE = """usage: {0} train   [options] training_file [model_file]
       {0} predict [options] test_file model_file output_file
       {0} path    [options] training_file output_file
       {0} boost   [options] training_file [model_file]
       {0} info    [options] model_file

Linear multi-class classifiers with a certificate of how far they are from optimal.
Data files are in LIBSVM format, plain or .gz, .bz2, .xz.
`{0} train --help` lists the options of a command; --version tells the version."""

# Folds of -C without -v.
FOLDS = 5


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
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a file name may not fit the encoding
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
                "path": (path_parser, path), "boost": (boost_parser, boost),
                "info": (info_parser, info)}
    first = argv[0] if argv else ""
    if first in ("-h", "--help", "--version"):
        print(f"fastmc {fastmc.__version__}" if first == "--version" else USAGE.format(program()))
        return 0
    if first not in commands:
        reason = f"command {first!r} is unknown" if first else "a command is missing"
        print(f"{USAGE.format(program())}\n\nerror: {reason}", file=sys.stderr)
        return 2
    make_parser, command = commands[first]
    parser, words = make_parser(), argv[1:]
    try:
        class_weight = None
        if first in ("train", "path"):
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
        text = in_options(" ".join(str(message).split()), lam=None)
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
    cross_validating = args.folds is not None and not args.find_C
    trains = not cross_validating and (args.model_file is not None or not args.find_C)
    model_file = args.model_file or os.path.basename(args.training_file) + ".model"
    check_files([args.training_file, args.cost, args.validation],
                [model_file, args.trace, args.plot] if trains else [])
    X, y, options["cost"], load_seconds = read_training(args)
    if cross_validating:
        return cross_validate(args, X, y, options)
    if trains and not is_native(model_file):
        check_text_labels(args.training_file, y, model_file)
    check_for_data(options, y)
    watch = None
    if args.validation is not None:
        held_out = read_like(args.validation, X, args)
        watch = Watch(*held_out, np.unique(y), options["bias"], ranks_of(args),
                      every=bool(args.trace or args.plot), silent=args.quiet or args.json)
        options["callback"] = watch
    elif args.trace or args.plot:
        # Asking for the certificate makes the history have a row per pass.
        options["callback"] = lambda state: state.certificate and False
    search = {}
    if args.find_C:
        search = find_C(args, X, y, options)
        options["C"] = search["best_C"]
    if not trains:
        report(args, search, lambda facts: [])
        return 0
    began = time.perf_counter()
    model = fit(fastmc.train, args.training_file, X, y, options)
    train_seconds = time.perf_counter() - began
    model.save(model_file)
    if args.trace:
        model.history.to_csv(args.trace, watch and watch.columns(model))
    if args.plot:
        model.history.plot(args.plot)
    facts = {"training_file": args.training_file, "nnz": X.nnz, **model_facts(model),
             "load_seconds": load_seconds, "train_seconds": train_seconds, **search,
             "validation": watch and {"file": args.validation, **watch.facts(model)},
             "model_file": model_file, "trace": args.trace, "plot": args.plot}
    report(args, facts, train_text)
    return 0


def train_options(args):
    """The arguments of fastmc.train, all checked that can be without the data."""
    extras = [option for option, given in (("--trace", args.trace), ("--plot", args.plot),
                                           ("--validation", args.validation)) if given]
    for wrong, message in (
            (args.liblinear_solver is not None,
             f"-s {args.liblinear_solver}: choose with --loss; LIBLINEAR's -s 4 is maxhinge, the default"),
            (args.n_threads < 0, f"-m {args.n_threads} must be at least 0"),
            (args.folds is not None and args.folds < 2, f"-v {args.folds} must be at least 2"),
            (args.find_C and args.lam is not None, f"give -C or --lam {args.lam}, not both"),
            (args.find_C and extras and args.model_file is None,
             f"{' and '.join(extras)}: -C trains a model only if model_file is given"),
            (args.folds is not None and not args.find_C and extras,
             f"{' and '.join(extras)}: not for cross-validation, which keeps no model")):
        if wrong:
            raise UsageError(message)
    options = common_options(args)
    with usage_errors():
        check_C_or_lam(args.C, args.lam)
        check_range("tol", args.tol, 0.0, bound="at least")
        check_solver(args.solver, averaging=args.averaging)
    if args.find_C:
        with usage_errors("-C: "):
            check_path(_folds.EPS, None, args.solver)
    return {**options, "C": args.C, "lam": args.lam, "tol": args.tol, "averaging": args.averaging,
            "n_threads": args.n_threads}


def common_options(args):
    """The arguments that fastmc.train and fastmc.path share, checked likewise."""
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed} must be at least 0")
    if args.bias == 0.0:
        raise UsageError("-B 0: a constant feature of value 0 changes nothing; give a positive "
                         "value, or -1 for no bias")
    check_plot(args)
    loss = {"loss": args.loss, "k": args.k, "rho": args.rho, "own_class": not args.no_own_class}
    block = {name: getattr(args, name)
             for name in ("sampling", "gap_refresh", "cache_size", "cache_f", "cache_nu")}
    bias = None if -math.inf < args.bias < 0.0 else args.bias
    with usage_errors():
        if check_loss(**loss) == "structured" and args.cost is None:
            raise ValueError("loss='structured' needs --cost FILE")
        check_smoothing(args.smoothing)
        check_solver(args.solver, **block)
        check_budgets(0.0, args.max_passes, args.max_time)
        check_bias(bias)
    return {**loss, **block, "smoothing": args.smoothing, "solver": args.solver,
            "max_passes": args.max_passes, "max_time": args.max_time, "bias": bias,
            "class_weight": args.class_weight, "random_state": args.seed, "verbose": verbosity(args)}


def verbosity(args):
    """Progress is for someone who looks on."""
    return int(sys.stderr.isatty() and not args.quiet)


def check_plot(args):
    """See to it, before the work, that the picture's kind is known and matplotlib is there."""
    if args.plot is not None:
        try:
            picture_kind(args.plot)
        except (ImportError, ValueError) as error:
            raise UsageError(f"--plot: {error}") from None


@contextlib.contextmanager
def usage_errors(prefix="", lam="--lam"):
    """A ValueError about an argument is one about the option of the command line."""
    try:
        yield
    except ValueError as error:
        raise UsageError(prefix + in_options(str(error), lam)) from None


def read_training(args):
    """X, y and the cost matrix of a command, and the seconds to load X and y."""
    cost = None if args.cost is None else read_cost(args.cost)
    X, y, seconds = load_training(args)
    check_cost_size(args.cost, cost, y)
    return X, y, cost, seconds


def load_training(args):
    """X and y of the training file, and the seconds to load them."""
    began = time.perf_counter()
    X, y = fastmc.load_svmlight(args.training_file, verbose=verbosity(args), n_threads=args.n_threads)
    if X.shape[1] == 0:
        raise InputError(f"{args.training_file}: X is empty: no row has a feature")
    return X, y, time.perf_counter() - began


def check_for_data(options, y, prefix="", lam="--lam"):
    """Check the options whose range depends on the number of samples and classes."""
    n_classes = len(np.unique(y))
    if n_classes < 2:
        return  # a fault of the data, which train() tells
    with usage_errors(prefix, lam):
        make_spec(options["loss"], n_classes, options["k"], options["rho"], options["own_class"])
        lam_of(options["C"], options["lam"], len(y))


def fit(function, name, X, y, options):
    """Call fastmc.train or fastmc.path; what they refuse now is a fault of the named file."""
    try:
        return function(X, y, **options)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None


def cross_validate(args, X, y, options):
    k = ranks_of(args)
    fold = folds(args, y, options, args.folds)
    began = time.perf_counter()
    try:
        ranked = _folds.cross_predict(X, y, fold, k, options)
    except ValueError as error:
        raise InputError(f"{args.training_file}: {error}") from None
    facts = {"training_file": args.training_file, "n_samples": len(y), "folds": args.folds,
             "train_seconds": time.perf_counter() - began, **accuracies(ranked, y)}
    args.quiet = False  # the accuracy is all that cross-validation gives
    report(args, facts, lambda facts: accuracy_lines(facts, "Cross Validation "))
    return 0


def ranks_of(args):
    """How many ranks the loss looks at: the k of the top-k accuracy."""
    return args.k if args.rho is None else np.count_nonzero(args.rho)


def folds(args, y, options, n_folds):
    """The fold of each sample; the options must fit what is left without any of them."""
    option = f"-v {n_folds}" if args.folds else f"-C without -v makes {n_folds} folds"
    if n_folds > len(y):
        raise UsageError(f"{option}: there are {len(y)} samples only")
    fold = _folds.stratified_folds(y, n_folds, np.random.default_rng(args.seed))
    for number in range(n_folds):
        others = y[fold != number]
        if ranks_of(args) > 1 or len(np.unique(others)) > 1:
            check_for_data(options, others, f"{option}: without fold {number + 1}, ")
    return fold


def find_C(args, X, y, options):
    """The facts of a search for C, which are printed as text at once."""
    n_folds = FOLDS if args.folds is None else args.folds
    splits = _folds.splits_of(folds(args, y, options, n_folds))
    own = ("C", "lam", "tol", "averaging", "n_threads", "callback")  # what only train() has
    began = time.perf_counter()
    try:
        scores = _folds.path_scores(X, y, splits, C_max=args.C, top=ranks_of(args),
                                    **{name: value for name, value in options.items() if name not in own})
    except ValueError as error:
        raise InputError(f"{args.training_file}: {error}") from None
    C, accuracy = _folds.best_C(scores)
    if math.isnan(C):
        raise UsageError("-C: the budget ended before any C was reached; raise --max-passes or --max-time")
    facts = {"training_file": args.training_file, "n_samples": len(y), "folds": n_folds,
             "search_seconds": time.perf_counter() - began, "best_C": C, "best_accuracy": accuracy,
             "search": search_facts(scores, ranks_of(args))}
    if not args.json and not (args.quiet and args.model_file):
        print("\n".join(search_text(facts)), flush=True)
    if C == scores.Cs[-1] and len(scores.Cs) > 1:
        warnings.warn(f"the best C is the largest that was tried; larger ones may be better: -c {4 * C:g}")
    return facts


# predict

def predict(args):
    if args.probabilities != 0:
        raise UsageError(f"-b {args.probabilities}: these models give no probabilities")
    if args.k < 1:
        raise UsageError(f"-k {args.k} must be at least 1")
    with usage_errors():
        check_count("n_threads", args.n_threads, 0)
    check_plot(args)
    check_files([args.test_file, args.model_file], [args.output_file], devices=True)
    check_files([args.test_file, args.model_file, args.output_file], [args.plot])
    model = fastmc.load_model(args.model_file)
    with usage_errors():
        check_k(args.k, len(model.classes_))
    X, y = fastmc.load_svmlight(args.test_file, n_features=model.n_features_in_, ignore_extra=True,
                                verbose=verbosity(args), n_threads=args.n_threads)
    own = positions(y, model.classes_)
    best, values, before = [], [], []
    for rows, scores in score_blocks(model, X, verbosity(args), args.n_threads):
        best.append(top_ranks(scores, args.k))
        values.append(np.take_along_axis(scores, best[-1], axis=1))
        if args.plot:
            before.append(own_ranks(scores, own[rows]))
    best = np.concatenate(best)
    ranked = model.classes_[best]
    write_predictions(args.output_file, model.classes_, ranked,
                      np.concatenate(values) if args.scores else None)
    if args.plot:
        plot_predictions(own, best[:, 0], np.concatenate(before), model.classes_, args.plot)
    facts = {"test_file": args.test_file, "model_file": args.model_file,
             "output_file": args.output_file, "plot": args.plot, "n_samples": len(y),
             **accuracies(ranked, y)}
    report(args, facts, predict_text)
    return 0


def write_predictions(path, classes, ranked, values):
    """A line per row: the labels, best first, then their decision values if there are any."""
    text = {label: label_text(label) for label in classes.tolist()}
    lines = (" ".join([text[label] for label in row]) for row in ranked.tolist())
    if values is not None:
        lines = (f"{line} {' '.join(map(repr, row))}" for line, row in zip(lines, values.tolist()))
    opening = open if is_device(path) else replacing
    with opening(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


# path

def path(args):
    options = path_options(args)
    check_files([args.training_file, args.cost, args.validation], [args.output_file, args.plot])
    X, y, options["cost"], load_seconds = read_training(args)
    check_for_data(options, y, lam="--lam-min")
    options["lam_min"] = lam_of(options.pop("C"), options.pop("lam"), len(y))[1]
    if args.validation is not None:
        options["validation"] = read_like(args.validation, X, args)
    began = time.perf_counter()
    result = fit(fastmc.path, args.training_file, X, y, options)
    path_seconds = time.perf_counter() - began
    result.to_csv(args.output_file)
    if args.plot:
        result.plot(args.plot)
    facts = {"training_file": args.training_file, "n_samples": len(y), "n_features": X.shape[1],
             "n_classes": len(np.unique(y)), "nnz": X.nnz, **path_facts(result),
             "load_seconds": load_seconds, "path_seconds": path_seconds,
             "output_file": args.output_file, "plot": args.plot}
    report(args, facts, path_text)
    return 0


def path_options(args):
    """The arguments of fastmc.path, all checked that can be; C and lam instead of lam_min."""
    if args.C is not None and args.lam_min is not None:
        raise UsageError(f"give -c {args.C:g} or --lam-min {args.lam_min:g}, not both")
    options = common_options(args)
    with usage_errors():
        check_path(args.eps, args.lam_min, args.solver)
        check_count("n_threads", args.n_threads, 0)
        C = 100.0 if args.C is None and args.lam_min is None else args.C
        check_C_or_lam(C, args.lam_min)
    return {**options, "eps": args.eps, "C": C, "lam": args.lam_min}


def read_like(path, X, args):
    """Rows and labels of a file, with the features of X."""
    return fastmc.load_svmlight(path, n_features=X.shape[1], ignore_extra=True, verbose=verbosity(args),
                                n_threads=args.n_threads)


# boost

def boost(args):
    model = boost_model(args)
    model_file = args.model_file or os.path.basename(args.training_file) + ".npz"
    if not is_native(model_file):
        raise UsageError(f"{model_file}: a MultiBoost model needs a name that ends in .npz")
    check_files([args.training_file, args.validation], [model_file])
    X, y, load_seconds = load_training(args)
    options = {}
    if args.validation is not None:
        options["validation"] = read_like(args.validation, X, args)
    began = time.perf_counter()
    fit(model.fit, args.training_file, X, y, options)
    train_seconds = time.perf_counter() - began
    model.save(model_file)
    facts = {"training_file": args.training_file, "n_samples": len(y), "nnz": X.nnz,
             **boost_facts(model), "load_seconds": load_seconds, "train_seconds": train_seconds,
             "model_file": model_file}
    report(args, facts, boost_text)
    return 0


def boost_model(args):
    """The classifier, its parameters checked."""
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed} must be at least 0")
    if args.validation is not None and args.early_stopping is None:
        raise UsageError("--validation is for --early-stopping")
    model = MultiBoostClassifier(
        n_rounds=args.rounds, C=args.C, class_wise=not args.shared, stage_wise=args.stage_wise,
        max_sweeps=args.max_sweeps, tol=args.tol, master=args.master,
        early_stopping=args.early_stopping, n_threads=args.n_threads, random_state=args.seed,
        verbose=verbosity(args))
    with usage_errors():
        model.check_params()
    return model


# info

def info(args):
    top = args.top if args.top is not None else 10 if args.names else None
    if top is not None and top < 1:
        raise UsageError(f"--top {top} must be at least 1")
    model = fastmc.load_model(args.model_file)
    args.quiet = False
    facts = {"model_file": args.model_file, "classes": model.classes_.tolist()}
    if top is not None:
        names = range(1, model.n_features_in_ + 1)
        if args.names:
            names = read_names(args.names, model.n_features_in_)
        facts["heaviest"] = heaviest_features(model, top, names)
    if isinstance(model, MultiBoostClassifier):
        report(args, facts | boost_facts(model), boost_info_text)
    else:
        facts |= {**model_facts(model), "warm_start": model.dual_ is not None}
        report(args, facts, info_text)
    return 0
