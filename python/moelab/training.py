"""Mixtures trained on arrays in memory."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._convert import array, call, folder, json_text, shown, text, whole
from ._extras import extra
from .errors import UserError
from .routers import PythonRouter, TorchRouter

if TYPE_CHECKING:
    import pandas

_FORMAT = 1
_ABOUT = "moelab_model"
_TRAINABLE = "trainable_router"
_MOST_SEED = 2**31 - 1
_MOST_CLASSES = 10**5


class Model:
    """A trained model. It never changes, so several threads may use it at once."""

    def __init__(
        self,
        trained: _core.TrainedModel,
        spec: dict[str, Any],
        router: PythonRouter | None = None,
        records: list[dict[str, float]] | None = None,
    ) -> None:
        self._trained = trained
        self._spec = spec
        self._router = router
        self._records = records or []

    @property
    def spec(self) -> dict[str, Any]:
        """The options ``{"model", "loss", "train", "seed"}`` as they were given."""
        return json.loads(json.dumps(self._spec))

    @property
    def about(self) -> dict[str, Any]:
        """How training ended, and the sizes of the model.

        ``state`` is "done" or "diverged", after ``steps``. Further entries count experts, layers, inputs and outputs.
        """
        return json.loads(self._trained.about())

    def predict(self, x: Any, *, gating: str = "eval", labels: Any = None) -> np.ndarray:
        """Outputs (n, o), or (n, s, o) of a model with a target for each token.

        :param x: Inputs (n, d) or (n, s, d), as in training.
        :param gating: "eval" or "train", the model's own gatings. "soft" weights every expert by its probability.
            "top1" uses the argmax expert.
        :param labels: True clusters (n,) or (n, s). Some routers need them.
        :raises UserError: If the inputs do not fit, or needed labels are missing.
        """
        return call(self._trained.predict, array(x, "x"), text(gating, "gating"), _labels(labels))

    def route(self, x: Any, *, layer: int = 0, labels: Any = None) -> np.ndarray:
        """Routing probabilities r(x), (n, E), or (n, s, E) of sequences.

        :param x: Inputs (n, d) or (n, s, d), as in training.
        :param layer: The layer of a stack.
        :param labels: True clusters (n,) or (n, s). Some routers need them.
        :raises UserError: If the inputs do not fit, the layer does not exist, the model has no router, or labels are
            missing.
        """
        return call(self._trained.route, array(x, "x"), whole(layer, "layer", 0, 2**31 - 1), _labels(labels))

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies of the parameters and the state by name.

        They suffice to predict. A scenario with ``"save": ["weights"]`` saves the same arrays.
        """
        return self._trained.arrays()

    @property
    def history(self) -> pandas.DataFrame:
        """One row for each record of training (``train.record_every`` steps). Needs pandas.

        ``moelab.train`` describes the columns.
        """
        return extra("pandas", "frames", "frames").DataFrame(self.records)

    @property
    def records(self) -> list[dict[str, float]]:
        """The rows of ``history`` as dicts."""
        return [dict(record) for record in self._records]

    def router_state_dict(self, *, layer: int = 0) -> dict[str, Any]:
        """The trained parameters of a router of ``moelab.routers``.

        For ``routers.torch`` they are the module's state: ``module.load_state_dict(model.router_state_dict())``. For
        other routers the result is ``{"parameters": w}``.

        :param layer: The layer of a stack.
        :raises UserError: If the model has another router, or the layer does not exist.
        """
        if self._router is None:
            raise UserError("model.router", "is none of moelab.routers; arrays() has its parameters")
        arrays = self.arrays()
        name = f"router_parameters_layer{whole(layer, 'layer', 0, 2**31 - 1)}"
        if layer == 0 and name not in arrays:
            name = "router_parameters"
        if name not in arrays:
            raise UserError("layer", f"got {layer}, needs 0 to {self.about['layers'] - 1}")
        return self._router.state_dict(arrays[name])

    def save(self, file: Any) -> None:
        """Writes the model as one .npz file of NumPy. The file holds no code.

        :raises UserError: If the router is a Python function.
        :raises OSError: If the disk refuses.
        """
        self._refuse_functions()
        spec = {"format": _FORMAT, "spec": self._spec, "about": self.about, "records": self._records}
        named: dict[str, Any] = {**self.arrays(), _ABOUT: np.array(json.dumps(spec))}
        place = folder(file, "file")
        beside = f"{place}.{os.getpid()}.part"
        try:
            with open(beside, "wb") as stream:
                np.savez(stream, **named)
            os.replace(beside, place)
        finally:
            if os.path.exists(beside):
                os.unlink(beside)

    @classmethod
    def load(cls, file: Any, *, router: PythonRouter | None = None) -> Model:
        """Reads a file of ``save``. The model predicts the same numbers, to the last bit.

        :param router: ``moelab.routers.torch`` of a module of the same shape. A model with a PyTorch router needs it.
        :raises UserError: If the file holds no model, or if the router is missing.
        """
        place = folder(file, "file")
        if not os.path.isfile(place):
            raise UserError("file", f"no file {place!r}")
        with open(place, "rb") as stream:
            content = io.BytesIO(stream.read())
        try:
            with np.load(content, allow_pickle=False) as stored:
                given = json.loads(str(stored[_ABOUT][()]))
                arrays = {name: np.ascontiguousarray(stored[name]) for name in stored.files if name != _ABOUT}
            if given["format"] != _FORMAT:
                raise UserError("file", f"has format {given['format']}; this version reads {_FORMAT}")
            spec, about, records = given["spec"], given["about"], given.get("records", [])
            texts = json_text(spec, "file"), json_text(about, "file")
        except UserError:
            raise
        except Exception as error:  # a damaged archive raises what its damage leads to
            raise UserError("file", f"{place!r} holds no model of moelab: {error}") from None
        for name, values in arrays.items():
            if values.dtype != np.float64:
                raise UserError("file", f"{name} has dtype {values.dtype}, needs float64")
        if isinstance(spec, dict) and _TRAINABLE in spec and router is None:
            raise UserError("router", "missing; the file's model has a router of PyTorch: give routers.torch(module)")
        return cls(call(_core.restore, *texts, arrays, _functions(router)), spec, router, records)

    def _refuse_functions(self) -> None:
        if self._router is not None and not isinstance(self._router, TorchRouter):
            raise UserError("model.router", "is a function of Python, which is not saved; keep arrays() and train anew")

    def __reduce__(self) -> tuple[Any, ...]:
        self._refuse_functions()
        return (_restored, (self._spec, self.about, self.arrays(), self._router, self._records))

    def __copy__(self) -> Model:
        return Model(self._trained, self._spec, self._router, self._records)

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.__copy__()  # nothing changes it

    def __repr__(self) -> str:
        about = self.about
        return (
            f"<moelab.Model: {about['experts']} experts, {about['input_dim']} → {about['output_dim']}, "
            f"{about['state']} after {about['steps']} steps>"
        )


