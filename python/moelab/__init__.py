"""moelab from Python: routing in Mixture-of-Experts models, run, measured and judged.

Scenarios run and resume (``run``), run folders are read as frames, verdicts, arrays and figures (``read``),
one's own arrays are measured (``analyze``), and theorems are held against computation (``check``). Numbers are
those of the program ``moelab``, to the last bit. Bad input is a ``UserError``.
"""

from __future__ import annotations

from typing import Any

from . import _core, routers
from .analysis import analyze
from .errors import UserError
from .runs import Run, read, run
from .scenarios import Sample, check, sample, validate
from .scenarios import list_kinds as list
from .training import Model, train

__version__: str = _core.version()

__all__ = [
    "Model",
    "MoEClassifier",
    "MoERegressor",
    "Run",
    "Sample",
    "UserError",
    "analyze",
    "check",
    "list",
    "read",
    "routers",
    "run",
    "sample",
    "train",
    "validate",
]

_ESTIMATORS = ("MoEClassifier", "MoERegressor")


def __getattr__(name: str) -> Any:
    # They derive from scikit-learn's classes, which take a second to import.
    if name in _ESTIMATORS:
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'moelab' has no attribute {name!r}")
