"""Rows whose results come from small real runs: what an import cannot reach.

In a Gaussian mixture, another `data.dim` draws other data. With constant targets and one constant expert the law of
the loss is the same for every `data.dim`. With linear targets and linear experts the losses at two values are almost
independent: their correlation is about 0.2.
"""

import collections
import dataclasses
import json
import math
import random
import re
import statistics
from collections.abc import Callable

from counts import Counts, holds, level_of
from imported import BOTH_WRONG, IMPORTED_ROWS, LOSS, PATH, base_scenario, draw_trials, import_trials, batches_of
from laws import LAWS, SEEDS

OWN_LAW = "the run's own"


@dataclasses.dataclass
class RunRow:
    key: str
    title: str
    claim: str
    truth: str
    wrong: tuple
    measure: Callable  # (program, row, seeds, laws, scale) → {law: Counts}
    trials: dict
    laws: tuple = (OWN_LAW,)
    seeds: tuple = SEEDS

    def wanted(self, seeds, scale):
        return max(4, round(self.trials[seeds] * scale))


def mixture(target, expert, experts=3, steps=4, rate=0.01):
    """A Gaussian mixture in few dimensions, trained in milliseconds."""
    return {"name": "calibration",
            "data": {"generator": "gaussian_mixture", "clusters": 3, "dim": 4, "mean_std": 2, "noise_std": 1,
                     "target": target, "train_samples": 20, "test_samples": 30},
            "model": {"experts": experts, "router": {"kind": "linear"}, "expert": {"kind": expert}},
            "train": {"optimizer": "sgd", "lr": rate, "batch_size": 10, "steps": steps},
            "metrics": ["task"]}


LINEAR = {"kind": "linear", "dim": 1}
CONSTANT = {"kind": "constant", "dim": 2}


def mean_logarithms(program, scenario, path, values, seeds):
    """The mean of ln loss at each value, over many seeds of their own."""
    program.run(scenario | {"sweep": {path: values}, "seeds": {"root": 77, "count": seeds}})
    logs = {value: [] for value in values}
    for cell in program.export():
        logs[int(cell[path])].append(math.log(float(cell[LOSS])))
    return [statistics.fmean(logs[value]) for value in values]


def least_squares(x, y):
    """Slope and intercept."""
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)
    return slope, mean_y - slope * mean_x


# Crossings

def add_crossing(counts, crossing, truth):
    counts.trials += 1
    if crossing["state"] == "crosses" and crossing["interval"] is not None:
        counts.add_intervals([(crossing["interval"], crossing.get("interval_level", 0.95), truth)])


def untrained():
    """Training with a rate below 10⁻⁶ changes no loss. The logarithm of the loss is almost normal."""
    return mixture({"kind": "linear", "dim": 4}, "linear", experts=1, steps=1, rate=1e-9)


def measure_independent_crossing(scenario, level, dims):
    """The crossing of loss · dim with the level along data.dim. Its true value lies in the middle of `dims`."""
    def measure(program, row, seeds, laws, scale):
        logs = mean_logarithms(program, scenario, "data.dim", dims, max(100, round(1500 * min(scale, 1))))
        slope, intercept = least_squares(dims, [log + math.log(dim) for log, dim in zip(logs, dims)])
        truth = (math.log(level) - intercept) / slope
        search = {"metric": f"{LOSS} * data.dim", "level": level, "low": 2, "high": 60}
        counts = Counts()
        for trial in range(row.wanted(seeds, scale)):
            answer = program.run(scenario | {"sweep": {"data.dim": {"crossing": search}},
                                             "seeds": {"root": 1000 + trial, "count": seeds}}, answer=True)
            add_crossing(counts, answer["crossings"][0], truth)
        return {OWN_LAW: counts}
    return measure


DIMS = [16, 24, 32, 48, 64]
LAW_LEVEL = 1e-9


