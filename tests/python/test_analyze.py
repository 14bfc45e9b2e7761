"""analyze: the program's numbers and reasons, from memory."""

from __future__ import annotations

import copy
import pickle
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import moelab
from moelab.analysis import NamedMatrix

CASES = 200


def drawn_case(random: np.random.Generator) -> dict[str, Any]:
    """Arrays of a random size, of random types, some of them left out; now and then numbers."""
    n, experts, width, outputs = random.integers(1, 60), random.integers(1, 9), random.integers(1, 6), 2
    rows = (int(n), int(random.integers(1, 5))) if random.random() < 0.3 else (int(n),)
    scores = random.normal(size=(*rows, experts)) * random.choice([0.1, 1, 10])
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probs = shares / shares.sum(axis=-1, keepdims=True)
    kind = random.choice(["float32", "float64"])
    arrays = {"logits": scores.astype(kind)} if random.random() < 0.3 else {"probs": probs.astype(kind)}
    offers = {
        "labels": random.integers(0, 4, size=rows).astype(random.choice(["int64", "int32", "uint8"])),
        "inputs": random.normal(size=(*rows, width)),
        "embeddings": random.normal(size=(*rows, 3)).astype("float32"),
        "expert_outputs": random.normal(size=(*rows, experts, outputs)),
    }
    arrays |= {name: array for name, array in offers.items() if random.random() < 0.6}
    earlier = {
        "previous_probs": probs[::-1].astype("float64"),
        "previous_logits": scores[::-1],
        "previous_assignments": random.integers(0, experts, size=rows),
    }
    if random.random() < 0.6:
        name = str(random.choice(list(earlier)))
        arrays[name] = earlier[name]
    if "inputs" in arrays and random.random() < 0.7:
        arrays["router"] = random.normal(size=(experts, width))
    if "previous_assignments" not in arrays and random.random() < 0.3:
        arrays["top_k"] = int(random.integers(1, experts + 1))
    if len(rows) == 2 and not {"labels", "inputs", "embeddings", "expert_outputs"} & set(arrays):
        arrays["axes"] = "BSE"  # nothing else settles them
    if n > 1 and ("inputs" in arrays or "embeddings" in arrays) and random.random() < 0.3:
        arrays["neighbours"] = int(random.integers(1, n))
    return arrays


def test_numbers_and_reasons_are_the_programs(moelab_program, tmp_path):
    random = np.random.default_rng(1)
    answered = 0
    for case in range(CASES):
        arrays = drawn_case(random)
        words = []
        for name, array in arrays.items():
            given = array
            if isinstance(array, np.ndarray):
                given = tmp_path / f"{name}.npy"
                np.save(given, array)
            words += ["--" + name.replace("_", "-"), given]
        assert moelab.analyze(**arrays) == moelab_program.json("analyze", *words), case
        answered += 1
    assert answered == CASES


def test_strides_orders_and_foreign_arrays_change_nothing():
    random = np.random.default_rng(2)
    wide = random.dirichlet(np.ones(6), size=80)
    plain = moelab.analyze(wide[::2].copy(), labels=np.arange(40) % 3)
    assert moelab.analyze(wide[::2], labels=np.arange(40) % 3) == plain
    assert moelab.analyze(np.asfortranarray(wide[::2]), labels=(np.arange(80) % 3)[::-1][::-2]) != {}
    assert moelab.analyze(np.asfortranarray(wide[::2]), labels=np.arange(40) % 3) == plain
    assert moelab.analyze(wide[::2].astype(">f8"), labels=np.arange(40) % 3) == plain

    class Offers:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    class OffersArray:
        def __array__(self, dtype=None, copy=None):
            return wide[::2]

    assert moelab.analyze(Offers(wide[::2].copy()), labels=np.arange(40) % 3) == plain
    assert moelab.analyze(OffersArray(), labels=np.arange(40) % 3) == plain
    read_only = wide[::2].copy()
    read_only.flags.writeable = False
    assert moelab.analyze(read_only, labels=np.arange(40) % 3) == plain
    assert moelab.analyze(wide[::2].tolist(), labels=list(np.arange(40) % 3)) == plain


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(3)
    inputs = random.normal(size=(50, 4)).astype("float32")
    router = torch.nn.Linear(4, 3, bias=False)
    logits = router(torch.from_numpy(inputs))
    answer = moelab.analyze(logits=logits, inputs=torch.from_numpy(inputs), router=router.weight)
    expected = moelab.analyze(
        logits=logits.detach().numpy(), inputs=inputs, router=router.weight.detach().numpy()
    )
    assert answer == expected


