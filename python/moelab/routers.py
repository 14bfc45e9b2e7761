"""Routers of your own inside moelab's training loop, for trying an idea.

Functions of Python compute their scores and gradients once a batch. Arrays go there and back, and the interpreter's
lock is held meanwhile. A linear router of 64 experts adds about 0.1 ms to a step of 256 rows, NumPy's products included
(bench/README.md). They serve ``moelab.train`` alone. Scenarios refuse them, because cells run on any thread and in other
processes, and their content identifies them. A router that is to stay is one file in C++ (docs/extending.md).
"""

from __future__ import annotations

import atexit
import copy
import importlib
import threading
import warnings
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _core
from ._convert import array, call, shown, whole
from ._extras import extra
from ._notes import logger
from .errors import UserError

__all__ = ["python", "pytorch", "torch"]

_CHECKED_ERROR = 1e-3
# Rounding limits the smallest step, curvature the largest one.
_CHECKED_STEPS = (1e-6, 1e-4, 1e-2)


_alive: weakref.WeakSet[_core.RegisteredRouter] = weakref.WeakSet()


@atexit.register
def _forget() -> None:
    """At the end of the process: a function's globals may hold the model that holds the function, a circle that
    Python's collector does not see."""
    for functions in list(_alive):
        functions.forget()


class PythonRouter:
    """What ``python`` and ``torch`` return: give it as ``model["router"]`` to ``moelab.train``. It is released with
    its last reference; a model that it trained is one."""

    def __init__(self, functions: _core.RegisteredRouter, trainable: bool) -> None:
        self.functions = functions
        self.trainable = trainable

    @contextmanager
    def inside(self) -> Generator[None, None, None]:
        """The surroundings of a training."""
        yield

    def state_dict(self, parameters: np.ndarray) -> dict[str, Any]:
        """The state with these parameters."""
        return {"parameters": parameters}

    def __reduce__(self) -> Any:
        raise TypeError("a router of functions of Python lives in one process; it cannot be pickled")

    def __deepcopy__(self, memo: dict[int, Any]) -> PythonRouter:
        return self  # nothing changes it; scikit-learn copies the options of its estimators

    def __repr__(self) -> str:
        return f"<moelab.routers: {type(self).__name__}{'' if self.trainable else ', frozen'}>"


class TorchRouter(PythonRouter):
    """A router of ``torch``: its module goes with it into pickles."""

    def __init__(self, functions: _core.RegisteredRouter, trainable: bool, module: Any, threads: int | None) -> None:
        super().__init__(functions, trainable)
        self._module = module
        self._threads = threads

    def __reduce__(self) -> Any:
        return _torch_again, (self._module, self.trainable, self._threads)

    @contextmanager
    def inside(self) -> Generator[None, None, None]:
        """Bounds PyTorch's threads: on busy processors they cost many times what they save."""
        torch: Any = importlib.import_module("torch")
        before, own = torch.get_num_threads(), self._threads or 1
        if own != before:
            logger.info("torch uses %d thread(s) inside moelab.train; routers.torch(threads=…) sets them", own)
        torch.set_num_threads(own)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def state_dict(self, parameters: np.ndarray) -> dict[str, Any]:
        """The module's state with these parameters, for ``module.load_state_dict``."""
        torch: Any = importlib.import_module("torch")
        state = {name: value.clone() for name, value in self._module.state_dict().items()}
        begin = 0
        for name, value in self._module.named_parameters():
            if value.requires_grad:
                part = np.array(parameters[begin : begin + value.numel()]).reshape(tuple(value.shape))
                state[name] = torch.from_numpy(part).to(value.dtype)
                begin += value.numel()
        return state


def _torch_again(module: Any, trainable: bool, threads: int | None) -> TorchRouter:
    return torch(module, trainable=trainable, check_gradient=False, threads=threads)


Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]
Gradients = Callable[[np.ndarray, np.ndarray, np.ndarray, bool], tuple[Any, Any]]


