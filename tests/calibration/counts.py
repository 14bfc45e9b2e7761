"""Counts of intervals and verdicts, with binomial standard errors."""

import math

VERDICTS = ("reproduced", "refuted", "equivalent", "inconclusive", "uninformative")


def standard_error(hits, trials):
    """The binomial standard error of a share, never 0: one trial is added on each side."""
    share = (hits + 1) / (trials + 2)
    return math.sqrt(share * (1 - share) / trials)


def level_of(point):
    """The level of a printed interval. A program that prints none means 95 %."""
    level = point.get("level")
    if level is None:
        return 0.95
    return level / 100 if level > 1 else level


def holds(interval, truth):
    """Whether an interval holds the truth. An end that is null is open."""
    low, high = interval
    return (low is None or low <= truth) and (high is None or truth <= high)


class Counts:
    """What one combination of row, law and number of seeds gave."""

    def __init__(self):
        self.trials = 0
        self.intervals = 0        # printed intervals
        self.covered = 0          # of these, the ones that hold the truth
        self.open = 0             # of these, the ones with an open end
        self.together = 0         # trials in which every printed interval holds the truth
        self.levels = 0.0         # sum of the levels of the intervals
        self.verdicts = dict.fromkeys(VERDICTS, 0)

    def add_intervals(self, intervals):
        """Adds the intervals of a trial: (interval, level, truth)."""
        hits = [holds(interval, truth) for interval, _, truth in intervals]
        self.intervals += len(hits)
        self.covered += sum(hits)
        self.open += sum(interval[0] is None or interval[1] is None for interval, _, _ in intervals)
        self.levels += sum(level for _, level, _ in intervals)
        self.together += all(hits)

    def add_claim(self, claim, truths):
        """Adds a claim. `truths` has the true difference at each of its points, none if the claim is on signs."""
        points = claim["points"]
        self.trials += 1
        self.verdicts[claim["verdict"]] += 1
        self.add_intervals([(point["interval"], level_of(point), truth) for point, truth in zip(points, truths)
                            if truth is not None and point.get("interval") is not None])

    def add_unjudged(self):
        """Adds a trial whose claim the program leaves out."""
        self.trials += 1
        self.verdicts["inconclusive"] += 1

    def document(self, law, seeds):
        """The counts as JSON. Shares stand next to their standard errors."""
        document = {"law": law, "seeds": seeds, "trials": self.trials, "intervals": self.intervals}
        if self.intervals:
            document |= {"covered": self.covered, "coverage": round(self.covered / self.intervals, 4),
                         "coverage_error": round(standard_error(self.covered, self.intervals), 4),
                         "open": self.open, "level": round(self.levels / self.intervals, 6),
                         "together": self.together}
        for verdict in VERDICTS:
            count = self.verdicts[verdict]
            document[verdict] = count
            if self.trials:
                document[verdict + "_share"] = round(count / self.trials, 4)
                document[verdict + "_error"] = round(standard_error(count, self.trials), 4)
        return document