def law_runs(program, row, seeds, scale, is_fitted):
    """Runs with a crossing along train.lr at each of DIMS. With a figure, the program fits a power law to the five.

    Rates are too small to change a loss, so that the losses along train.lr are equal.
    """
    search = {"metric": f"{LOSS} * train.lr / data.dim", "level": LAW_LEVEL, "low": 1e-10, "high": 1e-6,
              "scale": "log", "resolution": 0.1}
    figure = {"id": "law", "kind": "crossing", "x": "data.dim", "power_law": ["data.dim"], "x_scale": "log",
              "y_scale": "log"}
    for trial in range(row.wanted(seeds, scale)):
        yield program.run(untrained() | {"sweep": {"data.dim": DIMS, "train.lr": {"crossing": search}},
                                         "figures": [figure] if is_fitted else [],
                                         "seeds": {"root": 1000 + trial, "count": seeds}}, answer=True)


def true_crossings(program, scale):
    """ln of the true crossing at each of DIMS: the mean of ln (loss · lr ÷ dim) is ln LAW_LEVEL there."""
    logs = mean_logarithms(program, untrained(), "data.dim", DIMS, max(200, round(4000 * min(scale, 1))))
    return [math.log(LAW_LEVEL) + math.log(dim) - log for log, dim in zip(logs, DIMS)]


def measure_shared_crossing(program, row, seeds, laws, scale):
    truths = {dim: math.exp(log) for dim, log in zip(DIMS, true_crossings(program, scale))}
    counts = Counts()
    for answer in law_runs(program, row, seeds, scale, False):
        for crossing in answer["crossings"]:
            add_crossing(counts, crossing, truths[crossing["at"]["data.dim"]])
    return {OWN_LAW: counts}


FITTED = re.compile(r"Power law: constant [^\"<]*?, exponent (-?[\d.e+-]+) \[(-?[\d.e+-]+), (-?[\d.e+-]+)\]")


def measure_power_law(program, row, seeds, laws, scale):
    truth, _ = least_squares([math.log(dim) for dim in DIMS], true_crossings(program, scale))
    counts = Counts()
    for _ in law_runs(program, row, seeds, scale, True):
        counts.trials += 1
        program.ask("report", "results", "--out", "page.html")
        fitted = FITTED.search((program.folder / "page.html").read_text(encoding="utf-8").replace("−", "-"))
        if fitted:
            counts.add_intervals([((float(fitted[2]), float(fitted[3])), 0.95, truth)])
    return {OWN_LAW: counts}


# Families of claims

FAMILIES, MEMBERS = 10, 3


def family_counts(folder):
    """How many families have each verdict."""
    families = json.loads((folder / "families.json").read_text(encoding="utf-8"))
    verdict = families["columns"].index("verdict")
    return collections.Counter(family[verdict] for family in families["data"])


def measure_families(true_members):
    """Families of three claims that quote one sentence. `true_members` of them are surely true, the others at 0."""
    def measure(program, row, seeds, laws, scale):
        scenario = mixture(CONSTANT, "constant", experts=1, steps=1, rate=1e-9)
        # A single expert teaches its router nothing. If the router could learn, no point would be judged.
        scenario["model"]["router"]["trainable"] = False
        scenario["source"] = "A known law"
        scenario["sweep"] = {"data.dim": list(range(2, 2 + 2 * FAMILIES * MEMBERS))}
        scenario["claims"] = []
        for family in range(FAMILIES):
            for member in range(MEMBERS):
                dim = 2 + 2 * (family * MEMBERS + member)
                left = {"arm": "base", "metric": LOSS, "where": {"data.dim": dim}}
                if member < true_members:
                    left["factor"] = 0.001
                scenario["claims"].append(
                    {"id": f"f{family}_{member}", "op": "<", "origin": "paper", "left": left,
                     "right": {"arm": "base", "metric": LOSS, "where": {"data.dim": dim + 1}},
                     "text": f"“Sentence {family} of the paper” Here: part {member}."})
        counts = Counts()
        for trial in range(max(1, round(row.trials[seeds] * scale / FAMILIES))):
            program.run(scenario | {"seeds": {"root": 1000 + trial, "count": seeds}})
            program.ask("report", "results", "--ledger", "ledger")
            found = family_counts(program.folder / "ledger")
            counts.trials += found.total()
            for verdict in counts.verdicts:
                counts.verdicts[verdict] += found[verdict]
        return {OWN_LAW: counts}
    return measure


