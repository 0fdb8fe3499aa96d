"""Memory of the processes of studies."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common.processes import limit_memory, peak_memory


def test_a_system_without_limits_is_named_where_a_limit_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    with pytest.raises(OSError, match="no limit of a process's memory; run this study on Linux"):
        limit_memory(1 << 40)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the sizes of a process are read from /proc")
def test_the_peak_has_what_is_resident():
    held = np.ones(1 << 22)
    assert peak_memory() >= held.nbytes
