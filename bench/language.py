#!/usr/bin/env python3
"""Measures workload L, a language model of four mixtures, beside PyTorch 2, whose Python is given; programs take turns
on one processor. Prints a Markdown table."""

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from measures.common import ROOT, read_answer, start_program

STYLES = {"loop over experts": ["--style", "user"], "sorted rows": ["--style", "expert"],
          "sorted rows, compiled": ["--style", "expert", "--compile"]}
# Programs that start from the same weights and data must agree on the loss of the first batch to float's accuracy.
LOSS_TOLERANCE = 1e-5


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="a Python that has torch 2 and numpy")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved runs of each program (default 5)")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one measurement (default 4)")
    parser.add_argument("--build", type=Path, default=ROOT / "build-bench", help="folder of the built programs")
    parser.add_argument("--compiled", action="store_true", help="with torch.compile, too")
    options = parser.parse_args()
    program = options.build / "bench" / "moelab_workloads"
    peer = ROOT / "bench" / "peers" / "language_peer.py"
    cpu = max(os.sched_getaffinity(0))

    def answer(command):
        return read_answer(start_program(command, {cpu}))

    styles = {name: words for name, words in STYLES.items() if options.compiled or "--compile" not in words}
    records = {name: [] for name in ["moelab", *styles]}
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "L", "--save", folder], check=True)
        plan = {"moelab": [program, "L"]}
        plan.update({name: [options.python, peer, folder, *words] for name, words in styles.items()})
        for turn in range(options.rounds):
            peaks.append(answer([options.build / "bench" / "moelab_fma_peak"])["peak_gflops"])
            for name in list(plan) if turn % 2 == 0 else reversed(list(plan)):
                records[name].append(answer([*plan[name], "--seconds", options.seconds]))
    losses = [record["first_batch_error"] for runs in records.values() for record in runs]
    if max(losses) - min(losses) > LOSS_TOLERANCE * max(losses):
        raise SystemExit(f"the programs do not train the same problem: first losses {sorted(set(losses))}")
    ours = statistics.median(run["tokens_per_second"] for run in records["moelab"])
    print(f"FMA peak of one core {statistics.median(peaks):.0f} GFLOP/s, medians of {options.rounds} rounds.\n")
    print("| program | tokens/s | moelab's ÷ this | peak MB |\n|---|---|---|---|")
    for name, runs in records.items():
        rate = statistics.median(run["tokens_per_second"] for run in runs)
        memory = statistics.median(run["peak_memory_mb"] for run in runs)
        title = name if name == "moelab" else f"{runs[0]['program'].split(',')[0]}, {name}"
        print(f"| {title} | {rate:,.0f} | {ours / rate:.2f} | {memory:.0f} |")


main()
