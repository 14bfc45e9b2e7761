"""Mixtures as scikit-learn's estimators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ._convert import shown, whole
from ._extras import extra
from .errors import UserError
from .training import Model, seed_of, train

_base: Any = extra("sklearn.base", "sklearn", "estimators")
_checks: Any = extra("sklearn.utils.validation", "sklearn", "estimators")
_multiclass: Any = extra("sklearn.utils.multiclass", "sklearn", "estimators")

_RECORDS = 50
_MOST = 10**6
_NESTED = ("model", "train", "loss")
# These, the weight decay, and the choice of steps by cross-validation were chosen on data that scikit-learn generates
# (classes, moons, circles, quantiles, blobs, Friedman's and linear regressions) and on drawn letters.
# None of them is among the data sets of bench/estimators.py.
_ROUTER = {"kind": "linear", "init_scale": 0.0}
_ROUTER_SHARE = 0.1


def _merged(defaults: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The defaults with the given values. A part of another kind replaces the whole default."""
    merged = dict(defaults)
    for name, value in (given or {}).items():
        own = merged.get(name)
        if isinstance(own, Mapping) and isinstance(value, Mapping) and value.get("kind", own.get("kind")) == own.get("kind"):
            merged[name] = _merged(own, value)
        else:
            merged[name] = value
    return merged


