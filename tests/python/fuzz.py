"""Random calls of what moelab offers: each ends with an answer, or with one UserError.

    python tests/python/fuzz.py --seconds 600 [--seed 7] [--case 1234] [--last FILE]

What a case calls depends on the seed and its number alone. The number of the case at hand is kept in the file of
--last, so that one that ends the process is known: --case calls it alone. With an extension built with
-fsanitize=address (the preset `address` with -DMOELAB_PYTHON=ON), LD_PRELOAD has libasan.so and libstdc++.so.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from conftest import tiny_scenario
from odd_values import Random, changed, odd_array, odd_layout, odd_value

import moelab

ARRAYS = ["probs", "logits", "labels", "inputs", "router", "embeddings", "expert_outputs", "previous_probs",
          "previous_logits", "previous_assignments"]


class Cases:
    """What is called, and what the calls share: a run, and a saved model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        small = tiny_scenario()
        small["seeds"]["count"] = 1
        small["train"] |= {"steps": 4, "record_every": 2}
        self.scenario = small
        self.run = moelab.run(small, out=folder / "run", progress=False)
        data = moelab.sample(small)
        self.x, self.y = data.x, data.y
        self.model = moelab.train(data.x, data.y, model=small["model"], train=small["train"])
        self.model.save(folder / "model.npz")
        self.saved = (folder / "model.npz").read_bytes()

    def analyze(self, random: Random) -> None:
        n, experts = (int(size) for size in random.integers(1, 6, size=2))
        rows = (n, 2) if random.random() < 0.3 else (n,)
        shapes = {"inputs": (*rows, 3), "router": (experts, 3), "embeddings": (*rows, 2), "expert_outputs": (*rows, experts, 2)}
        names = {str(name) for name in random.choice(ARRAYS, size=random.integers(1, 4), replace=False)}
        given = {}
        for name in sorted(names | (set() if "logits" in names else {"probs"})):
            shape = rows if name in ("labels", "previous_assignments") else shapes.get(name, (*rows, experts))
            fit = random.integers(0, experts, size=shape) if shape == rows else random.dirichlet(np.ones(shape[-1]), shape[:-1])
            given[name] = odd_layout(random, fit) if random.random() < 0.85 else odd_array(random, shape)
        for name in ("top_k", "neighbours"):
            if random.random() < 0.2:
                given[name] = odd_value(random)
        answer = moelab.analyze(**given)
        assert {"metrics", "skipped", "intervals", "settings", "checks", "layers"} <= set(answer)
        assert all(math.isfinite(value) for value in answer["metrics"].values()), answer["metrics"]

    def train(self, random: Random) -> None:
        spec = {"model": self.scenario["model"], "train": self.scenario["train"]}
        if random.random() < 0.6:
            spec = changed(random, spec, int(random.integers(1, 3)))
        spec.setdefault("model", {})
        spec.setdefault("train", {})
        if isinstance(spec["train"], dict):
            spec["train"]["steps"] = 3
        given: dict[str, Any] = {"x": self.x, "y": self.y, **{k: v for k, v in spec.items() if k in ("model", "train")}}
        if random.random() < 0.5:
            given["x"] = odd_array(random, (5, 3))
            given["y"] = odd_array(random, (5, 2) if random.random() < 0.7 else (5,))
        for name in ("labels", "loss", "seed"):
            if random.random() < 0.2:
                given[name] = odd_array(random, (5,)) if name == "labels" else odd_value(random)
        model = moelab.train(**given)
        self.ask(random, model)

    def ask(self, random: Random, model: moelab.Model | None = None) -> None:
        model = model or self.model
        shape = (3, model.about["input_dim"])
        if random.random() < 0.5:
            model.predict(odd_array(random, shape), gating=odd_value(random) if random.random() < 0.3 else "soft")
        else:
            model.route(odd_array(random, shape), layer=odd_value(random) if random.random() < 0.3 else 0)

    def scenarios(self, random: Random) -> None:
        scenario: Any = changed(random, self.scenario, int(random.integers(1, 4)))
        if random.random() < 0.05:
            scenario = odd_value(random)
        given = {}
        if random.random() < 0.3:
            given["overrides"] = {str(odd_value(random)): odd_value(random), "model.experts": odd_value(random)}
        if random.random() < 0.1:
            given["profile"] = odd_value(random)
        if random.random() < 0.5:
            moelab.validate(scenario, **given)
        else:
            moelab.sample(scenario, **given, arm=odd_value(random) if random.random() < 0.2 else None,
                          at={"data.train_samples": odd_value(random)} if random.random() < 0.2 else None)

    def runs(self, random: Random) -> None:
        scenario = changed(random, self.scenario, int(random.integers(1, 3)))
        if isinstance(scenario.get("train"), dict):
            scenario["train"]["steps"] = 2
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            run = moelab.run(scenario, out=folder, threads=1, progress=False)
            run.table(trace=True)
            run.verdicts()
            for figure in run.about["figures"]:
                run.figure_data(figure)

    def arms(self, random: Random) -> None:
        columns = {"seed": [0, 0], "data.train_samples": [32, 64], "test_nmse_top1": [0.1, 0.2]}
        frame: Any = {name: odd_array(random, (2,)) if random.random() < 0.3 else values for name, values in columns.items()}
        for name in ("state", "cell", "arm", "x", "effective_experts"):
            if random.random() < 0.1:
                frame[name] = [odd_value(random), odd_value(random)]
        if random.random() < 0.1:
            frame = odd_value(random)
        self.run.add_arm("mine" if random.random() < 0.8 else odd_value(random), frame)
        self.run.verdicts()

    def models(self, random: Random) -> None:
        content = bytearray(self.saved)
        if random.random() < 0.5:
            for _ in range(random.integers(1, 6)):
                content[random.integers(len(content))] = random.integers(256)
            if random.random() < 0.2:
                content = content[: random.integers(len(content))]
        else:
            self.write_model(random)
            content = bytearray((self.folder / "other.npz").read_bytes())
        file = self.folder / "damaged.npz"
        file.write_bytes(bytes(content))
        self.ask(random, moelab.Model.load(file))

    def write_model(self, random: Random) -> None:
        """A whole archive whose document or arrays are other ones."""
        import json

        with np.load(self.folder / "model.npz") as stored:
            arrays = {name: stored[name] for name in stored.files}
        document = json.loads(str(arrays.pop("moelab_model")[()]))
        if random.random() < 0.7:
            document = changed(random, document, 1)
        else:
            name = list(arrays)[random.integers(len(arrays))]
            arrays[name] = np.asarray(random.random(random.integers(0, 4, size=random.integers(0, 3))))
        try:
            text = json.dumps(document)
        except (TypeError, ValueError):
            text = "{}"
        np.savez(self.folder / "other.npz", moelab_model=np.array(text.encode().decode("ascii")), **arrays)

    def routers(self, random: Random) -> None:
        def forward(x: np.ndarray, w: np.ndarray) -> Any:
            return x @ w.T if w.shape == (4, 6) and random.random() < 0.7 else odd_array(random, (len(x), 4))

        def backward(x: np.ndarray, w: np.ndarray, delta: np.ndarray) -> Any:
            if random.random() < 0.1:
                return odd_value(random)
            return odd_array(random, w.shape) if random.random() < 0.3 else delta.T @ x, None

        parameters = odd_array(random, (4, 6)) if random.random() < 0.5 else None
        router = moelab.routers.python(forward, backward, parameters=parameters)
        train = self.scenario["train"] | {"precision": str(random.choice(["float", "double"]))}
        moelab.train(self.x, self.y, model=self.scenario["model"] | {"router": router}, train=train)

    def names(self, random: Random) -> None:
        value = odd_value(random)
        asked = [
            lambda: moelab.kinds(value) if value is not None else None,
            lambda: moelab.check("x" if value is None or isinstance(value, list) else value),
            lambda: moelab.read(value),
            lambda: moelab.read(self.run.directory, plan=value),
            lambda: self.run.figure_data(value),
            lambda: self.run.arrays(value),
            lambda: moelab.Model.load(value),
            lambda: moelab.run(self.scenario, out=self.run.directory, threads=value, progress=False),
            lambda: moelab.run(self.scenario, profile=value, out=self.run.directory, progress=False),
        ]
        asked[random.integers(len(asked))]()


