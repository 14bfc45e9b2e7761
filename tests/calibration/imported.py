"""Rows whose results are imported.

A run folder has 100 columns of metrics, one or two for each trial, and a claim on each. An imported arm holds 100
trials, and one command judges them. The base arm only gives the plan: one of its cells runs.
"""

import dataclasses
import math
import random
from collections.abc import Callable

from counts import Counts
from laws import LAWS, SEEDS

TRIALS = 100  # in one imported arm
PATH = "data.train_samples"
SIZES = [2**power for power in range(4, 15)]  # of rates
SLOPE, EXPONENT, TOLERANCE = -0.6, -0.5, 0.1  # the true slope is at the edge of what the claim allows
RATE_TRUTH = [SLOPE - EXPONENT]
STEPS = 1000  # after which a run is censored
LOSS, OTHER_LOSS = "test_loss_soft", "test_loss_top1"  # positive: claims compare logarithms
ACCURACY, OTHER_ACCURACY = "test_accuracy_soft", "test_accuracy_top1"
BOTH_WRONG = ("reproduced", "refuted")


@dataclasses.dataclass
class ImportedRow:
    key: str
    title: str
    claim: str  # what is claimed, in words
    truth: str  # the truth, in words
    wrong: tuple  # the verdicts that are wrong for this truth
    metrics: tuple  # of a trial, by column_name
    claims: Callable  # the claim on a trial, from its metrics
    trial: Callable  # (draw, rng, seeds) → {metric: [[value for each point] for each seed]}
    truths: list  # the true difference at each point of the claim
    points: tuple = (16,)
    trials: dict = dataclasses.field(default_factory=lambda: {3: 1000, 5: 1000, 10: 1000, 40: 500})
    by_name: bool = False  # the metric's name has the trial behind it, and an evaluation before it otherwise
    laws: tuple = tuple(LAWS)
    seeds: tuple = SEEDS

    def column_name(self, metric, trial):
        return f"{metric}.{trial}" if self.by_name else f"e{trial}.{metric}"


def base_scenario(row, seeds):
    """A scenario whose cells train in milliseconds."""
    scenario = {
        "name": "calibration",
        "data": {"generator": "token_topics", "topics": 2, "topics_per_sequence": 1, "dim": 2, "tokens": 2,
                 "target": {"kind": "class", "classes": 2}, "train_samples": 16, "test_samples": 2},
        "model": {"experts": 2, "router": {"kind": "linear"}, "expert": {"kind": "constant"}},
        "train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 2, "steps": 1},
        "metrics": ["task"],
        "sweep": {PATH: list(row.points)},
        "seeds": {"root": 1, "count": seeds},
        "claims": [{"id": f"c{trial}", **row.claims(*(row.column_name(metric, trial) for metric in row.metrics))}
                   for trial in range(TRIALS)],
    }
    if row.by_name:
        # The base arm reaches every target. A column is known to the import if a cell has a value of it.
        scenario["train"]["steps"] = scenario["train"]["record_every"] = STEPS
        names = {row.column_name(metric, trial).split(".", 1)[1] for metric in row.metrics for trial in range(TRIALS)}
        scenario["metrics"] += [{"kind": "convergence", "name": name, "metric": "train_loss", "target": 1e9,
                                 "direction": "below"} for name in sorted(names)]
    else:
        scenario["evaluations"] = {f"e{trial}": {"data.test_samples": 2} for trial in range(TRIALS)}
    return scenario


def import_trials(program, row, arm, seeds, trials):
    """Imports the first `seeds` seeds of at most TRIALS trials."""
    columns, fields = ["seed", PATH], []
    for number, trial in enumerate(trials):
        for metric, values in trial.items():
            columns.append(row.column_name(metric, number))
            fields.append(values)
    rows = []
    for seed in range(seeds):
        for place, point in enumerate(row.points):
            rows.append([str(seed), str(point)] + ["" if field[seed][place] is None else f"{field[seed][place]:.12g}"
                                                   for field in fields])
    program.import_arm(arm, columns, rows)


def draw_trials(row, law, seeds, batch, count):
    rng = random.Random(f"{row.key}/{law}/{seeds}/{batch}")
    return [row.trial(lambda: LAWS[law](rng), rng, seeds) for _ in range(count)]


def batches_of(row, seeds, scale):
    """The numbers of trials in each imported arm."""
    wanted = max(20, round(row.trials[seeds] * scale))
    return [min(TRIALS, wanted - start) for start in range(0, wanted, TRIALS)]


