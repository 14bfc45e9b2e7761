"""analyze: the program's numbers and reasons, from memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import moelab

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
