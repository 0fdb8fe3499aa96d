"""The figure of the page on robustness: accuracy against the radius, and the nearest images of other classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.figures import legend_below, plt, save, tidy
from benchmarks.robustness.classifiers import ATTACKED, PROVEN, attacked_distances
from mopn.explain import certified_radius

_CURVES = {
    "polynomial network, l1": "#66a3d2",
    "scale='data'": "#1b6ca8",
    "quadratic SVM, one against the rest": "#d95f02",
    "logistic regression": "#7a7a7a",
}
_IMAGES = 4


def draw(split: Sequence[np.ndarray], path: Path) -> None:
    """Draw the figure for one split of the digits; images are for the network of one scale for all pixels."""
    X_train, X_test, y_train, y_test = split
    figure = plt.figure(figsize=(9.5, 4.0), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(5, 4))
    ax = left.subplots()
    models = {name: PROVEN[name](X_train, y_train) for name in _CURVES}
    for name, color in _CURVES.items():
        radii = certified_radius(models[name], X_test)
        _curve(ax, radii, models[name].predict(X_test) == y_test, color=color, label=name)
    for name, fit in ATTACKED.items():
        machine = fit(X_train, y_train)
        found = attacked_distances(machine, X_test)
        _curve(ax, found, machine.predict(X_test) == y_test, color="0.2", ls=":", label=f"{name}: attacked only")
    ax.set(
        xlabel="change in the l2 norm (pixels 0 to 16)",
        ylabel="accuracy under any such change (%)",
        xlim=(0, 18),
        ylim=(0, 100),
    )
    legend_below(figure, *ax.get_legend_handles_labels(), columns=3, fontsize=8.5)
    tidy(ax)
    _images(right, models["scale='data'"], X_test)
    save(figure, path, dpi=100)


def _curve(ax: Any, radii: np.ndarray, correct: np.ndarray, **style: Any) -> None:
    """Draw the share of rows that are right and have a radius above x."""
    ends = np.sort(radii[correct])
    shares = 100 * (len(ends) - np.arange(len(ends) + 1)) / len(radii)
    ax.step(np.append(0.0, ends), shares, where="post", **style)


def _images(figure: Any, model: Any, X: np.ndarray) -> None:
    """Draw images with radii from small to large above the nearest ones that are read as another digit."""
    radii, attack = certified_radius(model, X, return_attack=True)
    chosen = np.argsort(radii)[(np.linspace(0.02, 0.98, _IMAGES) * len(X)).astype(int)]
    axes = figure.subplots(2, _IMAGES)
    for column, i in zip(axes.T, chosen, strict=True):
        for ax, row in zip(column, (X[i], attack[i]), strict=True):
            ax.imshow(row.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
            ax.set(xticks=[], yticks=[])
        column[0].set_title(f"{model.predict(X[[i]])[0]}, r = {radii[i]:.2f}", fontsize=9)
        column[1].set_title(f"read as {model.predict(attack[[i]])[0]}", fontsize=9)
    figure.suptitle("test images, and the nearest images read otherwise", fontsize=10)
