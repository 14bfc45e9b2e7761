"""Errors in Python: all of a scenario, with their places, and with the names of Python's arguments."""

from __future__ import annotations

import json
import logging
import pickle

import numpy as np
import pytest
from conftest import tiny_scenario

import moelab

RATES = {"optimizer": "adam", "lr": 0.01, "batch_size": 8, "steps": 5}
MODEL = {"experts": 2, "router": {"kind": "linear"}, "expert": {"kind": "linear"}}


def caught(function, *arguments, **named) -> moelab.UserError:
    with pytest.raises(moelab.UserError) as found:
        function(*arguments, **named)
    return found.value


def test_all_errors_of_a_file_are_told(tmp_path):
    wrong = {**tiny_scenario(), "nmae": 1}
    wrong["model"]["router"] = {"kind": "linaer"}
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(wrong, indent=1))
    for call in (moelab.validate, moelab.plan):  # in this process, and in another one
        error = caught(call, file)
        places = {told["path"]: told for told in error.errors}
        assert {"nmae", "model.router.kind"} <= set(places), call
        told = places["model.router.kind"]
        assert (told["given"], told["nearest"]) == ("linaer", "linear") and "linear" in told["allowed"]
        assert file.read_text().splitlines()[told["line"] - 1].strip() == '"kind": "linaer"'
        assert (error.path, error.message) == (error.errors[0]["path"], error.errors[0]["message"])
        assert len(str(error).splitlines()) == len(error.errors) and f"line {told['line']}" in str(error)
        assert pickle.loads(pickle.dumps(error)).errors == error.errors


def test_an_argument_has_one_error():
    error = caught(moelab.validate, 3)
    assert error.errors == [dict.fromkeys(("line", "column", "given", "allowed", "nearest")) | {
        "path": "scenario", "message": error.message
    }]
    assert str(error) == f"scenario: {error.message}"


def test_paths_are_arguments(tmp_path, monkeypatch, tiny_run):
    monkeypatch.chdir(tmp_path)
    moelab.new("mine")
    assert caught(moelab.new, "mine").path == "name"
    assert caught(moelab.new, "a b").path == "name"
    assert caught(moelab.new, "other", start="nope").path == "start"
    assert caught(moelab.compare).path == "runs"
    assert caught(moelab.compare, tiny_run).path == "runs"
    assert caught(moelab.report).path == "runs"
    assert caught(moelab.agreement).path == "runs"
    assert caught(moelab.reproduce, tiny_run, "nope").path == "cell"
    assert caught(moelab.sample, tiny_scenario(), at={"data.dimm": 3}).path.startswith("at.")
    assert "moelab.run makes one" in str(caught(moelab.read, tmp_path))
    assert caught(moelab.run, {**tiny_scenario(), "seeds": {"count": float("nan")}}).path == "seeds.count"
    assert caught(moelab.run, tiny_scenario(), seeds=[1, 2]).path == "seeds"


def test_routers_and_classes_are_explained():
    x = np.random.default_rng(0).normal(size=(40, 3))
    classes = np.arange(40) % 3

    def train(y, **changed):
        loss = {"task": "cross_entropy"}
        return moelab.train(x, y, model={**MODEL, **changed}, train=RATES, loss=loss, history=False)

    expected = train(classes).predict(x)
    assert np.array_equal(train(classes.astype(float)).predict(x), expected)
    assert np.array_equal(train(classes[:, None]).predict(x), expected)
    error = caught(train, classes - 1.0)
    assert error.path == "y" and "-1.0 in row 0" in error.message
    assert "0.5 in row 1" in caught(train, classes * 0.5).message
    assert caught(train, classes, router=lambda rows: rows).path == "model.router"
    router = moelab.routers.python(lambda x, w: x @ w.T, lambda x, w, delta: (delta.T @ x, delta @ w))
    assert caught(moelab.run, {**tiny_scenario(), "model": {**MODEL, "router": router}}).path == "model.router"


def test_the_plan_read_is_named_once(tmp_path, caplog):
    scenario = {**tiny_scenario(), "seeds": {"count": 2}, "figures": [], "save": []}
    for steps in (10, 20):
        last = moelab.run(scenario, overrides={"train.steps": steps}, out=tmp_path / "run", progress=False)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "moelab"):
        found = moelab.read(tmp_path / "run")
        found.verify()
        found.summary("train_nmse")
    assert [record.message.split(";")[0] for record in caplog.records] == [
        f"plan {last.plan}, the last run of the 2 in {tmp_path / 'run'}"
    ]
    assert "has no arrays" in str(caught(found.arrays, found.cells["cell"][0]))


def test_lists_are_data(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    x = np.random.default_rng(0).normal(size=(60, 3))
    arrays = {"inputs": x, "targets": x[:, :1]}

    def drawn(data):
        document = {**tiny_scenario(), "model": MODEL, "metrics": ["task"], "figures": [], "claims": []}
        del document["sweep"]
        document["data"] = {"generator": "file", "train_samples": 40, "test_samples": 20, **data}
        return moelab.sample(document).cell

    assert drawn({name: values.tolist() for name, values in arrays.items()}) == drawn(arrays)


def test_latex_of_several_metrics(tiny_run):
    both = tiny_run.to_latex(("test_nmse_top1", "train_nmse"))
    assert both == tiny_run.to_latex(["test_nmse_top1", "train_nmse"]) and "--" not in both.split("\\begin")[0]
    assert caught(tiny_run.to_latex, []).path == "metric"


def test_figures_and_names_of_the_package(tiny_run):
    assert caught(tiny_run.figure("loss").show).path == "figure"
    assert dir(moelab.routers) == ["python", "pytorch", "torch"]
    assert "Executor" not in " ".join(dir(moelab.scenarios))
    pytest.importorskip("sklearn")
    assert ":param n_experts:" in moelab.MoEClassifier.__doc__
