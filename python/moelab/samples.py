"""The data that the cells of a scenario draw, and metrics of outputs on them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import _core
from ._convert import ScenarioLike, array, call, given_scenario, settings, text, whole
from ._extras import extra
from .analysis import analyze
from .errors import UserError

_ARRAYS = ("x", "y", "labels", "test_x", "test_y", "test_labels")


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """The data that a cell of a scenario draws.

    - ``x`` (n, d), ``y`` (n, o) and ``labels`` (n,) are inputs, targets and latent clusters of the training set. They
      are None if training uses population gradients.
    - ``test_x``, ``test_y`` and ``test_labels`` are the same for the test set.
    - Sequences have x (n, s, d), labels (n, s), and y (n, o) or (n, s, o).
    - Tokens are ids. They have x and y (n, s) of type int64.
    - Rows of several parts have labels (n, r).
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
    plan: str = ""
    """The id of the run's plan. A sample of ``moelab.sample`` has none."""
    checksum: str = ""
    """Of the arrays as they were drawn. ``Run.add_arm`` refuses rows whose checksum is not the plan's."""
    _drawn: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """Of a converted sample: the converted test set with the arrays as they were drawn."""

    def torch(self, dtype: Any = None, device: Any = None) -> Sample:
        """The same sample with PyTorch tensors.

        :param dtype: The type of inputs and targets. The default is ``torch.get_default_dtype()``, which ``nn.Linear``
            takes. Labels and ids stay integers.
        :param device: The device of the tensors. The default is the CPU.
        """
        torch = extra("torch", "torch", "samples as tensors")
        real = torch.get_default_dtype() if dtype is None else dtype

        def tensor(values: np.ndarray) -> Any:
            given = torch.from_numpy(np.ascontiguousarray(values))
            return given.to(device=device, dtype=real if given.is_floating_point() else None)

        return self._with(tensor)

    def jax(self, dtype: Any = None) -> Sample:
        """The same sample with arrays of JAX.

        :param dtype: The type of inputs and targets. The default is float32. Labels and ids stay integers.
        """
        numpy = extra("jax.numpy", "jax", "samples as JAX arrays")
        real = np.float32 if dtype is None else dtype

        def as_jax(values: np.ndarray) -> Any:
            return numpy.asarray(values, dtype=real if values.dtype.kind == "f" else np.int32)

        return self._with(as_jax)

    def numpy(self, dtype: Any = np.float64) -> Sample:
        """The same sample with NumPy arrays.

        :param dtype: The type of inputs and targets. Labels and ids stay integers.
        """

        def as_numpy(values: np.ndarray) -> Any:
            return values.astype(dtype, copy=False) if values.dtype.kind == "f" else values

        return self._with(as_numpy)

    def _with(self, converted: Any) -> Sample:
        own: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        for name, value in own.items():
            own[name] = None if value is None else converted(array(value, name))
        kept = {name: (own[name], self._as_drawn(name)) for name in ("test_x", "test_y")}
        return replace(self, **own, _drawn=kept)

    def _as_drawn(self, name: str) -> Any:
        """An array of the test set before its conversion, unless somebody has replaced it."""
        own = getattr(self, name)
        converted, original = self._drawn.get(name, (None, None))
        return original if own is converted and original is not None else own

    @property
    def place(self) -> dict[str, Any]:
        """``{"seed": …, swept path: …, "checksum": …}``: the first columns of a row for ``Run.add_arm``."""
        return {"seed": self.seed, **self.point, "checksum": self.checksum}

    def measure(
        self, outputs_top1: Any = None, outputs_soft: Any = None, probs: Any = None, logits: Any = None
    ) -> dict[str, float]:
        """The metrics of arrays on the test set, with the program's definitions and names.

        A converted sample compares with the test set as it was drawn, in double precision.

        :param outputs_top1: Outputs of the argmax expert, in the shape of ``test_y``. For ids they are logits (n, s,
            ids). They give ``test_loss_top1``, ``test_nmse_top1`` and ``test_accuracy_top1``.
        :param outputs_soft: Outputs of all experts, weighted by their probabilities. They give ``…_soft``. Outputs
            under the evaluation gating also give ``…_eval``.
        :param probs: Routing probabilities r(x), (n, E), or (n, s, E) of sequences.
        :param logits: Scores whose softmax gives the probabilities. ``probs`` or ``logits`` give the metrics of
            ``moelab.analyze``.
        :raises UserError: If an array does not fit, or if there is none.
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
        """The same as ``measure``.

        Without ``points`` it leaves out metrics of distances between inputs, which take the most time.
        """
        values: dict[str, float] = {}
        for ending, outputs in (("top1", outputs_top1), ("soft", outputs_soft)):
            if outputs is not None:
                told = self._task(outputs, ending)
                values |= {f"test_{name}_{ending}": value for name, value in told.items()}
                if ending == self.eval_gating:
                    values |= {f"test_{name}_eval": told[name] for name in told if name != "nmse"}
        if probs is not None or logits is not None:
            inputs = array(self._as_drawn("test_x"), "test_x")
            given: dict[str, Any] = {"labels": array(self.test_labels, "test_labels")}
            if points and inputs.dtype.kind == "f":  # ids are names, not points
                given["inputs"] = inputs.astype(np.float64)
            values |= analyze(probs, logits=logits, **given)["metrics"]
        if not values:
            raise UserError("outputs_top1", "missing; needs outputs_top1, outputs_soft, probs or logits")
        return values

    def _task(self, outputs: Any, ending: str) -> dict[str, float]:
        path = f"outputs_{ending}"
        given, wanted, is_ids = self._fitting(outputs, path)
        if is_ids:
            scored = wanted >= 0  # places without a target do not count
            given, wanted = given[scored], np.eye(given.shape[-1])[wanted[scored]]
        width = wanted.shape[-1]
        rows = [np.ascontiguousarray(part.reshape(-1, width), np.float64) for part in (given, wanted)]
        try:
            told = json.loads(call(_core.task_metrics, *rows, self.cross_entropy, self.classes))
        except UserError as error:
            raise UserError(path if error.path == "outputs" else error.path, error.message) from None
        return {"loss": told["loss"]} if is_ids else told

    def _fitting(self, outputs: Any, path: str) -> tuple[np.ndarray, np.ndarray, bool]:
        """Outputs and targets of fitting shapes, and whether the targets are ids."""
        given, wanted = array(outputs, path), array(self._as_drawn("test_y"), "test_y")
        is_ids = wanted.dtype.kind in "iu"
        if (given.shape[:-1] if is_ids and given.ndim else given.shape) != wanted.shape:
            needed = f"{wanted.shape} + (ids,)" if is_ids else str(wanted.shape)
            raise UserError(path, f"has shape {given.shape}, needs {needed}")
        if is_ids and wanted.size and given.shape[-1] <= wanted.max():
            raise UserError(
                path, f"has {given.shape[-1]} ids in its last axis, needs at least {int(wanted.max()) + 1}: the "
                      f"targets hold the id {int(wanted.max())}"
            )
        return given, wanted, is_ids

    def is_diverged(self, arrays: Mapping[str, Any]) -> bool:
        """Whether arrays that ``measure`` takes hold values of a diverged model: NaN, or infinite outputs.

        Scores may be minus infinity, which masks an expert or an id.
        """
        for name, value in arrays.items():
            if value is None:
                continue
            may_mask = name == "logits"
            if name.startswith("outputs_"):
                values, _, may_mask = self._fitting(value, name)
            else:
                values = array(value, name)
            if values.dtype.kind == "f" and not (np.isfinite(values) | (may_mask & np.isneginf(values))).all():
                return True
        return False

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
    scenario: tuple[str, str], profile: str, overrides: list[str], arm: str, seed: int, at: list[str], plan: str = ""
) -> Sample:
    """The sample of a cell, from arguments that are checked."""
    fields = call(_core.sample, *scenario, profile, overrides, arm, str(seed), at)
    about = json.loads(fields.pop("about"))
    arrays: dict[str, Any] = {name: fields.get(name) for name in _ARRAYS}
    return Sample(**arrays, **about, plan=plan, checksum=_checksum(arrays))


def sample(
    scenario: ScenarioLike,
    *,
    arm: str | None = None,
    seed: int = 0,
    at: Mapping[str, Any] | None = None,
    profile: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Sample:
    """Draws the training and test data of a cell. They equal the files of ``moelab sample`` to the last bit.

    A scenario with phases gives the data of its last phase. ``Run.samples`` draws the data of a run, with its
    overrides.

    :param scenario: The path of a file, or a dict.
    :param arm: The arm. The default is the first one.
    :param seed: The seed, counted from 0.
    :param at: The sweep point, ``{swept path: value}``. Missing paths take their first value.
    :param profile: One of the scenario's named sets of overrides.
    :param overrides: A dict ``{dotted path: value}``.
    :raises UserError: If the scenario is not valid, or does not have the cell.
    """
    number = whole(seed, "seed", 0, 2**31 - 1)
    return drawn(
        given_scenario(scenario), text(profile, "profile"), settings(overrides), text(arm, "arm"), number,
        settings(at, "at"),
    )
