"""Explanations of models and fitted estimators: Shapley values, effects, interactions, certified robustness.

All functions take a model or a fitted estimator; anything else is a ``TypeError``. SHAP values of degree 2, effects and
contributions need NumPy and SciPy alone; certificates and other kernels need mopn's other dependencies, too.
"""

from mopn.explain.column_drift import drift
from mopn.explain.column_effects import effects
from mopn.explain.flips import certified_flips
from mopn.explain.interactions import interaction_weights, strongest_interactions
from mopn.explain.robustness import certified_radius
from mopn.explain.shapley import contributions, feature_importances, shap_interaction_values, shap_values, to_shap

__all__ = [
    "certified_flips", "certified_radius", "contributions", "drift", "effects", "feature_importances",
    "interaction_weights", "shap_interaction_values", "shap_values", "strongest_interactions", "to_shap",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