class _Mixture(_base.BaseEstimator):
    """What both estimators share: parameters, scaling, early stopping and the trained model."""

    def __init__(
        self,
        n_experts: int = 4,
        *,
        hidden: int | tuple[int, ...] = 64,
        router: Any = "linear",
        gating: Any = "soft",
        learning_rate: float = 0.003,
        max_steps: int = 3000,
        batch_size: int = 64,
        weight_decay: float = 0.002,
        early_stopping: bool = True,
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 10,
        standardize: bool = True,
        random_state: Any = None,
        verbose: bool = False,
        model: Mapping[str, Any] | None = None,
        train: Mapping[str, Any] | None = None,
        loss: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.n_experts = n_experts
        self.hidden = hidden
        self.router = router
        self.gating = gating
        self.learning_rate = learning_rate
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.standardize = standardize
        self.random_state = random_state
        self.verbose = verbose
        self.model = model
        self.train = train
        self.loss = loss
        self.seed = seed

    def set_params(self, **params: Any) -> Any:
        """Sets parameters. ``model__experts=8`` sets a field of ``model``.

        The same works for ``train`` and ``loss``.
        """
        plain: dict[str, Any] = {}
        for name, value in params.items():
            whole_name, _, field = name.partition("__")
            if field and whole_name in _NESTED:
                fields = dict(plain.get(whole_name, getattr(self, whole_name)) or {})
                *parents, last = field.split("__")
                inner = fields
                for parent in parents:
                    inner[parent] = inner = dict(inner.get(parent) or {})
                inner[last] = value
                plain[whole_name] = fields
            else:
                plain[name] = value
        return super().set_params(**plain)

    def _model_options(self) -> dict[str, Any]:
        widths = self.hidden if isinstance(self.hidden, tuple) else (self.hidden,)
        if len({whole(width, "hidden", 1, _MOST) for width in widths}) != 1:
            raise UserError("hidden", f"got {shown(self.hidden)}, needs a width, or equal widths of several layers")
        gating = self.gating
        if gating == "top1":  # trained by the soft one, since it gives the router no gradient
            gating = {"train": "soft", "eval": "top1"}
        elif not isinstance(gating, Mapping) or "train" not in gating:
            gating = {"train": gating, "eval": gating}
        router = self.router
        if isinstance(router, str):
            router = _ROUTER if router == "linear" else {"kind": router}
        defaults = {
            "experts": whole(self.n_experts, "n_experts", 1, _MOST),
            "router": router,
            "expert": {"kind": "mlp", "depth": len(widths) + 1, "width": widths[0]},
            "gating": gating,
        }
        return _merged(defaults, self.model)

    def _train_options(self, rows: int) -> dict[str, Any]:
        given = dict(self.train or {})
        optimizer = given.get("optimizer", "adam")
        steps = whole(self.max_steps, "max_steps", 1, 10**9)
        defaults: dict[str, Any] = {"optimizer": "adam", "steps": steps}
        if (optimizer.get("kind") if isinstance(optimizer, Mapping) else optimizer) != "lbfgs":
            defaults |= {
                "lr": self._rates(),
                "batch_size": min(whole(self.batch_size, "batch_size", 1, _MOST), rows),
                "weight_decay": self.weight_decay,
            }
        if "epochs" in given:
            del defaults["steps"]
        options = {**defaults, **given}
        if isinstance(options.get("steps"), int):
            options.setdefault("record_every", max(1, options["steps"] // _RECORDS))
        return options

    def _rates(self) -> Any:
        rate = self.learning_rate
        if isinstance(rate, (int, float)) and not isinstance(rate, bool):
            return {"expert": rate, "router": _ROUTER_SHARE * rate}
        return rate

    def _parts(self, rows: int, seed: int) -> list[np.ndarray]:
        """Parts of the rows. Each is held out once."""
        share = self.validation_fraction
        if not isinstance(share, float) or not 0 < share <= 0.5:
            raise UserError("validation_fraction", f"got {shown(share)}, needs a number in (0, 0.5]")
        return np.array_split(np.random.default_rng(seed).permutation(rows), min(rows, round(1 / share)))

    def _curve(self, name: str, eval_set: Any, patience: int, fit: Callable[..., Model]) -> tuple[Model, list[float]]:
        """A training that ends ``patience`` records after its lowest held-out loss, and these losses."""
        losses: list[float] = []

        def look(row: dict[str, float], _: Model) -> bool:
            self._tell(name, row)
            losses.append(row["eval_loss"] if np.isfinite(row["eval_loss"]) else np.inf)
            return len(losses) - int(np.argmin(losses)) > patience

        return fit(eval_set=eval_set, callback=look), losses

    def _tell(self, name: str, row: dict[str, float]) -> None:
        if self.verbose:
            told = ", ".join(f"{key} {value:.6g}" for key, value in row.items() if key != "step")
            sys.stdout.write(f"{name}step {row['step']}: {told}\n")

    def _fit(self, x: np.ndarray, y: np.ndarray, loss: Mapping[str, Any]) -> None:
        for name in _NESTED:
            if not isinstance(getattr(self, name), (Mapping, type(None))):
                raise UserError(name, f"got {shown(getattr(self, name))}, needs a dict, as in a scenario")
        if self.random_state is not None and self.seed != 0:
            raise UserError("random_state", "cannot be combined with seed; needs one of them")
        seed = self.seed if self.random_state is None else seed_of(self.random_state)
        self._set_scale(x)
        inputs = self._scaled(x)
        patience = whole(self.n_iter_no_change, "n_iter_no_change", 1, _MOST)
        model, own_loss = self._model_options(), _merged(loss, self.loss)
        record_every = self._train_options(len(x)).get("record_every")

        def fit(rows: np.ndarray, **watched: Any) -> Model:
            # All trainings have their records at the same steps.
            options = self._train_options(len(rows)) | ({"record_every": record_every} if record_every else {})
            return train(inputs[rows], y[rows], model=model, train=options, loss=own_loss, seed=seed, **watched)

        last = np.inf
        if self.early_stopping and len(x) > 1:
            parts = self._parts(len(x), seed)
            curves: list[list[float]] = []
            steps: list[float] = []
            for place, held in enumerate(parts):
                name = f"part {place + 1} of {len(parts)}, "
                kept = np.setdiff1d(np.arange(len(x)), held)
                trained, losses = self._curve(name, (inputs[held], y[held]), patience, partial(fit, kept))
                curves.append(losses)
                steps = [row["step"] for row in trained.records]
            shortest = min(len(losses) for losses in curves)
            mean = np.mean([losses[:shortest] for losses in curves], axis=0)
            self.validation_loss_curve_ = [float(value) for value in mean]
            last = steps[int(np.argmin(mean))]

        def look(row: dict[str, float], _: Model) -> bool:
            # A schedule goes by all steps, so training ends by the callback.
            self._tell("", row)
            return row["step"] >= last

        self.model_: Model = fit(np.arange(len(x)), callback=look)
        self.n_iter_ = int(self.model_.about["steps"])
        self.loss_curve_ = [row["train_loss"] for row in self.model_.records]
        self.loss_ = self.loss_curve_[-1]

    def _set_scale(self, x: np.ndarray) -> None:
        self._shift = x.mean(axis=0) if self.standardize else np.zeros(x.shape[1])
        spread = x.std(axis=0) if self.standardize else np.ones(x.shape[1])
        self._spread = np.where(spread > 0, spread, 1.0)

    def _scaled(self, x: np.ndarray) -> np.ndarray:
        return (x - self._shift) / self._spread

    def _inputs(self, x: Any) -> np.ndarray:
        _checks.check_is_fitted(self)
        return self._scaled(_checks.validate_data(self, x, reset=False, dtype=np.float64))

    def route(self, X: Any) -> np.ndarray:
        """Routing probabilities r(x), (n, E)."""
        x = self._inputs(X)
        return self.model_.route(x)


class MoERegressor(_base.RegressorMixin, _Mixture):
    """A mixture of experts for regression. Experts are MLPs behind a router, trained with Adam.

    :param n_experts: The number of experts.
    :param hidden: The width of an expert's hidden layer. A tuple of equal widths gives several layers.
    :param router: A kind of router ("linear", "mlp", "cosine", …), a dict as in a scenario, or one of
        ``moelab.routers``. A linear router starts at zero, so that all experts begin with equal weight.
    :param gating: "soft" weights every expert. "top1" trains softly and predicts with the argmax expert. A dict names
        another gating, ``{"kind": "topk", "k": 2}``, or two: ``{"train": …, "eval": …}``.
    :param learning_rate: The rate of the experts. The router has a tenth of it. A dict ``{"expert": …, "router": …}``
        sets both.
    :param max_steps: The largest number of training steps.
    :param batch_size: Rows of a step, or all rows if they are fewer.
    :param weight_decay: The decay of the weights.
    :param early_stopping: Whether to choose the number of steps by cross-validation. Each of 1 / validation_fraction
        trainings leaves out another part of the rows. The step with the lowest mean held-out loss is chosen. A last
        training on all rows takes that many steps.
    :param validation_fraction: The share of the rows in a part, at most 0.5.
    :param n_iter_no_change: A training ends after this many records without a lower held-out loss. A record is a
        fiftieth of ``max_steps``.
    :param standardize: Whether to standardise inputs and regression targets before training.
    :param random_state: A whole number, or a generator of NumPy. The default is ``seed``, so fits repeat.
    :param verbose: Whether to print a line at each record.
    :param model: Further fields as in a scenario (docs/scenario.md). They override the parameters above. A search sets
        them as ``model__experts``.
    :param train: Further fields of training.
    :param loss: Further fields of the loss.
    :param seed: Index of the seed of initial weights and batches.

    After ``fit``, ``model_`` is the trained ``moelab.Model`` of scaled data. ``loss_curve_`` has the training loss at
    each record, and ``loss_`` the last one. With early stopping, ``validation_loss_curve_`` has the mean held-out losses.
    ``n_iter_`` counts the steps.
    """

    def fit(self, X: Any, y: Any) -> MoERegressor:
        """Trains on inputs (n, d) and targets (n,) or (n, o)."""
        x, targets = _checks.validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        self._is_one_target = targets.ndim == 1
        targets = np.asarray(targets, np.float64).reshape(len(x), -1)
        self._target_shift = targets.mean(axis=0) if self.standardize else np.zeros(targets.shape[1])
        spread = targets.std(axis=0) if self.standardize else np.ones(targets.shape[1])
        self._target_spread = np.where(spread > 0, spread, 1.0)
        self._fit(x, (targets - self._target_shift) / self._target_spread, {})
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Outputs under the model's evaluation gating, in the shape of the targets."""
        x = self._inputs(X)
        outputs = self.model_.predict(x) * self._target_spread + self._target_shift
        return outputs[:, 0] if self._is_one_target else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class MoEClassifier(_base.ClassifierMixin, _Mixture):
    # The docstring follows below.

    def fit(self, X: Any, y: Any) -> MoEClassifier:
        """Trains on inputs (n, d) and classes (n,) of any kind."""
        task = (self.loss if isinstance(self.loss, Mapping) else {}).get("task", "cross_entropy")
        if task != "cross_entropy":
            raise UserError("loss.task", f"got {task!r}, needs 'cross_entropy', which a classifier is trained by")
        x, classes = _checks.validate_data(self, X, y, dtype=np.float64)
        _multiclass.check_classification_targets(classes)
        self.classes_, places = np.unique(classes, return_inverse=True)
        self._fit(x, np.eye(len(self.classes_))[places], {"task": "cross_entropy"})
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes, (n, classes).

        With two classes the result is (n,): the score of the second class minus the score of the first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, (n, classes)."""
        scores = self._scores(X)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The classes with the largest scores, (n,)."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def _scores(self, X: Any) -> np.ndarray:
        x = self._inputs(X)
        return self.model_.predict(x)


MoEClassifier.__doc__ = str(MoERegressor.__doc__).replace("for regression", "for classification by cross-entropy", 1)
