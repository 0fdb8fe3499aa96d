"""Arrays of other namespaces: PyTorch's on the CPU, and strict ones of a device whose memory NumPy cannot read."""

import warnings

import numpy as np
import pytest

LIBRARIES = ("torch", "array_api_strict")


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
