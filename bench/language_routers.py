"""Measures what each router costs in a causal language model, relative to a linear one.

The costs are parameters, operations, memory and time.

    python3 bench/language_routers.py build/moelab [--width 64] [--steps 60] [--rounds 3]

The model is the one of scenarios/language/perplexity.json with `--width`. Its experts are four times as wide. Each router
of `moelab list` that fits the model takes a turn in every round. `moelab run` trains it for a few steps and for `--steps`
more, on one thread. The difference is the processor time of the steps. Operations are `train_flops`: 6 for each row and
each parameter that it reaches. Operations do not include the mixing of tokens; time and memory do.
"""

import argparse
import csv
import io
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FEW = 4  # steps of the shorter run


def scenario_of(router, width, steps):
    scenario = json.loads((ROOT / "scenarios" / "language" / "perplexity.json").read_text())
    for name in ("$schema", "arms", "evaluations", "claims", "figures", "profiles"):
        scenario.pop(name)
    scenario["data"]["test_samples"] = 2
    scenario["model"] |= {"router": router, "width": width, "feed_forward": 4 * width}
    scenario["train"] |= {"steps": steps, "record_every": steps, "schedule": "constant"}
    scenario["metrics"] = ["task", "training"]
    scenario["seeds"]["count"] = 1
    return scenario


def answer(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    return done.returncode, done.stdout


def measured(*words):
    """Processor seconds and peak memory (MB) of a program."""
    with open(os.devnull, "w") as nothing:
        child = subprocess.Popen([str(word) for word in words], stdout=nothing, stderr=nothing)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} ended with status {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def routers_of(program, folder, width):
    """Those that the model can have, with their scenarios; and why the others cannot be."""
    _, text = answer(program, "list", "--json")
    able, refused = [], {}
    for kind in json.loads(text)["routers"]["kinds"]:
        router = kind["name"]
        file = folder / f"{router}.json"
        file.write_text(json.dumps(scenario_of(router, width, FEW)))
        status, reason = answer(program, "validate", file, "--json")
        if status == 0:
            able.append(router)
        else:
            error = json.loads(reason)["error"]
            if not error["path"].startswith("model.router"):
                raise SystemExit(f"{error['path']}: {error['message']}")
            refused[router] = error["message"]
    return able, refused


def run_of(program, folder, router, width, steps, turn):
    file, out = folder / f"{router}-{steps}.json", folder / f"{router}-{steps}-{turn}"
    file.write_text(json.dumps(scenario_of(router, width, steps)))
    cost = measured(program, "run", file, "--threads", "1", "--force", "--out", out)
    return *cost, out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    program = options.program.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        able, refused = routers_of(program, folder, options.width)
        seconds, memory, counts = {}, {}, {}
        for turn in range(options.rounds):
            for router in able if turn % 2 == 0 else able[::-1]:
                short, _, _ = run_of(program, folder, router, options.width, FEW, turn)
                long, peak, out = run_of(program, folder, router, options.width, FEW + options.steps, turn)
                seconds.setdefault(router, []).append((long - short) / options.steps)
                memory[router] = max(peak, memory.get(router, 0))
                _, text = answer(program, "export", out)
                row = next(csv.DictReader(io.StringIO(text)))
                counts[router] = (int(float(row["parameter_count"])), float(row["train_flops"]) / (FEW + options.steps))
    print("| router | parameters | MFLOP a step | peak MB | ms a step | ÷ linear, median of rounds | least and largest |")
    print("|---|---|---|---|---|---|---|")
    for router in able:
        ratios = [own / plain for own, plain in zip(seconds[router], seconds["linear"])]
        parameters, operations = counts[router]
        print(f"| {router} | {parameters:,} | {operations / 1e6:,.0f} | {memory[router]:.0f} "
              f"| {1e3 * statistics.median(seconds[router]):.1f} | {statistics.median(ratios):.3f} "
              f"| {min(ratios):.3f} – {max(ratios):.3f} |")
    for router, reason in refused.items():
        print(f"\nWithout `{router}`: {reason}.")


main()
