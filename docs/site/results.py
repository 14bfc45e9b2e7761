"""Makes the pages of results from the JSON files of docs/results.

The home page has counts by paper and a table of all claims. Each run has a page with its figure, its claims and their
points. The checks of theorems have one page. Texts of runs may hold any characters: tables are HTML with escaped texts.

A page of docs/ takes a number from a run by a link whose text is the number:

    [0.903 [0.868, 0.938]](../results/runs/acmoe_six_layers.json#adaptive_beats_plain.estimate)

The target names the run, the claim and a field (FIELDS). `claim.2.field` reads the claim's second point, otherwise the
point that decides the claim. The build writes the present number. `docs/build --check` refuses a page with an older
number or an unknown name, and `docs/build --fill` writes the numbers into the pages.
"""

import html
import json
import math
import os
import re
import zlib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import NormalDist
from urllib.parse import quote

VERDICTS = ("reproduced", "refuted", "equivalent", "inconclusive", "excluded")
SAID = {"outside": "outside the regime"}
SOURCES = ("Dikkala et al. 2023", "Nielsen et al. 2025", "Nguyen et al. 2025", "Guo et al. 2025", "Nguyen et al. (slides)")
SEED_STEPS = (50, 200, 1000)
LONGEST_WORDS = 150  # characters of a claim's words in the table of all claims
WIDE = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n"  # tables need the width of the contents beside a page
NUMBER = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(((?:[^()\s]*/)?runs/)([^()\s/#]+)\.json"
                    r"#([^()\s]+)\.(\w+)\)")


# Texts

def one_line(text):
    """A text on one line, without control characters and halves of characters."""
    text = str(text).encode("utf-8", "replace").decode()
    return " ".join("".join(c if c.isprintable() else "\ufffd" if not c.isspace() else " " for c in text).split())


def escaped(text):
    """A text of a run as HTML on one line. No fence of Markdown ends in it."""
    return html.escape(one_line(text)).replace("`", "&#96;")


def markdown(text):
    """A text of a run as Markdown on one line: every sign stands for itself."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", one_line(text))


def code(text):
    return f"<code>{escaped(text)}</code>"


def raw(lines):
    """HTML that Sphinx leaves as it is."""
    return "\n".join(["```{raw} html", *lines, "```", ""])


def table(head, rows, classes="", attributes=""):
    """An HTML table that scrolls on phones. `head` has cells with attributes; `rows` have complete cells."""
    cells = "".join(head)
    return [f'<div class="pst-scrollable-table-container"><table class="table {classes}"{attributes}>',
            f"<thead><tr>{cells}</tr></thead><tbody>", *(f"<tr>{''.join(row)}</tr>" for row in rows),
            "</tbody></table></div>"]


def anchor(claim_id):
    """The anchor of a claim on its run's page. Different claims have different anchors."""
    plain = re.sub(r"[^\w-]+", "-", claim_id, flags=re.A)
    checksum = zlib.crc32(claim_id.encode(errors="backslashreplace"))
    return "claim-" + (plain if plain == claim_id else f"{plain}-{checksum:08x}")


# Numbers

def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def decimals_of(half_width, value, digits):
    """Decimals that show two digits of half an interval, and at most so many digits of the value."""
    if not half_width > 0 or not math.isfinite(half_width):
        return 4
    most = digits - 1 - math.floor(math.log10(abs(value))) if value else 9
    return min(9, max(0, min(1 - math.floor(math.log10(half_width)), most)))


def fixed(value, decimals):
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def plain(value):
    """A number without an interval."""
    return f"{value:.4g}".replace("-", "−") if is_number(value) else "–" if value is None else str(value)


def bounds(point):
    """The estimate of a point and the ends of its interval, as a ratio or a difference. None if there is no estimate."""
    if not is_number(point.get("estimate")):
        return None
    ends = point.get("interval")
    ends = ends if isinstance(ends, list) and len(ends) == 2 else [None, None]
    change = math.exp if point.get("scale") == "log ratio" else float
    try:
        return tuple(change(x) if is_number(x) else None for x in (point["estimate"], *ends))
    except OverflowError:
        return None


def estimate_text(point):
    """"0.903 [0.868, 0.938]", with open ends. Empty without an estimate."""
    found = bounds(point)
    if found is None:
        return ""
    value, low, high = found
    if low is None and high is None:
        return plain(value)
    half = (high - low) / 2 if None not in (low, high) else abs(value - (high if low is None else low))
    n = decimals_of(half, value, 3)
    if point.get("scale") == "log ratio":
        # The distance from 1 says how much is different. Older runs have three digits, so their largest number has the fewest
        # decimals.
        most = decimals_of(half, min(value, abs(value - 1)), 3)
        largest = max(x for x in found if x is not None)
        while n < most and abs(largest - round(largest, n)) > 5e-6:
            n += 1
    if n > 6 or float(f"{value:.{n}f}") == 0 and point.get("scale") == "log ratio":  # very narrow, or very wide
        return f"{plain(value)} [{plain(low)}, {plain(high)}]"
    shown = ["−∞" if low is None else fixed(low, n), "∞" if high is None else fixed(high, n)]
    return f"{fixed(value, n)} [{shown[0]}, {shown[1]}]"


def level_text(point):
    level = point.get("level")
    return f" ({100 * level:.6g} % interval)" if is_number(level) and abs(level - 0.95) > 1e-9 else ""


def scale_text(point):
    return {"log ratio": "ratio ", "difference": "difference "}.get(point.get("scale"), "")


def side_text(point, side):
    """"0.41 ± 0.03", a constant, or the text of a median."""
    value, ends = point.get(side), point.get(side + "_interval")
    if is_number(value) and isinstance(ends, list) and len(ends) == 2 and all(map(is_number, ends)):
        half = (ends[1] - ends[0]) / 2
        n = decimals_of(half, value, 4)
        if half >= 1e6:
            return f"{plain(value)} ± {half:.2g}"
        if half > 0 and n <= 6:
            return f"{fixed(value, n)} ± {fixed(half, n)}"
    return plain(value)


def p_text(p):
    return f"{p:.2g}".replace("-", "−") if is_number(p) else "–"


def place_text(point):
    """The point of the sweep: "data.dim = 3", also where the sides differ."""
    def listed(at):
        return at if isinstance(at, str) else ", ".join(f"{path} = {json.dumps(value)}" for path, value in (at or {}).items())

    text = listed(point.get("at"))
    for one, other, name in (("left_at", "right_at", ""), ("left_step", "right_step", "step ")):
        if one in point and other in point:
            left, right = ((listed(point[x]) if name == "" else f"{name}{point[x]}") for x in (one, other))
            text = ", ".join(filter(None, [text if name else "", f"{left} against {right}"]))
    return text


def time_of(run):
    """The processor seconds of a run. Runs of earlier builds have elapsed seconds alone, which other work lengthens."""
    seconds = run.get("processor_seconds")
    return seconds if is_number(seconds) else run.get("seconds")


def has_processor_time(run):
    return is_number(run.get("processor_seconds"))


def time_text(seconds):
    if not is_number(seconds):
        return "–"
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


# The ledger

def objects(table):
    """The rows of a table of the ledger, without the fields that are null."""
    return [{name: value for name, value in zip(table["columns"], row) if value is not None} for row in table["data"]]


class Ledger:
    def __init__(self, folder, scenarios=None):
        """Reads a folder of results, and the notes of scenarios. `missing` says what the pages need and the folder has not."""
        self.missing = []

        def read(name):
            file = folder / name
            if not file.exists():
                self.missing.append(f"{file}: no such file; `moelab report --ledger {folder}` makes it")
                return []
            return objects(json.loads(file.read_text()))

        self.runs = {}   # stem of the file → run
        for file in sorted((folder / "runs").glob("*.json")):
            run = json.loads(file.read_text())
            for claim in run["claims"]:
                claim["points"] = []
            for point in objects(run.pop("points")):
                run["claims"][point["claim"]]["points"].append(point)
            self.runs[file.stem] = run
        self.stems = {run["run"]: stem for stem, run in self.runs.items()}
        self.notes = {}  # run → the notes of its scenario
        for file in scenarios.glob("*/*.json") if scenarios else ():
            scenario = json.loads(file.read_text())
            self.notes[scenario.get("name")] = scenario.get("notes", [])
        self.judged = {(run["run"], claim["id"]): claim for run in self.runs.values() for claim in run["claims"]}
        listed = read("claims.json") if self.runs else []
        self.claims = [line for line in listed if (line["run"], line["id"]) in self.judged]
        if len(self.claims) < len(listed):
            self.missing.append(f"{folder}/claims.json lists claims that no run has; `moelab report --ledger {folder}` makes it again")
        self.families = read("families.json") if self.runs else []
        self.checks = read("checks.json") if (folder / "checks.json").exists() else []
        self.older_figures = older_figures(folder)
        sentences = folder / "depends_on.json"
        self.sentences = json.loads(sentences.read_text()) if sentences.exists() else {}  # pattern of run.claim → sentence
        self.lines = {(line["run"], line["id"]): line for line in self.claims}
        self.members = [[] for _ in self.families]
        for line in self.claims:
            if "family" in line:
                self.members[line["family"]].append(line)
        for family, members in zip(self.families, self.members):
            family["work"] = self.work(members[0]) if members else ""

    def holds_in_part(self, line):
        """Whether an open claim holds at some points and is too small to matter at all others. More seeds do not change that."""
        points = {point["verdict"] for point in self.judged[line["run"], line["id"]]["points"]} - {"outside", "uninformative"}
        return line["verdict"] == "inconclusive" and points == {"reproduced", "equivalent"}

    def depends(self, members):
        """Whether a family depends on the setting: it holds in one claim and fails in another, or it holds at some points and
        is too small to matter at all others."""
        main = [line for line in members if line["reading"] == "main"] or members
        found = {"in part" if self.holds_in_part(line) else line["verdict"] for line in main}
        return ({"reproduced", "refuted"} <= {line["verdict"] for line in members}
                or ("in part" in found and found <= {"in part", "reproduced", "equivalent"}))

    def depends_on(self, line):
        """The sentence of depends_on.json on a refuted claim, by the longest pattern that matches. Empty without one."""
        name = f"{line['run']}.{line['id']}"
        fitting = [pattern for pattern in self.sentences if fnmatchcase(name, pattern)]
        return self.sentences[max(fitting, key=len)] if fitting else ""

    def work(self, line):
        """The work whose words a row of claims.json tests. Empty without one."""
        return self.runs[self.stems[line["run"]]]["work"] if "family" in line else ""

    def words(self, line):
        """The words that a row of claims.json tests: the first quotation of the claim's text, or else the whole text."""
        text = self.judged[line["run"], line["id"]]["text"]
        found = re.match("“[^”]*”", text)
        return " ".join((found.group(0) if found else text).split())


def deciding_point(claim):
    """The index of the point that stands for a claim: the last judged one of a reproduced claim, otherwise the first
    with the claim's verdict. None without points."""
    last = None
    for i, point in enumerate(claim.get("points", [])):
        if claim["verdict"] != "reproduced" and point.get("verdict") == claim["verdict"]:
            return i
        if last is None or point.get("verdict") != "outside":
            last = i
    return last


def decision(claim):
    """The point that decides a claim. Empty without one."""
    index = deciding_point(claim)
    return {} if index is None else claim["points"][index]


def student_quantile(level, pairs):
    """The quantile of Student's t for a two-sided interval, by its expansion about the normal one (Abramowitz and Stegun, 26.7.5)."""
    z, n = NormalDist().inv_cdf((1 + level) / 2), max(1, pairs - 1)
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2) + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)


