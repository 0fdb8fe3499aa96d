"""The base of models and of estimators that have one: files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

from mopn.models.files import write
from mopn.solvers.tools.door import doors

__all__ = ["Fitted", "fitted_model"]


@doors
class Fitted(ABC):
    """A model, or an estimator that has one."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make doors of the public methods of models and estimators."""
        super().__init_subclass__(**options)
        doors(cls, special=())

    @abstractmethod
    def _fitted_model(self) -> Any:
        """Return the model."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a plain ``.npz`` file, which :func:`mopn.load` reads without pickle.

        Parameters
        ----------
        path : str or path
            Name of the file, without any change. A file that is there is replaced in a single step, when the new one
            is complete: if writing fails or is interrupted, it stays as it was.

        Raises
        ------
        OSError
            If no file can be written in this folder.
        TypeError
            If the classes are not strings, numbers or dates, all of one type, or would not come back equal.
        """
        write(path, self._fitted_model()._fields())


def fitted_model(value: Any) -> Any:
    """Return a model as it is, or the model of a fitted estimator; ``TypeError`` for anything else."""
    if not isinstance(value, Fitted):
        raise TypeError(
            f"model must be a Model, a FactorizationModel or a fitted estimator, got {type(value).__name__}"
            + "; give its last step, pipeline[-1]" * hasattr(value, "steps")
        )
    return value._fitted_model()
