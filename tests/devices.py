"""Arrays of other namespaces: strict ones of a device whose memory NumPy cannot read, and PyTorch's where it is."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest

# Strict arrays refuse all that is not in the standard, and NumPy cannot read them; PyTorch rounds otherwise.
LIBRARIES = ("array_api_strict", *(["torch"] if find_spec("torch") else []))


def on_device(library):
    """A function that moves an array; the test is skipped without the library."""
    pytest.importorskip("array_api_compat")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xp = pytest.importorskip(library)
    if library == "torch":
        # Few rows take longer on several threads.
        xp.set_num_threads(1)
        return lambda array: xp.asarray(np.array(array))
    return lambda array: xp.asarray(np.array(array), device=xp.Device("device1"))
