"""The page docs/calibration.md, from the table as JSON."""

from counts import standard_error

OWN_LAW = "the run's own"
NOISE = ("The first lists are for normal noise. Where results cannot be imported, they are for the noise of real "
         "trainings.")
LAW_TEXTS = {
    "normal": "the normal law",
    "log-normal": "exp(z) with z normal: skew, with a long upper tail",
    "exponential": "the exponential law: skew",
    "t(3)": "Student's law with 3 degrees of freedom: symmetric, with outliers on both sides",
    "uniform": "the uniform law: bounded",
    "rare failures": "normal, but one run of ten lies 10 standard deviations higher",
}
HEAD = """# How often intervals and verdicts are right

The program judged thousands of results whose true values are known. This page counts how often its intervals held the
true value, and how often its verdicts were wrong.

"""


def percent(share):
    return f"{100 * share:.1f}"


def keeps(cell):
    """Whether the coverage is within 1 % of the level, as far as the trials can tell."""
    return cell["coverage"] + 2 * cell["coverage_error"] >= cell["level"] - 0.01


def pooled(cells):
    """The cells as one: coverage and level over all their intervals."""
    intervals = sum(cell["intervals"] for cell in cells)
    covered = sum(cell["covered"] for cell in cells)
    return {"coverage": covered / intervals, "coverage_error": standard_error(covered, intervals),
            "level": sum(cell["level"] * cell["intervals"] for cell in cells) / intervals}


def has_intervals(row):
    return any(cell["intervals"] for cell in row["cells"])


def cells_of(row, law):
    return [cell for cell in row["cells"] if cell["law"] == law]


def laws_of(row):
    return list(dict.fromkeys(cell["law"] for cell in row["cells"]))


def seeds_of(row):
    return sorted({cell["seeds"] for cell in row["cells"]})


def wrong_share(row, cell):
    return sum(cell.get(verdict, 0) for verdict in row["wrong"]) / cell["trials"]


def lowest(row, law):
    """The cell of the law with the lowest coverage below its level; none without intervals."""
    cells = [cell for cell in cells_of(row, law) if cell["intervals"]]
    return min(cells, key=lambda cell: cell["coverage"] - cell["level"]) if cells else None


