"""The terms of which the output of a single-output model is a sum: intercept, linear, kernels, products."""

from mopn.terms.base import Term
from mopn.terms.kernels import KernelTerm
from mopn.terms.linear import Intercept, Linear
from mopn.terms.products import ProductTerm

__all__ = ["Intercept", "KernelTerm", "Linear", "ProductTerm", "Term"]
