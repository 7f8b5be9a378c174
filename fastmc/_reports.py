"""What the commands print: the facts of a command, as text or as JSON."""
import json

import numpy as np

import fastmc


def report(args, facts, to_lines):
    """Print the facts, as one JSON object or as text."""
    if args.json:
        print(json.dumps(facts, default=str))
    elif not args.quiet:
        for line in to_lines(facts):
            print(line)


def model_facts(model):
    certificate = model.certificate or fastmc.Certificate(*[None] * 4)
    rho = None if model.spec is None else model.spec.rho[:model.spec.n_ranks]
    return {"n_samples": model.n_samples, "n_features": model.n_features_in_,
            "n_classes": len(model.classes_), "loss": model.loss, "rho": rho,
            "own_class": None if model.spec is None else model.spec.own_class,
            "C": model.C, "lam": model.lam, "smoothing": model.smoothing,
            "bias": model.bias or None, "solver": model.solver, "status": model.status,
            "n_passes": model.n_passes, **certificate._asdict()}


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


def accuracy_lines(facts, prefix="", counts=False):
    n = facts["n_samples"]
    count = f" ({facts['correct']}/{n})" * counts
    yield f"{prefix}Accuracy = {100 * facts['accuracy']:g}%{count}"
    for k, accuracy in facts["topk_accuracy"].items():
        count = f" ({facts['topk_correct'][k]}/{n})" * counts
        yield f"{prefix}Top-{k} accuracy = {100 * accuracy:g}%{count}"


def predict_text(facts):
    yield from accuracy_lines(facts, counts=True)
    yield from file_lines(facts, plot="plot")


def train_text(facts):
    yield data_text(facts)
    yield "passes = {n_passes} ({status}), trained in {train_seconds:.2f} s".format(**facts)
    yield certificate_text(facts)
    if facts["validation"] is not None:
        yield from accuracy_lines(facts["validation"], "Validation ", counts=True)
    yield from file_lines(facts, model_file="model", trace="trace", plot="plot")


def watch_line(passes, k, accuracy):
    """Top-1 and top-k accuracy on validation data after some passes."""
    topk = f", top-{k} accuracy = {100 * accuracy[1]:g}%" * (k > 1)
    return f"pass {passes}: validation accuracy = {100 * accuracy[0]:g}%{topk}"


def search_facts(scores, k):
    """The columns of the table of a search for C: means over the folds, None where not reached."""
    columns = {"C": scores.Cs, "accuracy": scores.accuracy.mean(axis=0)}
    if k > 1:
        columns[f"top{k}_accuracy"] = scores.topk_accuracy.mean(axis=0)
    return {name: [None if np.isnan(value) else float(value) for value in column]
            for name, column in columns.items()}


def search_text(facts):
    columns = facts["search"]
    yield " ".join(f"{name.replace('_', ' ').replace('top', 'top-'):>14}" for name in columns)
    for C, *means in zip(*columns.values()):
        shares = ["not reached" if mean is None else f"{100 * mean:.6g}%" for mean in means]
        yield " ".join(f"{word:>14}" for word in (f"{C:g}", *shares))
    yield (f"Best C = {facts['best_C']:g}  CV accuracy = {100 * facts['best_accuracy']:g}%  "
           f"({facts['folds']} folds in {facts['search_seconds']:.2f} s)")


def path_facts(path):
    """The numbers of a RegularizationPath, and where on it the validation errors are smallest."""
    best = {}
    if path.top1_error is not None:
        for k, errors in ((1, path.top1_error), (path.k, path.topk_error)):
            at = int(np.argmin(errors))
            best[str(k)] = {"error": errors[at], "C": path.C[at], "lam": path.lams[at]}
    return {"status": path.status, "eps": path.eps, "lambda_max": path.lams[0],
            "lam_min": path.lam_min, "n_breakpoints": len(path), "n_passes": int(path.n_passes[-1]),
            "max_relative_gap": max(path.certificate_at(lam).relative_gap for lam in path.served()),
            "best": best}


