"""How many numbers a fitted model holds, by the type of its parts: numbers that a prediction reads, each once."""

from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from mopn.estimators import MultiOutputPNClassifier


@singledispatch
def numbers_held(model: Any) -> int:
    """Return how many numbers a fitted model or transformer holds."""
    raise TypeError(f"no size is known for {type(model).__name__}; register one with numbers_held.register")


@numbers_held.register
def _(model: Pipeline) -> int:
    return sum(numbers_held(step) for _, step in model.steps)


@numbers_held.register
def _(model: OneVsRestClassifier) -> int:
    return sum(numbers_held(one) for one in model.estimators_)


@numbers_held.register
def _(model: MultiOutputPNClassifier) -> int:
    arrays = [value for value in vars(model.model_).values() if isinstance(value, np.ndarray)]
    return sum(array.size for array in arrays)


@numbers_held.register(StandardScaler)
@numbers_held.register(MinMaxScaler)
def _(model: StandardScaler | MinMaxScaler) -> int:
    return 2 * model.n_features_in_


@numbers_held.register
def _(model: PolynomialFeatures) -> int:
    return 0


@numbers_held.register
def _(model: Nystroem) -> int:
    return model.components_.size + model.normalization_.size


@numbers_held.register
def _(model: PolynomialCountSketch) -> int:
    return model.indexHash_.size + model.bitHash_.size


@numbers_held.register
def _(model: LogisticRegression) -> int:
    return model.coef_.size + model.intercept_.size


@numbers_held.register
def _(model: SVC) -> int:
    return model.support_vectors_.size + model.dual_coef_.size + model.intercept_.size


@numbers_held.register
def _(model: HistGradientBoostingClassifier) -> int:
    trees = [tree for trees in model._predictors for tree in trees]
    return _numbers_of_trees(sum(tree.get_n_leaf_nodes() for tree in trees), len(trees))


def _numbers_of_trees(leaves: int, trees: int) -> int:
    """Return the numbers of binary trees: the feature and the threshold of every split, and the value of every leaf."""
    return 2 * (leaves - trees) + leaves


try:
    from lightgbm import LGBMClassifier
except ImportError:  # the study then leaves it out
    pass
else:

    @numbers_held.register
    def _(model: LGBMClassifier) -> int:
        trees = model.booster_.dump_model()["tree_info"]
        return _numbers_of_trees(sum(tree["num_leaves"] for tree in trees), len(trees))
