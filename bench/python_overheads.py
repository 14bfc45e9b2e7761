"""Measures what Python adds to the program: the processor time of the same work, in turns.

    python bench/python_overheads.py build/moelab [--rounds 5]

P1: `analyze` of (10^6, 64) probabilities with labels. Python has them in memory, the program reads .npy files.

P2: training on the largest set of fig2, by `sample` and `train` against `moelab run` of one cell. The cell is also
measured at its start and at its end.

P3: a step with a linear router in Python against a step with the built-in router.

The program's time includes its start and its files. The package's time excludes its import and the drawing of P1's
arrays.
"""

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import moelab

ROOT = Path(__file__).resolve().parent.parent
ROWS, EXPERTS, CLUSTERS = 10**6, 64, 64
STEPS = 2000  # of P3


def own_seconds(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def seconds_of(*words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def analysis(program, folder):
    random = np.random.default_rng(1)
    probs = random.random((ROWS, EXPERTS))
    probs /= probs.sum(axis=1, keepdims=True)
    labels = random.integers(0, CLUSTERS, ROWS)
    np.save(folder / "probs.npy", probs)
    np.save(folder / "labels.npy", labels)
    words = [program, "analyze", "--probs", folder / "probs.npy", "--labels", folder / "labels.npy", "--json"]
    answer = json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True).stdout)
    if moelab.analyze(probs, labels=labels) != answer:
        raise SystemExit("P1: the package and the program answer differently")
    return lambda: own_seconds(lambda: moelab.analyze(probs, labels=labels)), lambda: seconds_of(*words)


def one_cell():
    scenario = json.loads((ROOT / "scenarios" / "dikkala2023" / "fig2a.json").read_text())
    for name in ("$schema", "sweep", "claims", "figures", "profiles"):
        scenario.pop(name, None)
    scenario["seeds"]["count"] = 1
    scenario["metrics"] = ["task"]
    scenario["save"] = ["weights"]
    scenario["train"]["record_every"] = scenario["train"]["steps"]
    return scenario


def trained(scenario, **changes):
    data = moelab.sample(scenario)
    return moelab.train(data.x, data.y, model=scenario["model"] | changes, train=scenario["train"], loss=scenario["loss"])


def training(program, folder):
    scenario, file = one_cell(), folder / "fig2.json"
    file.write_text(json.dumps(scenario))
    words = [program, "run", file, "--threads", "1", "--force", "--out"]
    subprocess.run([str(word) for word in [*words, folder / "checked"]], check=True, capture_output=True)
    run = moelab.read(folder / "checked")
    saved, own = run.arrays(run.table()["cell"][0]), trained(scenario).arrays()
    if any(own[name].tobytes() != saved[name].tobytes() for name in own):
        raise SystemExit("P2: the package and the program train differently")
    turns = iter(range(1000))
    return lambda: own_seconds(lambda: trained(scenario)), lambda: seconds_of(*words, folder / f"run{next(turns)}")


def routers(_program, _folder):
    scenario = one_cell()
    scenario["train"]["steps"] = STEPS
    own = moelab.routers.python(lambda x, w: x @ w.T, lambda x, w, delta: (delta.T @ x, None))
    return lambda: own_seconds(lambda: trained(scenario, router=own)), lambda: own_seconds(lambda: trained(scenario))


WORKS = {
    "P1: `analyze` of (10^6, 64)": (analysis, "package", "program"),
    "P2: fig2, sample and train": (training, "package", "program"),
    f"P3: fig2, {STEPS} steps": (routers, "router in Python", "built in"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| work | | s | | s | ratio, median of rounds | least and largest |")
    print("|---|---|---|---|---|---|---|")
    for title, (prepare, left, right) in WORKS.items():
        with tempfile.TemporaryDirectory() as folder:
            sides = prepare(options.program.resolve(), Path(folder))
            seconds = ([], [])
            for turn in range(options.rounds):
                for side in (0, 1) if turn % 2 == 0 else (1, 0):
                    seconds[side].append(sides[side]())
        ratios = [own / other for own, other in zip(*seconds)]
        own, other = (statistics.median(values) for values in seconds)
        print(f"| {title} | {left} | {own:.2f} | {right} | {other:.2f} | {statistics.median(ratios):.3f} "
              f"| {min(ratios):.3f} – {max(ratios):.3f} |", flush=True)


main()
