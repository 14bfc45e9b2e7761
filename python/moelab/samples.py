"""The data that the cells of a scenario draw, and the metrics of outputs on them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import _core
from ._border import ScenarioLike, array, call, given_scenario, settings, text, whole
from ._extras import extra
from .analysis import analyze
from .errors import UserError

_ARRAYS = ("x", "y", "labels", "test_x", "test_y", "test_labels")


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """The data that a cell of a scenario draws.

    ``x`` (n, d) inputs, ``y`` (n, o) targets, ``labels`` (n,) latent clusters of the training set, None where
    training takes its gradients from the population; ``test_x``, ``test_y``, ``test_labels`` of the test set.
    Of sequences x is (n, s, d), labels (n, s), y (n, o) or (n, s, o); a row of several parts has labels (n, r).
    Tokens are ids: x and y (n, s), int64.
    """

    x: Any
    y: Any
    labels: Any
    test_x: Any
    test_y: Any
    test_labels: Any
    name: str
    cell: str
    arm: str
    seed: int
    point: dict[str, Any] = field(default_factory=dict)
    cross_entropy: bool = False
    """Whether the scenario trains with cross-entropy."""
    classes: bool = False
    """Whether targets are classes."""
    eval_gating: str = ""
    """The gating that the scenario evaluates with."""
    checksum: str = ""
    """Of the arrays as they were drawn. ``Run.add_arm`` refuses rows whose checksum is not the plan's."""

    def torch(self, dtype: Any = None, device: Any = None) -> Sample:
        """The same sample with PyTorch tensors.

        :param dtype: of inputs and targets; ``torch.get_default_dtype()`` where it is left out, which ``nn.Linear``
            takes. Labels and ids stay integers.
        :param device: where the tensors lie; the processor where it is left out
        """
        torch = extra("torch", "torch", "samples as tensors")
        real = torch.get_default_dtype() if dtype is None else dtype

        def tensor(values: np.ndarray) -> Any:
            given = torch.from_numpy(np.ascontiguousarray(values))
            return given.to(device=device, dtype=real if given.is_floating_point() else None)

        return self._with(tensor)

    def jax(self, dtype: Any = None) -> Sample:
        """The same sample with arrays of JAX.

        :param dtype: of inputs and targets; float32 where it is left out. Labels and ids stay integers.
        """
        numpy = extra("jax.numpy", "jax", "samples as JAX arrays")
        real = np.float32 if dtype is None else dtype

        def as_jax(values: np.ndarray) -> Any:
            return numpy.asarray(values, dtype=real if values.dtype.kind == "f" else np.int32)

        return self._with(as_jax)

    def numpy(self, dtype: Any = np.float64) -> Sample:
        """The same sample with NumPy arrays.

        :param dtype: of inputs and targets. Labels and ids stay integers.
        """

        def as_numpy(values: np.ndarray) -> Any:
            return values.astype(dtype, copy=False) if values.dtype.kind == "f" else values

        return self._with(as_numpy)

    def _with(self, converted: Any) -> Sample:
        own: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        for name, value in own.items():
            own[name] = None if value is None else converted(array(value, name))
        return replace(self, **own)

    @property
    def place(self) -> dict[str, Any]:
        """``{"seed": …, swept path: …, "checksum": …}``: the first columns of a row for ``Run.add_arm``."""
        return {"seed": self.seed, **self.point, "checksum": self.checksum}

    def measure(
        self, outputs_top1: Any = None, outputs_soft: Any = None, probs: Any = None, logits: Any = None
    ) -> dict[str, float]:
        """The metrics that arrays about the test set allow, by the program's definitions and names.

        :param outputs_top1: outputs of the argmax expert, in the shape of ``test_y``; of tokens that are ids, logits
            (n, s, ids). They give ``test_loss_top1``, ``test_nmse_top1`` and ``test_accuracy_top1``.
        :param outputs_soft: outputs of all experts, weighted by their probabilities. They give ``…_soft``.
            Outputs under the scenario's evaluation gating (top1 or soft) give ``…_eval``, too.
        :param probs: routing probabilities r(x) (n, E), or (n, s, E) of sequences; or
        :param logits: scores whose softmax they are. They give the metrics of ``moelab.analyze``.
        :raises UserError: for an array that does not fit, and without any array
        """
        return self.measured(outputs_top1, outputs_soft, probs, logits)

    def measured(
        self,
        outputs_top1: Any = None,
        outputs_soft: Any = None,
        probs: Any = None,
        logits: Any = None,
        *,
        points: bool = True,
    ) -> dict[str, float]:
        """``measure``, without metrics of distances between inputs unless ``points``: they take the most time."""
        values: dict[str, float] = {}
        for ending, outputs in (("top1", outputs_top1), ("soft", outputs_soft)):
            if outputs is not None:
                told = self._task(outputs, ending)
                values |= {f"test_{name}_{ending}": value for name, value in told.items()}
                if ending == self.eval_gating:
                    values |= {f"test_{name}_eval": told[name] for name in told if name != "nmse"}
        if probs is not None or logits is not None:
            inputs = array(self.test_x, "test_x")
            given: dict[str, Any] = {"labels": array(self.test_labels, "test_labels")}
            if points and inputs.dtype.kind == "f":  # ids are names, not points
                given["inputs"] = inputs.astype(np.float64)
            values |= analyze(probs, logits=logits, **given)["metrics"]
        if not values:
            raise UserError("outputs_top1", "missing; needs outputs_top1, outputs_soft, probs or logits")
        return values

    def _task(self, outputs: Any, ending: str) -> dict[str, float]:
        path = f"outputs_{ending}"
        given, wanted = array(outputs, path), array(self.test_y, "test_y")
        is_ids = wanted.dtype.kind in "iu"
        if given.shape != wanted.shape and not (is_ids and given.shape[:-1] == wanted.shape):
            needed = f"{wanted.shape} + (ids,)" if is_ids else str(wanted.shape)
            raise UserError(path, f"has shape {given.shape}, needs {needed}")
        if is_ids:
            scored = wanted >= 0  # places without a target do not count
            given, wanted = given[scored], np.eye(given.shape[-1])[wanted[scored]]
        width = wanted.shape[-1]
        rows = [np.ascontiguousarray(part.reshape(-1, width), np.float64) for part in (given, wanted)]
        told = json.loads(call(_core.task_metrics, *rows, self.cross_entropy, self.classes))
        return {"loss": told["loss"]} if is_ids else told

    def __repr__(self) -> str:
        named = {name: getattr(self, name) for name in _ARRAYS}
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in named.items() if value is not None)
        place = "".join(f", {path} {value}" for path, value in self.point.items())
        return f"<moelab.Sample: {self.name}, arm {self.arm}, seed {self.seed}{place}: {shapes}>"


