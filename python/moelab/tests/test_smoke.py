"""The installed package works: scenarios, runs, the command, metrics, training, and a theorem check."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moelab

SMALL = {"data.train_samples": 64, "data.test_samples": 100, "train.steps": 40, "train.record_every": 20}


def program(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "moelab", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def small_scenario() -> dict[str, Any]:
    scenario = moelab.scenarios.load("start/learned_and_frozen")
    kept = {name: value for name, value in scenario.items() if name not in ("sweep", "claims", "figures", "profiles")}
    return {**kept, "seeds": {"root": 1, "count": 2}}


def test_the_command_is_installed() -> None:
    assert moelab.__version__ in program("--version")
    command = Path(sys.executable).with_name("moelab")
    if command.exists():
        done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
        assert moelab.__version__ in done.stdout


def test_the_scenarios_are_installed() -> None:
    assert "start/learned_and_frozen" in moelab.scenarios.names()
    assert moelab.validate(moelab.scenarios.load("dikkala2023/fig3"))["valid"]
    with pytest.raises(moelab.UserError, match="did you mean 'dikkala2023/fig3'"):
        moelab.scenarios.load("dikkala2023/fgi3")


def test_the_package_and_the_command_give_the_same_numbers(tmp_path: Path) -> None:
    run = moelab.run(small_scenario(), overrides=SMALL, out=tmp_path / "package", progress=False)
    table = run.table()
    assert set(table["state"]) == {"done"}

    file = tmp_path / "small.json"
    file.write_text(json.dumps(small_scenario()), encoding="utf-8")
    settings = [word for path, value in SMALL.items() for word in ("--set", f"{path}={value}")]
    program("run", str(file), *settings, "--out", str(tmp_path / "command"))
    assert moelab.read(tmp_path / "command").table()["cell"] == table["cell"]
    for metric in ("test_nmse_soft", "test_nmse_top1"):
        np.testing.assert_array_equal(moelab.read(tmp_path / "command").table()[metric], table[metric])


def test_metrics_of_arrays() -> None:
    probs = np.eye(4)[np.arange(40) % 4]
    metrics = moelab.analyze(probs, labels=np.arange(40) % 4)["metrics"]
    assert metrics["top1_cluster_purity"] == 1
    assert metrics["routing_entropy"] == pytest.approx(0, abs=1e-12)
    wrong = moelab.analyze(probs, labels=np.arange(40) // 10)["metrics"]
    assert wrong["top1_cluster_purity"] < 0.5


def test_a_model_learns(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(200, 3))
    y = np.abs(x[:, :1])
    model = moelab.train(
        x, y, model={"experts": 2, "router": {"kind": "linear"}, "expert": {"kind": "mlp", "depth": 2, "width": 8}},
        train={"optimizer": "adam", "lr": 0.01, "batch_size": 32, "steps": 300},
    )
    assert np.mean((model.predict(x) - y) ** 2) < 0.3 * np.var(y)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(moelab.Model.load(tmp_path / "model.npz").predict(x), model.predict(x))


def test_a_theorem_is_checked() -> None:
    (told,) = json.loads(program("check", "dikkala2023.theorem1.local_minima.aligned", "--json"))
    assert told["verdict"] == told["expected"] == "holds"
