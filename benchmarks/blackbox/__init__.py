"""Black-box optimisation over x in {0, 1}^d by surrogates of degree 2: mopn, and a machine trained by Adam."""
