"""run and read: the program's folders, tables, verdicts and arrays."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import tiny_scenario

import moelab

pandas = pytest.importorskip("pandas")


def same_table(frame, text: str) -> None:
    """A frame and CSV hold the same columns and values, to the last bit."""
    rows = list(csv.reader(io.StringIO(text)))
    assert list(frame.columns) == rows[0]
    assert len(frame) == len(rows) - 1 > 0
    for name, *fields in zip(*rows):
        if frame[name].dtype.kind in "fi":
            numbers, expected = frame[name].to_numpy(float), np.array([float(field or "nan") for field in fields])
            assert np.array_equal(np.isnan(numbers), np.isnan(expected)), name
            present = ~np.isnan(expected)
            assert numbers[present].tobytes() == expected[present].tobytes(), name
        else:
            assert list(frame[name]) == fields, name


def test_a_run_is_the_programs(tiny_run, moelab_program, tmp_path):
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(tiny_scenario()))
    moelab_program.text("run", file, "--out", tmp_path / "run")
    text = moelab_program.text("export", tmp_path / "run")
    assert text == moelab_program.text("export", tiny_run.directory)
    same_table(tiny_run.cells, text)
    same_table(tiny_run.trace, moelab_program.text("export", tiny_run.directory, "--trace"))
    assert tiny_run.verdicts() == moelab_program.json("claims", tiny_run.directory)
    assert moelab.read(tmp_path / "run").plan == tiny_run.plan


def test_scenarios_that_are_shipped_are_the_programs(moelab_program, tmp_path):
    root = Path(__file__).resolve().parents[2] / "scenarios"
    settings = {"train.steps": 20, "train.record_every": 10, "seeds.count": 2}
    for name in ("start/learned_and_frozen", "dikkala2023/fig2a", "acmoe2025/layers"):
        file = root / f"{name}.json"
        run = moelab.run(file, profile="quick", overrides=settings, out=tmp_path / Path(name).name, progress=False)
        same_table(run.cells, moelab_program.text("export", run.directory))
        same_table(run.trace, moelab_program.text("export", run.directory, "--trace"))


def test_claims_are_a_frame_with_what_the_paper_reports(tiny_run):
    claims = tiny_run.claims
    own = claims[claims.id == "learned_beats_frozen"]
    assert len(own) == 2
    assert list(own.paper) == [0.5, 0.5]
    assert list(own["data.train_samples"]) == [32, 64]
    assert (own.low < own.estimate).all() and (own.estimate < own.high).all()
    judged = tiny_run.verdicts()[0]
    assert list(own.estimate) == [point["estimate"] for point in judged["points"]]
    assert set(claims.verdict) <= {"reproduced", "refuted", "equivalent", "inconclusive"}


def test_arrays_are_mapped_from_their_files(tiny_run):
    cell = tiny_run.table()["cell"][0]
    arrays = tiny_run.arrays(cell)
    assert isinstance(arrays["router_weight"], np.memmap)
    assert arrays["router_weight"].shape == (4, 6)
    assert arrays["test_probs"].shape == (100, 4)
    assert not arrays["test_probs"].flags.writeable
    assert tiny_run.arrays(cell[:6]).keys() == arrays.keys()
    with pytest.raises(moelab.UserError) as caught:
        tiny_run.arrays("nothing")
    assert caught.value.path == "cell"


def test_a_damaged_array_is_refused(tmp_path):
    scenario = tiny_scenario()
    scenario["seeds"]["count"] = 1
    run = moelab.run(scenario, out=tmp_path / "run", progress=False)
    cell = run.table()["cell"][0]
    file = tmp_path / "run" / "cells" / cell / "router_weight.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(moelab.UserError, match="other bytes"):
        run.arrays(cell)


def test_texts_of_a_scenario_are_no_markup(tmp_path):
    scenario = tiny_scenario() | {"title": "<script>alert(1)</script>", "figures": []}
    scenario["seeds"]["count"] = 1
    assert "<script" not in moelab.run(scenario, out=tmp_path / "run", progress=False)._repr_html_()


def test_a_run_is_pickled_and_read_by_its_address(tiny_run, moelab_program, tmp_path, monkeypatch):
    copy = pickle.loads(pickle.dumps(tiny_run))
    assert (copy.plan, copy.table()["cell"]) == (tiny_run.plan, tiny_run.table()["cell"])
    assert moelab.read(f"{tiny_run.directory}@{tiny_run.plan[:5]}").plan == tiny_run.plan
    assert moelab.read(tiny_run.directory, plan=tiny_run.plan[:5]).plan == tiny_run.plan
    with pytest.raises(moelab.UserError):
        moelab.read(tiny_run.directory, plan="zzz")
    monkeypatch.chdir(Path(tiny_run.directory).parent)
    near = pickle.dumps(moelab.read("run"))
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(near).plan == tiny_run.plan


def test_two_plans_of_a_folder_stay_apart(tmp_path):
    scenario = tiny_scenario()
    scenario["seeds"]["count"] = 1
    first = moelab.run(scenario, out=tmp_path / "run", progress=False)
    cells = first.table()["cell"]
    second = moelab.run(scenario, out=tmp_path / "run", overrides={"train.steps": 20}, progress=False)
    assert first.plan != second.plan
    assert first.table()["cell"] == cells != second.table()["cell"]
    assert moelab.read(tmp_path / "run").plan == second.plan


RUN_LONG = """
import signal, sys, json, moelab
signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored in what a shell starts behind "&"
moelab.run(json.load(open(sys.argv[1])), out=sys.argv[2], threads=2)
"""


def test_ctrl_c_ends_a_run_and_the_same_call_resumes(moelab_program, tmp_path):
    scenario = tiny_scenario()
    scenario["train"] |= {"steps": 4000, "record_every": 1000}
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(scenario))
    words = [sys.executable, "-c", RUN_LONG, str(file), str(tmp_path / "run")]
    started = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "run" / "journal"
    end = time.monotonic() + 120
    while time.monotonic() < end and not any(f.stat().st_size for f in journal.glob("*.jsonl")):
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    errors = started.communicate(timeout=60)[1]
    assert "KeyboardInterrupt" in errors
    states = moelab.read(tmp_path / "run").table()["state"]
    assert "done" in states
    if "missing" in states:  # as a rule; a fast machine may have been done
        assert "failed" not in states
    run = moelab.run(scenario, out=tmp_path / "run", progress=False)
    assert set(run.table()["state"]) == {"done"}
    moelab_program.text("run", file, "--out", tmp_path / "whole")
    assert moelab_program.text("export", tmp_path / "run") == moelab_program.text("export", tmp_path / "whole")


def test_two_threads_run_and_read_at_once(tmp_path):
    runs: dict[int, moelab.Run] = {}
    probs = np.random.default_rng(1).dirichlet(np.ones(4), size=2000)
    expected = moelab.analyze(probs)
    answers = []

    def work(place: int) -> None:
        scenario = tiny_scenario() | {"name": f"tiny{place}"}
        runs[place] = moelab.run(scenario, out=tmp_path / str(place), threads=1, progress=False)
        answers.extend(moelab.analyze(probs) for _ in range(3))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answer == expected for answer in answers) and len(answers) == 6
    one, other = runs[0].table(), runs[1].table()
    assert one["test_nmse_top1"].tobytes() == other["test_nmse_top1"].tobytes()


def test_the_lock_is_released_while_cells_run(tmp_path):
    counted = []

    def count() -> None:
        while not stop.is_set():
            counted.append(None)
            time.sleep(0.001)

    stop = threading.Event()
    counter = threading.Thread(target=count)
    counter.start()
    scenario = tiny_scenario()
    scenario["train"] |= {"steps": 2000}
    moelab.run(scenario, out=tmp_path / "run", threads=1, progress=False)
    stop.set()
    counter.join()
    assert len(counted) > 20


def test_progress_is_a_line(tmp_path, capsys):
    scenario = tiny_scenario()
    from moelab._progress import ProgressLine

    line = ProgressLine()
    line._live = True
    line(3, 12, 0.5, 1, 2, 65.0)
    line.close()
    shown = capsys.readouterr().err
    assert "cells 3/12  29%" in shown and "left 1:05" in shown and "1 failed" in shown
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moelab.run(scenario, out=tmp_path / "run")


def test_failed_and_diverged_cells_are_told(tmp_path):
    scenario = tiny_scenario() | {"claims": [], "figures": []}
    scenario["train"] |= {"optimizer": "sgd", "lr": 1e30}
    with pytest.warns(UserWarning, match="every cell diverged"):
        run = moelab.run(scenario, out=tmp_path / "run", progress=False)
    assert set(run.cells.state) == {"diverged"}


def test_a_folder_of_another_scenario_is_refused(tiny_run):
    with pytest.raises(moelab.UserError):
        moelab.run(tiny_scenario() | {"name": "other"}, out=tiny_run.directory, progress=False)


def test_without_pandas_the_extra_is_named(tiny_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'moelab\[frames\]'"):
        _ = tiny_run.cells
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'moelab\[figures\]'"):
        tiny_run.figure("loss")
    assert tiny_run.table()["arm"].count("frozen") == 6


def test_a_disk_that_refuses_is_an_os_error(tiny, tmp_path):
    if os.geteuid() == 0:
        folder = Path("/proc/none")
    else:
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o500)
    with pytest.raises((OSError, moelab.UserError)):
        moelab.run(tiny, out=folder / "run", progress=False)
