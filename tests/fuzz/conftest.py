"""The campaign needs forks, limits of memory and all extras."""

import os
from importlib.util import find_spec

if not hasattr(os, "fork") or any(find_spec(name) is None for name in ("sklearn", "pandas", "matplotlib", "joblib")):
    collect_ignore_glob = ["*"]
