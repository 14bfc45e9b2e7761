"""A user's results as an arm: matched by seed and sweep point, judged, drawn, marked."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import tiny_scenario

import moelab

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:the frame has no column 'checksum'")

POINTS = [(seed, samples) for samples in (32, 64) for seed in range(3)]


@pytest.fixture
def run(tmp_path) -> moelab.Run:
    return moelab.run(tiny_scenario(), out=tmp_path / "run", progress=False)


def frame(factor: float = 0.5, **columns):
    """Results that are a share of the frozen arm's."""
    rows = [{"seed": seed, "data.train_samples": samples} for seed, samples in POINTS]
    table = pandas.DataFrame(rows)
    table["test_nmse_top1"] = [factor * (1 + 0.01 * seed) for seed, _ in POINTS]
    return table.assign(**columns)


def test_an_arm_is_judged_drawn_and_marked(run, moelab_program):
    before = run.verdicts()
    run.add_arm("mine", frame(1e-3))
    cells = run.cells
    own = cells[cells.arm == "mine"]
    assert list(own["data.train_samples"]) == [32, 32, 32, 64, 64, 64]
    assert list(own.seed) == [0, 1, 2, 0, 1, 2]
    assert own.cell.str.startswith("imported-").all()
    assert list(own.test_nmse_top1) == [1e-3 * (1 + 0.01 * seed) for seed in (0, 1, 2, 0, 1, 2)]
    after = {claim["id"]: claim for claim in run.verdicts()}
    assert list(after) == ["learned_beats_frozen", "learns", "learned_beats_frozen@mine"]
    assert [after[claim["id"]] for claim in before] == before
    claim = after["learned_beats_frozen@mine"]
    assert claim["verdict"] == "reproduced" and claim["origin"] == "ours"
    assert "imported" in claim["source"] and claim["reported"] is None
    frozen = cells[(cells.arm == "frozen") & (cells["data.train_samples"] == 32)].test_nmse_top1
    expected = np.mean(np.log(own.test_nmse_top1.to_numpy()[:3]) - np.log(frozen.to_numpy()))
    assert claim["points"][0]["estimate"] == pytest.approx(expected, rel=1e-12)
    assert "mine (imported)" in [line["name"] for line in run.figure_data("loss")["panels"][0]["series"]]
    assert run.verdicts() == moelab_program.json("claims", run.directory)
    moelab_program.text("report", run.directory)
    moelab_program.text("plot", run.directory)
    assert moelab_program.json("verify", run.directory)["problems"] == []


def test_the_program_imports_the_same(run, moelab_program, tmp_path):
    file = tmp_path / "mine.csv"
    frame(2.0).to_csv(file, index=False)
    told = moelab_program.json("import", run.directory, file, "--arm", "mine")
    assert (told["rows"], told["missing"], told["replaced"]) == (6, 0, False)
    text = moelab_program.text("export", run.directory)
    run.add_arm("mine", frame(2.0))
    assert moelab_program.text("export", run.directory) == text
    assert moelab_program.json("import", run.directory, file, "--arm", "mine")["replaced"]


def test_what_is_missing_is_missing(run):
    run.add_arm("mine", frame()[lambda table: table.seed < 2])
    cells = run.cells
    assert list(cells[cells.arm == "mine"].state) == ["done", "done", "missing"] * 2
    claim = run.verdicts()[-1]
    assert claim["verdict"] == "inconclusive"
    assert "missing" in claim["points"][0]["note"]


def test_states_are_taken_over_and_more_seeds_extend(run, tmp_path):
    run.add_arm("mine", frame(state=["done", "diverged", "failed"] * 2))
    cells = run.cells
    assert list(cells[cells.arm == "mine"].state) == ["done", "diverged", "failed"] * 2
    more = moelab.run(tiny_scenario(), overrides={"seeds.count": 4}, out=run.directory, progress=False)
    assert more.plan == run.plan
    cells = more.cells
    assert list(cells[cells.arm == "mine"].state) == ["done", "diverged", "failed", "missing"] * 2


