"""Draw the pictures of the first screen, wide and for phones, with letters of 11 pixels: python docs/pictures.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib import pyplot as plt

from mopn.estimators import TableClassifier
from mopn.explain import drift
from mopn.plotting import plot_convergence, plot_effect, plot_model, plot_pair

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


if __name__ == "__main__":
    main()
