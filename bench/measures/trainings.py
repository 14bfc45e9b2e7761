"""A to D and M: training, compared with peers that train the same problem."""

from dataclasses import dataclass, field
from pathlib import Path

from measures.common import ROOT, WORKLOADS_PROGRAM, median, read_answer

DEBIAN = "/usr/bin/python3"  # the one that Debian's python3-torch and python3-numpy belong to
TITLES = {
    "A": "A: fig2, constant experts",
    "B": "B: fig3, every expert on",
    "C": "C: fig3 to train_nmse 0.01, learned",
    "C_frozen": "C: the same, frozen router",
    "D": "D: 32 linear experts on tokens",
    "M": "M: B with 1024 experts",
}
MEMORY_EXPERTS = 1024
# Programs that start from the same weights and data must agree on the loss of the first batch to float's accuracy.
LOSS_TOLERANCE = 1e-4
# A vector of exponentials is a reduction, a polynomial of degree six and a scaling: ten multiply-adds.
OPERATIONS_OF_EXPONENTIAL = 20


@dataclass
class Peer:
    title: str
    script: str
    workloads: str
    more: list = field(default_factory=list)
    is_current: bool = False  # runs in the Python of --python


PEERS = [
    Peer("PyTorch", "torch_peer.py", "ABCDM"),
    Peer("NumPy", "numpy_peer.py", "AD"),
    Peer("PyTorch", "torch_peer.py", "ABCDM", is_current=True),
    Peer("PyTorch, compiled", "torch_peer.py", "ABDM", ["--compile"], is_current=True),
    Peer("JAX, jit", "jax_peer.py", "ABDM", is_current=True),
    Peer("JAX, vmap over 8 seeds", "jax_peer.py", "ABD", ["--seeds", "8"], is_current=True),
]


def peers_of(workload, python):
    """Those that train it; current releases only where a Python has them."""
    return [peer for peer in PEERS if workload in peer.workloads and (python or not peer.is_current)]


def check_same_problem(runs):
    losses = [record["first_batch_error"] for records in runs.values() for record in records]
    if max(losses) - min(losses) > LOSS_TOLERANCE * max(losses):
        raise SystemExit(f"the programs do not train the same problem: first losses {sorted(set(losses))}")


def two_cells(bench, source, more):
    """Two cells at once, as a run trains them on two threads: their steps together."""
    program = bench.build / WORKLOADS_PROGRAM
    command = [program, source, *more, "--seconds", bench.options.seconds]
    running = [bench.start(command, {cpu}) for cpu in bench.cpus[:2]]
    answers = [read_answer(process) for process in running]
    return dict(answers[0], steps_per_second=sum(answer["steps_per_second"] for answer in answers))


def words_of(name):
    """The workload of moelab_workloads that a training is, and its options."""
    return ("B", ["--experts", str(MEMORY_EXPERTS)]) if name == "M" else (name, [])


def in_turn(items, turn):
    """The items, backwards in every other round."""
    return list(items) if turn % 2 == 0 else list(reversed(list(items)))


def plan_of(bench, name):
    """Each program's measurement."""
    source, more = words_of(name)
    plan = {"moelab": lambda: bench.workload(source, *more)}
    peers = peers_of(name, bench.options.python)
    folder = bench.save(name, source, *more) if peers else None
    if bench.options.threads == 2 and name not in ("C", "C_frozen"):
        plan = {"moelab": lambda: two_cells(bench, source, more)}
    for peer in peers:
        python = bench.options.python if peer.is_current else DEBIAN
        command = [python, ROOT / "bench" / "peers" / peer.script, folder, "--seconds", bench.options.seconds, *peer.more]
        if peer.script == "torch_peer.py":
            command += ["--threads", str(bench.options.threads)]
        plan[(peer.title, peer.is_current)] = lambda command=command: bench.answer(command, bench.own_cpus())
    return plan


def measure_trainings(bench, names):
    """records[name][program]: one record a round, programs in turn, every other round backwards."""
    plans = {name: plan_of(bench, name) for name in names}
    records = {name: {program: [] for program in plan} for name, plan in plans.items()}
    for turn in range(bench.options.rounds):
        for name, plan in plans.items():
            peak = bench.peak()
            for program in in_turn(plan, turn):
                records[name][program].append(dict(plan[program](), **peak))
    for runs in records.values():
        check_same_problem(runs)
    return records


def speed_cell(runs):
    if "reached" in runs[0]:
        text = f"{median(runs, 'seconds'):.2f} s, {median(runs, 'steps'):.0f} steps"
        return text if all(run["reached"] for run in runs) else f"{median(runs, 'train_nmse'):.2g} after {text}"
    rate = median(runs, "steps_per_second")
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def ratio_cell(ours, theirs):
    if "reached" in ours[0]:
        return f"{median(theirs, 'seconds') / median(ours, 'seconds'):.1f}"
    return f"{median(ours, 'steps_per_second') / median(theirs, 'steps_per_second'):.1f}"


def bound_seconds(run, gigabytes):
    """The least time of a step: its products and exponentials at the FMA peak, and its bytes at the speed at which a
    processor copies arrays as large."""
    operations = 1e6 * run["mflop_per_step"] + OPERATIONS_OF_EXPONENTIAL * run["exponentials"]
    return operations / (1e9 * run["peak_gflops"]) + run["bytes"] / (1e9 * gigabytes)


def own_cells(bench, runs):
    """GFLOP/s, its share of the peak, and the share of the bound."""
    if "mflop_per_step" not in runs[0] or bench.options.threads > 1:
        return ["–"] * 3
    gflops, peak = median(runs, "gflops"), median(runs, "peak_gflops")
    gigabytes = bench.copied(runs[0]["needed_memory_mb"])["copied_gigabytes"]
    bound = bound_seconds(dict(runs[0], peak_gflops=peak), gigabytes)
    return [f"{gflops:.0f}", f"{gflops / peak:.0%}", f"{bound * median(runs, 'steps_per_second'):.0%} of {1e6 * bound:,.1f} µs"]


def peer_title(title, version):
    """"PyTorch, compiled" with the release that ran in place of the name: "torch 2.13.0, compiled"."""
    return ",".join([version.split(",")[0], *title.split(",")[1:]])


def training_table(bench, records):
    lines = ["| workload | program | steps/s | moelab's ÷ this | GFLOP/s | of FMA peak | of its bound | peak MB |",
             "|---|---|---|---|---|---|---|---|"]
    for name, runs in records.items():
        for program, own in runs.items():
            is_moelab = program == "moelab"
            title = "moelab" if is_moelab else peer_title(program[0], own[0]["program"])
            cells = [TITLES[name] if is_moelab else "", title, speed_cell(own)]
            cells += ["" if is_moelab else ratio_cell(runs["moelab"], own)]
            cells += own_cells(bench, own) if is_moelab else [""] * 3
            cells += [f"{median(own, 'peak_memory_mb'):.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
    if "M" in records:
        lines += memory_lines(records["M"]["moelab"])
    return lines


def memory_lines(runs):
    peak, needed = median(runs, "peak_memory_mb"), median(runs, "needed_memory_mb")
    return ["", f"Memory on M: {peak:.0f} MB; parameters, gradients, optimizer state, data and one batch's activations are "
            f"{needed:.0f} MB. The peak is {peak / needed:.2f} times that."]