def test_numbers_as_pandas_and_dicts_have_them(run):
    rows = [row for _, row in frame(0.5).iterrows()]  # seeds and sizes are floats there
    run.add_arm("mine", pandas.DataFrame(rows))
    expected = run.cells
    run.add_arm("mine", frame(0.5).assign(effective_experts=pandas.array([1, None] * 3, dtype="Int64")))
    own = run.cells[run.cells.arm == "mine"]
    assert list(own.test_nmse_top1) == list(expected[expected.arm == "mine"].test_nmse_top1)
    assert own.effective_experts.isna().sum() == 3
    run.add_arm("mine", {name: frame(0.5)[name].to_numpy() for name in frame()})
    assert run.cells.equals(expected)


def test_an_infinite_value_is_a_diverged_run(run):
    run.add_arm("mine", frame().assign(test_nmse_top1=np.inf))
    assert set(run.cells.query("arm == 'mine'")["state"]) == {"diverged"}
    run.remove_arm("mine")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (lambda: frame().drop(columns="seed"), "seed"),
        (lambda: frame().drop(columns="data.train_samples"), "data.train_samples"),
        (lambda: frame().drop(columns="test_nmse_top1"), "no column of a metric"),
        (lambda: frame().rename(columns={"test_nmse_top1": "test_nmse_top"}), "did you mean 'test_nmse_top1'"),
        (lambda: frame().assign(seed=7), "the plan has no seed 7"),
        (lambda: frame().assign(seed=0), "twice"),
        (lambda: frame().assign(seed=0.5), "needs a whole number"),
        (lambda: frame().assign(test_nmse_top1="low"), "needs a number"),
        (lambda: frame().assign(state="finished"), "unknown state"),
        (lambda: frame().iloc[:0], "has no rows"),
        (lambda: 3, "needs a frame"),
        (lambda: {"seed": 3}, "a value for each row"),
        (lambda: {"seed": "012"}, "a value for each row"),
        (lambda: {"seed": np.zeros((6, 2))}, "a value for each row"),
        (lambda: {"seed": [0], "test_nmse_top1": [0.1, 0.2]}, "different lengths"),
        (lambda: {"seed": [object()], "data.train_samples": [32], "test_nmse_top1": [1]}, "JSON"),
        (lambda: pandas.concat([frame(), frame()], axis=1), "a value for each row"),
    ],
)
def test_tables_that_do_not_fit_are_refused(run, table, words):
    with pytest.raises(moelab.UserError) as caught:
        run.add_arm("mine", table())
    assert words in str(caught.value)
    assert "mine" not in run.table()["arm"]


@pytest.mark.parametrize("arm", ["learned", "", "../mine", "a b", 3, None])
def test_names_that_are_refused(run, arm):
    with pytest.raises(moelab.UserError) as caught:
        run.add_arm(arm, frame())
    assert caught.value.path == "arm"


def test_a_pytorch_router_is_an_arm(tmp_path):
    torch = pytest.importorskip("torch")
    scenario = json.loads(json.dumps(tiny_scenario()))
    run = moelab.run(scenario, out=tmp_path / "run", progress=False)
    rows = []
    for seed, samples in POINTS:
        data = moelab.sample(scenario, seed=seed, at={"data.train_samples": samples})
        torch.manual_seed(seed)
        net = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3)).double()
        optimizer = torch.optim.Adam(net.parameters(), 0.01)
        x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
        for _ in range(100):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            error = np.mean((net(torch.from_numpy(data.test_x)).numpy() - data.test_y) ** 2)
        rows.append({"seed": seed, "data.train_samples": samples, "test_nmse_top1": error / data.test_y.var(axis=0).mean()})
    run.add_arm("mine", pandas.DataFrame(rows))
    assert run.verdicts()[-1]["id"] == "learned_beats_frozen@mine"