def _restored(
    spec: dict[str, Any],
    about: dict[str, Any],
    arrays: dict[str, np.ndarray],
    router: PythonRouter | None,
    records: list[dict[str, float]],
) -> Model:
    restored = _core.restore(json.dumps(spec), json.dumps(about), arrays, _functions(router))
    return Model(restored, spec, router, records)


def _functions(router: PythonRouter | None) -> _core.RegisteredRouter | None:
    return None if router is None else router.functions


def _labels(labels: Any) -> Any:
    return None if labels is None else array(labels, "labels")


def _options(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(path, f"got {shown(value)}, needs a dict, as in a scenario")
    json_text(value, path)
    return value


def _split_router(model: Any) -> tuple[Any, PythonRouter | None]:
    """The options of a model, and its router if that is one of ``moelab.routers``.

    The options then name a linear router, which the compiled part replaces.
    """
    if not isinstance(model, Mapping):
        return model, None
    router = model.get("router")
    if isinstance(router, PythonRouter):
        return {**model, "router": {"kind": "linear"}}, router
    if callable(router):
        raise UserError(
            "model.router",
            f"got {shown(router)}, needs moelab.routers.torch(module), moelab.routers.python(forward, backward), or a dict",
        )
    return model, None


class _History:
    """Measures the model at each record. The callback of the user can end training."""

    def __init__(self, sets: dict[str, tuple[Any, np.ndarray, Any]], cross_entropy: bool, callback: Any) -> None:
        self.records: list[dict[str, float]] = []
        self._sets = sets
        self._cross_entropy = cross_entropy
        self._callback = callback
        self.model_of: Callable[[_core.TrainedModel], Model] | None = None

    def __call__(self, step: int, trained: _core.TrainedModel) -> bool:
        row: dict[str, float] = {"step": step}
        for name, (x, y, labels) in self._sets.items():
            gating = "train" if name == "train" else "eval"
            row |= {f"{name}_{metric}": value for metric, value in self._measured(trained, x, y, labels, gating)}
        self.records.append(row)
        if self._callback is None or self.model_of is None:
            return False
        return bool(self._callback(dict(row), self.model_of(trained)))

    def _measured(
        self, trained: _core.TrainedModel, x: Any, y: np.ndarray, labels: Any, gating: str
    ) -> list[tuple[str, float]]:
        width = 1 if y.ndim == 1 else y.shape[-1]
        outputs = trained.predict(x, gating, labels).reshape(-1, width)
        names = ("loss", "accuracy" if self._cross_entropy else "nmse")
        if not np.isfinite(outputs).all():
            return [(name, float("nan")) for name in names]
        told = json.loads(_core.task_metrics(outputs, y.reshape(-1, width), self._cross_entropy, False))
        return [(name, told.get(name, float("nan"))) for name in names]


def seed_of(random_state: Any, path: str = "random_state") -> int:
    """The given whole number, or one that the given NumPy generator draws."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_MOST_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_MOST_SEED))
    return whole(random_state, path, 0, _MOST_SEED)


def _indicators(y: np.ndarray, path: str, classes: int | None = None) -> np.ndarray:
    """Targets of cross-entropy: indicators as they are, and whole numbers (n,) as indicators of that many classes."""
    flat = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    is_one_class = y.ndim == 2 and bool((flat == 1).all())  # the indicator of the only class
    if flat.ndim != 1 or flat.size == 0 or is_one_class:
        return y
    wrong = ~((flat >= 0) & (flat < _MOST_CLASSES) & (flat == np.floor(flat)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UserError(
            path,
            f"holds {flat[row]} in row {row}; needs classes (n,) as whole numbers from 0 to {_MOST_CLASSES - 1}, or "
            "indicators (n, classes)",
        )
    return np.eye(max(classes or 2, int(flat.max()) + 1))[flat.astype(np.int64)]


def _eval_set(eval_set: Any) -> tuple[Any, np.ndarray, Any]:
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
        raise UserError("eval_set", f"got {shown(eval_set)}, needs a pair (x, y), or (x, y, labels)")
    x, y, *labels = eval_set
    return array(x, "eval_set.x"), array(y, "eval_set.y"), _labels(labels[0] if labels else None)


def _check_eval_set(eval_x: np.ndarray, eval_y: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Refuses an evaluation set that does not fit the training set. Wrong training sets are refused later."""
    if x.ndim not in (2, 3) or y.ndim not in (1, 2, 3):
        return
    if eval_x.ndim != x.ndim or eval_x.shape[-1] != x.shape[-1]:
        needed = ", ".join(("n", "s")[: x.ndim - 1])
        raise UserError("eval_set.x", f"has shape {eval_x.shape}, needs ({needed}, {x.shape[-1]})")
    # Targets of one column may lack their last axis.
    width = () if y.ndim == 1 else (y.shape[-1],)
    rows = eval_x.shape[:2] if y.ndim == 3 and x.ndim == 3 else eval_x.shape[:1]
    allowed = [(*rows, *width)]
    if width in ((), (1,)):
        allowed = [(*rows, *width), rows, (*rows, 1)]
    if eval_y.shape not in allowed:
        raise UserError("eval_set.y", f"has shape {eval_y.shape}, needs {allowed[0]}")
    for path, values in (("eval_set.x", eval_x), ("eval_set.y", eval_y)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            place = tuple(np.argwhere(~np.isfinite(values))[0])
            raise UserError(path, f"the array holds {values[place]} in row {place[0]}")


def train(
    x: Any,
    y: Any,
    *,
    model: Mapping[str, Any],
    train: Mapping[str, Any],
    labels: Any = None,
    loss: Mapping[str, Any] | None = None,
    seed: int = 0,
    random_state: Any = None,
    eval_set: Any = None,
    callback: Callable[[dict[str, float], Model], Any] | None = None,
    history: bool = True,
) -> Model:
    """Trains a model on arrays. Ctrl-C ends training with KeyboardInterrupt.

    ``sample`` draws the training set of a scenario with root seed 1. With that set, and the scenario's ``model``,
    ``train``, ``loss`` and seed, the parameters equal the scenario's cell to the last bit.

    :param x: Inputs (n, d), or (n, s, d) of sequences. Language models, whose inputs are ids of tokens, are trained by
        ``run`` alone.
    :param y: Targets (n, o), (n,), or (n, s, o) of sequences. The loss "cross_entropy" takes indicators of o classes,
        or classes (n,) as whole numbers from 0.
    :param model: The section of a scenario: ``{"experts": 16, "router": {"kind": "linear"}, …}``. The router may be
        one of ``moelab.routers``.
    :param train: The section of a scenario: ``{"optimizer": "adam", "lr": …, "batch_size": …, "steps": …}``.
    :param labels: Latent clusters (n,), or (n, s) of sequences. Some routers need them.
    :param loss: The section of a scenario. The default task is "mse".
    :param seed: Index of the seed of initial weights and batches.
    :param random_state: The name of ``seed`` in scikit-learn. A whole number, or a generator that draws one.
    :param eval_set: A pair (x, y), or (x, y, labels). ``history`` measures it under the evaluation gating.
        Its arrays have the columns of x and y, and their values are finite.
    :param callback: A function of a record's row and of the ``Model`` at that step. A true answer ends training.
    :param history: Whether to measure at each record. ``Model.history`` then has ``step``, ``train_loss`` and
        ``train_nmse`` under the training gating. Classes have ``train_accuracy`` instead of ``train_nmse``. The
        columns of ``eval_set`` begin with ``eval_``.
    :raises UserError: If arrays or options do not fit. ``path`` is the argument ("x") or the option
        ("model.router.kind").
    """
    if random_state is not None:
        if seed != 0:
            raise UserError("random_state", "cannot be combined with seed; needs one of them")
        seed = seed_of(random_state)
    if callback is not None and not callable(callback):
        raise UserError("callback", f"got {shown(callback)}, needs a function of a row and a model")
    model, router = _split_router(model)
    spec = {
        "model": dict(_options(model, "model")),
        "loss": dict(_options(loss, "loss")) if loss is not None else {},
        "train": dict(_options(train, "train")),
        "seed": whole(seed, "seed", 0, _MOST_SEED),
    }
    if router is not None:
        spec[_TRAINABLE] = router.trainable
    written = json_text(spec, "train")
    own_spec = json.loads(written)
    is_cross_entropy = own_spec["loss"].get("task") == "cross_entropy"
    targets = array(y, "y")
    targets = _indicators(targets, "y") if is_cross_entropy else targets
    given = array(x, "x"), targets, _labels(labels)
    records: _History | None = None
    if history or callback is not None or eval_set is not None:
        sets = {"train": given}
        if eval_set is not None:
            eval_x, eval_y, eval_labels = _eval_set(eval_set)
            if is_cross_entropy and targets.ndim > 1:
                eval_y = _indicators(eval_y, "eval_set.y", targets.shape[-1])
            _check_eval_set(eval_x, eval_y, given[0], targets)
            sets["eval"] = eval_x, eval_y, eval_labels
        records = _History(sets, is_cross_entropy, callback)
        rows = records.records
        records.model_of = lambda trained: Model(trained, own_spec, router, list(rows))
    with router.inside() if router is not None else nullcontext():
        trained = call(_core.train, written, *given, _functions(router), records)
    own = Model(trained, own_spec, router, None if records is None else records.records)
    if own.about["state"] == "diverged":
        warnings.warn(
            f"training diverged after {own.about['steps']} steps; try a smaller learning rate", stacklevel=2
        )
    return own
