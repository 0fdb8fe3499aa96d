"""What every model is made of: designs, losses, norms, regularisers, kernels, checks of what users pass."""
