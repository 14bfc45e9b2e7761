"""What the tests share: a small scenario, and the program that the package is held against."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tiny_scenario() -> dict[str, Any]:
    return {
        "name": "tiny",
        "title": "A small scenario",
        "source": "the tests",
        "data": {
            "generator": "gaussian_mixture",
            "clusters": 4,
            "dim": 6,
            "mean_std": 2.0,
            "target": {"kind": "constant", "dim": 3},
            "train_samples": 64,
            "test_samples": 100,
        },
        "model": {
            "experts": 4,
            "router": {"kind": "linear"},
            "expert": {"kind": "mlp", "depth": 2, "width": 8},
            "gating": {"train": "soft", "eval": "top1"},
        },
        "train": {
            "optimizer": "adam",
            "lr": {"expert": 0.01, "router": 0.01},
            "batch_size": 16,
            "steps": 40,
            "record_every": 20,
        },
        "metrics": ["task", "sparsity"],
        "arms": {"learned": {}, "frozen": {"model.router.trainable": False}},
        "sweep": {"data.train_samples": [32, 64]},
        "seeds": {"root": 1, "count": 3},
        "save": ["weights", "routing", "routing_steps"],
        "claims": [
            {
                "id": "learned_beats_frozen",
                "text": "The learned router is better.",
                "op": "<",
                "at": "each",
                "left": {"arm": "learned", "metric": "test_nmse_top1"},
                "right": {"arm": "frozen", "metric": "test_nmse_top1"},
                "reported": 0.5,
            },
            {
                "id": "learns",
                "op": "decreases",
                "along": "step",
                "arm": "learned",
                "metric": "train_nmse",
            },
        ],
        "figures": [
            {
                "id": "loss",
                "x": "data.train_samples",
                "y": "test_nmse_top1",
                "x_scale": "log",
                "y_scale": "log",
            },
            {"id": "steps", "x": "step", "y": ["train_nmse"], "where": {"data.train_samples": 64}},
            {"id": "map", "kind": "cluster_map"},
            {"id": "plane", "kind": "embedding"},
            {"id": "load", "kind": "load_map"},
            {"id": "claim", "kind": "claim", "claim": "learned_beats_frozen"},
        ],
    }


@pytest.fixture
def tiny() -> dict[str, Any]:
    return tiny_scenario()


@pytest.fixture(scope="session")
def program() -> str:
    path = os.environ.get("MOELAB_PROGRAM", "")
    if not path:
        pytest.skip("MOELAB_PROGRAM does not name the program")
    return path


class Program:
    """The built program, called with --json."""

    def __init__(self, path: str) -> None:
        self.path = path

    def text(self, *words: Any, status: int = 0) -> str:
        done = subprocess.run([self.path, *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout

    def json(self, *words: Any, status: int = 0) -> Any:
        return json.loads(self.text(*words, "--json", status=status))


@pytest.fixture(scope="session")
def moelab_program(program: str) -> Program:
    return Program(program)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tiny scenario, run once for all tests that only read it."""
    import moelab

    folder = tmp_path_factory.mktemp("tiny") / "run"
    return moelab.run(tiny_scenario(), out=folder, progress=False)
