"""Every command of the program as a function, frames of a run, scenarios that come with moelab, cancelling."""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import CancelledError, ProcessPoolExecutor
from pathlib import Path

import pytest
from conftest import ROOT, tiny_scenario

import moelab
from moelab import _convert

pandas = pytest.importorskip("pandas")


def one_point(**fields: object) -> dict:
    """A scenario without a sweep."""
    scenario = tiny_scenario() | {"figures": [], "save": []} | fields
    del scenario["sweep"]
    return scenario


def test_claims_are_flat(tiny_run):
    claims = tiny_run.claims
    assert claims.pivot(index="id", columns="data.train_samples", values="estimate").shape == (2, 2)
    assert {"statement", "test", "p", "low", "high", "verdict", "ratio"} <= set(claims.columns)
    judged = {claim["id"]: claim for claim in tiny_run.verdicts()}
    row = claims[claims.id == "learns"].iloc[0]
    point = judged["learns"]["points"][0]
    assert (row.p, row.test, row.low) == (point["p"], point["test"], point["interval"][0])
    assert row.statement == judged["learns"]["statement"]
    assert row.ratio == pytest.approx(2.718281828459045**row.estimate)
    assert not claims.map(lambda value: isinstance(value, (dict, list))).any().any()


def test_summaries_are_the_programs(tiny_run, moelab_program):
    summary = tiny_run.summary("test_nmse_top1")
    (told,) = moelab_program.json("table", tiny_run.directory, "--metric", "test_nmse_top1")
    assert list(summary["mean"]) == [entry["mean"] for entry in told["entries"]]
    assert list(summary.low) == [entry["interval"][0] for entry in told["entries"]]
    assert list(summary["data.train_samples"]) == [32, 64, 32, 64]
    assert moelab.table(tiny_run.directory, "test_nmse_top1").equals(summary)
    latex = tiny_run.to_latex("test_nmse_top1")
    assert [latex.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\hline")] == [1, 1, 1, 0]
    plain = tiny_run.to_latex(["test_nmse_top1", "test_loss_soft"], booktabs=False)
    assert plain.count(r"\hline") == 3 and r"test\_loss\_soft" in plain
    with pytest.raises(moelab.UserError) as caught:
        tiny_run.summary("test_nmse_top")
    assert caught.value.path == "metric" and "--" not in str(caught.value)


def test_plans(tmp_path):
    scenario = one_point(claims=[])
    first = moelab.run(scenario, overrides={"seeds.count": 1}, out=tmp_path / "run", progress=False)
    second = moelab.run(scenario, overrides={"seeds.count": 1, "train.steps": 20}, out=tmp_path / "run", progress=False)
    plans = first.plans.set_index("plan")
    assert set(plans.index) == {first.plan, second.plan}
    assert plans["last"].to_dict() == {first.plan: False, second.plan: True}
    assert list(plans.cells) == [2, 2]


def test_a_run_keeps_an_absolute_path(tiny_run, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(tiny_run.directory).parent)
    run = moelab.read("run")
    monkeypatch.chdir(tmp_path)
    assert len(run.cells) == 12 and run.directory == tiny_run.directory
    monkeypatch.setenv("HOME", str(Path(tiny_run.directory).parent))
    assert moelab.read("~/run").plan == run.plan


def test_every_verb(tiny_run, moelab_program, tmp_path):
    scenario = tiny_scenario()
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(scenario))
    told = moelab.plan(scenario, out=tmp_path / "none")
    expected = moelab_program.json("plan", file, "--out", tmp_path / "none")
    varies = ("seconds_estimate", "memory_estimate_bytes", "memory_estimate_bytes_of_cell")
    assert {n: v for n, v in told.items() if n not in varies} == {n: v for n, v in expected.items() if n not in varies}
    compared = moelab.compare(tiny_run, tiny_run.directory, metric="test_nmse_top1")
    assert compared.shape == (4, 10)
    assert (compared.iloc[:, 0] == compared.iloc[:, 5]).all()
    assert len(moelab.agreement(tiny_run)) > 0
    page = moelab.report(tiny_run, out=tmp_path / "page.html")
    assert "<html" in Path(page).read_text()[:200]
    assert moelab.verify(tiny_run)["problems"] == []
    assert moelab.reproduce(tiny_run, tiny_run.cells.cell[0])["cell"] == tiny_run.cells.cell[0]
    written = moelab.new("my_idea", start="sweep", out=tmp_path / "my_idea.json")
    assert moelab.validate(written)["valid"]
    with pytest.raises(moelab.UserError, match="did you mean"):
        moelab.new("other", start="swep", out=tmp_path / "other.json")
    with pytest.raises(moelab.UserError):
        moelab.compare(tiny_run)


def test_tuning(tmp_path):
    scenario = one_point(claims=[])
    scenario["tune"] = {"train.lr.router": {"low": 0.001, "high": 0.1, "scale": "log"}}
    told = moelab.tune(scenario, arms=["learned"], budget=6, metric="test_nmse_top1", out=tmp_path / "tuned")
    assert "learned" in json.dumps(told)
    with pytest.raises(moelab.UserError) as caught:
        moelab.tune(scenario, arms=["learnt"], out=tmp_path / "tuned")
    assert "learned" in str(caught.value) and "--" not in str(caught.value)


