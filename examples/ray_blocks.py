"""Fit a network to a dataset of Ray: its materialised blocks lie in the object store and do not change."""

from functools import partial

import numpy as np
import ray

import mopn
from mopn.estimators import MultiOutputPNClassifier


def rows(batch):
    """Return columns of features and labels: your own dataset has them."""
    rng = np.random.default_rng(batch["id"])
    u, v = rng.uniform(-1, 1, (2, len(batch["id"])))
    return {"u": u, "v": v, "label": (u * v > 0).astype(int)}


def block(reference):
    """Return X and y of a block."""
    columns = ray.get(reference)
    return np.column_stack([columns["u"], columns["v"]]), columns["label"]


ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
dataset = ray.data.range(4000, override_num_blocks=4).map_batches(rows).materialize()
references = dataset.to_numpy_refs()
data = mopn.RowBlocks([partial(block, reference) for reference in references])
# To predict on the workers, send them classifier.model_, which has neither data nor cluster.
classifier = MultiOutputPNClassifier(max_units=4).fit(data)
print(classifier.predict([[0.5, 0.5], [0.5, -0.5]]))
ray.shutdown()