def layered_case() -> dict[str, Any]:
    """Logits of three layers over 12 documents of 10 tokens, the last two of each padding."""
    random = np.random.default_rng(4)
    logits = random.normal(size=(3, 120, 8)).astype("float32")
    mask = np.tile(np.arange(10) < 8, (12, 1))
    return {
        "logits": tuple(logits),
        "mask": mask,
        "tokens": random.integers(0, 5, size=(12, 10)),
        "labels": np.array(["code", "law", "verse"] * 4),
        "documents": "rows",
        "top_k": 2,
        "layers": [1, 2, 4],
    }


def test_layers_are_rows_of_a_frame_and_matrices_have_names():
    case = layered_case()
    analysis = moelab.analyze(**case)
    frame = analysis.layers
    assert list(frame["layer"]) == [1, 2, 4]
    assert set(frame["tokens"]) == {96.0}
    assert (frame["routing_entropy_low"] < frame["routing_entropy"]).all()
    assert (frame["expert_load_max_violation_chance"] > 0).all()
    logits = case["logits"][1][case["mask"].ravel()].astype(float)
    r = np.exp(logits - logits.max(1, keepdims=True))
    r /= r.sum(1, keepdims=True)
    assert np.isclose(frame["routing_entropy"][1], -(r * np.log(r)).sum(1).mean(), atol=1e-12)
    chosen = np.argsort(-logits, 1)[:, :2]
    loads = np.bincount(chosen.ravel(), minlength=8) / chosen.size
    experts = analysis.experts
    assert np.allclose(experts[experts["layer"] == 2]["load"], loads, atol=1e-15)
    domain = analysis.matrices["domain"][2]
    assert domain.rows == ["code", "law", "verse"]
    assert np.allclose(domain.sum(1), 2)
    assert list(domain.frame().columns) == [str(e) for e in range(8)]
    assert analysis.matrices["layer_nmi"].shape == (3, 3)
    assert np.isnan(analysis.matrices["co_activation"][4][0, 0])
    assert "expert_load_max_violation" not in analysis["metrics"]
    assert any("mask leaves out 24 of 120 rows" in check for check in analysis.checks)
    assert analysis.skipped["routing_fluctuation"].startswith("needs previous")
    assert len(analysis.table()) == 3 and len(analysis.expert_table()) == 24


def test_notebooks_show_the_layers_and_the_checks():
    analysis = moelab.analyze(**layered_case())
    page = analysis._repr_html_()
    assert page.count("<tr>") == 4 and f"<td>{analysis.table()[1]['routing_entropy']:.4g}</td>" in page
    assert "leaves out 24 of 120 rows" in page


def test_labels_of_masked_rows_may_be_missing():
    labels = np.array([0, -100, 1])
    analysis = moelab.analyze(np.eye(2)[[0, 0, 1]], labels=labels, mask=labels >= 0, axes="TE")
    assert analysis.table()[0]["tokens"] == 2 and analysis.table()[0]["top1_cluster_purity"] == 1


@pytest.mark.parametrize("several", [False, True])
def test_rows_with_the_label_of_pytorch_for_none_do_not_count(several):
    r, labels = np.eye(2)[[0, 0, 1, 1]], np.array([0, -100, 1, 1])
    given = (r, r) if several else r
    analysis = moelab.analyze(given, labels=labels, top_k=1)
    assert analysis.table()[0]["tokens"] == 3 and analysis.table()[0]["top1_cluster_purity"] == 1
    assert analysis.table() == moelab.analyze(given, labels=labels, mask=labels != -100, top_k=1).table()
    assert "labels are -100 in rows that do not count" in analysis.checks
    batches = moelab.analyze([(r[:2],), (r[2:],)], labels=[labels[:2], labels[2:]], top_k=1)
    assert batches.table()[0]["tokens"] == 3


