"""Fit a network to a frame of Spark, whose partitions are written to files once.

A partition that is computed again may have its rows in another order, and a block must not change.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet
from pyspark.sql import SparkSession

import mopn
from mopn.estimators import MultiOutputPNClassifier


def block(path):
    """Return X and y of a file."""
    table = pyarrow.parquet.read_table(path)
    return np.column_stack([table["u"], table["v"]]), table["label"].to_numpy()


local = SparkSession.builder.master("local[1]")
spark = local.config("spark.ui.enabled", "false").getOrCreate()
ids = spark.range(0, 4000, numPartitions=4)
rows = ids.selectExpr("cos(id) AS u", "cos(id * id) AS v")
rows.selectExpr("u", "v", "u * v > 0 AS label").write.parquet("rows")
paths = sorted(Path("rows").glob("part-*.parquet"))
data = mopn.RowBlocks([partial(block, path) for path in paths])
# To predict on the workers, send them classifier.model_, which has neither data nor cluster.
classifier = MultiOutputPNClassifier(max_units=4).fit(data)
print(classifier.predict([[0.5, 0.5], [0.5, -0.5]]))
spark.stop()
