"""What is fitted and predicts: models, their files, ordered levels and the weights of interactions."""
