"""The table of proofs: what an oracle says that it tries is what it tries."""

import math
import re

import pytest
from networks import TWO_SIDED

from mopn.core.norms import NORMS
from mopn.network.oracles import METHODS, basis_oracle
from mopn.solvers.sphere.plan import Proof, most_features, plan

CHOICES = [(norm, method) for norm in TWO_SIDED for method in METHODS if method != "enumerate" or norm == "l1/linf"]
SIZES = (1, 20, 26, 27, 100, 500, 501, 1000, 1001, 3000, 3001, 10**5)


@pytest.mark.parametrize(("norm", "method"), CHOICES)
def test_an_oracle_prints_its_plan(norm, method):
    lines = repr(basis_oracle(norm, method)).splitlines()[1:]
    for m in (1, 2, 3, 6, 7, 12, 13, 40):
        (line,) = (line for line in lines if covers(line, m))
        for d in SIZES:
            if d <= most_features(method):
                assert printed(line, d) is plan(NORMS[norm].exponent, m, d, method).proof


def covers(line, m):
    """Whether a line is for so many outputs."""
    numbers = [int(number) for number in re.findall(r"\d+", line.split(":")[0])]
    if not numbers:
        return True
    return numbers[0] <= m and ("more" in line.split(":")[0] or m <= numbers[-1])


def printed(line, d):
    """The proof that a line names for so many features."""
    for part in line.split(": ")[1].split(", "):
        words, _, limit = part.partition(" (d <= ")
        if not limit or d <= int(limit.rstrip(")")):
            return Proof(words)
    raise AssertionError(line)


@pytest.mark.parametrize("method", sorted({*METHODS} - {"enumerate"}))
def test_a_single_output_is_as_under_l1(method):
    for d in SIZES:
        for norm in NORMS.values():
            assert plan(norm.exponent, 1, d, method) == plan(math.inf, 1, d, method)
