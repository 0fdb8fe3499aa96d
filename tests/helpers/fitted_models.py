"""Models with random numbers, as fits leave them; whether two are the same; and numbers as fractions."""

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd

import mopn
from mopn.data.cells import DATES, as_given
from mopn.models.table import TableModel
from mopn.tables.learning import learn_encoding
from mopn.tables.reading import read_table


def network(m=3, *, d=4, k=5, **options):
    """Return a model with random units and weights."""
    rng = np.random.default_rng(1)
    dummies = {"homogeneous": 1, "anova": 2}[options.get("kernel", "homogeneous")] if options.get("augment") else 0
    return mopn.Model(rng.standard_normal((k, d + dummies)), rng.standard_normal((k, m)), **options)


def factors(orders=1, *, d=4, k=2, **options):
    """Return a model of one output with random factors."""
    rng = np.random.default_rng(1)
    lams = None if options.get("form") == "lifted" else np.ones(k)
    dummies = options.get("dummies", 0)
    return mopn.FactorizationModel(rng.standard_normal((orders, k, dummies + d)), **{"lams": lams, **options})


# Every field is something else than its default in one of them.
MODELS = {
    "labels": network(
        link="softmax",
        kernel="anova",
        augment=True,
        classes=np.array(["ä", "b", "a longer label"]),
        offset=np.ones(3),
        feature_names=["Whole weight", "ü", 'a "quoted" \\ name', "??/"],
    ),
    "linear": network(
        1, d=2, k=1, target="vector", linear=np.array([[1.0, 2.0, 3.0]]), offset=0.5, output_names=["price"]
    ),
    "means": network(2, link="log", offset=np.array([0.5, -1.0])),
    "mean": network(1, link="log", target="vector"),
    "levels": network(2, link="logistic", target="ordinal", classes=np.array([1.0, 2.0, 4.0])),
    "no units": network(2, k=0, offset=np.array([3.0, -1.0])),
    "direct": factors(2, degree=3, w=np.arange(4.0), intercept=0.5, link="logistic", classes=np.array([1, 2])),
    "shared": factors(degree=3, theta=np.array([0.2, 0.3, 0.5])),
    "lifted": factors(3, degree=3, form="lifted", kernel="homogeneous", dummies=1),
}

# Besides, models of every kernel, form, link and target.
KINDS = MODELS | {
    "two classes": network(1, link="logistic", classes=np.array([False, True]), kernel="anova"),
    "two outputs": network(2, link="logistic", classes=np.array([-1, 1]), augment=True),
    "one against the rest": network(link="logistic", classes=np.array([0.1, 1.0, 2.0])),
    "no link": network(classes=np.array(["no", 'a "quoted" \\ label', "ß??/"], dtype=object)),
    "multi-label": network(link="logistic", target="indicator", linear=np.arange(15.0).reshape(3, 5)),
    "softmax": network(kernel="anova", link="softmax", classes=np.arange(3)),
    "several": network(2, kernel="anova", linear=np.ones((2, 5))),
    "second": factors(degree=2, dummies=1, link="logistic", classes=np.array(["no", "yes"])),
    "first and second": factors(degree=2, dummies=2, theta=np.array([0.3, 0.7]), w=np.ones(4)),
    "only first": factors(degree=1, intercept=-1.0),
    "fourth": factors(3, degree=4, dummies=2),
    "more than there are": factors(degree=6, dummies=1, theta=np.arange(6.0)),
    "all subsets": factors(degree=1, kernel="all-subsets", dummies=1),
    "fifth power": factors(degree=5, kernel="homogeneous", dummies=1),
    "lifted pairs": factors(2, degree=2, form="lifted", dummies=1),
    "no factors": factors(degree=3, k=0, intercept=2.0),
}

# Those of degree 1 and 2.
SECOND = [
    kind
    for kind, model in KINDS.items()
    if isinstance(model, mopn.Model) or (model.degree <= 2 and model.kernel != "all-subsets")
]