# Rates of two arms

RATE_DIMS = [2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64]
RATE_METRICS = ["test_loss_soft", "test_loss_top1", "test_loss_eval", "train_loss"]


def measure_slower(program, row, seeds, laws, scale):
    """The slope of imported errors against the slope of a base arm. Both are 0.

    The losses of a base arm do not depend on data.dim. `data.spurious_dims` gives each arm its own draws. Each
    arm has its own metric, so that an import has a trial for each arm.
    """
    arms = range(len(RATE_METRICS))
    scenario = mixture(CONSTANT, "constant", experts=1, steps=1, rate=1e-9)
    scenario["arms"] = {f"b{arm}": {"data.spurious_dims": 65 * arm} for arm in arms}
    scenario["sweep"] = {"data.dim": RATE_DIMS}
    scenario["claims"] = [{"id": f"c{arm}", "op": "slower", "arm": f"b{arm}", "than": f"b{arm}",
                           "metric": RATE_METRICS[arm], "along": "data.dim"} for arm in arms]
    counts = {law: Counts() for law in laws}
    for trial in range(max(1, round(row.trials[seeds] * scale / len(arms)))):
        program.run(scenario | {"seeds": {"root": 1000 + trial, "count": seeds}})
        for place, law in enumerate(laws):
            rng = random.Random(f"{row.key}/{law}/{seeds}/{trial}")
            program.import_arm(f"l{place}", ["seed", "data.dim", *RATE_METRICS],
                               [[str(seed), str(dim)] + [f"{math.exp(0.15 * LAWS[law](rng)):.12g}" for _ in arms]
                                for seed in range(seeds) for dim in RATE_DIMS])
        for (_, arm), claim in program.imported_claims().items():
            counts[laws[int(arm[1:])]].add_claim(claim, [0])
    return counts


# Sequential verdicts

FIRST_LOOK, LAST_LOOK = 6, 40
RATIO = next(row for row in IMPORTED_ROWS if row.key == "ratio")


def decided_scenario(guesses):
    """A scenario that adds seeds up to the cap: the last claims compare a loss with its mean."""
    scenario = base_scenario(RATIO, 2)
    scenario["claims"] += [{"id": f"open{place}", "op": "~", "tolerance": 1e-12,
                            "left": {"arm": "base", "metric": "train_loss"}, "right": {"value": guess}}
                           for place, guess in enumerate(guesses)]
    return scenario


def measure_sequential(program, row, seeds, laws, scale):
    """Each look is a run folder whose plan has that many seeds. A trial keeps its first verdict."""
    program.run(base_scenario(RATIO, 2) | {"seeds": {"root": 1, "count": 400}, "claims": [], "evaluations": {}})
    mean = statistics.fmean(math.log(float(cell["train_loss"])) for cell in program.export())
    scenario = decided_scenario([math.exp(mean + shift) for shift in (-0.05, 0, 0.05)])
    batches = list(enumerate(batches_of(row, seeds, scale)))
    trials = {(law, batch): draw_trials(RATIO, law, LAST_LOOK, f"sequential {batch}", size)
              for law in laws for batch, size in batches}
    verdicts, missed, levels = {}, set(), {}
    for look in range(FIRST_LOOK, seeds + 1):
        program.run(scenario, "--until-decided", "--max-seeds", look)
        for (law, batch), values in trials.items():
            import_trials(program, RATIO, "trials", look, values)
            for (name, _), claim in program.imported_claims().items():
                trial = law, batch, int(name[1:]) if name[1:].isdigit() else None
                if trial[2] is None or trial[2] >= len(values):
                    continue
                if claim["verdict"] != "inconclusive":
                    verdicts.setdefault(trial, claim["verdict"])
                interval = claim["points"][0]["interval"]
                levels[trial] = level_of(claim["points"][0])
                if interval is not None and not holds(interval, 0):
                    missed.add(trial)
    counts = {law: Counts() for law in laws}
    for (law, batch), values in trials.items():
        for number in range(len(values)):
            trial = law, batch, number
            counts[law].trials += 1
            counts[law].verdicts[verdicts.get(trial, "inconclusive")] += 1
            counts[law].add_intervals([((1, 1) if trial in missed else (0, 0), levels.get(trial, 0.95), 0)])
    return counts


