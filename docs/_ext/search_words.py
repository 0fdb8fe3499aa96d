"""Words that readers search for and pages do not say: entries of the index, which the search ranks like titles."""

from __future__ import annotations

from sphinx.application import Sphinx

WORDS = {
    "blackbox": ("QUBO", "annealing", "Bayesian optimisation", "black-box optimisation", "surrogate model"),
    "certificates": ("certificate", "duality gap", "lower bound", "proof"),
    "convergence": (
        "benchmark of solvers",
        "performance profile",
        "benchopt",
        "suboptimality",
        "linear minimisation oracle",
    ),
    "deploy": ("ONNX", "export", "embedded", "microcontroller", "small devices", "Arduino", "C header"),
    "explain": ("SHAP", "interactions", "feature importances", "interpretability"),
    "migration": ("polylearn", "libFM", "fastFM", "LightGBM", "EBM", "interpret", "SVC"),
    "recommenders": ("ratings", "recommender", "collaborative filtering", "cold start", "fold-in", "MovieLens"),
    "robustness": ("adversarial examples", "certified radius"),
    "scale": ("GPU", "CUDA", "PyTorch", "CuPy", "Dask", "cluster", "out of core"),
    "strength": ("early stopping", "hyperparameters", "cross-validation", "validation"),
    "tables": ("categorical features", "missing values", "DataFrame", "data frames", "pandas"),
    "teaching": ("conditional gradient", "Frank-Wolfe", "Fenchel dual", "teaching", "notebook"),
    "threads": ("n_jobs", "n_threads", "parallel"),
    "torch": ("is my network optimal", "neural network", "quadratic layer"),
    "which_model": ("classification", "regression", "choosing a model"),
}


def _add(app: Sphinx, name: str, source: list[str]) -> None:
    # The search ranks main entries, those with the mark, before words of the text.
    if name in WORDS:
        title, _, text = source[0].partition("\n")
        source[0] = f"{title}\n\n```{{index}} {', '.join(f'!{word}' for word in WORDS[name])}\n```\n{text}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the entries to the pages as they are read."""
    app.connect("source-read", _add)
    return {"parallel_read_safe": True}