N = 40
RNG = np.random.default_rng(2)
NUMBERS = {
    "real": [None, *RNG.standard_normal(N - 1).tolist()],
    "whole": RNG.integers(0, 5, N).tolist(),
    "h": [7, 9] * (N // 2),
    "one": [3] * N,
    "zeros": [0, 0, -1, 0, 2.5, 0, 0, 2.5] * (N // 8),
}
CATEGORIES = {
    "day": np.datetime64("2020-01-01") + RNG.integers(0, 900, N),
    "city": ["Bern", "são paulo", "São Paulo", None, 'a "*/" ??/'] * (N // 5 - 1)
    + ["rare", "東京", "Bern", "北京", "rarer"],
    "yes or no": RNG.random(N) < 0.5,
    "prediction": ["on", "off"] * (N // 2),
    "one category": ["x"] * N,
    "code": [3, 4, 5, 6] * (N // 4),
}
# Rows inside, below and above the knots, at one of them, missing; texts that are frequent, rare, unknown, missing.
NUMBER_ROWS = {
    "real": [0.1, -99.0, 99.0, NUMBERS["real"][1], None, 0.2],
    "whole": [2.0, -1.0, 9.0, 1.5, None, 3.0],
    "h": [7.0, 6.0, 10.0, 8.5, None, 9.0],
    "one": [3.0, 2.0, 4.0, 3.0, None, 3.0],
    "zeros": [0.0, 2.5, -1.0, 1.0, None, -9.0],
}
TABLE_ROWS = NUMBER_ROWS | {
    "day": [18300.25, 1.0, 1e5, 18600.0, None, 19000.0],
    "city": ["Bern", "rare", "Atlantis", 'a "*/" ??/', None, "北京"],
    "yes or no": ["True", "False", "perhaps", "True", None, "False"],
    "prediction": ["on", "off", "", "on", None, "off"],
    "one category": ["x", "x", "y", "x", None, "x"],
    "code": ["3", "4", "7", "5", None, "6"],
}


def table(columns, **options):
    """Return a model of a table with random units; categories of the last rows are rare if they occur only there."""
    weights = np.append(np.ones(N - 5), np.full(5, 1e-4))
    codes = [c for c in ["code"] if c in columns]
    encoding = learn_encoding(
        read_table(pd.DataFrame(columns)), weights, curves=3, smoothness=1.0, categorical_features=codes
    )
    return TableModel(network(d=encoding.n_features, augment=True, **options), encoding)


LINKED = {"link": "softmax", "classes": np.array(["a", "b", "c"])}
TABLES = {"numbers": table(NUMBERS, **LINKED), "categories": table(NUMBERS | CATEGORIES, **LINKED)}


def quietly(method, X):
    """Return a method's answer for a table with unknown categories, whose days are dates to Python."""
    if isinstance(X, dict) and "day" in X:
        X = X | {"day": as_given(np.array(X["day"], float), DATES)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column .* values? that the training data did not have")
        return method(X)


def same(a, b):
    """Whether two models are equal to the last bit, types included."""
    (ours, theirs) = (model._fields() for model in (a, b))
    return (
        type(a) is type(b)
        and ours.keys() == theirs.keys()
        and all(
            type(x) is type(y) and getattr(x, "dtype", None) == getattr(y, "dtype", None) and np.array_equal(x, y)
            for x, y in ((ours[name], theirs[name]) for name in ours)
        )
    )


def random_model(rng, d, m=3, k=4, **fields):
    """Return a network with a linear term whose classes meet near the origin."""
    H, V, W = rng.standard_normal((k, d)), rng.standard_normal((k, m)), rng.standard_normal((m, 1 + d))
    return mopn.Model(H, V, linear=W, classes=np.arange(max(m, 2)), **fields)


def rational(values):
    return np.vectorize(Fraction, otypes=[object])(values)
