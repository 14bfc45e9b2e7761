"""moelab from Python: routing in Mixture-of-Experts models, run, measured and judged.

``run`` runs and resumes scenarios. ``read`` opens run folders as frames, verdicts, arrays and figures. ``Run.judge``
trains a model of your own on a run's data and judges it. ``analyze`` measures your own arrays. ``check`` checks
theorems numerically. Every number equals the program's, to the last bit. Bad input is a ``UserError``.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from . import _core, routers, scenarios
from ._progress import Progress
from ._scenario import Scenario
from .analysis import Analysis, analyze
from .capturing import Capture, capture
from .errors import UserError
from .runs import Run, read, run
from .samples import Sample, sample
from .scenarios import check, kinds, validate
from .training import Model, train
from .verbs import agreement, compare, new, plan, report, reproduce, table, tune, verify

if TYPE_CHECKING:
    from .estimators import MoEClassifier as MoEClassifier
    from .estimators import MoERegressor as MoERegressor

__version__: str = _core.version()

__all__ = [
    "Analysis",
    "Capture",
    "Model",
    "MoEClassifier",
    "MoERegressor",
    "Progress",
    "Run",
    "Sample",
    "Scenario",
    "UserError",
    "agreement",
    "analyze",
    "capture",
    "check",
    "compare",
    "kinds",
    "new",
    "plan",
    "read",
    "report",
    "reproduce",
    "routers",
    "run",
    "sample",
    "scenarios",
    "table",
    "train",
    "tune",
    "validate",
    "verify",
]

_ESTIMATORS = ("MoEClassifier", "MoERegressor")
if find_spec("sklearn") is None:  # `from moelab import *` works without it
    __all__.remove("MoEClassifier")
    __all__.remove("MoERegressor")


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        # They derive from scikit-learn's classes, which take a second to import.
        if name in _ESTIMATORS:
            from . import estimators

            return getattr(estimators, name)
        raise AttributeError(f"module 'moelab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
