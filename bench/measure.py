#!/usr/bin/python3
"""Measures moelab and its peers in turn and prints the medians as Markdown tables. Started by bench/run."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch and python3-numpy belong to
ALL = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "M"]
PEERS = {
    "A": ["torch", "numpy"],
    "B": ["torch"],
    "C": ["torch"],
    "C_frozen": [],
    "D": ["torch", "numpy"],
    "M": ["torch"],
}
TITLES = {
    "A": "A: fig2, constant experts",
    "B": "B: fig3, every expert on",
    "C": "C: fig3 to train_nmse 0.01, learned",
    "C_frozen": "C: the same, frozen router",
    "D": "D: 32 linear experts on tokens",
    "M": "M: B with 1024 experts",
}
MEMORY_EXPERTS = 1024
STACKS = {"": "d 24, experts of width 32", "_wide": "d 128, experts of width 512"}
GROWTH_SECONDS = 0.5
GROWTH = {
    "E, constant experts": ("A", "--experts", [16, 64, 256, 1024, 4096]),
    "E, MLP experts behind a specialised router": ("S", "--experts", [16, 64, 256, 1024, 4096]),
    "d, constant experts": ("A", "--dim", [12, 24, 48, 96, 192]),
    "batch, constant experts": ("A", "--batch", [64, 128, 256, 512, 1024]),
    "n, constant experts": ("A", "--samples", [2560, 10240, 40960, 163840]),
}
# Programs that start from the same weights and data must agree on the loss of the first batch to float's accuracy.
LOSS_TOLERANCE = 1e-4


class Bench:
    def __init__(self, options):
        self.options = options
        self.build = options.build
        self.scratch = Path(options.scratch)
        self.cpus = sorted(os.sched_getaffinity(0))
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
            self.environment[name] = "1"

    def answer(self, command):
        """The line of JSON of a program on the last processor alone."""
        print("  " + " ".join(Path(str(word)).name for word in command), file=sys.stderr, flush=True)
        done = subprocess.run(
            [str(word) for word in command],
            env=self.environment,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {self.cpus[-1]}),
        )
        return json.loads(done.stdout)

    def workload(self, name, *more, seconds=None):
        program = self.build / "bench" / "moelab_workloads"
        return self.answer([program, name, *more, "--seconds", seconds or self.options.seconds])

    def save(self, name, *more):
        folder = self.scratch / name
        subprocess.run([self.build / "bench" / "moelab_workloads", *more, "--save", folder], check=True)
        return folder

    def peak(self):
        return self.answer([self.build / "bench" / "moelab_fma_peak"])


def median(records, key):
    return statistics.median(record[key] for record in records)


def check_same_problem(records):
    losses = [record["first_batch_error"] for runs in records.values() for record in runs]
    if max(losses) - min(losses) > LOSS_TOLERANCE * max(losses):
        raise SystemExit(f"the programs do not train the same problem: first losses {sorted(set(losses))}")


def measure_trainings(bench, names):
    """records[name][program]: one record a round, programs in turn, every other round backwards."""
    plans = {}
    for name in names:
        source = "B" if name == "M" else name
        more = ["--experts", str(MEMORY_EXPERTS)] if name == "M" else []
        folder = bench.save(name, source, *more) if PEERS[name] else None
        plans[name] = {"moelab": lambda source=source, more=more: bench.workload(source, *more)}
        for peer in PEERS[name]:
            script = ROOT / "bench" / "peers" / f"{peer}_peer.py"
            command = [PYTHON, script, folder, "--seconds", bench.options.seconds]
            plans[name][peer] = lambda command=command: bench.answer(command)
    records = {name: {program: [] for program in plan} for name, plan in plans.items()}
    peaks = []
    for turn in range(bench.options.rounds):
        print(f"round {turn + 1} of {bench.options.rounds}", file=sys.stderr)
        for name, plan in plans.items():
            peaks.append(bench.peak())
            for program in list(plan) if turn % 2 == 0 else reversed(list(plan)):
                records[name][program].append(plan[program]())
    for runs in records.values():
        check_same_problem(runs)
    return records, peaks


def speed_cell(runs):
    if not runs:
        return "–"
    if "reached" in runs[0]:
        text = f"{median(runs, 'seconds'):.2f} s, {median(runs, 'steps'):.0f} steps"
        return text if all(run["reached"] for run in runs) else f"{median(runs, 'train_nmse'):.2g} after {text}"
    rate = median(runs, "steps_per_second")
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def ratio_cell(ours, theirs):
    if not theirs:
        return "–"
    if "reached" in ours[0]:
        return f"{median(theirs, 'seconds') / median(ours, 'seconds'):.1f}"
    return f"{median(ours, 'steps_per_second') / median(theirs, 'steps_per_second'):.1f}"


def training_table(records, peak):
    lines = [
        "| workload | moelab steps/s | PyTorch steps/s | NumPy steps/s | ÷ PyTorch | ÷ NumPy | GFLOP/s | of FMA peak "
        "| peak MB: moelab | PyTorch | NumPy |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in records.items():
        ours, torch, numpy = (runs.get(program, []) for program in ["moelab", "torch", "numpy"])
        gflops = median(ours, "gflops") if "gflops" in ours[0] else None
        cells = [TITLES[name], speed_cell(ours), speed_cell(torch), speed_cell(numpy)]
        cells += [ratio_cell(ours, torch), ratio_cell(ours, numpy)]
        cells += [f"{gflops:.0f}", f"{gflops / peak:.0%}"] if gflops else ["–", "–"]
        cells += [f"{median(runs, 'peak_memory_mb'):.0f}" if runs else "–" for runs in [ours, torch, numpy]]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def memory_lines(runs):
    peak, needed = median(runs["moelab"], "peak_memory_mb"), median(runs["moelab"], "needed_memory_mb")
    torch = median(runs["torch"], "peak_memory_mb")
    return [
        "",
        f"Memory on M: moelab {peak:.0f} MB, PyTorch {torch:.0f} MB; parameters, gradients, optimizer state, data and one "
        f"batch's activations are {needed:.0f} MB, of which moelab's peak is {peak / needed:.2f} times.",
    ]


def measure_threads(bench):
    if len(bench.cpus) < 2:
        return ["", "E needs two processors; here is one."]
    program, scenario = bench.build / "moelab", ROOT / "bench" / "many_cells.json"
    halves = [["--set", "seeds.count=8"], ["--set", "seeds.count=8", "--set", "seeds.root=2"]]
    ways = {
        "one thread": [["--threads", "1"]],
        "two threads": [["--threads", "2"]],
        "two processes of 8": [["--threads", "1", *half] for half in halves],
    }
    seconds = {way: [] for way in ways}
    for turn in range(bench.options.rounds):
        for way in list(ways) if turn % 2 == 0 else reversed(list(ways)):
            with tempfile.TemporaryDirectory(dir=bench.scratch) as out:
                start = time.perf_counter()
                processes = [
                    subprocess.Popen(
                        [program, "run", scenario, "--out", f"{out}/{number}", *arguments],
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                    )
                    for number, arguments in enumerate(ways[way])
                ]
                if any([process.wait() for process in processes]):
                    raise SystemExit(f"E: moelab run failed ({way})")
                seconds[way].append(time.perf_counter() - start)
    middle = {way: statistics.median(values) for way, values in seconds.items()}
    ratio = middle["two processes of 8"] / middle["two threads"]
    text = ", ".join(f"{way} {value:.2f} s" for way, value in middle.items())
    return ["", f"E, 16 cells of fig2 with 2000 steps: {text}. Two threads have {ratio:.2f} of the speed of two processes."]


def measure_draws(bench):
    runs = [bench.workload("F", seconds=1) for _ in range(bench.options.rounds)]
    samples, normals = median(runs, "samples_per_second"), median(runs, "normals_per_second")
    return ["", f"F, draws of fig2's mixture: {samples / 1e6:.2f} million samples/s, {normals / 1e6:.0f} million normals/s."]


def router_lines(bench, workload, title, routers):
    """What routers cost beside a plain one, in processor time, which a few percent can be told apart in."""
    lines = ["", f"{workload}, processor time of a step of {title}:", ""]
    lines += ["| | router | plain router, µs | this one, µs | ratio, median of rounds | least and largest |"]
    lines += ["|---|---|---|---|---|---|"]
    for ending, size in STACKS.items():
        names = [f"{workload}_{router}{ending}" for router in ["plain"] + list(routers)]
        steps = {name: [] for name in names}
        for turn in range(bench.options.rounds):
            for name in names if turn % 2 == 0 else reversed(names):
                run = bench.workload(name)
                steps[name].append(1e6 * run["processor_seconds"] / run["steps"])
        plain = steps.pop(names[0])
        for values, router in zip(steps.values(), routers.values()):
            ratios = [own / base for own, base in zip(values, plain)]
            cells = [size, router, f"{statistics.median(plain):,.0f}", f"{statistics.median(values):,.0f}"]
            cells += [f"{statistics.median(ratios):.3f}", f"{min(ratios):.3f} – {max(ratios):.3f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def measure_clustering(bench):
    return router_lines(bench, "H", "two layers of 16 experts, top-2, batch 256", {"adaptive": "adaptive clustering"})


def measure_mixing(bench):
    return router_lines(bench, "I", "attention and 16 experts, top-2, 16 sequences of 32 tokens",
                        {"similarity": "similarity-aware", "attention": "attention-aware"})


def measure_growth(bench):
    runs = {}
    for _ in range(bench.options.rounds):
        for title, (name, option, values) in GROWTH.items():
            for value in values:
                run = bench.workload(name, option, str(value), seconds=GROWTH_SECONDS)
                runs.setdefault((title, value), []).append(run)
    lines = ["", "G, growth, one thread:", ""]
    lines.append("| against | value | step, µs | router's product, µs | step without it, µs | its softmax, µs "
                 "| active experts a row | a batch | peak MB | needed MB |")
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    outside = {}
    for (title, value), records in runs.items():
        step = 1e6 / median(records, "steps_per_second")
        product = median(records, "router_product_microseconds")
        outside[title, value] = step - product
        numbers = [step, product, step - product, median(records, "router_softmax_microseconds")]
        cells = [title, str(value)] + [f"{number:,.1f}" for number in numbers]
        cells += [f"{median(records, 'active_experts_per_row'):.1f}", f"{median(records, 'active_experts_per_batch'):.0f}"]
        cells += [f"{median(records, key):.0f}" for key in ["peak_memory_mb", "needed_memory_mb"]]
        lines.append("| " + " | ".join(cells) + " |")
    special = "E, MLP experts behind a specialised router"
    ratio = outside[special, 4096] / outside[special, 256]
    lines += ["", f"Behind a specialised router, a step outside the router's product takes {ratio:.1f} times as long at "
              "E = 4096 as at E = 256."]
    return lines


def processor():
    names = re.findall(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else "unknown processor"


def write_readme(text):
    readme = ROOT / "bench" / "README.md"
    before, rest = readme.read_text().split("<!-- results -->\n", 1)
    after = rest.split("<!-- end of results -->\n", 1)[1]
    readme.write_text(f"{before}<!-- results -->\n{text}<!-- end of results -->\n{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {' '.join(ALL)}; all without")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved runs of each program (default 5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement (default 2)")
    parser.add_argument("--build", type=Path, default=ROOT / "build-bench", help="folder of the built programs")
    parser.add_argument("--readme", action="store_true", help="put the tables into bench/README.md")
    options = parser.parse_args()
    unknown = set(options.workloads) - set(ALL)
    if unknown or options.rounds < 1 or options.seconds <= 0:
        parser.error(f"workloads are {' '.join(ALL)}, rounds at least 1, seconds positive; got {' '.join(unknown)}")
    chosen = [name for name in ALL if name in options.workloads or not options.workloads]
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch = scratch
        bench = Bench(options)
        names = [name for name in chosen if name in PEERS]
        if "C" in names:
            names.insert(names.index("C") + 1, "C_frozen")
        records, peaks = measure_trainings(bench, names)
        peaks = peaks or [bench.peak()]
        peak = median(peaks, "peak_gflops")
        lines = [f"{processor()}, {len(bench.cpus)} processors, vector level {peaks[0]['vector_level']}, FMA peak of one "
                 f"core {peak:.0f} GFLOP/s (float), medians of {options.rounds} interleaved runs on one thread.", ""]
        programs = {runs[0]["program"] for kinds in records.values() for runs in kinds.values()} - {"moelab"}
        if programs:
            cores = {run["openblas_core"] for kinds in records.values() for runs in kinds.values() for run in runs
                     if "openblas_core" in run}
            lines[0] += f" Peers: {', '.join(sorted(programs))}, OpenBLAS kernels {', '.join(sorted(cores))}."
        if records:
            lines += training_table(records, peak)
        if "M" in records:
            lines += memory_lines(records["M"])
        for name, measure in {"E": measure_threads, "F": measure_draws, "G": measure_growth, "H": measure_clustering, "I": measure_mixing}.items():
            if name in chosen:
                lines += measure(bench)
    text = "\n".join(lines) + "\n"
    (bench.build / "results.md").write_text(text)
    if options.readme:
        write_readme(text)
    print(text, end="")


main()
