"""Mixtures as scikit-learn's estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._extras import extra
from .errors import UserError
from .training import Model, train

_base: Any = extra("sklearn.base", "sklearn", "estimators")
_checks: Any = extra("sklearn.utils.validation", "sklearn", "estimators")
_multiclass: Any = extra("sklearn.utils.multiclass", "sklearn", "estimators")

_EXPERTS = 4
_WIDTH = 16


class _Mixture(_base.BaseEstimator):
    """What both estimators share: options as a scenario writes them, a seed, and the trained model."""

    def __init__(
        self,
        model: Mapping[str, Any] | None = None,
        train: Mapping[str, Any] | None = None,
        loss: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.train = train
        self.loss = loss
        self.seed = seed

    def _fit(self, x: np.ndarray, y: np.ndarray, loss: Mapping[str, Any]) -> None:
        model = self.model if self.model is not None else _default_model()
        options = self.train if self.train is not None else _default_train(len(x))
        own = {**loss, **(self.loss or {})}
        self.model_: Model = train(x, y, model=model, train=options, loss=own, seed=self.seed)
        self.n_iter_ = int(self.model_.about["steps"])

    def _inputs(self, x: Any) -> np.ndarray:
        _checks.check_is_fitted(self)
        return _checks.validate_data(self, x, reset=False, dtype=np.float64)

    def route(self, X: Any) -> np.ndarray:
        """Routing probabilities r(x), (n, E)."""
        x = self._inputs(X)
        return self.model_.route(x)


def _default_model() -> dict[str, Any]:
    return {
        "experts": _EXPERTS,
        "router": {"kind": "linear"},
        "expert": {"kind": "mlp", "depth": 2, "width": _WIDTH},
        "gating": {"train": "soft", "eval": "soft"},
    }


def _default_train(rows: int) -> dict[str, Any]:
    return {"optimizer": "adam", "lr": 0.01, "batch_size": min(64, rows), "steps": 1000}


class MoERegressor(_base.RegressorMixin, _Mixture):
    """A mixture of experts for regression.

    ``model``, ``train`` and ``loss`` are those of a scenario (docs/scenario.md); left out, four experts of one
    hidden layer behind a linear router, all of them weighted, 1000 steps of Adam. ``seed`` is the index of the
    seed. Inputs and targets are taken as they are: standardise them before, as for any network.

    After ``fit``, ``model_`` is the trained ``moelab.Model``.
    """

    def fit(self, X: Any, y: Any) -> MoERegressor:
        """Trains on inputs (n, d) and targets (n,) or (n, o)."""
        x, targets = _checks.validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        self._is_one_target = targets.ndim == 1
        self._fit(x, np.asarray(targets, np.float64), {})
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Outputs under the model's evaluation gating, in the shape of the targets."""
        x = self._inputs(X)
        outputs = self.model_.predict(x)
        return outputs[:, 0] if self._is_one_target else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class MoEClassifier(_base.ClassifierMixin, _Mixture):
    """A mixture of experts for classification, by cross-entropy; otherwise as ``MoERegressor``."""

    def fit(self, X: Any, y: Any) -> MoEClassifier:
        """Trains on inputs (n, d) and classes (n,) of any kind."""
        task = (self.loss or {}).get("task", "cross_entropy")
        if task != "cross_entropy":
            raise UserError("loss.task", f"got {task!r}, needs 'cross_entropy', which a classifier is trained by")
        x, classes = _checks.validate_data(self, X, y, dtype=np.float64)
        _multiclass.check_classification_targets(classes)
        self.classes_, places = np.unique(classes, return_inverse=True)
        self._fit(x, np.eye(len(self.classes_))[places], {"task": "cross_entropy"})
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes, (n, classes); of two classes, how far the second is above the first, (n,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, (n, classes)."""
        scores = self._scores(X)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest classes, (n,)."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def _scores(self, X: Any) -> np.ndarray:
        x = self._inputs(X)
        return self.model_.predict(x)
