"""What explains a model: Shapley values, effects, interactions, contributions and certified radii."""
