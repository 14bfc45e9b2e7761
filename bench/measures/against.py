"""Compares a build with another one, or a result with a stored one."""

import json
import shutil
import statistics
import tempfile
from pathlib import Path

from measures.common import WORKLOADS_PROGRAM
from measures.trainings import in_turn, words_of

SLOWDOWN = 0.03
# What two builds are compared on: every training and routers that do more than a product.
WORKLOADS = ["A", "B", "C", "C_frozen", "D", "K", "L", "M", "S", "H_adaptive", "I_similarity", "I_attention", "J_cosine"]


def stored(records):
    """{workload: [steps of a second for each GFLOP/s of the peak, one a round]}, moelab's. Machines differ in their peak."""
    return {name: [run["steps_per_second"] / run["peak_gflops"] for run in runs["moelab"]] for name, runs in records.items()}


def table_of(head, rows):
    """A table of ratios now ÷ before. Also names the workloads that are slower by 3 % and more. A row holds its name and
    both speeds. Their ratio and the ratios of single rounds follow."""
    lines = ["", head, "", "| workload | before | now | now ÷ before | least and largest of the rounds |", "|---|---|---|---|---|"]
    slower = []
    for name, before, now, ratio, ratios in rows:
        lines.append(f"| {name} | {before:.3g} | {now:.3g} | {ratio:.3f} | {min(ratios):.3f} – {max(ratios):.3f} |")
        if ratio < 1 - SLOWDOWN:
            slower.append(f"{name} ({1 - ratio:.0%})")
    lines += ["", f"Slower by {SLOWDOWN:.0%} and more: " + (", ".join(slower) if slower else "none") + "."]
    return lines, slower


def compare(path, now):
    before = json.loads(path.read_text())
    rows = []
    for name in [name for name in now if name in before]:
        old = statistics.median(before[name])
        ratios = [value / old for value in now[name]]
        rows.append((name, old, statistics.median(now[name]), statistics.median(ratios), ratios))
    return table_of(f"Beside {path.name}, steps for each GFLOP/s of the peak, medians:", rows)


def compare_builds(bench, before, names):
    """Both builds train each workload in turn. Every other round goes backwards. The fastest rounds are compared, because
    other work on the machine only slows a round.

    Each round runs a fresh copy of both programs. Where a copy lies in memory changes its speed by up to 4 %: two
    copies of one program differed by that, round after round."""
    builds = {"before": before, "now": bench.build}
    rows = []
    for name in names:
        source, more = words_of(name)
        speeds = {build: [] for build in builds}
        for turn in range(bench.options.rounds):
            for build in in_turn(builds, turn):
                with tempfile.TemporaryDirectory() as copy:
                    program = Path(copy) / WORKLOADS_PROGRAM
                    program.parent.mkdir()
                    shutil.copy(builds[build] / WORKLOADS_PROGRAM, program)
                    speeds[build].append(bench.workload(source, *more, build=Path(copy))["steps_per_second"])
        ratios = [now / then for now, then in zip(speeds["now"], speeds["before"])]
        fastest = {build: max(of_rounds) for build, of_rounds in speeds.items()}
        rows.append((name, fastest["before"], fastest["now"], fastest["now"] / fastest["before"], ratios))
    head = f"Beside the build in {before}, steps a second, the fastest of {bench.options.rounds} rounds in turn:"
    return table_of(head, rows)
