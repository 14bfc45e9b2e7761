"""Routers of one's own inside moelab's training loop, for trying an idea.

Their scores and gradients are computed by functions of Python, once a batch: arrays go there and back, and the
interpreter's lock is held meanwhile. A linear router of 64 experts adds about 0.1 ms to a step of 256 rows, NumPy's
products included (bench/README.md). They serve ``moelab.train`` alone; scenarios, whose cells run on any thread and
in other processes and are known by their content, refuse them. A router that is to stay is one file in C++
(docs/extending.md).
"""

from __future__ import annotations

import copy
import importlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._border import array, call, shown
from .errors import UserError


class PythonRouter:
    """What ``python`` and ``pytorch`` return: give it as ``model["router"]`` to ``moelab.train``."""

    def __init__(self, handle: int, trainable: bool) -> None:
        self.handle = handle
        self.trainable = trainable

    def __reduce__(self) -> Any:
        raise TypeError("a router in Python lives in one process; it cannot be pickled")

    def __deepcopy__(self, memo: dict[int, Any]) -> PythonRouter:
        return self  # nothing changes it; scikit-learn copies the options of its estimators

    def __repr__(self) -> str:
        return f"<moelab.routers: {self.handle}{'' if self.trainable else ', frozen'}>"


def python(
    forward: Callable[[np.ndarray, np.ndarray], Any],
    backward: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Any, Any]],
    *,
    parameters: Any = None,
    init_scale: float = 1.0,
    trainable: bool = True,
) -> PythonRouter:
    """A router from two functions. Arrays are in the precision of training, and the functions' own.

    :param forward: scores γ(x; w) (n, E) of inputs x (n, d) and parameters w
    :param backward: of x, w and delta = ∂L/∂γ (n, E), the pair (∂L/∂w, ∂L/∂x), in the shapes of w and x; the
        second may be None in a model of one layer, where nobody asks for it
    :param parameters: w at its start, of any shape; left out, w is (E, d) and starts as a linear router does,
        N(0, init_scale²/d), from the same draws
    :param trainable: whether training moves w
    """
    if not callable(forward) or not callable(backward):
        raise UserError("model.router", "forward and backward have to be functions")
    if not isinstance(init_scale, (int, float)) or not 0 <= init_scale < float("inf"):
        raise UserError("init_scale", f"got {init_scale!r}, needs a number of at least 0")

    def scores(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return array(forward(x, w), "model.router")

    def gradients(x: np.ndarray, w: np.ndarray, delta: np.ndarray, asks_inputs: bool) -> tuple[Any, Any]:
        answer = backward(x, w, delta)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise UserError("model.router", "backward needs to return a pair: the gradients of w and of x")
        of_w, of_x = answer
        if of_x is None and asks_inputs:
            raise UserError("model.router", "backward returned no gradient of x, which the layer below needs")
        return array(of_w, "model.router"), None if of_x is None else array(of_x, "model.router")

    start = None if parameters is None else array(parameters, "parameters")
    return PythonRouter(call(_core.register_router, scores, gradients, start, float(init_scale)), bool(trainable))


def pytorch(module: Any, *, trainable: bool = True) -> PythonRouter:
    """A PyTorch module, inputs (n, d) to scores (n, E), as a router: moelab trains its parameters that require a
    gradient, which start where the module has them; the module itself stays as it is. Scores and gradients are
    computed one after the other, and have to be of one function: a copy on the processor is asked in evaluation
    mode, without dropout and with stored statistics.

    :param module: a ``torch.nn.Module``
    :param trainable: whether training moves its parameters
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise UserError("module", f"got {shown(module)}, needs a torch.nn.Module")
    # The second before PyTorch 2.
    place: Any = importlib.import_module("torch.func" if hasattr(torch, "func") else "torch.nn.utils.stateless")
    given = copy.deepcopy(module).cpu().eval()
    named = {name: value.detach() for name, value in given.named_parameters() if value.requires_grad}
    if not named:
        raise UserError("module", "has no parameters that require a gradient")

    kept = threading.local()

    def own(precision: Any) -> Any:
        """A copy for each thread and precision: while it is asked, other parameters stand in it."""
        name = str(precision)
        if not hasattr(kept, name):
            setattr(kept, name, copy.deepcopy(given).to(precision))
        return getattr(kept, name)

    def placed(w: Any) -> dict[str, Any]:
        parts, begin = {}, 0
        for name, value in named.items():
            parts[name] = w[begin : begin + value.numel()].reshape(value.shape)
            begin += value.numel()
        return parts

    def forward(x: np.ndarray, w: np.ndarray) -> Any:
        with torch.no_grad():
            weights = torch.from_numpy(w)
            return place.functional_call(own(weights.dtype), placed(weights), (torch.from_numpy(x),))

    def backward(x: np.ndarray, w: np.ndarray, delta: np.ndarray) -> tuple[Any, Any]:
        inputs, weights = torch.from_numpy(x).requires_grad_(), torch.from_numpy(w).requires_grad_()
        with torch.enable_grad():
            scores = place.functional_call(own(weights.dtype), placed(weights), (inputs,))
        of_weights, of_inputs = torch.autograd.grad(scores, (weights, inputs), torch.from_numpy(delta))
        return of_weights, of_inputs

    start = torch.cat([value.reshape(-1) for value in named.values()])
    return python(forward, backward, parameters=start, trainable=trainable)
