"""One output, any degree: the direct and the lifted problem, the terms that they are sums of, and their state."""