KINDS = {"analyze": 4, "train": 3, "ask": 2, "scenarios": 4, "runs": 1, "arms": 2, "models": 2, "routers": 1, "names": 1}


def one_case(cases: Cases, seed: int, number: int) -> tuple[str, str]:
    """Calls it: its kind, and "answered" or "refused". Whatever else it raises is raised."""
    random = np.random.default_rng([seed, number])
    kinds = [kind for kind, share in KINDS.items() for _ in range(share)]
    kind = kinds[random.integers(len(kinds))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            getattr(cases, kind)(random)
        except moelab.UserError as error:
            assert str(error) and "--" not in error.path, error
            return kind, "refused"
        except OSError as error:
            assert "name too long" in str(error), error
            return kind, "refused"
    return kind, "answered"


def fuzz(seconds: float, seed: int, folder: Path, last: Path | None = None) -> Counter[tuple[str, str]]:
    """Cases for so long, in order; what came out of them."""
    cases = Cases(folder)
    counts: Counter[tuple[str, str]] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number = counts.total()
        if last:
            last.write_text(f"{number}\n")
        try:
            counts[one_case(cases, seed, number)] += 1
        except Exception as error:
            raise AssertionError(f"case {number} of seed {seed} raised {type(error).__name__}: {error}") from error
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "little"))
    parser.add_argument("--case", type=int)
    parser.add_argument("--last", type=Path, default=Path(tempfile.gettempdir()) / "moelab_fuzz_case")
    given = parser.parse_args()
    print(f"seed {given.seed}; the case at hand stands in {given.last}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if given.case is not None:
            print(*one_case(Cases(Path(folder)), given.seed, given.case))
            return 0
        try:
            counts = fuzz(given.seconds, given.seed, Path(folder), given.last)
        except AssertionError:
            traceback.print_exc()
            return 1
    print(f"{counts.total()} cases: " + ", ".join(f"{kind} {end} {count}" for (kind, end), count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