def test_tuples_dicts_batches_and_stacks_are_one_routing():
    case = layered_case()
    expected = moelab.analyze(**case).table()
    layers = case.pop("logits")
    case.pop("layers")
    named = {layer: array for layer, array in zip((1, 2, 4), layers)}
    assert moelab.analyze(logits=named, **case).table() == expected
    case["layers"] = [1, 2, 4]
    stacked = moelab.analyze(logits=np.stack(layers), axes="LTE", **case)
    assert stacked.table() == expected
    turned = moelab.analyze(logits=np.stack(layers, 1), axes="TLE", **case)
    assert turned.table() == expected
    with_dense = moelab.analyze(logits=(None, *layers), **(case | {"layers": [0, 1, 2, 4]}))
    assert with_dense.table() == expected
    assert with_dense["settings"]["without_router"] == [0]
    halves = [tuple(array[:60] for array in layers), tuple(array[60:] for array in layers)]
    sides = {"mask": [case["mask"][:6], case["mask"][6:]], "tokens": [case["tokens"][:6], case["tokens"][6:]]}
    batches = moelab.analyze(logits=halves, **(case | sides))
    for one, other in zip(batches.table(), expected):
        assert one.keys() == other.keys()
        assert all(np.isclose(one[name], other[name], atol=1e-12) for name in one)


def test_a_configuration_names_layers_and_choices():
    case = layered_case()
    case.pop("layers"), case.pop("top_k")
    config = {"num_hidden_layers": 4, "num_experts": 8, "num_experts_per_tok": 2, "mlp_only_layers": [0]}

    class Config:
        def to_dict(self):
            return config | {"id2label": {0: "a"}}

    assert [row["layer"] for row in moelab.analyze(model=Config(), **case).table()] == [1, 2, 3]
    assert moelab.analyze(model=config, **case) == moelab.analyze(model=Config(), **case)


@pytest.mark.parametrize("content", [None, "{", "\udcff"])
def test_a_configuration_that_cannot_be_read_is_a_user_error(tmp_path, content):
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(moelab.UserError, match=r"^model: '.*config\.json' cannot be read as JSON") as caught:
        moelab.analyze(np.full((4, 2), 0.5), model=file)
    assert caught.value.path == "model"


def test_bfloat16_is_read():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    logits = np.random.default_rng(5).normal(size=(40, 4)).astype(ml_dtypes.bfloat16)
    assert moelab.analyze(logits=logits) == moelab.analyze(logits=logits.astype("float32"))
    bits = logits.view(np.uint16)
    assert moelab.analyze(logits=bits, dtype="bfloat16") == moelab.analyze(logits=logits)
    with pytest.raises(moelab.UserError, match="uint16"):
        moelab.analyze(logits=bits)


def test_bfloat16_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    logits = torch.randn(40, 4, generator=torch.Generator().manual_seed(1)).bfloat16().requires_grad_()
    assert moelab.analyze(logits=(logits, None, logits), top_k=2).table() == moelab.analyze(
        logits=(logits.detach().float().numpy(), None, logits.detach().float().numpy()), top_k=2
    ).table()


@pytest.mark.parametrize(
    ("arguments", "path", "part"),
    [
        ({"logits": np.zeros((3, 4, 4))}, "logits", "LTE"),
        ({"logits": [np.zeros((3, 4)), None]}, "logits", "tuple"),
        ({"logits": [np.zeros((3, 4)), np.ones((3, 4))]}, "logits", "tuple"),
        ({"logits": {"a": np.zeros((3, 4))}}, "logits", "numbers of layers"),
        ({"logits": (np.eye(4), np.zeros((3, 4))), "top_k": 1}, "logits", "logits.1"),
        ({"experts": np.zeros((3, 2), int)}, "expert_count", "missing"),
        ({"probs": np.full((4, 2), 0.5), "score": "tanh"}, "score", "softmax"),
        ({"probs": np.full((4, 2), 0.5), "model": 3}, "model", "needs a dict"),
        ({"probs": np.full((3, 2), 0.5), "labels": np.array([0, -1, 1])}, "labels", "labels are 0 to"),
        ({"logits": np.zeros((2, 3, 4)), "axes": "BSE", "labels": np.array([0, -100])}, "labels", "give mask"),
    ],
)
def test_what_is_refused_names_its_argument(arguments, path, part):
    with pytest.raises(moelab.UserError) as caught:
        moelab.analyze(**arguments)
    assert caught.value.path == path
    assert part in caught.value.message
    assert "--" not in str(caught.value)


