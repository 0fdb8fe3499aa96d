"""The distributions of a fitted model's answers on its training data, which a file keeps to watch the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.data.rows import Block
from mopn.models.multi_output import Model
from mopn.network.problem import NetworkProblem
from mopn.tables.answers import AnswerDistribution, rounded_answers
from mopn.tables.quantiles import Quantiles


def training_answers(problem: NetworkProblem, model: Model) -> AnswerDistribution | None:
    """Return the distributions of a model's answers on the rows of its problem; None if these cannot be read again."""
    unit = 1.0 if problem.user_y is None else problem.user_y.unit
    try:
        outputs = problem.start(problem.start_of(model)).outputs
        found = problem.rows.sum(_answers_of_block, model, unit, along=(outputs,), combine=_merged)
    except OSError:  # a file or a cluster is lost: the model stays
        return None
    return AnswerDistribution.of(found)


def _answers_of_block(block: Block, outputs: np.ndarray, model: Model, unit: Any) -> tuple[Quantiles, ...]:
    """Return the distribution of each answer on a block, given its outputs in the unit of the problem."""
    weights = np.asarray(block.losses.sample_weights)
    present = weights > 0.0
    answers = rounded_answers(model.answers_of(outputs[present] * unit + model.offset))
    return tuple(Quantiles.of(answer, weights[present]).sampled() for answer in answers.T)


def _merged(first: Quantiles, second: Quantiles) -> Quantiles:
    return (first + second).sampled()