def measure_imported(program, row, seeds, laws, scale):
    """The counts of a row for one number of seeds, by law."""
    scenario = base_scenario(row, seeds)
    if row.by_name:  # each base cell tells the last step
        program.run(scenario)
    else:
        program.run(scenario, "--share", f"0/{seeds * len(row.points)}")
    counts = {law: Counts() for law in laws}
    for law in laws:
        for batch, size in enumerate(batches_of(row, seeds, scale)):
            import_trials(program, row, "trials", seeds, draw_trials(row, law, seeds, batch, size))
            claims = program.imported_claims()
            for trial in range(size):
                # The program leaves a claim out if all values of a column are censored.
                if row.by_name and (f"c{trial}", "trials") not in claims:
                    counts[law].add_unjudged()
                else:
                    counts[law].add_claim(claims[f"c{trial}", "trials"], row.truths)
    return counts


# Trials

def difference_trial(draw, rng, seeds):
    """Raw differences with mean 0 and standard deviation 0.01, around a value that both sides share."""
    shared = [0.5 + 0.02 * rng.gauss(0, 1) for _ in range(seeds)]
    return {ACCURACY: [[value + 0.01 * draw()] for value in shared], OTHER_ACCURACY: [[value] for value in shared]}


def ratio_trial(means, deviation):
    """Log ratios with a mean at each point."""
    def trial(draw, rng, seeds):
        left, right = [], []
        for _ in range(seeds):
            shared = [math.exp(0.5 * rng.gauss(0, 1)) for _ in means]
            right.append(shared)
            left.append([value * math.exp(mean + deviation * draw()) for value, mean in zip(shared, means)])
        return {LOSS: left, OTHER_LOSS: right}
    return trial


def flat_trial(points):
    """A loss that does not depend on the swept value. Each seed has its own level."""
    def trial(draw, rng, seeds):
        rows = []
        for _ in range(seeds):
            level = 0.5 * rng.gauss(0, 1)
            rows.append([math.exp(level + 0.3 * draw()) for _ in range(points)])
        return {LOSS: rows}
    return trial


STEPS_METRIC, CENSORED = "steps_to_target", "steps_to_target_censored"


def censored_trial(draw, rng, seeds):
    """Steps of two arms with one law. One to four in ten are above the last step, by the law."""
    level = {name: [] for name in (f"{metric}.{side}" for metric in (STEPS_METRIC, CENSORED) for side in "ab")}
    for _ in range(seeds):
        for side in "ab":
            steps = max(1, round(STEPS * math.exp(-0.4 + 0.8 * draw())))
            level[f"{STEPS_METRIC}.{side}"].append([steps if steps <= STEPS else None])
            level[f"{CENSORED}.{side}"].append([0 if steps <= STEPS else 1])
    return level


def rate_trial(deviations, outliers=0.0):
    """Errors n^SLOPE. The logarithm has noise of a standard deviation for each size. Outliers are 20 times as large."""
    def trial(draw, rng, seeds):
        rows = []
        for _ in range(seeds):
            row = []
            for size, deviation in zip(SIZES, deviations):
                log = SLOPE * math.log(size) + deviation * draw()
                if outliers and rng.random() < outliers:
                    log += math.log(20)
                row.append(math.exp(log))
            rows.append(row)
        return {LOSS: rows}
    return trial


# Claims

def compared(op, **fields):
    def claim(left, right):
        return {"op": op, "left": {"arm": "base", "metric": left}, "right": {"arm": "base", "metric": right}, **fields}
    return claim


def trend(**fields):
    return lambda metric: {"op": "decreases", "arm": "base", "metric": metric, "along": PATH, **fields}


def rate(**fields):
    return lambda metric: {"op": "rate", "arm": "base", "metric": metric, "along": PATH, "exponent": EXPONENT,
                           "tolerance": TOLERANCE, **fields}


EDGE = math.log(1.1)
EQUAL_SPREAD = [0.5] * len(SIZES)
UNEQUAL_SPREAD = [0.2 * 4 ** (place / (len(SIZES) - 1)) for place in range(len(SIZES))]
RATE_CLAIM = "The slope of ln error on ln n is −.5 ± .1. Sizes n are 2⁴, 2⁵, …, 2¹⁴."
RATE_CASE = "The slope is −.6, at the edge of the claim."
OUTLIERS = " Three in ten errors are 20 times as large, as in over-specified fits."
FEWER = {3: 500, 5: 500, 10: 500, 40: 300}

