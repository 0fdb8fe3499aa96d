"""Fitted models: predictions and probabilities, files, ordered levels and the weights of interactions."""
