"""The terms of the output of a single-output model: intercept, linear, kernels, products."""

from mopn.factorization.terms.base import Term
from mopn.factorization.terms.factors import KernelTerm
from mopn.factorization.terms.products import Intercept, Linear, ProductTerm

__all__ = ["Intercept", "KernelTerm", "Linear", "ProductTerm", "Term"]