def _gradient_problem(
    scores: Scores, gradients: Gradients, x: np.ndarray, w: np.ndarray, shape: tuple[int, ...]
) -> str:
    """Where the gradient differs from central differences of the scores along random directions; empty for nowhere."""
    random = np.random.default_rng(0)
    x, w = x.astype(np.float64), w.astype(np.float64)
    delta = random.normal(size=shape)
    answers = gradients(x, w, delta, False)

    def total(x: np.ndarray, w: np.ndarray) -> float:
        """The scores weighted by delta; NaN, which equals everything here, for a shape that the compiled part refuses."""
        found = np.asarray(scores(x, w), np.float64)
        return float((found * delta).sum()) if found.shape == shape else np.nan

    def slope(of: str, step: np.ndarray) -> float:
        if of == "w":
            return total(x, w + step) - total(x, w - step)
        return total(x + step, w) - total(x - step, w)

    for of, start, answer in (("w", w, answers[0]), ("x", x, answers[1])):
        if answer is None:
            continue
        gradient = np.asarray(answer, np.float64)
        if gradient.shape != start.shape:
            return ""  # the compiled part refuses it and names the shapes
        for _ in range(3):
            direction = random.normal(size=start.shape)
            expected = float((gradient * direction).sum())
            slopes = [slope(of, step * direction) / (2 * step) for step in _CHECKED_STEPS]
            nearest = min(slopes, key=lambda found: abs(found - expected))
            size = max(abs(expected), float(np.abs(gradient).max()), float(np.abs(slopes).max()), 1e-6)
            if abs(nearest - expected) > _CHECKED_ERROR * size:
                return (
                    f"backward's gradient of {of} along a random direction is {expected:.6g}, but central differences "
                    f"of forward give {nearest:.6g}"
                )
    return ""


def _checked(scores: Scores, gradients: Gradients, check_gradient: bool | None) -> Gradients:
    """The gradients, whose first call in training checks them."""
    if check_gradient is False:
        return gradients
    checked = threading.Event()

    def first_checked(x: np.ndarray, w: np.ndarray, delta: np.ndarray, asks_inputs: bool) -> tuple[Any, Any]:
        if not checked.is_set():
            checked.set()
            if problem := _gradient_problem(scores, gradients, x, w, delta.shape):
                if check_gradient:
                    raise UserError("model.router", problem)
                warnings.warn(f"{problem}; check_gradient=False for a gradient that shall differ", stacklevel=2)
        return gradients(x, w, delta, asks_inputs)

    return first_checked


def python(
    forward: Callable[[np.ndarray, np.ndarray], Any],
    backward: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Any, Any]],
    *,
    parameters: Any = None,
    init_scale: float = 1.0,
    trainable: bool = True,
    check_gradient: bool | None = None,
) -> PythonRouter:
    """A router from two functions. Arrays are in the precision of training, and the functions' own.

    :param forward: scores γ(x; w) (n, E) of inputs x (n, d) and parameters w
    :param backward: of x, w and delta = ∂L/∂γ (n, E), the pair (∂L/∂w, ∂L/∂x), in the shapes of w and x; the
        second may be None in a model of one layer, where nobody asks for it
    :param parameters: w at its start, of any shape; left out, w is (E, d) and starts as a linear router does,
        N(0, init_scale²/d), from the same draws
    :param trainable: whether training moves w
    :param check_gradient: the first step of training compares ``backward`` with central differences of ``forward``.
        True refuses a wrong gradient. Left out, a warning tells of it. False checks nothing.
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
    checked = _checked(scores, gradients, check_gradient)
    functions = call(_core.register_router, scores, checked, start, float(init_scale))
    _alive.add(functions)
    return PythonRouter(functions, bool(trainable))


def torch(
    module: Any, *, trainable: bool = True, check_gradient: bool | None = None, threads: int | None = None
) -> TorchRouter:
    """A PyTorch module, inputs (n, d) to scores (n, E), as a router: moelab trains its parameters that require a
    gradient. They start where the module has them; the module itself stays as it is. ``Model.router_state_dict`` gives
    the trained ones. Scores and gradients are computed one after the other, and have to be of one function: a copy on
    the processor is asked in evaluation mode, without dropout and with stored statistics.

    :param module: a ``torch.nn.Module``
    :param trainable: whether training moves its parameters
    :param check_gradient: the first step of training compares gradients with central differences of the scores. True
        refuses a wrong gradient. Left out, a warning tells of it. False checks nothing.
    :param threads: threads of PyTorch inside ``moelab.train``; 1 where it is left out, since a batch is small
    """
    torch: Any = extra("torch", "torch", "routers of PyTorch")

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
    router = python(forward, backward, parameters=start, trainable=trainable, check_gradient=check_gradient)
    count = None if threads is None else whole(threads, "threads", 1, 1024)
    return TorchRouter(router.functions, router.trainable, given, count)


pytorch = torch


def __dir__() -> list[str]:
    return __all__