NO_VERDICT = ()
CROSSING = "The mean of a metric over seeds crosses a level. A search by bisection places the points."

RUN_ROWS = [
    RunRow("slower", "Rate of one arm against the rate of another",
           "The error of one arm falls more slowly than the error of the other. There are 11 sizes.",
           "Both slopes are 0. The law is the law of the imported arm. The other arm is a real run.", BOTH_WRONG,
           measure_slower, {3: 400, 5: 400, 10: 400, 40: 200}, laws=tuple(LAWS)),
    RunRow("crossing_independent", "Crossing, other noise at each point",
           CROSSING + " The path is `data.dim` in [2, 60], the metric `test_loss_soft * data.dim`, the level 60.",
           "The crossing of the mean over 1,500 further seeds, at about 28. The noise is skew at large dimensions.",
           NO_VERDICT, measure_independent_crossing(mixture(LINEAR, "linear", experts=1), 60, list(range(22, 35))),
           {3: 500, 5: 1000, 10: 500, 40: 200}),
    RunRow("crossing_normal", "Crossing, other noise at each point, almost normal",
           CROSSING + " The path is `data.dim` in [2, 60], the metric `test_loss_soft * data.dim`, the level 175.",
           "The crossing of the mean over 1,500 further seeds, at about 31.", NO_VERDICT,
           measure_independent_crossing(untrained(), 175, list(range(25, 38))), {3: 500, 5: 1000, 10: 500, 40: 200}),
    RunRow("crossing_shared", "Crossing, the same noise at each point",
           CROSSING + " The path changes the metric and keeps the draws of each seed.",
           "The crossing of the mean over 4,000 further seeds. Each run has five crossings.", NO_VERDICT,
           measure_shared_crossing, {3: 120, 5: 120, 10: 120, 40: 60}),
    RunRow("power_law", "Power law of crossings",
           "The crossings at five dimensions are proportional to a power of the dimension.",
           "The exponent of the crossings of the mean over 4,000 further seeds.", NO_VERDICT,
           measure_power_law, {3: 300, 5: 300, 10: 300, 40: 100}),
    RunRow("families", "Family of three claims",
           "Three claims quote one sentence of a paper. Each says that left is below right.",
           "The mean log ratio is 0 in all three. Each is refuted by chance in 2.5 %, and one refutes the family: 7.3 %.",
           BOTH_WRONG, measure_families(0),
           {3: 400, 5: 400, 10: 400, 40: 200}),
    RunRow("families_one_false", "Family of three claims, two of them true",
           "Three claims quote one sentence of a paper. Each says that left is below right.",
           "Two claims are surely true. The mean log ratio of the third is 0.", BOTH_WRONG, measure_families(2),
           {3: 400, 5: 400, 10: 400, 40: 200}),
    RunRow("sequential", "Sequential verdict, a look after every seed",
           "Left is below right. The first look is after 6 seeds, the last after as many as the column says.",
           "The mean log ratio is 0. An interval covers if the intervals of all looks do.", BOTH_WRONG,
           measure_sequential, {10: 500, 40: 300}, laws=tuple(LAWS), seeds=(10, 40)),
]
