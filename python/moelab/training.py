"""Mixtures trained on arrays in memory."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _core
from ._border import array, call, folder, json_text, shown, text, whole
from .errors import UserError
from .routers import PythonRouter

_FORMAT = 1
_ABOUT = "moelab_model"


class Model:
    """A trained model. Nothing changes it, so that several threads may ask it at once."""

    def __init__(self, trained: _core.TrainedModel, spec: dict[str, Any]) -> None:
        self._trained = trained
        self._spec = spec

    @property
    def spec(self) -> dict[str, Any]:
        """``{"model", "loss", "train", "seed"}`` as they were given."""
        return json.loads(json.dumps(self._spec))

    @property
    def about(self) -> dict[str, Any]:
        """How training ended ("state": "done" or "diverged", after "steps"), experts, layers and sizes."""
        return json.loads(self._trained.about())

    def predict(self, x: Any, *, gating: str = "eval", labels: Any = None) -> np.ndarray:
        """Outputs (n, o), or (n, s, o) of a model with a target for each token.

        :param x: inputs (n, d) or (n, s, d), as in training
        :param gating: "eval", the model's own; "train"; "soft", every expert weighted by its probability;
            "top1", the likeliest expert alone
        :param labels: true clusters (n,) or (n, s), for routers that look at them
        :raises UserError: for inputs that do not fit, and without labels that the router needs
        """
        return call(self._trained.predict, array(x, "x"), text(gating, "gating"), _labels(labels))

    def route(self, x: Any, *, layer: int = 0, labels: Any = None) -> np.ndarray:
        """Routing probabilities r(x), (n, E), or (n, s, E) of sequences.

        :param x: inputs (n, d) or (n, s, d), as in training
        :param layer: of a stack
        :param labels: true clusters (n,) or (n, s), for routers that look at them
        :raises UserError: for inputs that do not fit, a layer that there is not, a model without a router, and
            without labels that the router needs
        """
        return call(self._trained.route, array(x, "x"), whole(layer, "layer", 0, 2**31 - 1), _labels(labels))

    def arrays(self) -> dict[str, np.ndarray]:
        """Parameters and state by name, as ``"save": ["weights"]`` of a scenario keeps them: enough to predict.
        They are copies."""
        return self._trained.arrays()

    def save(self, file: Any) -> None:
        """Writes the model as one file of NumPy's .npz format, which holds no code.

        :raises UserError: for a model whose router is a function of Python
        :raises OSError: where the disk refuses
        """
        self._refuse_python_router()
        spec = {"format": _FORMAT, "spec": self._spec, "about": self.about}
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
    def load(cls, file: Any) -> Model:
        """Reads what ``save`` wrote; it predicts the same, to the last bit.

        :raises UserError: for a file that is no such model
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
            spec, about = given["spec"], given["about"]
            texts = json_text(spec, "file"), json_text(about, "file")
        except UserError:
            raise
        except Exception as error:  # a damaged archive raises what its damage leads to
            raise UserError("file", f"{place!r} holds no model of moelab: {error}") from None
        for name, values in arrays.items():
            if values.dtype != np.float64:
                raise UserError("file", f"{name} has dtype {values.dtype}, needs float64")
        return cls(call(_core.restore, *texts, arrays), spec)

    def _refuse_python_router(self) -> None:
        if "python_router" in self._spec:
            raise UserError("model.router", "is a function of Python, which is not saved; keep arrays() and train anew")

    def __reduce__(self) -> tuple[Any, ...]:
        self._refuse_python_router()
        return (_restored, (self._spec, self.about, self.arrays()))

    def __repr__(self) -> str:
        about = self.about
        return (
            f"<moelab.Model: {about['experts']} experts, {about['input_dim']} → {about['output_dim']}, "
            f"{about['state']} after {about['steps']} steps>"
        )


def _restored(spec: dict[str, Any], about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
    return Model(_core.restore(json.dumps(spec), json.dumps(about), arrays), spec)


def _labels(labels: Any) -> Any:
    return None if labels is None else array(labels, "labels")


def _options(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(path, f"got {shown(value)}, needs a dict, as in a scenario")
    json_text(value, path)
    return value


def _split_router(model: Any) -> tuple[Any, PythonRouter | None]:
    """The options of a model, and its router where that is one of ``moelab.routers``: the compiled part puts it
    in the place of the linear one that then stands in the options."""
    if isinstance(model, Mapping) and isinstance(model.get("router"), PythonRouter):
        return {**model, "router": {"kind": "linear"}}, model["router"]
    return model, None


def train(
    x: Any,
    y: Any,
    *,
    model: Mapping[str, Any],
    train: Mapping[str, Any],
    labels: Any = None,
    loss: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Model:
    """Trains a model on arrays. With the training set that ``sample`` draws of a scenario with root seed 1, and
    its ``model``, ``train``, ``loss`` and seed, the parameters are those of the scenario's cell, to the last bit.
    Ctrl-C ends it as KeyboardInterrupt.

    :param x: inputs (n, d), or (n, s, d) of sequences
    :param y: targets (n, o), (n,), or (n, s, o) of sequences; with loss "cross_entropy" indicators of o classes
    :param model: as in a scenario: ``{"experts": 16, "router": {"kind": "linear"}, …}``; its router may be one
        of ``moelab.routers``
    :param train: as in a scenario: ``{"optimizer": "adam", "lr": …, "batch_size": …, "steps": …}``
    :param labels: latent clusters (n,), or (n, s) of sequences, for routers that look at them, which cannot
        do without
    :param loss: as in a scenario; "mse" where it is left out
    :param seed: index of the seed of initial weights and batches
    :raises UserError: for arrays and options that do not fit, at the name of the argument ("x") or the path of
        the option ("model.router.kind")
    """
    model, router = _split_router(model)
    spec = {
        "model": dict(_options(model, "model")),
        "loss": dict(_options(loss, "loss")) if loss is not None else {},
        "train": dict(_options(train, "train")),
        "seed": whole(seed, "seed", 0, 2**31 - 1),
    }
    if router is not None:
        spec["python_router"] = {"handle": router.handle, "trainable": router.trainable}
    written = json_text(spec, "train")
    trained = call(_core.train, written, array(x, "x"), array(y, "y"), _labels(labels))
    own = Model(trained, json.loads(written))
    if own.about["state"] == "diverged":
        warnings.warn(
            f"training diverged after {own.about['steps']} steps; try a smaller learning rate", stacklevel=2
        )
    return own