def is_fragile(claim):
    """Whether the interval of a claim of direction ends within one standard error of the line that decides it, which is 0
    for differences and for logarithms of ratios."""
    point = decision(claim)
    ends = point.get("interval")
    if claim["verdict"] not in ("reproduced", "refuted", "inconclusive") or "~" in str(claim.get("statement")) \
            or not (isinstance(ends, list) and len(ends) == 2 and all(map(is_number, ends)) and is_number(point.get("estimate"))):
        return False
    half = (ends[1] - ends[0]) / 2
    error = half / student_quantile(point.get("level") or 0.95, point.get("pairs") or 30)
    return error > 0 and abs(abs(point["estimate"]) - half) < error


def short_work(work):
    """A short name of a work: authors and year, or authors and what is in brackets at the end."""
    found = re.match(r"([^,]*),.*(\([^()]*\))$", work) if len(work) > 45 else None
    short = f"{found.group(1)} {found.group(2)}" if found else work or "no paper"
    return f"arXiv {short}" if re.match(r"\d{4}\.\d{5}", short) else short


# The page of a run

def claim_row(ledger, run, claim):
    point = decision(claim)
    line = ledger.lines.get((run["run"], claim["id"]), {})
    own = anchor(claim["id"])
    words = [f'<a class="id" href="#{own}"><code>{escaped(claim["id"])}</code></a>', f"<div>{escaped(claim['text'])}</div>"]
    if claim.get("statement") and claim["statement"] != claim["text"]:
        words.append(f'<div class="small">Judged: {code(claim["statement"])}</div>')
    facts = [escaped(claim["source"])] if claim.get("source") else []
    facts += ["ours" if claim["origin"] == "ours" else "the paper's"]
    if claim.get("reading") != "main":
        facts.append(f"{escaped(claim.get('reading'))} reading")
    if claim.get("regime"):
        facts.append(f"regime {code(claim['regime'])}")
    words.append(f'<div class="small">{" · ".join(facts)}</div>')
    numbers = []
    if text := estimate_text(point):
        numbers.append(f"<div>{scale_text(point)}{text}{level_text(point)}</div>")
    numbers.append(f'<div class="small">{escaped(side_text(point, "left"))} against {escaped(side_text(point, "right"))}</div>')
    if place := place_text(point):
        numbers.append(f'<div class="small">{escaped(place)}</div>')
    if len(claim["points"]) > 1:
        numbers.append(f'<div class="small"><a href="#points-{own}">all {len(claim["points"])} points</a></div>')
    if claim.get("seeds_to_decide"):
        numbers.append(f'<div class="small">about {escaped(claim["seeds_to_decide"])} seeds would decide</div>')
    reported = claim.get("reported")
    if isinstance(reported, dict):
        reported = ", ".join(f"{name} {value}" for name, value in reported.items())
    p = claim.get("p")
    corrected = f'<div class="small">Holm {p_text(line.get("p_holm"))}<br>BH {p_text(line.get("p_bh"))}</div>' if is_number(p) else ""
    return [f'<td class="verdict {escaped(claim["verdict"])}" id="{own}">{escaped(claim["verdict"])}</td>',
            f'<td class="words">{"".join(words)}</td>', f'<td class="numbers">{"".join(numbers)}</td>',
            f"<td>{escaped('' if reported is None else reported)}</td>",
            f'<td data-sort="{p if is_number(p) else 2}">{p_text(p)}{corrected}</td>']