def test_seeds_retry_and_until_decided(tmp_path):
    scenario = one_point()
    run = moelab.run(scenario, out=tmp_path / "run", progress=False)
    more = moelab.run(scenario, seeds=range(3, 5), out=tmp_path / "run", progress=False)
    assert (more.plan, len(more.cells)) == (run.plan, 10)
    assert len(moelab.run(scenario, seeds=6, retry=True, out=tmp_path / "run", progress=False).cells) == 12
    with pytest.raises(moelab.UserError) as caught:
        moelab.run(scenario, seeds=range(9, 11), out=tmp_path / "run", progress=False)
    assert caught.value.path == "seeds"
    with pytest.raises(moelab.UserError, match="given without until_decided") as caught:
        moelab.run(scenario, max_seeds=9, out=tmp_path / "run", progress=False)
    assert caught.value.path == "max_seeds"
    decided = moelab.run(scenario, until_decided=True, max_seeds=8, out=tmp_path / "decided", progress=False)
    assert decided.cells.seed.max() in range(2, 8)
    assert len(list(decided.samples())) == (decided.cells.arm == "learned").sum()


def test_progress_is_told_and_runs_are_cancelled(tmp_path):
    told: list[moelab.Progress] = []
    scenario = tiny_scenario() | {"claims": [], "figures": [], "save": []}
    scenario["train"]["steps"] = 2000
    moelab.run(scenario, overrides={"seeds.count": 1}, out=tmp_path / "run", progress=told.append)
    assert told and told[-1].total == 4 and all(isinstance(at, moelab.Progress) for at in told)
    event = threading.Event()
    ends: list[BaseException] = []

    def work() -> None:
        try:
            moelab.run(scenario, overrides={"train.steps": 10**7}, out=tmp_path / "long", progress=False, cancel=event)
        except CancelledError as error:
            ends.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(1)
    event.set()
    thread.join(30)
    assert not thread.is_alive() and len(ends) == 1
    with pytest.raises(moelab.UserError) as caught:
        moelab.run(scenario, progress=3)
    assert caught.value.path == "progress"


def test_checks_are_interrupted_and_cancelled():
    event = threading.Event()
    threading.Timer(1, event.set).start()
    start = time.monotonic()
    with pytest.raises(CancelledError):
        moelab.check(seeds=1000, threads=2, cancel=event)
    assert time.monotonic() - start < 20
    code = (
        "import signal, moelab\n"
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try: moelab.check(seeds=1000, threads=2)\n"
        "except KeyboardInterrupt: print('interrupted')"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    time.sleep(3)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        assert process.communicate(timeout=30)[0] == "interrupted\n"
    finally:
        process.kill()
    assert time.monotonic() - start < 20


def test_replaced_phrases_occur_in_messages_of_the_program():
    sources = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "app").rglob("*.cpp"))
    sources = re.sub(r'"\s*\n\s*"', "", sources)  # one literal on several lines
    for phrase, _ in _convert._WORDS:
        assert phrase in sources


def test_an_unknown_check_names_the_page_of_all_checks():
    with pytest.raises(moelab.UserError, match=r"docs/theorems\.md lists all \d+ checks"):
        moelab.check("lema")


def test_notes_are_logged_with_python_names(tmp_path, caplog, capfd):
    scenario = one_point()
    with caplog.at_level(logging.WARNING, "moelab"):
        moelab.run(scenario, until_decided=True, max_seeds=3, out=tmp_path / "run", progress=False)
    assert any("max_seeds 3 lies below" in record.message for record in caplog.records)
    assert not any("--" in record.message for record in caplog.records)
    assert "moelab: " not in capfd.readouterr().err


def test_scenarios_that_come_with_moelab():
    assert "dikkala2023/fig3" in moelab.scenarios.names()
    scenario = moelab.scenarios.load("dikkala2023/fig3")
    assert scenario["name"] == "fig3"
    assert moelab.validate(scenario) == moelab.validate(moelab.scenarios.path("dikkala2023/fig3"))
    with pytest.raises(moelab.UserError, match="did you mean 'dikkala2023/fig3'"):
        moelab.scenarios.load("dikkala2023/fig33")
    for name in moelab.scenarios.names():
        assert "extends" not in moelab.scenarios.load(name)


