"""One output, any degree: the direct and the lifted problem, the terms of their outputs, and the state of solvers."""
