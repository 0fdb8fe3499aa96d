"""Multi-class networks: Tables 2 and 4 and Figures 3 and 5 of Blondel et al. (NIPS 2017)."""
