"""A loss, once: value, gradient, conjugate, domain, link and Hessian."""
