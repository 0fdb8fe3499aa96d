"""Words that readers search for and pages do not say: entries of the index, which the search ranks like titles."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

WORDS = {
    "blackbox": ("QUBO", "Ising", "annealing", "Bayesian optimisation", "black-box optimisation", "surrogate model"),
    "certificates": ("certificate", "duality gap", "lower bound", "proof", "optimality gap"),
    "csv_to_service": (
        "confusion matrix",
        "calibration",
        "drift",
        "monitoring",
        "population stability index",
        "PSI",
        "Kolmogorov-Smirnov",
        "web service",
        "production",
        "CSV",
        "new categories",
    ),
    "convergence": (
        "performance profile",
        "benchopt",
        "suboptimality",
        "benchmark of solvers",
        "competitors",
        "convergence plot",
        "Frank-Wolfe",
        "conditional gradient algorithm",
        "away steps",
    ),
    "deploy": (
        "ONNX",
        "export",
        "deployment",
        "embedded",
        "microcontroller",
        "Cortex-M0",
        "small devices",
        "Arduino",
        "C header",
        "serving",
        "save model",
        "C code",
    ),
    "explain": (
        "SHAP",
        "interactions",
        "feature importances",
        "interpretability",
        "feature_importances_",
        "partial dependence",
    ),
    "extending": (
        "custom loss",
        "tweedie",
        "gamma regression",
        "custom solver",
        "oracle",
        "linear minimisation oracle",
    ),
    "migration": (
        *("polylearn", "libFM", "fastFM", "LightGBM", "EBM", "interpret", "SVC"),
        *("svmlight", "monotone constraints", "learning to rank", "Bayesian", "GPU"),
    ),
    "recommenders": (
        "ratings",
        "recommender",
        "collaborative filtering",
        "cold start",
        "fold-in",
        "MovieLens",
        "ordinal regression",
        "matrix factorization",
        "new users",
        "fold_in",
        "similar items",
        "popular",
        "popularity",
        "top-N",
        "implicit feedback",
    ),
    "robustness": ("adversarial robustness", "adversarial examples", "certified radius", "robustness"),
    "scale": ("Dask", "Spark", "cluster", "out of core", "memory"),
    "single_output": ("factorization machine", "polynomial network", "partial_fit", "online learning", "streams"),
    "solvers": (
        "losses",
        "sample_weight",
        "callbacks",
        "progress bar",
        "quantile regression",
        "confidence interval",
        "prediction interval",
        "Poisson regression",
        "class_weight",
        "class imbalance",
        "imbalanced",
        "outliers",
        "counts",
        "time limit",
    ),
    "start": ("what is a unit", "hidden unit", "getting started", "install", "glossary", "definitions", "units"),
    "stop_and_go_on": ("resume", "checkpoint", "restart", "continue training", "interrupt", "warm start"),
    "strength": (
        "overfitting",
        "underfitting",
        "early stopping",
        "hyperparameters",
        "regularization",
        "cross-validation",
        "validation",
        "eval_set",
        "cross validation",
        "hyperparameter tuning",
    ),
    "tables": (
        "categorical features",
        "missing values",
        "DataFrame",
        "data frames",
        "pandas",
        "polars",
        "tabular data",
        "NaN",
        "imputation",
        "generalised additive model",
        "GAM",
        "monotone",
        "monotone constraints",
    ),
    "threads": ("n_jobs", "n_threads", "parallel"),
    "teaching": ("conditional gradient", "Frank-Wolfe algorithm", "Fenchel duality", "teaching", "notebook", "lecture"),
    "torch": ("PyTorch", "neural network", "quadratic layer", "is my network optimal"),
    "which_model": (
        "classification",
        "regression",
        "choosing a model",
        "multilabel",
        "multi-label",
        "multi-output regression",
        "kernel SVM",
        "predict_proba",
        "probabilities",
    ),
}


def _add(app: Sphinx, name: str, source: list[str]) -> None:
    # The search ranks main entries, those with the mark, before words of the text.
    if name in WORDS:
        before, title, text = re.split(r"^(# .*\n)", source[0], maxsplit=1, flags=re.MULTILINE)
        entries = ", ".join(f"!{word}" for word in WORDS[name])
        source[0] = f"{before}{title}\n```{{index}} {entries}\n```\n{text}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the entries to the pages as they are read."""
    app.connect("source-read", _add)
    return {"parallel_read_safe": True}