def points_of(claim):
    """Every point of a claim, collapsed."""
    rows = []
    for point in claim["points"]:
        notes = [point["note"]] if point.get("note") else []
        if is_number(point.get("pairs")):
            notes.append(f"{point['pairs']} pairs, {point.get('test', '')}".rstrip(", "))
        if point.get("lost"):
            notes.append(f"lost by divergence: {point['lost'].get('left', 0)} left, {point['lost'].get('right', 0)} right")
        verdict = str(point.get("verdict"))
        rows.append([f"<td>{escaped(place_text(point) or 'no sweep')}</td>", f"<td>{escaped(side_text(point, 'left'))}</td>",
                     f"<td>{escaped(side_text(point, 'right'))}</td>",
                     f"<td>{scale_text(point)}{estimate_text(point) or '–'}{level_text(point)}</td>",
                     f"<td>{p_text(point.get('p'))}</td>",
                     f'<td class="verdict {escaped(verdict)}">{escaped(SAID.get(verdict, verdict))}</td>',
                     f"<td>{escaped('; '.join(notes))}</td>"])
    count = f"{len(rows)} point{'' if len(rows) == 1 else 's'}"
    head = [f"<th>{name}</th>" for name in ("Point", "Left", "Right", "Left against right", "p", "Verdict", "Note")]
    return [f'<details id="points-{anchor(claim["id"])}"><summary>{code(claim["id"])}, {count}</summary>',
            *table(head, rows, "points"), "</details>"]


