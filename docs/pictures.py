"""Draw the pictures of the first screen, wide and for phones, with letters of 11 pixels: python docs/pictures.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy import sparse

import mopn
from mopn.estimators import TableClassifier
from mopn.explain import drift
from mopn.plotting import plot_convergence, plot_effect, plot_model, plot_pair
from mopn.ranking import recall_at_k

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "docs" / "_static"
# Pixels of the first screen: of a page without side columns, of a phone, and of a card.
WIDE, NARROW, CARD = 900, 350, 260
# Names that fit next to each other in letters of this size.
SHORT = {
    "bill_length_mm": "bill",
    "bill_depth_mm": "depth",
    "flipper_length_mm": "flipper",
    "body_mass_g": "mass",
}


def font_size(inches: float, pixels: int) -> float:
    """Return the size in points of letters of 11 pixels in a figure that is shown with a width in pixels."""
    return 11.0 * inches / pixels * 72.0


def main() -> None:
    """Write both pictures of a model of penguins, and the cards of its gap and of drift."""
    mpl.use("Agg")
    penguins = pd.read_csv(ROOT / "examples" / "penguins.csv")
    X, y = penguins.drop(columns="species").rename(columns=SHORT), penguins["species"]
    model = TableClassifier().fit(X, y)

    # The smallest letters of the page are 5/6 of the usual ones.
    with plt.rc_context({"font.size": 1.2 * font_size(16.0, WIDE)}):
        axes = plot_model(model, X)
        figure = axes[0].figure
        figure.set_size_inches(16.0, 12.5)
        legend = axes[1].get_legend()
        legend.remove()
        words = [text.get_text().replace("\n", " ") for text in legend.get_texts()]
        figure.legend(
            legend.legend_handles, words, loc="outside upper right", ncols=len(words)
        )
        figure.savefig(STATIC / "model.png", dpi=1.5 * WIDE / 16.0)

    with plt.rc_context({"font.size": 1.2 * font_size(3.9, NARROW)}):
        figure = plt.figure(figsize=(3.9, 8.4), layout="constrained")
        effect, distribution, pair = figure.subplots(3, height_ratios=(5, 1, 5))
        plot_effect(model, "bill", X, axes=(effect, distribution))
        effect.get_legend().remove()
        effect.legend(fontsize="small")
        effect.set_title("the effect of a column")
        effect.set_ylabel("log-probability")
        plot_pair(model, "bill", "depth", X, ax=pair)
        pair.set_title(f"a pair: {pair.get_title().split(', ')[1]}")
        figure.savefig(STATIC / "model_narrow.png", dpi=2 * NARROW / 3.9)

    male = X[X["sex"] == "male"]
    column = drift(model, male)["mass"]
    with plt.rc_context({"font.size": font_size(2.6, CARD)}):
        _, ax = plt.subplots(figsize=(2.6, 1.5), layout="constrained")
        plot_convergence(model, y="relative_gap", ax=ax, marker="o")
        ax.set(
            xlabel="seconds",
            ylabel="gap",
            yticks=[1, 0.1, 0.01],
            yticklabels=["100 %", "10 %", "1 %"],
        )
        ax.minorticks_off()
        ax.figure.savefig(STATIC / "card_gap.png", dpi=2 * CARD / 2.6)

        _, ax = plt.subplots(figsize=(2.6, 1.5), layout="constrained")
        ax.plot(column.values, 100.0 * column.shares_before, color="0.5")
        ax.plot(column.values, 100.0 * column.shares, color="#D55E00")
        ax.text(3700, 55, "training", color="0.4", ha="right")
        ax.text(4800, 30, "now", color="#D55E00")
        ax.set(xlabel="mass", ylabel="% up to this")
        ax.figure.savefig(STATIC / "card_drift.png", dpi=2 * CARD / 2.6)


def draw_clicks() -> None:
    """Write the card of clicks."""
    _, ax = plt.subplots(figsize=(2.6, 1.5), layout="constrained")
    sweeps, gaps, recalls = sweeps_on_clicks()
    ax.semilogy(sweeps, gaps, color="#0072B2", marker=".")
    ax.text(0.6, 0.00015, "proven gap", color="#0072B2")
    ax.set(
        xlabel="sweeps",
        xticks=[0, 5, 10],
        yticks=[1, 0.01, 0.0001],
        yticklabels=["100 %", "1 %", "0.01 %"],
    )
    ax.minorticks_off()
    other = ax.twinx()
    other.plot(sweeps, recalls, color="#D55E00", marker=".")
    other.set(ylim=(0, 0.6), yticks=[])
    other.text(11, 0.42, f"recall {recalls[-1]:.2f}", color="#D55E00", ha="right")
    ax.figure.savefig(STATIC / "card_clicks.png", dpi=2 * CARD / 2.6)


def sweeps_on_clicks() -> tuple[list[int], list[float], list[float]]:
    """Return sweeps on drawn clicks, their proven gaps, and their recall@10 of held-out clicks."""
    rng = np.random.default_rng(0)
    taste, style = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
    chance = 1 / (1 + np.exp(3.5 - rng.normal(size=200) - taste @ style.T))
    clicks = rng.random((300, 200)) < chance
    held_out = clicks & (rng.random(clicks.shape) < 0.2)
    train = sparse.csr_array((clicks & ~held_out).astype(float))
    test = sparse.csr_array(held_out.astype(float))
    problem = mopn.ImplicitProblem(train, mopn.Ratio(0.1))
    gaps, recalls = [], []

    def watch(intermediate_result: mopn.solvers.Result) -> None:
        P, Q = intermediate_result.P, intermediate_result.Q
        gaps.append(mopn.certify(problem, P, Q).relative_gap)
        recalls.append(recall_at_k(test, P @ Q.T, 10, seen=train))

    mopn.minimize(problem, tol=1e-4, callback=watch)
    return list(range(len(gaps))), gaps, recalls


if __name__ == "__main__":
    main()
    with plt.rc_context({"font.size": font_size(2.6, CARD)}):
        draw_clicks()
