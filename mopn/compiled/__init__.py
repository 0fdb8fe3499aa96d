"""Compiled functions (numba) on plain arrays: polynomial kernels of any degree, and epochs of solvers on them.

Importing this package imports numba, which the rest of mopn does not need; what uses it imports it when it is used.
Machine code is kept on disk between processes.
"""