def test_parquet_files_are_ids(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    random = np.random.default_rng(6)
    ids = {layer: np.argsort(random.normal(size=(20, 6)), 1)[:, :2] for layer in (1, 2)}
    for layer, array in ids.items():
        table = pa.table({"indices": pa.array(array.tolist(), pa.list_(pa.int16()))})
        parquet.write_table(table, tmp_path / f"layer_{layer}.parquet")
    files = {layer: tmp_path / f"layer_{layer}.parquet" for layer in ids}
    expected = moelab.analyze(experts=ids, expert_count=6, by_score=True)
    assert moelab.analyze(experts=files, expert_count=6, by_score=True).table() == expected.table()
    rows = [(t // 5, t % 5, layer, k, int(ids[layer][t, k])) for t in range(20) for layer in ids for k in (1, 0)]
    names = ("document", "position", "layer", "rank", "expert")
    parquet.write_table(pa.table(dict(zip(names, map(list, zip(*rows))))), tmp_path / "long.parquet")
    tidy = moelab.analyze(experts=tmp_path / "long.parquet", expert_count=6)
    assert tidy["settings"]["documents"] == 4
    assert [row["top1_load"] for row in tidy.expert_table()] == [row["top1_load"] for row in expected.expert_table()]


def test_ctrl_c_ends_a_long_analysis():
    code = (
        "import signal, numpy as np, moelab\n"
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "r = np.random.default_rng(0).dirichlet(np.ones(8), 200_000)\n"
        "x = np.random.default_rng(1).normal(size=(200_000, 16))\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    while True: moelab.analyze(r, inputs=x, labels=np.arange(200_000) % 5)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        try:
            assert process.communicate(timeout=60)[0] == "interrupted\n"
        finally:
            process.kill()
        assert time.monotonic() - begin < 20  # a whole analysis takes longer on a busy machine


@pytest.fixture
def named() -> Any:
    """A matrix of 3 domains and 4 experts. The value of each place is 10 row + column."""
    values = [[10 * row + column for column in range(4)] for row in range(3)]
    return NamedMatrix(values, ["law", "code", "math"], ["0", "1", "2", "3"])


def test_names_of_a_matrix_follow_the_index(named):
    frame = named.frame()
    order = [2, 0, 1]
    assert named[order].frame().equals(frame.iloc[order])
    assert named[:, ::-1].frame().equals(frame.iloc[:, ::-1])
    assert named[:2].frame().equals(frame.iloc[:2])
    assert named[np.array([True, False, True]), 1:].frame().equals(frame.iloc[[0, 2], 1:])
    assert named[np.ix_([1, 0], [3, 2])].frame().equals(frame.iloc[[1, 0], [3, 2]])
    assert named.T.frame().equals(frame.T) and named.transpose().frame().equals(frame.T)
    assert (2 * named).round(1).frame().equals(2 * frame)
    for plain in (named[0], named[:, 0], named[[[0, 1]], [[2, 3]]], named[named > 5], named.mean(0), named.T @ named,
                  named[:1] + named[1:2]):
        assert type(plain) is np.ndarray
    assert float(named[1, 2]) == 12 and [row[0] for row in named] == [0, 10, 20]
    assert list(np.sort(named, axis=0).frame().index) == [0, 1, 2]


def test_claims_of_a_wrong_type_are_refused():
    analysis = moelab.analyze(np.full((4, 2), 0.5))
    with pytest.raises(moelab.UserError, match="claims: got 3"):
        analysis.judge(analysis, 3)


def test_pickles_and_copies_of_a_matrix_keep_its_names(named):
    for other in (pickle.loads(pickle.dumps(named)), copy.copy(named), copy.deepcopy(named), named.copy()):
        assert other.frame().equals(named.frame())
        assert not np.shares_memory(other, named)
