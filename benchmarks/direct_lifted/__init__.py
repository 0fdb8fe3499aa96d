"""Direct and lifted problems: Figures 1, 2 and 4 of Blondel et al. (ICML 2016)."""
