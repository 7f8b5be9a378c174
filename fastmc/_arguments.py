"""The words of a command line: the parser of each command, and the class weights."""
import argparse
import math
import os
import re
import sys

from fastmc._options import SAMPLINGS
from fastmc._path import NO_FOLLOWERS
from fastmc._solvers import SOLVERS
from fastmc.losses import LOSSES


# Options whose letter or name is not that of the argument in Python.
LETTERS = {"C": "-c", "bias": "-B", "k": "-k", "n_rounds": "--rounds", "n_threads": "-m",
           "own_class": "--no-own-class", "tol": "-e"}
NAMES = ("averaging", "cache_f", "cache_nu", "cache_size", "early_stopping", "eps", "gap_refresh", "lam",
         "lam_min", "loss", "master", "max_passes", "max_sweeps", "max_time", "rho", "sampling", "smoothing",
         "solver", "stage_wise", *LETTERS)
# `name=value`, or a name alone where it can be no other word.
ARGUMENT = re.compile(rf"(?<![-\w(])(?:({'|'.join(NAMES)})=('[^']*'|\"[^\"]*\"|\[[^]]*\]|[^\s,;:()]+)"
                      r"|(bias|k|max_passes|max_time|rho|stage_wise|tol)\b(?!=))")


class UsageError(Exception):
    """Something wrong on the command line: exit 2."""


def in_options(message, lam="--lam"):
    """A message about arguments of Python as one about the options of the command line.

    `lam` is the option that gives lambda; None leaves `lam=value` as it is.
    """
    def words(match):
        name, value = match[1] or match[3], match[2]
        if name == "lam" and lam is None:
            return match[0]
        option = lam if name == "lam" else LETTERS.get(name, "--" + name.replace("_", "-"))
        if value in (None, "True", "False"):
            return option
        bare = value.strip("[]'\"").replace(", ", ",")
        return f"{option} {bare}"
    return ARGUMENT.sub(words, message)


def program():
    """How this process was started."""
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    return "fastmc" if name == "fastmc" else "python -m fastmc"


def make_parser(command, words, description, quiet=True):
    parser = argparse.ArgumentParser(
        prog=f"{program()} {command}", usage=f"{program()} {command} [options] {words}",
        description=description, allow_abbrev=False,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=21, width=100))
    parser.add_argument("--json", action="store_true",
                        help="print one JSON object instead of text")
    if quiet:
        parser.add_argument("-q", dest="quiet", action="store_true",
                            help="print warnings and errors only")
    return parser


def train_parser():
    parser = make_parser("train", "training_file [model_file]",
                         "Train a classifier. The model file is by default the training file's "
                         "name + .model, in the current folder; a name in .npz keeps everything.")
    add = parser.add_argument
    add("training_file", help=argparse.SUPPRESS)
    add("model_file", nargs="?", help=argparse.SUPPRESS)
    add("-c", dest="C", type=float, metavar="C",
        help="weight of the loss (default 1); with -C the largest to try")
    add("--lam", type=float, metavar="L", help="weight of the regulariser, 1/(C n), instead of -c")
    add("-e", dest="tol", type=float, default=1e-3, metavar="TOL",
        help="relative duality gap to stop at (0.001); 0: use all passes")
    add("-v", dest="folds", type=int, metavar="N", help="N-fold cross-validation, writes no model")
    add("-C", dest="find_C", action="store_true",
        help="find the C of the best accuracy by cross-validation (-v, default 5 folds) along the path "
             "of each fold; a model is trained with it only if model_file is given")
    add("-m", dest="n_threads", type=int, default=1, metavar="N",
        help="threads of reading, passes and certificates (1); 0: all cores")
    add("-s", dest="liblinear_solver", metavar="N", help=argparse.SUPPRESS)
    add_problem_options(add)
    add_solver_options(add, list(SOLVERS), "passes")
    add("--averaging", action="store_true", help="bcfw, pairwise, away: also try the average W")
    add("--validation", metavar="FILE", help="data to tell the accuracy on, during training and after")
    add("--trace", metavar="FILE.csv", help="write a certificate per pass to a table")
    add("--plot", metavar="FILE.png", help="draw a certificate per pass (needs matplotlib)")
    return parser


def path_parser():
    parser = make_parser("path", "training_file output_file",
                         "Follow the solutions from the largest lambda = 1/(C n) that matters down "
                         "to --lam-min. The output file is a table, a line per breakpoint.")
    add = parser.add_argument
    for name in ("training_file", "output_file"):
        add(name, help=argparse.SUPPRESS)
    add("--eps", type=float, default=0.1, metavar="E",
        help="relative duality gap kept at every lambda (default 0.1)")
    add("-c", dest="C", type=float, metavar="C", help="the largest C (default 100)")
    add("--lam-min", type=float, metavar="L", help="the smallest lambda, instead of -c")
    add("-m", dest="n_threads", type=int, default=1, metavar="N", help="threads of reading (1); 0: all cores")
    add_problem_options(add)
    followers = [solver for solver in SOLVERS if solver not in NO_FOLLOWERS]
    add_solver_options(add, followers, "passes for each breakpoint")
    add("--validation", metavar="FILE", help="data to record top-1 and top-k errors of")
    add("--plot", metavar="FILE.png", help="draw the path (needs matplotlib)")
    return parser


