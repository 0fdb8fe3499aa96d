"""The order of the gallery: what a network is, how to choose and explain a model, what extends mopn."""

from __future__ import annotations

ORDER = (
    *("regions", "digit_units", "certificate", "units_accuracy", "norms", "path", "pareto"),
    *("table", "losses", "levels", "movielens", "degree"),
    *("interactions", "shap", "radius", "blackbox"),
    *("certify_any", "refits", "own_loss"),
)


class Order:
    """The key by which Sphinx-Gallery sorts the scripts of a folder; a script that has no place is an error."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, script: str) -> int:
        """Return the place of a script."""
        return ORDER.index(script.removeprefix("plot_").removesuffix(".py"))
