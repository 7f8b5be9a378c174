"""The .npz file of a MultiBoost model with stumps; see _npz for what all kinds share.

`meta` holds the parameters and the numbers of the fit. The stumps of all classes stand one after
the other in `feature`, `threshold`, `polarity` and `weights`, as many for each class as `count` says.
"""
import numpy as np

from fastmc._npz import array, plain_labels, write
from fastmc.stumps import check_stumps

KIND = "multiboost"
FACTS = {"n_features_in_": int, "n_rounds_": int, "converged_": bool, "solver_time_": float,
         "objective_": float, "lower_bound_": float, "global_lower_bound_": float}


def save(model, path):
    """Write the model; see `MultiBoostClassifier.save`."""
    classes, are_objects = plain_labels(model.classes_)
    parameters = model.get_params() | {"weak_learner": "stump"}
    # A generator has no place in a file.
    if isinstance(parameters["random_state"], np.random.Generator):
        del parameters["random_state"]
    stumps = [stump for part in model.learners_ for stump in part]
    feature, threshold, polarity = zip(*stumps) if stumps else ((), (), ())
    meta = {"kind": KIND, "object_labels": are_objects, "parameters": parameters,
            "facts": {name: kind(getattr(model, name)) for name, kind in FACTS.items()}}
    write(path, meta, {
        "classes": classes, "count": np.array([len(part) for part in model.learners_], dtype=np.int64),
        "feature": np.array(feature, dtype=np.int64), "threshold": np.array(threshold, dtype=np.float64),
        "polarity": np.array(polarity, dtype=np.int8), "weights": np.concatenate(model.weights_)})


def parts(archive, meta):
    """{"parameters", "attributes"} of a model, checked."""
    facts, parameters = _facts(meta["facts"]), dict(meta["parameters"])
    classes = array(archive, "classes", "biufUS", 1)
    if len(classes) < 2 or not (classes[:-1] < classes[1:]).all():
        raise ValueError("classes must be two or more, sorted and distinct")
    count = array(archive, "count", "i", 1)
    weights = array(archive, "weights", "f", 1)
    stumps = check_stumps(array(archive, "feature", "i", 1), array(archive, "threshold", "f", 1),
                          array(archive, "polarity", "i", 1), facts["n_features_in_"])
    if len(count) != len(classes) or (count < 0).any() or count.sum() != len(weights):
        raise ValueError(f"count {count.tolist()} does not fit {len(classes)} classes and "
                         f"{len(weights)} weights")
    if len(stumps[0]) != len(weights) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("weights must be finite, non-negative and one for every stump")
    ends = np.cumsum(count)[:-1]
    learners = [list(zip(*(part.tolist() for part in stump)))
                for stump in zip(*(np.split(part, ends) for part in stumps))]
    return {"parameters": parameters, "attributes": {
        **facts, "classes_": classes.astype(object) if meta["object_labels"] else classes,
        "learners_": learners, "weights_": np.split(weights, ends)}}


def _facts(facts):
    for name, kind in FACTS.items():
        kinds = (int, float) if kind is float else kind
        if not isinstance(facts[name], kinds) or isinstance(facts[name], bool) != (kind is bool):
            raise ValueError(f"{name} is {facts[name]!r}")
    if facts["n_features_in_"] < 1 or facts["n_rounds_"] < 0:
        raise ValueError(f"{facts['n_features_in_']} features and {facts['n_rounds_']} rounds")
    return {name: facts[name] for name in FACTS}
