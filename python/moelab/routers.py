"""Routers of one's own inside moelab's training loop, for trying an idea.

Their scores and gradients are computed by functions of Python, once a batch: arrays go there and back, and the
interpreter's lock is held meanwhile, so that a step costs some ten microseconds more than the functions
themselves. They serve ``moelab.train`` alone; scenarios, whose cells run on any thread and in other processes and
are known by their content, refuse them. A router that is to stay is one file in C++ (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._border import array, call
from .errors import UserError


class PythonRouter:
    """What ``python`` and ``pytorch`` return: give it as ``model["router"]`` to ``moelab.train``."""

    def __init__(self, handle: int, trainable: bool) -> None:
        self.handle = handle
        self.trainable = trainable

    def __reduce__(self) -> Any:
        raise TypeError("a router in Python lives in one process; it cannot be pickled")


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
    """A PyTorch module, inputs (n, d) to scores (n, E), as a router: moelab trains its parameters, which start
    where the module has them; the module itself stays as it is."""
    import torch

    try:
        from torch.func import functional_call
    except ImportError:  # before PyTorch 2
        from torch.nn.utils.stateless import functional_call
    named = {name: value.detach().clone() for name, value in module.named_parameters()}
    if not named:
        raise UserError("module", "has no parameters")

    def placed(w: Any) -> dict[str, Any]:
        parts, place = {}, 0
        for name, value in named.items():
            parts[name] = w[place : place + value.numel()].reshape(value.shape)
            place += value.numel()
        return parts

    def forward(x: np.ndarray, w: np.ndarray) -> Any:
        with torch.no_grad():
            return functional_call(module, placed(torch.from_numpy(w)), (torch.from_numpy(x),))

    def backward(x: np.ndarray, w: np.ndarray, delta: np.ndarray) -> tuple[Any, Any]:
        inputs, weights = torch.from_numpy(x).requires_grad_(), torch.from_numpy(w).requires_grad_()
        with torch.enable_grad():
            scores = functional_call(module, placed(weights), (inputs,))
        return tuple(torch.autograd.grad(scores, (weights, inputs), torch.from_numpy(delta)))

    start = torch.cat([value.reshape(-1) for value in named.values()])
    return python(forward, backward, parameters=start, trainable=trainable)
