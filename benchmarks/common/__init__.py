"""Common parts of the studies: data, files that a restart continues, the runner, figures and processes."""

# The norms of the paper.
NORMS = ("l1", "l1/l2", "l1/linf")
