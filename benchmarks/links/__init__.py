"""Link prediction and solvers of higher degrees: Table 3 and Figures 1 to 4 of Blondel et al. (NIPS 2016)."""
