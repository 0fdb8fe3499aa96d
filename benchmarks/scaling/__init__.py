"""How passes over the data and whole fits grow with the rows: threads, files, workers of a cluster."""
