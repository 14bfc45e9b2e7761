"""E: cells of a run on threads and in processes. F: draws."""

import statistics
import subprocess
import tempfile
import time

from measures.common import ROOT, median


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