def present_layout():
    """The layout of the figures that the program draws today."""
    header = Path(__file__).resolve().parents[2] / "plots" / "painters" / "gnuplot.h"
    return int(re.search(r"kLayoutVersion = (\d+);", header.read_text()).group(1))


def is_older(figure):
    """Whether a figure of the ledger is from a program with another layout. SVG files say theirs since the second."""
    found = re.search(r"<title>moelab_layout_(\d+)</title>", figure.read_text(errors="replace"))
    return not found or int(found.group(1)) != present_layout()


def older_figures(folder):
    """The runs whose figures are older than the layout."""
    return [file.stem for file in sorted((folder / "figures").glob("*.svg")) if is_older(file)]


def run_page(ledger, stem):
    run = ledger.runs[stem]
    counts = Counter(claim["verdict"] for claim in run["claims"])
    cells = sum(run.get("states", {}).values())
    facts = [("Run", code(run["run"]))]
    if run.get("source"):
        facts.append(("Source", escaped(run["source"])))
    facts.append(("Claims", escaped(", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v]) or "none")))
    if run.get("command"):
        facts.append(("Command", code(run["command"])))
    states = ", ".join(f"{n} {state}" for state, n in run.get("states", {}).items())
    facts.append(("Cells", escaped(states if len(run.get("states", {})) > 1 else f"{cells} {next(iter(run.get('states', {})), '')}")))
    shares = [f"{100 * run[name]:.0f} % {what}" for name, what in (("training_share", "training"), ("measuring_share", "measuring"))
              if is_number(run.get(name))]
    facts.append(("Processor time" if has_processor_time(run) else "Elapsed time of all cells",
                  escaped(time_text(time_of(run)) + (f" ({', '.join(shares)})" if shares else ""))))
    builds = "<br>".join(escaped(f"{build['name']}: {build['cells']} cells") for build in run.get("builds", []))
    facts.append(("Builds" if len(run.get("builds", [])) > 1 else "Build", builds))
    lines = [f"# {markdown(run['title'] or run['run'])}", ""]
    lines.append(raw(['<dl class="facts">', *(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts), "</dl>"]))
    if run.get("figure"):
        lines += [f"![{markdown(run['title'] or run['run'])}](../{run['figure']})", ""]
        if stem in ledger.older_figures:
            lines += ["An earlier version of the program drew this figure.", ""]
    if notes := ledger.notes.get(run["run"]):
        lines.append(raw([f"<details><summary>Notes of the scenario ({len(notes)})</summary><ul>",
                          *(f"<li>{escaped(note)}</li>" for note in notes), "</ul></details>"]))
    if run["claims"]:
        head = ["<th>Verdict</th>", "<th>Claim</th>", "<th>Numbers</th>", "<th>Paper’s number</th>", "<th>p</th>"]
        lines += ["## Claims", "",
                  "The numbers belong to the point that decides. Intervals have a level of 95 % unless the cell says otherwise. "
                  "[Verdicts](../../explanation/verdicts.md) explains the words. Holm and BH are p values corrected for the "
                  "number of all claims.", "",
                  raw(table(head, [claim_row(ledger, run, claim) for claim in run["claims"]], "claims"))]
        lines += ["## Every point", "", raw(line for claim in run["claims"] for line in points_of(claim))]
    return "\n".join(lines)


# The home page, and the page of checks

def query(**fields):
    return "index.html?" + "&amp;".join(f"{name}={quote(value)}" for name, value in fields.items()) + "#claims"


def counts_table(ledger):
    """Counts of families and of claims by verdict, for each work and origin."""
    counts = {}
    for family, members in zip(ledger.families, ledger.members):
        key = (family["work"] == "", short_work(family["work"]), family["origin"] != "paper")
        families, claims = counts.setdefault(key, (Counter(), Counter()))
        families[family["verdict"]] += 1
        families["depends"] += ledger.depends(members)
        claims.update(line["verdict"] for line in members)
        claims["fragile"] += sum(is_fragile(ledger.judged[line["run"], line["id"]]) for line in members)
    used = [v for v in VERDICTS if any(f[v] or c[v] for f, c in counts.values())]
    rows = []
    for (_, work, is_ours), (families, claims) in sorted(counts.items()):
        origin = "ours" if is_ours else "paper"
        cells = [f'<td>{escaped(work)}</td><td>{origin}</td>']
        for v in used:
            link = f'<a href="{query(paper=work, whose=origin, verdict=v)}">{claims[v]}</a>'
            cells.append(f"<td>{families[v]} ({link})</td>" if claims[v] else "<td></td>")
        cells.append(f"<td>{families['depends'] or ''}</td>")
        fragile = f'<a href="{query(paper=work, whose=origin, fragile="fragile")}">{claims["fragile"]}</a>'
        cells.append(f"<td>{f'({fragile})' if claims['fragile'] else ''}</td>")
        rows.append(cells)
    return table([f"<th>{name}</th>" for name in ("Paper", "Whose", *used, "depends", "fragile")], rows, "counts")


def summary_table(ledger):
    """How many statements of each of the five sources, and of all other papers, hold, depend, fail and are open."""
    words = {"reproduced": "hold", "refuted": "fail", "equivalent": "too small to matter", "inconclusive": "open"}
    columns = ("hold", "fail", "depend on the setting", "too small to matter", "open")
    counts = {work: Counter() for work in (*SOURCES, "all other papers")}
    for family, members in zip(ledger.families, ledger.members):
        if family["origin"] != "paper":
            continue
        work = short_work(family["work"])
        outcome = "depend on the setting" if ledger.depends(members) else words.get(family["verdict"])
        counts[work if work in counts else "all other papers"][outcome] += 1
    rows = [[f"<td>{escaped(work)}</td>", *(f"<td>{found[column] or ''}</td>" for column in columns)] for work, found in counts.items()]
    return table([f"<th>{name}</th>" for name in ("Paper", *columns)], rows, "counts summary")


def open_table(ledger):
    """What would decide the open claims of papers, in their main reading."""
    reasons = ["no number of seeds at the present spread", *(f"up to {most} seeds" for most in SEED_STEPS),
               f"more than {SEED_STEPS[-1]} seeds; a smallest effect could make them equivalent"]
    counts = Counter()
    for line in ledger.claims:
        if (line["origin"], line["reading"], line["verdict"]) == ("paper", "main", "inconclusive"):
            if ledger.holds_in_part(line):
                counts["in part"] += 1
                continue
            seeds = ledger.judged[line["run"], line["id"]].get("seeds_to_decide")
            counts[1 + sum(seeds > most for most in SEED_STEPS) if is_number(seeds) else 0] += 1
    rows = [[f"<td>{reason}</td>", f"<td>{counts[i] or ''}</td>"] for i, reason in enumerate(reasons)]
    in_part = ["<td>nothing: it holds at some points, and is too small to matter at the others</td>", f"<td>{counts['in part'] or ''}</td>"]
    return table(["<th>What would decide</th>", "<th>Claims</th>"], [*rows[1:], rows[0], in_part], "counts summary")


def claims_table(ledger):
    """All claims, with filters by column (tables.js)."""
    head = ['<th data-filter="verdict">Verdict</th>', "<th>Claim</th>", '<th data-filter="paper">Paper</th>',
            '<th data-filter="whose">Whose</th>', '<th data-filter="reading">Reading</th>', "<th>Number</th>",
            '<th data-filter="fragile">Line</th>', "<th>p (Holm)</th>"]
    rows = []
    for line in ledger.claims:
        words = ledger.words(line)
        words = words if len(words) <= LONGEST_WORDS else words[:LONGEST_WORDS].rsplit(" ", 1)[0] + " …"
        stem = ledger.stems.get(line["run"])
        target = f' href="runs/{stem}.html#{anchor(line["id"])}"' if stem else ""
        claim = ledger.judged[line["run"], line["id"]]
        point = decision(claim)
        found = bounds(point)
        p = line.get("p_holm")
        rows.append([f'<td class="verdict {escaped(line["verdict"])}">{escaped(line["verdict"])}</td>',
                     f"<td><a{target}>{escaped(words)}</a><div class=small>{escaped(line['run'])}.<wbr>{escaped(line['id'])}</div></td>",
                     f"<td>{escaped(short_work(ledger.work(line)))}</td>", f"<td>{escaped(line['origin'])}</td>",
                     f"<td>{escaped(line['reading'])}</td>",
                     f'<td class="numbers" data-sort="{found[0] if found else ""}">{scale_text(point)}{estimate_text(point)}{level_text(point)}</td>',
                     f'<td>{"fragile" if is_fragile(claim) else ""}</td>',
                     f'<td data-sort="{p if is_number(p) else 2}">{p_text(p)}</td>'])
    return table(head, rows, "claims", ' data-rows="40"')


def runs_page(ledger):
    rows = []
    for stem, run in ledger.runs.items():
        counts = Counter(claim["verdict"] for claim in run["claims"])
        works = {ledger.work(ledger.lines.get((run["run"], claim["id"]), {})) for claim in run["claims"]}
        rows.append([f'<td><a href="{stem}.html"><code>{escaped(run["run"])}</code></a></td>', f"<td>{escaped(run['title'])}</td>",
                     f"<td>{escaped(', '.join(sorted(map(short_work, works))))}</td>",
                     *(f"<td>{counts[v] or ''}</td>" for v in VERDICTS if v not in ("equivalent", "excluded")),
                     f'<td data-sort="{time_of(run)}">{time_text(time_of(run))}{"" if has_processor_time(run) else " *"}</td>'])
    head = [f"<th>{name}</th>" for name in ("Run", "Title", "Paper", "reproduced", "refuted", "inconclusive", "Time")]
    return "\n".join(["# Runs", "", "Each full run has a page with its figure, its claims and their points. Time is processor time. "
                      "A star marks the elapsed time of all cells, which other work on the machine lengthens.",
                      "", raw(table(head, rows, "runs"))])


def home_page(ledger, files):
    """The page of results. `files` is the text of docs/results/index.md, which describes the files."""
    builds = {build["name"] for run in ledger.runs.values() for build in run.get("builds", [])}
    seconds = sum(time_of(run) for run in ledger.runs.values() if is_number(time_of(run)))
    links = [f"- [Runs](runs): {len(ledger.runs)} runs, {seconds / 3600:.0f} hours, {len(builds)} builds"]
    if ledger.families:
        links.append("- [Refuted statements of papers](families.json): what refutes them, what does not, and what that depends on")
    if ledger.checks:
        links.append(f"- [Theorem checks](checks.json): {len(ledger.checks)} statements, computed")
    head, *parts = re.split(r"^(?=## )", files, flags=re.M)
    findings = [part for part in parts if part.startswith("## Five findings")]
    parts = [part for part in parts if part not in findings]
    return "\n".join([
        "# Results", "",
        f"This page has every claim that moelab judged in its full runs: {len(ledger.claims)} claims in {len(ledger.families)} "
        "families. A family has all claims that test the same words of a paper. Its main readings decide its verdict. "
        "[Verdicts](../explanation/verdicts.md) explains the words.", "", *links, "",
        "## Summary", "", "Numbers of statements that the papers make, by what came out. A statement that depends on the setting holds in "
        "one claim and fails in another, or holds at some points and is too small to matter at the others.", "", raw(summary_table(ledger)),
        *(part.strip() + "\n" for part in findings),
        "## By paper", "", "Numbers of families, with claims in brackets. A number in brackets leads to its claims. A family that "
        "*depends* holds in one claim or point and not in another. A claim is *fragile* if its interval ends within one standard error "
        "of the line that decides.", "", raw(counts_table(ledger)),
        "## Open claims of papers", "", "Claims in their main reading. The page of a run says for each of its open claims how many seeds "
        "would decide it.", "", raw(open_table(ledger)),
        "## Claims", "", "Type words to search. Click on a head to sort. A claim leads to its run.", "", raw(claims_table(ledger)),
        *(part.strip() + "\n" for part in parts),
        "## Files", "", head.split("\n", 1)[-1].strip(), ""])


def checks_page(ledger):
    """The checks of theorems, in a table for each paper."""
    groups = {}
    for check in ledger.checks:
        groups.setdefault(str(check.get("id", "")).split(".")[0], []).append(check)
    lines = ["# Theorem checks", "", "Each check compares a statement with a computation. "
             "[Theorem checks](../explanation/theorem_checks.md) explains the verdicts.", ""]
    for name, checks in groups.items():
        rows = []
        for check in checks:
            verdict, expected = str(check.get("verdict", "")), check.get("expected")
            surprise = expected is False or (isinstance(expected, str) and expected != verdict)
            rows.append([f'<td class="verdict {escaped(verdict.split()[0] if verdict else "")}">{escaped(verdict)}'
                         f"{' (not expected)' if surprise else ''}</td>",
                         f"<td>{code(check.get('id', ''))}<div>{escaped(check.get('statement', ''))}</div>"
                         f'<div class="small">{escaped(check.get("source", ""))}</div></td>',
                         *(f"<td>{escaped(plain(check.get(field)))}</td>" for field in ("measured", "predicted", "error_bound"))])
        head = [f"<th>{title}</th>" for title in ("Verdict", "Check", "Measured", "Predicted", "Error bound")]
        lines += [f"## {markdown(name)}", "", raw(table(head, rows, "claims"))]
    return "\n".join(lines)


def claim_link(line, stem):
    return f'<a href="runs/{stem}.html#{anchor(line["id"])}"><code>{escaped(line["run"])}.<wbr>{escaped(line["id"])}</code></a>'


def what_it_depends_on(ledger, members):
    """Why one claim of a family is refuted and another one is not: what depends_on.json says, or else what was computed."""
    refuted = [line for line in members if line["verdict"] == "refuted"]
    said = {sentence for line in refuted if (sentence := ledger.depends_on(line))}
    if said:
        return escaped(" ".join(sorted(said)))
    parts = []
    for line in refuted:
        points = [point for point in ledger.judged[line["run"], line["id"]]["points"] if point.get("verdict") != "outside"]
        against = [place_text(point) for point in points if point.get("verdict") == "refuted"]
        holds = [place_text(point) for point in points if point.get("verdict") == "reproduced"]
        if against and holds:
            parts.append(f"{escaped(line['id'])} holds at {escaped('; '.join(holds))}, not at {escaped('; '.join(against))}")
    if any(line["verdict"] == "reproduced" for line in members):
        parts.append("the setting: another claim holds")
    elif any(line["verdict"] in ("inconclusive", "equivalent") for line in members):
        parts.append("the setting: another claim is open, or its effect is too small to matter")
    if parts:
        return ". ".join(part[0].upper() + part[1:] for part in parts) + "."
    return "Nothing that was tried." if len(members) > 1 else "No other claim tests these words."


def refuted_page(ledger):
    """Both sides of every refuted statement of a paper: what refutes it, what does not, and what the verdict depends on."""
    groups = {}
    for family, members in zip(ledger.families, ledger.members):
        if family["origin"] == "paper" and any(line["verdict"] == "refuted" for line in members):
            groups.setdefault(short_work(family["work"]), []).append(members)
    lines = ["# Refuted statements of papers", "", "Each row is a statement of a paper that a claim refutes, in its main reading or in another. "
             "The second column has every claim that refutes it, and the third has all other claims that test the same words. "
             "A claim leads to its run, with the figure. The last column says what the verdict depends on. "
             "[Disputed verdicts](../explanation/disputed_verdicts.md) and the pages of the papers say more.", ""]
    for work, families in sorted(groups.items()):
        rows = []
        for members in families:
            cells = [[], []]
            for line in members:
                point = decision(ledger.judged[line["run"], line["id"]])
                reading = "" if line["reading"] == "main" else f", {escaped(line['reading'])} reading"
                verdict = "" if line["verdict"] == "refuted" else escaped(line["verdict"])
                estimate = estimate_text(point)
                facts = ", ".join(filter(None, [verdict, estimate and scale_text(point) + estimate])) + reading
                cells[line["verdict"] != "refuted"].append(f'<div>{claim_link(line, ledger.stems[line["run"]])} <span class=small>{facts}</span></div>')
            rows.append([f'<td class="words">{escaped(ledger.words(members[0]))}</td>', f'<td>{"".join(cells[0])}</td>',
                         f'<td>{"".join(cells[1])}</td>', f"<td>{what_it_depends_on(ledger, members)}</td>"])
        head = [f"<th>{title}</th>" for title in ("Statement", "Refuted by", "Other claims", "It depends on")]
        lines += [f"## {markdown(work)}", "", raw(table(head, rows, "claims"))]
    return "\n".join(lines)


def pages(ledger, files):
    """The pages of results as Markdown: {file of docs/results that each page shows: (page, text)}. Links are those
    that the file would have."""
    made = {"docs/results/index.md": ("results/index.md", home_page(ledger, files)),
            "docs/results/runs": ("results/runs/index.md", runs_page(ledger))}
    if ledger.families:
        made["docs/results/families.json"] = ("results/refuted.md", refuted_page(ledger))
    for stem in ledger.runs:
        made[f"docs/results/runs/{stem}.json"] = (f"results/runs/{stem}.md", run_page(ledger, stem))
    if ledger.checks:
        made["docs/results/checks.json"] = ("results/checks.md", checks_page(ledger))
    return {file: (page, WIDE + text) for file, (page, text) in made.items()}


# What other pages take from the results

def scenario_runs(scenarios, ledger):
    """The runs of each folder of scenarios: {folder: {file name: stem of the run}}."""
    found = {}
    for file in sorted(scenarios.glob("*/*.json")):
        stem = ledger.stems.get(json.loads(file.read_text()).get("name"))
        if stem:
            found.setdefault(file.parent.name, {})[file.name] = stem
    return found


def paper_summary(ledger, stems, here):
    """One paragraph for the page of a paper: how many statements hold, fail and are open. Empty without claims."""
    runs = {ledger.runs[stem]["run"] for stem in stems}
    families = list(zip(ledger.families, ledger.members))
    own = [(family, members) for family, members in families if any(line["run"] in runs for line in members)]
    works = {family["work"] for family, _ in own if family["origin"] == "paper"}
    sentences = []
    for origin, whose in (("paper", "statements of the paper" if len(works) < 2 else "statements of papers"), ("ours", "claims of ours")):
        chosen = [each for each in own if each[0]["origin"] == origin]
        if origin == "paper" and len(works) == 1:  # also those that other folders test
            chosen = [each for each in families if each[0]["origin"] == origin and each[0]["work"] in works]
        if not chosen:
            continue
        counts = Counter("depends" if ledger.depends(members) else family["verdict"] for family, members in chosen)
        parts = [f"{counts[v]} {word if counts[v] != 1 else single}" for v, word, single in (
            ("reproduced", "hold", "holds"), ("refuted", "fail", "fails"), ("depends", "depend on the setting", "depends on the setting"),
            ("equivalent", "are too small to matter", "is too small to matter"), ("inconclusive", "are open", "is open"))
            if counts[v] or v == "inconclusive"]
        if len(chosen) == 1:
            whose = whose.replace("statements", "statement").replace("claims", "claim")
        sentences.append(f"Of {len(chosen)} {whose}, {', '.join(parts[:-1]) + ' and ' if parts[:-1] else ''}{parts[-1]}.")
    if not sentences:
        return ""
    to = os.path.relpath("results/index.html", here)
    target = f"{to}?paper={quote(short_work(next(iter(works))))}#claims" if len(works) == 1 else to
    return f'**Counted.** {" ".join(sentences)} The <a href="{target}">table of claims</a> has each of them.'


def between_sides(claim, point):
    """The point with the estimate between its two sides alone: without the factor or the offset of `a < 0.8 × b`, `a < b − 0.03`.

    None where the statement does not tell, and where a difference has a factor.
    """
    statement, scale = claim["statement"], point.get("scale")
    factor = re.search(r" [<>~] ([\d.]+) × ", statement)
    offset = re.search(r" ([-+]) ([\d.]+)\)$", statement)
    if factor and scale == "log ratio":
        shift = math.log(float(factor[1]))
    elif offset and not factor and scale == "difference":
        shift = float(offset[1] + offset[2])
    else:
        return None
    ends = [x + shift if is_number(x) else x for x in point.get("interval") or []]
    return point | {"estimate": point["estimate"] + shift, "interval": ends}


FIELDS = {
    "sides": lambda claim, point: estimate_text(between_sides(claim, point) or {}),
    "verdict": lambda claim, point: claim["verdict"] if point is None else point["verdict"],
    "estimate": lambda claim, point: estimate_text(point),
    "value": lambda claim, point: estimate_text(point).split(" ")[0],
    "left": lambda claim, point: side_text(point, "left"),
    "right": lambda claim, point: side_text(point, "right"),
    "left_mean": lambda claim, point: side_text(point, "left").split(" ±")[0],
    "right_mean": lambda claim, point: side_text(point, "right").split(" ±")[0],
}


def number_of(ledger, stem, claim_id, place, field):
    """The text of a number in the results. Throws LookupError that says what is not there."""
    run = ledger.runs.get(stem)
    if run is None:
        raise LookupError(f"no run {stem}")
    claim = next((claim for claim in run["claims"] if claim["id"] == claim_id), None)
    if claim is None:
        raise LookupError(f"run {stem} has no claim {claim_id}")
    if field not in FIELDS:
        raise LookupError(f"no field {field}, known are {', '.join(FIELDS)}")
    index = deciding_point(claim) if place is None else int(place) - 1
    if index is None or not 0 <= index < len(claim["points"]):
        raise LookupError(f"claim {claim_id} of {stem} has {len(claim['points'])} points, not a point {place or 1}")
    text = FIELDS[field](claim, None if field == "verdict" and place is None else claim["points"][index])
    if text in ("", "–"):
        raise LookupError(f"claim {claim_id} of {stem} has no {field} there")
    return text


def claim_and_place(ledger, stem, name):
    """What `claim` or `claim.2` names. A claim's id may itself end in a number."""
    known = {claim["id"] for claim in ledger.runs.get(stem, {"claims": []})["claims"]}
    found = re.fullmatch(r"(.+)\.(\d+)", name)
    return (found[1], found[2]) if found and name not in known else (name, None)


def filled(ledger, text, wrong, link):
    """A page with the present numbers. `wrong` gets what is unknown or old; `link(prefix, stem, claim, target, number)`
    gives what stands in the place of a number."""
    def number(found):
        shown, prefix, stem, name, field = found.groups()
        target = f"{name}.{field}"
        claim, place = claim_and_place(ledger, stem, name)
        try:
            now = number_of(ledger, stem, claim, place, field)
        except LookupError as error:
            wrong.append(f"{found.group(0)}: {error}")
            return found.group(0)
        if now != shown:
            wrong.append(f"{stem}#{target} is {now}, the page has {shown}; docs/build --fill writes it")
        return link(prefix, stem, claim, target, now)

    return NUMBER.sub(number, text)
