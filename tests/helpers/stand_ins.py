"""Stand-ins for ray and pyspark: the parts of their interfaces that the documents use, in this process."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow
import pyarrow.parquet

__all__ = ["MODULES"]


class RayDataset:
    """Blocks, each a dictionary of columns."""

    def __init__(self, blocks):
        self.blocks = blocks

    def map_batches(self, function):
        return RayDataset(list(map(function, self.blocks)))

    def materialize(self):
        return self

    def to_numpy_refs(self):
        return [SimpleNamespace(held=block) for block in self.blocks]


def ray_range(n, override_num_blocks):
    return RayDataset([{"id": ids} for ids in np.array_split(np.arange(n), override_num_blocks)])


class SparkFrame:
    """Partitions, each a dictionary of columns; expressions are Python's, of NumPy's functions."""

    def __init__(self, partitions):
        self.partitions, self.write = partitions, self

    def selectExpr(self, *expressions):
        texts = [expression.partition(" AS ")[::2] for expression in expressions]
        functions = {"cos": np.cos}
        named = [{name or text: eval(text, functions, part) for text, name in texts} for part in self.partitions]
        return SparkFrame(named)

    def parquet(self, folder):
        Path(folder).mkdir()
        for number, part in enumerate(self.partitions):
            pyarrow.parquet.write_table(pyarrow.table(part), Path(folder) / f"part-{number:05d}.parquet")


class Spark:
    """A session, and its builder."""

    def __init__(self):
        self.builder = self

    def master(self, url):
        return self

    def config(self, name, value):
        return self

    def getOrCreate(self):
        return self

    def range(self, start, end, numPartitions):
        return SparkFrame([{"id": ids} for ids in np.array_split(np.arange(start, end), numPartitions)])

    def stop(self):
        pass


MODULES = {
    "ray": {
        "ray": SimpleNamespace(
            init=lambda **options: None,
            shutdown=lambda: None,
            get=lambda reference: reference.held,
            data=SimpleNamespace(range=ray_range),
        )
    },
    "pyspark": {"pyspark": SimpleNamespace(), "pyspark.sql": SimpleNamespace(SparkSession=Spark())},
}
