"""The plan of a search: the table of rules that choose its proof."""

import math

import pytest

from mopn.solvers.sphere import search
from mopn.solvers.sphere.search import RULES, plan

# For each rule a search that it alone decides: p, m, d and the method.
DECIDED = (
    (2.0, 5, 40, "lanczos"),
    (1.0, 3, 5, "enumerate"),
    (math.inf, 3, 6, "exact"),
    (2.0, 5, 8, "refine"),
    (2.0, 2, 600, "auto"),
    (1.0, 8, 1500, "exact"),
    (1.0, 5, 8, "exact"),
    (1.0, 20, 8, "exact"),
    (2.0, 3, 8, "exact"),
    (2.0, 9, 8, "exact"),
    (2.0, 5, 30, "exact"),
)


@pytest.mark.parametrize(("rule", "given"), [*zip(RULES, DECIDED, strict=True)])
def test_each_rule_decides_a_search_alone(rule, given, monkeypatch):
    """The rules before it do not hold, and the ones after it decide otherwise."""
    assert plan(*given).proof is rule.proof
    number = RULES.index(rule)
    nothing = RULES[-1]._replace(proof=None)
    monkeypatch.setattr(search, "RULES", (*RULES[:number], *RULES[number + 1 :], nothing))
    assert plan(*given).proof is not rule.proof


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("m", [1, 2, 5, 20])
def test_auto_limits_the_work_of_relaxations_of_many_features(p, m):
    """The time of decompositions is known in advance."""
    assert math.isinf(plan(p, m, 26).work)
    many = plan(p, m, 27)
    (has_limit,) = {rule.has_limit for rule in RULES if rule.proof is many.proof}
    assert math.isfinite(many.work) == has_limit
