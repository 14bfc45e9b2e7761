"""
The compiled part of moelab; the package's own functions are the interface.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def version() -> str:
    """The program's version."""

def list_kinds(axis: str) -> str:
    """
    The answer of `moelab list NAME --json`, of all axes for an empty name.
    """

def validate(file: str, document: str, profile: str, settings: Sequence[str]) -> str:
    """The answer of `moelab validate --json`."""

def scenario_document(file: str) -> str:
    """The document of a scenario file, with what it extends (JSON)."""

def list_checks(ids: Sequence[str]) -> str:
    """The answer of `moelab check --list --json`."""

def main(words: Sequence[str]) -> int:
    """The program `moelab`, for a process of its own: its exit status."""

def analyze(arrays: dict, settings: str) -> str:
    """
    The answer of `moelab analyze --json` for contiguous arrays by the names of its options.
    """

def save_analysis(answer: str, folder: str, figures: bool) -> str:
    """
    Writes the tables, arrays, page and figures of an analysis. The names of the files (JSON).
    """

def judge_analyses(own: str, other: str, claims: Sequence[str]) -> str:
    """Claims on two analyses of the same documents (JSON)."""

def task_metrics(outputs: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], targets: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], cross_entropy: bool, classes: bool) -> str:
    """
    Loss, nmse and accuracy of outputs (n, o), as the program defines them (JSON).
    """

def sample(file: str, document: str, profile: str, settings: Sequence[str], arm: str, seed: str, at: Sequence[str]) -> dict:
    """
    The data that a cell draws, and which cell it is: x, y, labels, test_x, … and about (JSON).
    """

def about(directory: str, plan: str) -> str:
    """The plan of a run folder: id, name, arms, figures, …"""

def table(directory: str, plan: str, trace: bool) -> list:
    """The columns of `moelab export`: metrics as arrays, the others as JSON."""

def claims(directory: str, plan: str) -> str:
    """The answer of `moelab claims --json`."""

def figure(directory: str, plan: str, id: str, style: str) -> str:
    """What a figure shows, as data."""

def array_files(directory: str, plan: str, cell: str) -> str:
    """The .npy files of a cell's saved arrays, by name."""

def import_arm(directory: str, plan: str, arm: str, csv: str) -> None:
    """Adds results of another training as an arm."""

def remove_arm(directory: str, plan: str, arm: str) -> None:
    """Removes an imported arm."""

def plans(directory: str) -> str:
    """The plans of a run folder (JSON)."""

def run(file: str, document: str, profile: str, settings: Sequence[str], out: str, threads: int, further: str, progress: object | None) -> str:
    """
    Runs a scenario's missing cells and judges its claims. progress(finished, total, partial, failed, diverged, seconds_left) is called some times a second.
    """

class TrainedModel:
    """A trained model in either precision."""

    def about(self) -> str:
        """Sizes, and how training ended (JSON)."""

    def predict(self, x: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], gating: str, labels: object | None) -> NDArray[numpy.float64]:
        """Outputs (n, o) or (n, s, o)."""

    def route(self, x: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], layer: int, labels: object | None) -> NDArray[numpy.float64]:
        """Routing probabilities (n, E) or (n, s, E)."""

    def arrays(self) -> dict:
        """Parameters and state by name."""

class RegisteredRouter:
    """A router whose scores Python computes."""

    def forget(self) -> None:
        """
        Drops the functions, which may refer to a model that refers to the router.
        """

def register_router(forward: object, backward: object, start: object | None, init_scale: float) -> RegisteredRouter:
    """A router from its functions."""

def train(spec: str, x: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], y: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], labels: object | None, router: RegisteredRouter | None, record: object | None) -> TrainedModel:
    """Trains a model on contiguous arrays."""

def restore(spec: str, about: str, arrays: dict, router: RegisteredRouter | None) -> TrainedModel:
    """A model from arrays() of another."""
