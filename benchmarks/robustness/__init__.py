"""How far digits may change until their class does: proven for quadratic and linear models, attacked for others."""
