"""Shared parts of the models besides data and losses: norms, regularisers, barriers, the gap, kernels."""