def _checksum(arrays: Mapping[str, np.ndarray | None]) -> str:
    digest = hashlib.sha256()
    for name in _ARRAYS:
        values = arrays[name]
        if values is not None:
            digest.update(f"{name} {values.dtype.str} {values.shape} ".encode())
            digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()[:16]


def drawn(
    scenario: tuple[str, str], profile: str, overrides: list[str], arm: str, seed: int, at: list[str]
) -> Sample:
    """The sample of a cell, from arguments that are checked."""
    fields = call(_core.sample, *scenario, profile, overrides, arm, str(seed), at)
    about = json.loads(fields.pop("about"))
    arrays: dict[str, Any] = {name: fields.get(name) for name in _ARRAYS}
    return Sample(**arrays, **about, checksum=_checksum(arrays))


def sample(
    scenario: ScenarioLike,
    *,
    arm: str | None = None,
    seed: int = 0,
    at: Mapping[str, Any] | None = None,
    profile: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Sample:
    """Draws the training and test data of a cell: those that ``moelab sample`` writes, to the last bit. Of a
    scenario with phases they are those of the last. ``Run.samples`` draws those of a run, with its overrides.

    :param scenario: the path of a file, or a dict
    :param arm: its arm; the first where it is left out
    :param seed: its seed, counted from 0
    :param at: its sweep point, ``{swept path: value}``; of each path left out the first value
    :param profile: one of the scenario's named sets of overrides
    :param overrides: ``{dotted path: value}``
    :raises UserError: for a scenario that is not valid, and for a cell that it does not have
    """
    number = whole(seed, "seed", 0, 2**31 - 1)
    return drawn(
        given_scenario(scenario), text(profile, "profile"), settings(overrides), text(arm, "arm"), number,
        settings(at, "at"),
    )
