"""The parts of all models: designs, losses, the gap, norms, regularisers, kernels, input validation."""
