"""The order of the gallery within its groups, whose folders are in alphabetical order."""

from __future__ import annotations

ORDER = (
    *("regions", "digit_units", "certificate", "units_accuracy", "norms", "path", "pareto"),
    *("shap", "interactions", "radius"),
    *("table", "losses", "levels", "movielens", "implicit", "degree", "blackbox"),
    *("refits", "scipy", "certify_any", "own_loss", "own_step", "completion", "injective_norm"),
)


class Order:
    """The key by which Sphinx-Gallery sorts the scripts of a folder; a script that has no place is an error."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, script: str) -> int:
        """Return the place of a script."""
        return ORDER.index(script.removeprefix("plot_").removesuffix(".py"))
