"""Draw the picture of the page "Draw a digit": python examples/drawn_digit.py."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import mopn
from mopn.estimators import MultiOutputPNClassifier

X, y = load_digits(return_X_y=True)
model = MultiOutputPNClassifier().fit(X, y)
row = X[[7]]
probabilities = model.predict_proba(row)[0]
best = int(np.argmax(probabilities))
shap = mopn.explain.shap_values(model, row, X)[0, :, best]

figure, (drawing, reasons, classes) = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
drawing.imshow(row.reshape(8, 8), cmap="gray_r")
drawing.set_title("you draw")
largest = np.abs(shap).max()
reasons.imshow(shap.reshape(8, 8), cmap="RdBu_r", vmin=-largest, vmax=largest)
reasons.set_title(f"red speaks for {best}, blue against")
for ax in (drawing, reasons):
    ax.set(xticks=[], yticks=[])
classes.barh(range(10), probabilities)
classes.set(yticks=range(10), xlim=(0, 1), title="probabilities")
classes.invert_yaxis()
figure.savefig("live.png", dpi=80)
print(f"read as {best}, with a probability of {probabilities[best]:.0%}")
