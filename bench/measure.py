#!/usr/bin/python3
"""Measures moelab and its peers in turn and prints the medians as Markdown tables. Started by bench/run."""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from measures.against import WORKLOADS, compare, compare_builds, stored
from measures.common import ROOT, Bench
from measures.growth import measure_growth
from measures.routers import measure_clustering, measure_formulas, measure_mixing
from measures.threads import measure_draws, measure_threads
from measures.tokens import measure_token_parts
from measures.trainings import TITLES, measure_trainings, training_table

OTHERS = {"E": measure_threads, "F": measure_draws, "G": measure_growth, "H": measure_clustering, "I": measure_mixing,
          "J": measure_formulas, "T": measure_token_parts}
ALL = sorted([name for name in TITLES if len(name) == 1] + list(OTHERS))


def processor():
    names = re.findall(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else "unknown processor"


def heading(bench, records):
    peak = bench.peak()
    text = (f"{processor()}, {len(bench.cpus)} processors, vector level {peak['vector_level']}, FMA peak of one core "
            f"{peak['peak_gflops']:.0f} GFLOP/s (float), medians of {bench.options.rounds} interleaved runs on "
            + ("one thread." if bench.options.threads == 1 else "two threads, moelab's on two cells, as a run has them."))
    cores = {run["openblas_core"] for runs in records.values() for own in runs.values() for run in own
             if run.get("openblas_core", "none") != "none"}
    return [text + (f" OpenBLAS kernels of Debian's peers: {', '.join(sorted(cores))}." if cores else "")] + (
        [] if bench.options.python else ["", "Current releases of PyTorch and JAX were left out: no --python was given."])


def write_readme(text):
    readme = ROOT / "bench" / "README.md"
    before, rest = readme.read_text().split("<!-- results -->\n", 1)
    after = rest.split("<!-- end of results -->\n", 1)[1]
    readme.write_text(f"{before}<!-- results -->\n{text}<!-- end of results -->\n{after}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD",
                        help=f"of {' '.join(ALL)}, beside another build of {' '.join(WORKLOADS)}; all without")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved runs of each program (default 5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement (default 2)")
    parser.add_argument("--threads", type=int, choices=[1, 2], default=1, help="of each program (default 1)")
    parser.add_argument("--python", type=Path, help="a Python with torch 2, jax and numpy: peers of today")
    parser.add_argument("--build", type=Path, default=ROOT / "build-bench", help="folder of the built programs")
    parser.add_argument("--against", type=Path, metavar="PLACE",
                        help="a results.json, or the folder of another build, to compare with; slower by 3 %%: status 1")
    parser.add_argument("--readme", action="store_true", help="put the tables into bench/README.md")
    options = parser.parse_args()
    allowed = WORKLOADS if options.against and options.against.is_dir() else ALL
    if unknown := sorted(set(options.workloads) - set(allowed)):
        parser.error(f"unknown workload {' '.join(unknown)}; allowed are {' '.join(allowed)}")
    if options.rounds < 1 or options.seconds <= 0:
        parser.error(f"--rounds {options.rounds} --seconds {options.seconds:g}: rounds must be at least 1, seconds positive")
    return options


def main():
    options = arguments()
    chosen = [name for name in ALL if name in options.workloads or not options.workloads]
    slower = []
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch = scratch
        bench = Bench(options)
        if options.against and options.against.is_dir():
            lines, slower = compare_builds(bench, options.against, options.workloads or WORKLOADS)
            print("\n".join(lines))
            return 1 if slower else 0
        names = [name for name in chosen if name in TITLES]
        if "C" in names:
            names.insert(names.index("C") + 1, "C_frozen")
        records = measure_trainings(bench, names)
        lines = heading(bench, records) + [""]
        if records:
            lines += training_table(bench, records)
        for name in chosen:
            lines += OTHERS[name](bench) if name in OTHERS else []
    if options.against:
        more, slower = compare(options.against, stored(records))
        lines += more
    (options.build / "results.json").write_text(json.dumps(stored(records), indent=1) + "\n")
    text = "\n".join(lines) + "\n"
    (options.build / "results.md").write_text(text)
    if options.readme:
        write_readme(text)
    print(text, end="")
    return 1 if slower else 0


sys.exit(main())
