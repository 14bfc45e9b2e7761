"""kinds, validate, check: the answers of the program; errors with their paths."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import tiny_scenario

import moelab


def test_kinds_are_the_programs(moelab_program):
    assert moelab.kinds() == moelab_program.json("list")
    assert moelab.kinds("routers") == moelab_program.json("list", "routers")
    assert "linear" in [kind["name"] for kind in moelab.kinds("routers")["routers"]["kinds"]]


def test_an_unknown_axis_names_the_nearest():
    with pytest.raises(moelab.UserError, match="did you mean 'routers'") as caught:
        moelab.kinds("router")
    assert caught.value.path == "axis"


def test_validate_takes_files_and_dicts(tiny, tmp_path):
    assert moelab.validate(tiny) == {"valid": True, "name": "tiny", "cells": 12}
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(tiny))
    assert moelab.validate(file, overrides={"seeds.count": 2})["cells"] == 8
    assert moelab.validate(str(file), overrides={"seeds.count": np.int64(4)})["cells"] == 16


def test_bad_input_is_a_value_error_at_its_path(tiny):
    tiny["model"]["router"]["kind"] = "linaer"
    with pytest.raises(ValueError, match="did you mean 'linear'") as caught:
        moelab.validate(tiny)
    error = caught.value
    assert isinstance(error, moelab.UserError)
    assert error.path == "model.router.kind"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.path, copy.message, str(copy)) == (error.path, error.message, str(error))


def test_overrides_are_named_as_arguments(tiny):
    with pytest.raises(moelab.UserError) as caught:
        moelab.validate(tiny, overrides={"model.expertss": 3})
    assert caught.value.path == "overrides.model.expertss" and "--set" not in str(caught.value)


def test_check_is_the_programs(moelab_program):
    ids = [entry["id"] for entry in moelab_program.json("check", "--list")]
    quick = [name for name in ids if name.startswith("perturbed_cosine")][:2] or ids[:1]
    found = moelab.check(quick, threads=2)
    told = moelab_program.json("check", *quick)
    assert [row.to_dict() for _, row in found.iterrows()] == [{name: one[name] for name in found} for one in told]
    for wrong in ("nothing_such", 3, [3], {"ids"}, "", [None]):
        with pytest.raises(moelab.UserError) as caught:
            moelab.check(wrong)
        assert caught.value.path == "ids"


def without_sweep(data: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in tiny_scenario().items() if name not in ("sweep", "claims", "figures")
    } | {"data": data}


def test_data_may_be_arrays_in_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    random = np.random.default_rng(3)
    x, labels = random.normal(size=(120, 5)), random.integers(0, 3, 120)
    y = np.stack([np.sin(x[:, 0]), x[:, 1] * labels], axis=1)
    data = {"generator": "file", "inputs": x, "targets": y, "labels": labels, "train_samples": 80, "test_samples": 40}
    scenario = without_sweep(data)
    run = moelab.run(scenario, out=tmp_path / "run", progress=False)
    assert set(run.table()["state"]) == {"done"}
    drawn = next(run.samples())
    np.testing.assert_array_equal(drawn.test_x, x[80:])

    # The same cells as of files with the same content, and other cells for other numbers.
    for name, values in (("inputs", x), ("targets", y), ("labels", labels)):
        np.save(tmp_path / f"{name}.npy", values)
    files = {name: str(tmp_path / f"{name}.npy") for name in ("inputs", "targets", "labels")}
    assert moelab.sample({**scenario, "data": {**data, **files}}).cell == drawn.cell
    assert moelab.sample({**scenario, "data": {**data, "inputs": x + 1}}).cell != drawn.cell
    assert moelab.sample(scenario, overrides={"data.inputs": x + 1}).cell != drawn.cell
    assert len(list((tmp_path / "cache/moelab/arrays").iterdir())) == 4  # equal arrays have one file


def test_arrays_in_memory_that_are_no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    scenario = {**tiny_scenario(), "data": {"generator": "file", "inputs": np.array([["a", "b"]]), "targets": "y.npy"}}
    with pytest.raises(moelab.UserError, match="dtype") as found:
        moelab.validate(scenario)
    assert found.value.path == "data.inputs"
    weights = {**tiny_scenario()["data"], "weights": np.array([1.0, 2.0, 3.0, 4.0])}
    assert moelab.validate({**tiny_scenario(), "data": weights})["valid"]
    assert not list(tmp_path.iterdir())


def test_tensors_are_data(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    x = torch.arange(120, dtype=torch.float32).reshape(60, 2).to(torch.bfloat16)
    data = {"generator": "file", "inputs": x, "targets": x[:, :1] * 2, "train_samples": 40, "test_samples": 20}
    drawn = moelab.sample(without_sweep(data))
    np.testing.assert_array_equal(drawn.test_x, x[40:].float().numpy())
