"""Loading of model files."""

import os
from dataclasses import replace

from mopn.models.files import read
from mopn.models.implicit import ImplicitModel
from mopn.models.multi_output import Model
from mopn.models.single_output import FactorizationModel
from mopn.models.table import TableModel
from mopn.tables.fields import ANSWER_FIELDS, FIELDS, TRAINING_FIELDS, answers_of_fields, from_fields


def load(path: str | os.PathLike[str]) -> Model | FactorizationModel | TableModel | ImplicitModel:
    """Read a model file of ``save``, without pickle, scikit-learn or numba.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Model, FactorizationModel, TableModel or ImplicitModel

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is not a mopn model, is damaged, or is of a newer format.

    Notes
    -----
    Nothing in the file is executed, and reading takes memory in proportion to its size, whatever it declares. So files
    from strangers can be loaded; trust their predictions no more than their source.

    Examples
    --------
    >>> import mopn, numpy as np, tempfile
    >>> model = mopn.Model(np.eye(2), np.eye(2), classes=np.array(["cat", "dog"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder + "/model.npz")
    ...     print(mopn.load(folder + "/model.npz").predict([[1.0, 0.0], [0.0, 1.0]]))
    ['cat' 'dog']
    """
    values = read(path)
    try:
        if "columns" in values:
            encoding = from_fields({name: values.pop(name, None) for name in (*FIELDS, *TRAINING_FIELDS)})
            answers = answers_of_fields({name: values.pop(name, None) for name in ANSWER_FIELDS})
            model = TableModel(Model(**values), encoding, answers)
            if values.get("feature_names") is not None:
                return model
            # Files hold names only where these differ from the encoding's.
            return replace(model, model=replace(model.model, feature_names=encoding.feature_names))
        if "basis" in values:
            return Model(**values)
        if "factors" in values:
            return FactorizationModel(**values)
        if "item_factors" in values:
            return ImplicitModel(**values)
        raise TypeError("it has neither a basis nor factors")
    except (AttributeError, TypeError, ValueError) as error:
        # Fields that are missing, unknown, of another type, or do not fit together.
        raise ValueError(f"{os.fspath(path)!r} is not a mopn model, or it is damaged: {error}") from error