def table_text(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def list_text(items):
    return "".join(f"- {item}\n" for item in items)


def lead(rows):
    """The point of the page: which rows keep their level with normal noise or their own, and which do not."""
    keep, miss = [], []
    for row in rows:
        if not has_intervals(row):
            continue
        law = laws_of(row)[0]  # normal, or the run's own
        cells = [cell for cell in cells_of(row, law) if cell["intervals"]]
        bad = [cell for cell in cells if not keeps(cell)]
        if bad:
            numbers = ", ".join(f"{percent(cell['coverage'])} % with {cell['seeds']} seeds" for cell in bad)
            miss.append(f"**{row['title']}**: {numbers}.")
        elif not keeps(pooled(cells)):
            miss.append(f"**{row['title']}**: {percent(pooled(cells)['coverage'])} % over all numbers of seeds.")
        else:
            keep.append(row["title"])
    text = f"{NOISE} "
    if miss:
        text += "These intervals hold the true value less often than they say:\n\n" + list_text(miss) + "\n"
    if keep:
        text += (f"{'The other' if miss else 'All'} intervals hold the true value as often as they say "
                 "(95 %, less at most 1 % and two standard errors):\n\n" + list_text(keep) + "\n")
    bad = {}
    for row in rows:
        for law in laws_of(row)[1:]:
            cell = lowest(row, law)
            if cell and not keeps(cell) and (law not in bad or cell["coverage"] < bad[law][1]["coverage"]):
                bad[law] = row, cell
    if bad:
        text += "With other laws of the noise, the lowest coverage of all rows is:\n\n"
        text += list_text(f"{law}: {percent(cell['coverage'])} % ({row['title']}, {cell['seeds']} seeds)"
                          for law, (row, cell) in bad.items()) + "\n"
    return text


READING = """## How to read the tables

A **seed** is one repetition of a training. An **arm** is one of the compared settings. A **claim** says, for example,
that the loss of arm A is below the loss of arm B. The program takes the difference at each seed and prints its mean
with a 95 % interval: the interval of a paired t-test. The **verdict** follows from the interval:

- `reproduced`: the interval lies on the claimed side.
- `refuted`: the interval lies on the other side.
- `equivalent`: the interval lies within effects that do not matter.
- `inconclusive`: none of these.

Each row of the tables has {fewest} to {most} results under each law of the noise.

- **Coverage** is the share of intervals that contain the true value. It should be 95 %, or the level that the program
  prints with the interval.
- **Wrong verdicts** contradict the truth, or are not justified by it. Most rows put the truth exactly at the border of
  the claim. There, the t-test decides wrongly in 2.5 % of cases for each side. The right answer is `inconclusive`.
- ± is the binomial standard error.

The laws of the noise have mean 0 and one standard deviation:

"""


def reading(rows):
    """How to read the tables, with the fewest and the most results of a row under one law."""
    results = [sum(cell["trials"] for cell in cells_of(row, law)) for row in rows for law in laws_of(row)]
    return READING.format(fewest=f"{min(results):,}", most=f"{max(results):,}")


def overview(rows):
    """Two tables: the lowest coverage and the largest share of wrong verdicts, over the numbers of seeds."""
    laws = [*LAW_TEXTS, OWN_LAW]
    coverages, wrongs = [], []
    for row in rows:
        coverage, wrong = [row["title"]], [row["title"]]
        for law in laws:
            cell = lowest(row, law)
            text = "" if cell is None else f"{percent(cell['coverage'])} ({cell['seeds']})"
            coverage.append(text if cell is None or keeps(cell) else f"**{text}**")
            cells = cells_of(row, law)
            if not cells:
                wrong.append("")
                continue
            worst = max(cells, key=lambda cell: wrong_share(row, cell))
            share = wrong_share(row, worst)
            text = f"{percent(share)} ({worst['seeds']})"
            is_large = share - 2 * standard_error(share * worst["trials"], worst["trials"]) > 0.06
            wrong.append(f"**{text}**" if is_large else text)
        if has_intervals(row):
            coverages.append(coverage)
        if row["wrong"]:
            wrongs.append(wrong)
    text = ("## Overview\n\nLowest coverage over the numbers of seeds, in %. The number of seeds is in parentheses. "
            "Bold: more than 1 % and two standard errors below the level.\n\n" + table_text(["", *laws], coverages))
    text += ("\nLargest share of wrong verdicts over the numbers of seeds, in %, both sides together. Bold: more than "
             "two standard errors above 6 %. A family of three claims is refuted by chance in 7.3 %.\n\n"
             + table_text(["", *laws], wrongs))
    return text


def trials_text(row):
    """ "1,000 (3, 5, 10 seeds); 500 (40 seeds)" """
    by_trials = {}
    for seeds in seeds_of(row):
        trials = max(cell["trials"] for cell in row["cells"] if cell["seeds"] == seeds)
        by_trials.setdefault(trials, []).append(str(seeds))
    return "; ".join(f"{trials:,} ({', '.join(seeds)} seeds)" for trials, seeds in by_trials.items())


def coverage_table(row, before):
    lines = []
    for law in laws_of(row):
        line = [law]
        for seeds in seeds_of(row):
            cell = next((cell for cell in cells_of(row, law) if cell["seeds"] == seeds), None)
            if cell is None or not cell["intervals"]:
                line.append("")
                continue
            text = f"{percent(cell['coverage'])} ± {percent(cell['coverage_error'])}"
            old = before.get((row["key"], law, seeds))
            if old and old["intervals"]:
                text += f" ({percent(old['coverage'])})"
            line.append(text)
        lines.append(line)
    return table_text(["coverage, %", *(f"{seeds} seeds" for seeds in seeds_of(row))], lines)


def verdict_table(row, before):
    """Shares of the wrong verdicts and of inconclusive: "2.4 / 2.6 / 95.0", and the largest standard error."""
    shown = [*row["wrong"], "inconclusive"]
    lines, largest = [], 0.0
    for law in laws_of(row):
        line, old_line = [law], ["&nbsp;&nbsp;before"]
        for seeds in seeds_of(row):
            cell = next((cell for cell in cells_of(row, law) if cell["seeds"] == seeds), None)
            old = before.get((row["key"], law, seeds))
            for found, texts in ((cell, line), (old, old_line)):
                shares = [found.get(verdict, 0) / found["trials"] for verdict in shown] if found else []
                texts.append(" / ".join(map(percent, shares)))
            if cell:
                errors = [standard_error(cell.get(verdict, 0), cell["trials"]) for verdict in shown]
                largest = max(largest, *errors)
        lines.append(line)
        if any(old_line[1:]):
            lines.append(old_line)
    text = table_text([" / ".join(shown) + ", %", *(f"{seeds} seeds" for seeds in seeds_of(row))], lines)
    return text + f"\nThe largest standard error of these shares is {percent(largest)} %.\n"


def level_text(row):
    """Which levels the program printed, if they differ from 95 %."""
    levels = sorted({cell["level"] for cell in row["cells"] if cell["intervals"]})
    if not levels or levels == [0.95]:
        return ""
    ends = dict.fromkeys(f"{100 * level:.4g} %" for level in (levels[0], levels[-1]))
    return f"Level of the printed intervals: {' to '.join(ends)}.\n\n"


def together_text(row):
    """In how many trials with several points all intervals hold the truth."""
    if row["points"] == 1 or all(cell["intervals"] <= cell["trials"] for cell in row["cells"]):
        return ""
    cells = cells_of(row, laws_of(row)[0])
    numbers = ", ".join(f"{percent(cell['together'] / cell['trials'])} % with {cell['seeds']} seeds" for cell in cells)
    return f"Normal noise: all intervals of a claim hold the truth together in {numbers}.\n\n"


def missing_text(row):
    """Shares of trials without an interval, and of open intervals, for rows without verdicts."""
    if row["wrong"]:
        return ""
    cells = [cell for cell in row["cells"] if cell["intervals"]]
    parts = [f"{percent(cell.get('open', 0) / cell['intervals'])} % with {cell['seeds']} seeds" for cell in cells]
    return f"Intervals with an open end: {', '.join(parts)}.\n\n" if any(cell.get("open") for cell in cells) else ""


def row_text(row, before):
    text = f"### {row['title']}\n\n- Claim: {row['claim']}\n- Truth: {row['truth']}\n"
    if row["wrong"]:
        text += f"- Wrong verdicts: {', '.join(f'`{verdict}`' for verdict in row['wrong'])}.\n"
    text += f"- Trials for each law: {trials_text(row)}.\n\n"
    if has_intervals(row):
        text += coverage_table(row, before) + "\n" + level_text(row) + together_text(row) + missing_text(row)
    if row["wrong"]:
        text += verdict_table(row, before) + "\n"
    return text


def reference_text(reference):
    if not reference:
        return ""
    lines = [[f"{row['repetitions']} × {row['sizes']}", row["law"], percent(row["weighted"]), percent(row["plain"])]
             for row in reference["rows"]]
    return ("## A cross-check without the program\n\nNumPy simulates the interval of a rate from "
            f"{reference['trials']:,} trials. \"Weighted\" divides by variances that come from the same data. \"Plain\" "
            "is ordinary least squares in each repetition. Both then take Student's interval of the mean slope.\n\n"
            + table_text(["repetitions × sizes", "noise", "weighted, %", "plain, %"], lines) + "\n")


def share_text(before, table):
    """How many trials the earlier build judged: "half as many trials of"."""
    share = before["scale"] / table["scale"]
    known = {1: "trials of", 0.5: "half as many trials of"}
    return known.get(share, f"{share:g} times as many trials of")


def page_text(table, before):
    rows = [row for row in table["rows"] if row["cells"]]
    old = {}
    if before and before["program"] != table["program"]:
        old = {(row["key"], cell["law"], cell["seeds"]): cell for row in before["rows"] for cell in row["cells"]}
    text = HEAD + lead(rows)
    text += reading(rows) + list_text(f"**{law}**: {words}." for law, words in LAW_TEXTS.items())
    text += (f"- **{OWN_LAW}**: the noise of small real trainings, where a result cannot be imported.\n\n")
    text += overview(rows)
    text += "\n## All numbers\n\n"
    if old:
        text += (f"In parentheses and in the lines \"before\": an earlier build, {before['program']}, on "
                 f"{share_text(before, table)} the same laws.\n\n")
    text += "".join(row_text(row, old) for row in rows)
    text += reference_text(table.get("reference"))
    text += (f"## How it is made\n\nThese commands make this page. Do not edit it by hand.\n\n```\ntests/calibration/measure build/moelab --jobs {table['jobs']} --out "
             "tests/calibration/table.json\ntests/calibration/measure --page docs/calibration.md\n```\n\n"
             f"The first command took {table['minutes']:.0f} minutes with {table['jobs']} processes. The build was "
             f"{table['program']}.\n")
    return text
