"""What the models share beyond data and losses: norms, regularisers, barriers, the gap, kernels."""
