"""Compiled functions (numba) on plain arrays: polynomial kernels of any degree, and epochs of solvers on them.

Most of its modules import numba; ``import mopn`` does not import them. Machine code is cached on disk.
"""
