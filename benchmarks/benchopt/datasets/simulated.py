"""Made data, which need nothing but NumPy."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Labels by the largest of some quadratic forms of few units, with noise."""

    name = "Simulated"
    parameters = {"n_samples, n_features, n_classes": [(300, 8, 3)]}

    def get_data(self):
        """Draw the data."""
        rng = np.random.default_rng(self.get_seed())
        X = rng.uniform(-1, 1, (self.n_samples, self.n_features))
        H = rng.standard_normal((self.n_classes + 1, self.n_features))
        outputs = (X @ H.T) ** 2 @ rng.standard_normal((len(H), self.n_classes))
        return {"X": X, "y": np.argmax(outputs + 0.5 * rng.standard_normal(outputs.shape), axis=1)}