def path_text(facts):
    yield data_text(facts)
    yield ("breakpoints = {n_breakpoints}, "
           "lambda from {lambda_max:.6g} to {lam_min:.6g}".format(**facts))
    yield ("passes = {n_passes} ({status}), largest relative gap = {max_relative_gap:.3g}, "
           "in {path_seconds:.2f} s".format(**facts))
    for k, best in facts["best"].items():
        yield f"best top-{k} error = {100 * best['error']:g}% at C = {best['C']:.6g}"
    yield from file_lines(facts, output_file="path", plot="plot")


def data_text(facts):
    return ("n = {n_samples}, d = {n_features}, m = {n_classes}, nnz = {nnz}, "
            "loaded in {load_seconds:.2f} s".format(**facts))


def file_lines(facts, **names):
    """A line for each file that was written."""
    for key, name in names.items():
        if facts[key] is not None:
            yield f"{name} = {facts[key]}"


def certificate_text(facts):
    text = "primal = {primal:.9g}, dual = {dual:.9g}, relative gap = {relative_gap:.3g}"
    return text.format(**facts)


def boost_facts(model):
    """The numbers of a MultiBoostClassifier."""
    used = sum(int((weights > 0).sum()) for weights in model.weights_)
    return {"n_features": model.n_features_in_, "n_classes": len(model.classes_), "C": model.C,
            "class_wise": model.class_wise, "stage_wise": model.stage_wise, "master": model.master,
            "n_rounds": model.n_rounds_, "converged": model.converged_, "n_stumps": used,
            "features_used": int((model.feature_counts() > 0).sum()),
            "objective": model.objective_, "lower_bound": model.lower_bound_,
            "global_lower_bound": model.global_lower_bound_, "solver_seconds": model.solver_time_}


def boost_text(facts):
    yield data_text(facts)
    yield ("trained in {train_seconds:.2f} s, {solver_seconds:.2f} s of it for the weights"
           .format(**facts))
    yield from boosted_lines(facts)
    yield from file_lines(facts, model_file="model")


def boosted_lines(facts):
    status = "no stump is missing" if facts["converged"] else "not all stumps"
    yield ("rounds = {n_rounds} ({status}), stumps = {n_stumps}, on {features_used} features"
           .format(status=status, **facts))
    yield ("objective = {objective:.9g}, optimum at least {lower_bound:.9g}, over all stumps at least "
           "{global_lower_bound:.9g}".format(**facts))


def boost_info_text(facts):
    yield from shape_lines(facts)
    learners = "class-wise" if facts["class_wise"] else "shared"
    yield f"MultiBoost of {learners} stumps, {'stage-wise, ' * facts['stage_wise']}C = {facts['C']:g}"
    yield from boosted_lines(facts)
    yield from heaviest_lines(facts)


def heaviest_features(model, top, names):
    """For each class, in order, the features of its largest positive weights: [[name, weight], ...].

    The weight of a feature in a MultiBoost model is the sum of those of its stumps.
    """
    heaviest = []
    for at in range(len(model.classes_)):
        if isinstance(model, fastmc.Model):
            weights = model.coef_[at]
        else:
            used = np.array([stump[0] for stump in model.learners_[at]], dtype=np.int64)
            weights = np.bincount(used, model.weights_[at], minlength=model.n_features_in_)
        best = np.argsort(-weights, kind="stable")[:top]
        heaviest.append([[names[j], float(weights[j])] for j in best if weights[j] > 0])
    return heaviest


def heaviest_lines(facts):
    for label, features in zip(facts["classes"], facts.get("heaviest", ())):
        words = ", ".join(f"{name} {weight:.4g}" for name, weight in features)
        yield f"class {label_text(label)}: {words}"


def shape_lines(facts):
    classes = " ".join(label_text(label) for label in facts["classes"][:20])
    more = " ..." if facts["n_classes"] > 20 else ""
    yield f"classes = {facts['n_classes']}: {classes}{more}"
    yield f"features = {facts['n_features']}"


def info_text(facts):
    yield from shape_lines(facts)
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
    yield from heaviest_lines(facts)
