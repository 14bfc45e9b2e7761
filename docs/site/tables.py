"""Fills the tables of docs/results/*.md, and single numbers of them, from docs/results/tables/*.json.

A page holds a table between two comments, `<!-- table NAME -->` and `<!-- end of table -->`. A single number is a link
whose text is the number:

    [0.0146 [0.0111, 0.0192]](tables/gates.json#topk.test_loss_eval)

The target names the table, the row and the column. `.mean` after the column leaves out the interval.
"""

import json
import re

import results

BLOCK = re.compile(r"^```.*?^```|(<!-- table ([\w-]+) -->\n).*?(<!-- end of table -->)", re.M | re.S)
NUMBER = re.compile(r"^```.*?^```|\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(((?:[^()\s]*/)?tables/)([\w-]+)\.json#([^()\s]+?)\.(\w+?)(\.mean)?\)",
                    re.M | re.S)


# A table has the page that shows it and the command that makes its numbers. RUN in it stands for a run folder.
# A table has its shown columns with their headings, and its rows.
# "decimals" sets the digits after the point of numbers with "half".
#
# A cell is a text, a number, {"mean", "half"} or {"mean", "low", "high"}.
# It may have a "scale" before it, a "factor" and a "note".
# {"claim": "<run>#<claim>.<field>"} is a number of a run.
#
# A table with "compare" has a row for each claim on which two runs disagree.
# A row of a table with the column "ledger" is named <run>.<claim>.
# The name gives its columns "run", "claim" and "ledger".

def load(folder):
    """The tables of a folder by name."""
    found = {file.stem: json.loads(file.read_text()) for file in sorted((folder / "tables").glob("*.json"))}
    for table in found.values():
        if "ledger" in table["columns"]:
            for name, row in table["rows"].items():
                run, _, claim = name.partition(".")
                row |= {"run": run, "claim": f"`{claim}`", "ledger": {"claim": f"{run}#{claim}.verdict"}}
    return found


def written(table):
    """A table as its file has it: a field on each line, and a row on each line."""
    def short(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def lines(fields, shown):
        return "{\n" + ",\n".join(f"{short(name)}: {shown(value)}" for name, value in fields.items()) + "\n}"

    return lines(table, lambda value: lines(value, short) if value is table.get("rows") else short(value)) + "\n"


def compared(ledger, one, other):
    """A row for each claim with other verdicts in two runs."""
    verdicts = [{claim["id"]: claim["verdict"] for claim in ledger.runs[stem]["claims"]} for stem in (one, other)]
    return {name: {"claim": f"`{name}`", "left": {"claim": f"{one}#{name}.verdict"}, "right": {"claim": f"{other}#{name}.verdict"},
                   "estimate": {"claim": f"{other}#{name}.estimate"}}
            for name in verdicts[0] if name in verdicts[1] and verdicts[0][name] != verdicts[1][name]}


def decimals(number):
    """The digits of a number after its point."""
    return len(repr(number).partition(".")[2]) if "e" not in repr(number) else 9


def number_text(cell, places=None):
    """A number rounded to its interval: half an interval has two digits, or fewer where the data have fewer. `places` sets
    the digits after the point of a number with half an interval."""
    if not isinstance(cell, dict):
        return results.plain(cell)
    mean, low, high = cell["mean"], cell.get("low"), cell.get("high")
    half = cell.get("half") if low is None else (high - low) / 2
    if not half:
        return results.plain(mean)
    n = results.decimals_of(half, mean, 4)
    if low is None:
        n = min(n, max(decimals(mean), decimals(half))) if places is None else places
        text = f"{results.fixed(mean, n)} ± {results.fixed(half, n)}"
    else:
        ends = min(n, max(decimals(low), decimals(high)))
        text = f"{results.fixed(mean, min(n, max(ends, decimals(mean))))} [{results.fixed(low, ends)}, {results.fixed(high, ends)}]"
    return text


def cell_text(ledger, cell, places=None):
    if cell is None or isinstance(cell, str):
        return "–" if cell is None else cell
    if isinstance(cell, dict) and "claim" in cell:
        stem, _, target = cell["claim"].partition("#")
        claim, _, field = target.rpartition(".")
        return f"[{results.number_of(ledger, stem, claim, None, field)}](runs/{stem}.json#{target})"
    more = cell if isinstance(cell, dict) else {}
    before = f"{more['scale']} " if "scale" in more else f"{more['factor']} × " if "factor" in more else ""
    return before + number_text(cell, places) + (f" ({more['note']})" if "note" in more else "")


def block(ledger, table):
    """The table as Markdown."""
    rows = compared(ledger, *table["compare"]) if "compare" in table else table["rows"]
    lines = [f"| {' | '.join(table['columns'].values())} |", "|" + "---|" * len(table["columns"])]
    lines += [f"| {' | '.join(cell_text(ledger, row.get(column), table.get('decimals')) for column in table['columns'])} |" for row in rows.values()]
    return "\n".join(lines) + "\n"


def filled(ledger, tables, text, wrong, link):
    """A page with the present tables and numbers. `wrong` gets what is unknown or old; `link(prefix, target, name, text)`
    gives what stands in the place of a number of the table `name`."""
    def present(found):
        if not found.group(2):
            return found.group(0)  # code
        try:
            now = found.group(1) + block(ledger, tables[found.group(2)]) + found.group(3)
        except LookupError as error:
            wrong.append(f"table {found.group(2)}: not there: {error}")
            return found.group(0)
        if now != found.group(0):
            wrong.append(f"table {found.group(2)} is old; docs/build --fill writes it")
        return now

    def number(found):
        shown, prefix, name, row, column, mean = found.groups()
        if not name:
            return found.group(0)  # code
        try:
            cell = tables[name]["rows"][row][column]
            now = cell if isinstance(cell, str) else number_text(cell, tables[name].get("decimals"))
        except LookupError as error:
            wrong.append(f"{found.group(0)}: not there: {error}")
            return found.group(0)
        now = now.split(" ")[0] if mean else now
        if now != shown:
            wrong.append(f"{name}#{row}.{column} is {now}, the page has {shown}; docs/build --fill writes it")
        return link(prefix, f"{name}.json#{row}.{column}{mean or ''}", name, now)

    return NUMBER.sub(number, BLOCK.sub(present, text))
