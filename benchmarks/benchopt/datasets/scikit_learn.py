"""Real data that come with scikit-learn."""

from benchopt import BaseDataset
from sklearn import datasets
from sklearn.preprocessing import minmax_scale


class Dataset(BaseDataset):
    """The sets that scikit-learn holds, scaled to [-1, 1]."""

    name = "scikit-learn"
    parameters = {"set_name": ["iris", "wine", "breast_cancer", "digits"]}
    requirements = ["scikit-learn"]

    def get_data(self):
        """Load the set."""
        X, y = getattr(datasets, f"load_{self.set_name}")(return_X_y=True)
        return {"X": minmax_scale(X, (-1, 1)), "y": y}
