"""kinds, validate, check: the answers of the program; errors with their paths."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

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