IMPORTED_ROWS = [
    ImportedRow("difference", "Difference of two arms", "Left is below right. The differences are raw.",
                "The mean difference is 0.", BOTH_WRONG, (ACCURACY, OTHER_ACCURACY), compared("<"),
                difference_trial, [0]),
    ImportedRow("ratio", "Ratio of two arms",
                "Left is below right. The metric is positive, so logarithms are compared.",
                "The mean log ratio is 0.", BOTH_WRONG, (LOSS, OTHER_LOSS), compared("<"), ratio_trial([0], 0.3), [0]),
    ImportedRow("equivalence", "Equivalence (`~`)", "Left equals right within 10 %.",
                "The mean log ratio is ln 1.1, at the edge of the band. Its standard deviation is .03.", BOTH_WRONG,
                (LOSS, OTHER_LOSS), compared("~", tolerance=0.1), ratio_trial([EDGE], 0.03), [EDGE]),
    ImportedRow("smallest_effect", "Smallest effect", "Left is below right. Effects below 10 % do not matter.",
                "The mean log ratio is −ln 1.1: the claim is true, and the effect just matters. "
                "The standard deviation is .03.",
                ("equivalent", "refuted"), (LOSS, OTHER_LOSS), compared("<", smallest_effect=0.1),
                ratio_trial([-EDGE], 0.03), [-EDGE]),
    ImportedRow("trend_ends", "Trend, judged by its ends", "The metric decreases along five swept values.",
                "The metric does not depend on the swept value.", BOTH_WRONG, (LOSS,), trend(), flat_trial(5), [0],
                points=(16, 32, 64, 128, 256)),
    ImportedRow("trend_monotone", "Trend, judged as monotone",
                "The metric decreases along five swept values, and no step goes up.",
                "The metric does not depend on the swept value.", BOTH_WRONG, (LOSS,), trend(shape="monotone"),
                flat_trial(5), [0] * 5, points=(16, 32, 64, 128, 256)),
    ImportedRow("censored", "Steps to a target, censored", "The left arm needs fewer steps.",
                "Both arms have the same law of steps. One to four in ten runs do not reach the target.", BOTH_WRONG,
                (f"{STEPS_METRIC}.a", f"{STEPS_METRIC}.b"), compared("<"), censored_trial, [None], by_name=True),
    ImportedRow("points_5", "Five sweep points", "Left is below right at each of five points.",
                "The mean log ratio is 0 at each point.", BOTH_WRONG, (LOSS, OTHER_LOSS), compared("<"),
                ratio_trial([0] * 5, 0.3), [0] * 5, points=(16, 32, 64, 128, 256), trials=FEWER),
    ImportedRow("points_20", "Twenty sweep points", "Left is below right at each of 20 points.",
                "The mean log ratio is 0 at each point.", BOTH_WRONG, (LOSS, OTHER_LOSS), compared("<"),
                ratio_trial([0] * 20, 0.3), [0] * 20, points=tuple(range(16, 36)),
                trials={3: 300, 5: 300, 10: 300, 40: 200}),
    ImportedRow("points_one_false", "Five sweep points, one of them false",
                "Left is below right at each of five points.",
                "The mean log ratio is 0 at the last point. At the others it is −3, ten standard deviations.",
                BOTH_WRONG, (LOSS, OTHER_LOSS), compared("<"), ratio_trial([-3] * 4 + [0], 0.3), [-3] * 4 + [0],
                points=(16, 32, 64, 128, 256), trials=FEWER),
    ImportedRow("rate", "Rate, average of logarithms", RATE_CLAIM,
                RATE_CASE + " The noise of ln error has the standard deviation .5.", BOTH_WRONG, (LOSS,),
                rate(), rate_trial(EQUAL_SPREAD), RATE_TRUTH, points=tuple(SIZES)),
    ImportedRow("rate_unequal", "Rate, average of logarithms, unequal noise", RATE_CLAIM,
                RATE_CASE + " The standard deviation of ln error grows from .2 to .8 along the sizes.", BOTH_WRONG,
                (LOSS,), rate(), rate_trial(UNEQUAL_SPREAD), RATE_TRUTH, points=tuple(SIZES), trials=FEWER),
    ImportedRow("rate_outliers", "Rate, average of logarithms, with outliers", RATE_CLAIM,
                RATE_CASE + OUTLIERS, BOTH_WRONG, (LOSS,), rate(),
                rate_trial(EQUAL_SPREAD, 0.3), RATE_TRUTH, points=tuple(SIZES), trials=FEWER),
    ImportedRow("rate_squares", "Rate, average of squares", RATE_CLAIM,
                RATE_CASE + " The noise of ln error has the standard deviation .5.", BOTH_WRONG, (LOSS,),
                rate(average="squares"), rate_trial(EQUAL_SPREAD), RATE_TRUTH, points=tuple(SIZES), trials=FEWER),
    ImportedRow("rate_squares_outliers", "Rate, average of squares, with outliers", RATE_CLAIM,
                RATE_CASE + OUTLIERS, BOTH_WRONG, (LOSS,), rate(average="squares"),
                rate_trial(EQUAL_SPREAD, 0.3), RATE_TRUTH, points=tuple(SIZES), trials=FEWER),
]
