"""Models as C99 headers, in floats or in integers."""

import os
from typing import Any

from mopn.data.values import to_host
from mopn.export.c_header import float_header
from mopn.export.c_integer import integer_header
from mopn.export.c_writer import header_prefix
from mopn.export.integers import IntegerModel
from mopn.export.quantization import quantize
from mopn.models.base import Fitted, fitted_model
from mopn.models.files import replacement
from mopn.solvers.tools.checks import choice
from mopn.solvers.tools.decorators import door


@door
def to_c(
    model: Fitted,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    dtype: str | None = None,
    arithmetic: str = "float",
    X: Any = None,
) -> IntegerModel | None:
    """Write the model as a C99 header that needs no memory but the stack and no library but ``math.h``.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    path : str or path
        Name of the file; an existing file is replaced.
    name : str, optional
        The prefix of all names in the header, ``model`` below; by default from the name of the file: ``left_hand``
        for "left-hand.h". A compiler refuses two headers of one prefix in a program.
    dtype : {"float32", "float64", "int16", "int8"}, optional
        With floats the type of parameters, features, arithmetic and outputs: "float32", the default, for ``float``, or
        "float64" for ``double``. With integers the type of the parameters: "int8", the default, or "int16".
    arithmetic : {"float", "integer"}, default "float"
        With "integer" the header has no float and no division, and includes only ``stdint.h``; for degrees 1 and 2.
    X : array-like or sparse matrix of shape (n, d), optional
        For integers: rows from which ranges are taken, such as the training data.

    Returns
    -------
    IntegerModel or None
        For integers the model that the header computes, bit for bit, with its ``agreement`` with floats; print it.

    Raises
    ------
    OSError
        If no file can be written in this folder.
    TypeError
        With integers for a model of a table, a higher degree, or predictions that need exponentials.
    ValueError
        For a name that C does not take, another dtype, or numbers whose digits it does not hold. With integers if 32
        bits cannot hold the sums, or without X.

    Warns
    -----
    UserWarning
        If ``float`` changes outputs of rows like the training data by more than 0.1 % of their range; see
        :func:`to_onnx`.

    Notes
    -----
    The functions: ``model_outputs(x, out)``, ``model_probabilities(x, p)`` if the model has them, ``model_predict``
    unless the outputs are the prediction, and ``model_self_test()``, which returns 0 if the outputs of a row in the
    header are as here. Labels are an index in ``model_classes``. The comments give the lengths of arrays; x holds all
    features, zeros too, in the order of ``model_features``, if they have names. Nothing is checked: NaN gives NaN.

    For a model of a table x holds its columns, ``model_columns``: numbers, ``NAN`` where they are missing, dates as
    days since 1970, and categories as constants such as ``MODEL_CITY_ROME``, ``MODEL_CITY_MISSING`` or
    ``MODEL_CITY_UNKNOWN``, indices of texts in ``model_categories_j`` for column j. ``model_encode(x, z)`` computes the
    features, and the other functions call it.

    In integers x is of the type ``model_input``. Features of whole numbers stay; any other feature j is the nearest
    integer to ``x[j] * 2 ** model_bits[j]``, minus ``model_zero[j]``. Numbers out of the range of all of X are clamped
    to it, and ``model_check(x)`` returns 0 if there are none. Outputs are integers times a power of 2, which the header
    says; there are no probabilities. On an AVR parameters stay in flash. docs/mathematics.md derives the bound.

    Examples
    --------
    >>> import numpy as np, mopn, tempfile
    >>> X = np.random.default_rng(0).integers(-128, 128, (100, 2))
    >>> H, V = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> model = mopn.Model(H, V, classes=np.array(["unlike", "alike"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     integers = mopn.export.to_c(model, f"{folder}/model.h", arithmetic="integer", X=X)
    >>> integers.predict([[9, 7], [-100, -90], [100, -20]]).tolist()
    ['alike', 'alike', 'unlike']
    """
    in_integers = choice(("float", "integer"))(arithmetic, "arithmetic") == "integer"
    if X is not None and not in_integers:
        raise ValueError("X is for arithmetic='integer', which takes ranges from it; leave it out for floats")
    if X is None and in_integers:
        raise ValueError("arithmetic='integer' needs X, rows from which ranges are taken, such as the training data")
    machine, name, integers = fitted_model(model), header_prefix(name, path), None
    if in_integers:
        integers = quantize(machine, to_host(X), "int8" if dtype is None else dtype)
        text = integer_header(integers, name)
    else:
        text = float_header(machine, name, "float32" if dtype is None else dtype)
    with replacement(path) as file:
        file.write(text.encode())
    return integers
