"""The computations of the page "Draw a digit" in a browser, by mopn, NumPy and SciPy; all files are in its folder."""

import json

import numpy as np

import mopn

model = mopn.load("digits.npz")
rows = np.load("rows.npy")  # of the training data, with which features are compared
with open("certificate.json", encoding="utf-8") as file:
    certificate = file.read()


def explain(pixels):
    """Return, as JSON, the probabilities of the classes, and every pixel's contribution to the likeliest one.

    Parameters
    ----------
    pixels : list of 64 numbers from 0 to 16
    """
    drawing = np.array([pixels], dtype=float)
    best = int(np.argmax(model.outputs(drawing)[0]))
    return json.dumps(
        {
            "label": int(model.predict(drawing)[0]),
            "probabilities": model.predict_proba(drawing)[0].tolist(),
            "output": model.outputs(drawing)[0, best],
            "base": model.outputs(rows)[:, best].mean(),
            "shap": mopn.explain.shap_values(model, drawing, rows)[0, :, best].tolist(),
        }
    )


def example(number):
    """Return, as JSON, the pixels of a row of the training data; numbers beyond the last begin again."""
    return json.dumps(rows[number % len(rows)].tolist())