def boost_parser():
    parser = make_parser("boost", "training_file [model_file]",
                         "Train MultiBoost: decision stumps for every class. The model file is by "
                         "default the training file's name + .npz, in the current folder.")
    add = parser.add_argument
    add("training_file", help=argparse.SUPPRESS)
    add("model_file", nargs="?", help=argparse.SUPPRESS)
    add("-c", dest="C", type=float, default=1e4, metavar="C", help="weight of the loss (default 10000)")
    add("-e", dest="tol", type=float, default=0.01, metavar="TOL",
        help="violation of optimality a round may leave (0.01)")
    add("-m", dest="n_threads", type=int, default=1, metavar="N",
        help="threads (1); 0: all cores")
    add("--rounds", type=int, default=200, metavar="N", help="a stump per class each (default 200)")
    add("--max-sweeps", type=int, default=5, metavar="N", help="over the weights, a round (default 5)")
    add("--shared", action="store_true", help="one stump a round for all classes")
    add("--stage-wise", action="store_true", help="never correct the weights of earlier rounds")
    add("--master", default="fcd", metavar="NAME", help="solver of the weights: fcd (default), lbfgsb")
    add("--early-stopping", type=int, metavar="N",
        help="stop after N rounds without a smaller validation error, keep the best round")
    add("--validation", metavar="FILE",
        help="data for --early-stopping (default: a tenth of the training data)")
    add("--seed", type=int, default=0, metavar="N", help="of all that is random (default 0)")
    return parser


def add_problem_options(add):
    """What is minimised."""
    add("-B", dest="bias", type=float, default=-1.0, metavar="BIAS",
        help="value of a constant feature; -1 for none (default)")
    add("-wi", metavar="W", help="weight of class i, as in -w1 2 -w-1 0.5")
    add("--loss", default="maxhinge", metavar="NAME",
        help=f"{', '.join(LOSSES)} (default maxhinge)")
    add("-k", type=int, default=1, metavar="K", help="ranks of topk and usunier (default 1)")
    add("--rho", type=rank_weights, metavar="R,R,...",
        help="falling rank weights of wtopk and wusunier, as in 5,4,3,2,1")
    add("--cost", metavar="FILE", help="cost matrix: a row per true class, classes sorted")
    add("--no-own-class", action="store_true",
        help="topk and wtopk: the own class takes none of the ranks")
    add("--smoothing", type=float, default=0.0, metavar="G", help="Moreau smoothing (default 0)")


def add_solver_options(add, solvers, budget):
    """How it is minimised; `budget` is what --max-passes bounds."""
    add("--solver", default="auto", metavar="NAME", help=f"{', '.join(solvers)} (default sdca)")
    add("--sampling", default="permutation", metavar="NAME",
        help=f"{', '.join(SAMPLINGS)} (default permutation)")
    add("--gap-refresh", type=int, default=10, metavar="N",
        help="passes between full gap passes: gap sampling, cache (10)")
    add("--cache-size", type=int, default=0, metavar="N",
        help="bcfw, pairwise, away: corners kept per sample (0)")
    add("--cache-f", type=float, default=0.25, metavar="F",
        help="a kept corner must have F times its sample's gap (0.25)")
    add("--cache-nu", type=float, default=0.01, metavar="NU",
        help="... and NU times the mean gap (0.01)")
    add("--max-passes", type=int, default=1000, metavar="N",
        help=f"budget in {budget} (default 1000)")
    add("--max-time", type=float, metavar="SEC", help="budget in seconds (default none)")
    add("--seed", type=int, default=0, metavar="N", help="of all that is random (default 0)")


def predict_parser():
    parser = make_parser("predict", "test_file model_file output_file",
                         "Write the predicted labels, one line per row, and print the accuracy. "
                         "Features that the model does not have are ignored.")
    add = parser.add_argument
    for name in ("test_file", "model_file", "output_file"):
        add(name, help=argparse.SUPPRESS)
    add("-k", type=int, default=1, metavar="K",
        help="write the K best labels, best first (default 1)")
    add("--scores", action="store_true",
        help="write the decision values of these labels behind them, in the same order")
    add("-m", dest="n_threads", type=int, default=1, metavar="N", help="threads (1); 0: all cores")
    add("--plot", metavar="FILE.png",
        help="draw the top-k error against k and the most confused classes (needs matplotlib)")
    add("-b", dest="probabilities", type=int, default=0, metavar="B", help=argparse.SUPPRESS)
    return parser


def info_parser():
    parser = make_parser("info", "model_file", "Tell what a model file holds.", quiet=False)
    add = parser.add_argument
    add("model_file", help=argparse.SUPPRESS)
    add("--names", metavar="FILE",
        help="names of the features, one a line, plain or .gz, .bz2, .xz; lists the heaviest features, "
             "those of the largest weights, of each class")
    add("-n", "--top", dest="top", type=int, metavar="N",
        help="list N features of each class (default 10 with --names), by number without --names")
    return parser


def rank_weights(text):
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be numbers with commas between") from None


def split_class_weights(words):
    """Take `-w1 2`, `-w-1 2` and the like out of the words: (other words, {label: weight})."""
    rest, weights = [], {}
    words = iter(words)
    for word in words:
        if word == "--":
            rest.append(word)
            break
        if word.startswith("-w"):
            label = class_label(word)
            weights[label] = class_weight(word, next(words, None))
        else:
            rest.append(word)
    return [*rest, *words], weights or None


def class_label(word):
    if re.fullmatch(r"[+-]?[0-9]+", word[2:]):
        return int(word[2:])
    try:
        label = float(word[2:])
    except ValueError:
        label = math.nan
    if not math.isfinite(label):
        raise UsageError(f"{word}: the label of a class must follow -w, as in -w1 2")
    return label


def class_weight(word, value):
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0.0 <= weight < math.inf:
        given = "nothing" if value is None else repr(value)
        raise UsageError(f"{word} needs a weight, a finite number of at least 0, not {given}")
    return weight