def test_the_command_of_the_package(moelab_program, tmp_path):
    words = [sys.executable, "-m", "moelab"]
    version = subprocess.run([*words, "--version"], capture_output=True, text=True, check=True).stdout
    assert version == moelab_program.text("--version")
    document = json.dumps(tiny_scenario())
    done = subprocess.run([*words, "plan", "-", "--json"], input=document, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["cells"] == 12
    wrong = subprocess.run([*words, "plan", "-", "--json"], input="{}", capture_output=True, text=True, check=False)
    assert wrong.returncode == 2


def test_a_name_is_not_shadowed():
    names: dict[str, object] = {}
    exec("from moelab import *", names)  # noqa: S102
    assert "list" not in names and names["run"] is moelab.run
    assert set(dir(moelab)) == {*moelab.__all__, "__version__"}


def test_ranges_and_arrays_in_scenarios(tiny):
    import numpy as np

    tiny["sweep"] = {"data.train_samples": range(32, 65, 16)}
    assert moelab.validate(tiny)["cells"] == 18
    tiny["sweep"] = {"data.train_samples": np.array([32, 64])}
    assert moelab.validate(tiny)["cells"] == 12


def sleepy_work(*arguments: object) -> None:
    """A worker that is killed in the middle."""
    threading.Timer(0.5, os._exit, (9,)).start()
    from moelab._sharing import work

    work(*arguments)


def shared_scenario() -> dict:
    scenario = tiny_scenario() | {"figures": [], "save": []}
    scenario["train"]["steps"] = 4000
    return scenario


def test_workers_share_a_run(tmp_path):
    alone = moelab.run(shared_scenario(), out=tmp_path / "alone", progress=False)
    with ProcessPoolExecutor(2) as pool:
        told: list[moelab.Progress] = []
        shared = moelab.run(shared_scenario(), out=tmp_path / "run", executor=pool, progress=told.append)
    assert shared.cells.equals(alone.cells) and shared.verdicts() == alone.verdicts()
    assert told[-1].finished == 12
    assert moelab.verify(shared)["recorded"] == 12
    assert len(list((tmp_path / "run" / "journal").iterdir())) >= 2
    assert not list(tmp_path.glob("*.stop-*"))


def test_a_killed_worker_loses_its_cell_alone(tmp_path, monkeypatch, caplog):
    alone = moelab.run(shared_scenario(), out=tmp_path / "alone", progress=False)
    from moelab import _sharing

    monkeypatch.setattr(_sharing, "work", sleepy_work)
    with ProcessPoolExecutor(2) as pool:
        shared = moelab.run(shared_scenario(), out=tmp_path / "run", executor=pool, progress=False)
    assert any("a worker ended early" in record.message for record in caplog.records)
    assert shared.cells.equals(alone.cells)


def test_a_shared_run_is_cancelled(tmp_path):
    event = threading.Event()
    threading.Timer(2, event.set).start()
    with ProcessPoolExecutor(2) as pool, pytest.raises(CancelledError):
        moelab.run(
            shared_scenario(), overrides={"train.steps": 10**7}, out=tmp_path / "run", executor=pool, progress=False,
            cancel=event,
        )
    assert not list(tmp_path.glob("*.stop-*"))
    with ProcessPoolExecutor(1) as pool, pytest.raises(moelab.UserError) as caught:
        moelab.run({"name": "x"}, executor=pool, progress=False)
    assert pickle.loads(pickle.dumps(caught.value)).path == caught.value.path


def test_a_cluster_of_dask_shares_a_run(tmp_path):
    distributed = pytest.importorskip("distributed")
    alone = moelab.run(shared_scenario(), out=tmp_path / "alone", progress=False)
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            executor = client.get_executor()
            shared = moelab.run(shared_scenario(), out=tmp_path / "run", executor=executor, workers=2, progress=False)
    assert shared.cells.equals(alone.cells)


def test_a_verb_closes_its_pipes(tiny_run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        moelab.verify(tiny_run)
        gc.collect()
    assert not [str(warning.message) for warning in caught if warning.category is ResourceWarning]


def test_a_text_that_is_no_path_is_explained(tiny):
    with pytest.raises(moelab.UserError, match=r"json\.loads\(text\) gives the dict") as caught:
        moelab.validate(json.dumps(tiny))
    assert caught.value.path == "scenario"
    with pytest.raises(moelab.UserError, match=r"moelab\.scenarios\.load\('start/learned_and_frozen'\)"):
        moelab.run("start/learned_and_frozen", progress=False)
    with pytest.raises(moelab.UserError, match="no such file"):
        moelab.validate("nowhere.json")


class Client:
    """It has submit, as Dask's client has, but is no executor."""

    def submit(self, *_: object) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"executor": Client()}, r"client\.get_executor\(\)"),
        ({"executor": 3}, "needs a concurrent.futures.Executor"),
        ({"cancel": 3}, "needs a threading.Event"),
        ({"workers": 2}, "without executor"),
    ],
)
def test_arguments_of_a_shared_run_that_are_refused(tmp_path, wrong, message):
    with pytest.raises(moelab.UserError, match=message) as caught:
        moelab.run(one_point(), out=tmp_path / "run", progress=False, **wrong)
    assert caught.value.path == next(iter(wrong))
    assert not (tmp_path / "run").exists()


def test_an_empty_list_checks_nothing():
    assert moelab.check([]).empty
    with pytest.raises(moelab.UserError, match="cancel"):
        moelab.check([], cancel=3)
