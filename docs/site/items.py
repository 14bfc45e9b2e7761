"""Makes docs/papers/items.md from docs/papers/items.json: what the five sources hold, and where moelab has it.

An entry names a source and an item with its kind and its place in the text. It also has a state (STATES) and a list
`where`. Each place in that list is a type and a name:

    claim acmoe2025/layers.full_*      claims of a scenario
    arm gates/gates.capacity           arms of a scenario
    figure acmoe2025/attacks.pgd       figures of a scenario
    scenario acmoe2025/layers          a scenario
    check acmoe2025.lemma1.*           theorem checks
    metric expert_overlap              a metric
    kind cosine                        a kind of router, data, expert, gate, loss, optimizer or figure
    page bench/README.md               a file of the repository

`*` matches any text in a name. Partial and absent items have a `reason`. `unknown` tells which names do not exist.
"""

import json
import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "docs" / "papers" / "items.json"
PAGE = ROOT / "docs" / "papers" / "items.md"
SOURCES = {"acmoe2025": "Tight clusters (Nielsen et al. 2025)", "graph_of_tokens2025": "Graph of tokens (Nguyen et al. 2025)",
           "specialization2025": "Expert specialization (Guo et al. 2025)", "dikkala2023": "Learning to route (Dikkala et al. 2023)",
           "perturbed_cosine": "Perturbed cosine router (Nguyen et al., slides)"}
STATES = {"done": "moelab has the item itself and tests or judges it.",
          "counterpart": "moelab has a synthetic stand-in and judges it.",
          "partial": "A part is missing, or the test is not the paper's case.",
          "absent": "moelab has nothing."}
IN_SCENARIO = ("claim", "arm", "figure")


def load():
    return json.loads(DATA.read_text())


def complete(file):
    """A scenario with the lists of the one that it extends, and the arms of both."""
    scenario = json.loads(file.read_text())
    if "extends" not in scenario:
        return scenario
    base = complete(file.parent / scenario["extends"])
    return base | scenario | {"arms": base.get("arms", {}) | scenario.get("arms", {})}


class Names:
    """Every name that a place may have, from the scenarios and the reference pages."""

    def __init__(self):
        self.scenarios = {}
        for file in sorted((ROOT / "scenarios").glob("*/*.json")):
            scenario = complete(file)
            self.scenarios[f"{file.parent.name}/{file.stem}"] = {
                "name": scenario["name"], "claim": {claim["id"] for claim in scenario.get("claims", [])},
                "arm": set(scenario.get("arms", {})), "figure": {figure["id"] for figure in scenario.get("figures", [])}}
        self.checks = re.findall(r"^### (\S+)$", (ROOT / "docs" / "theorems.md").read_text(), flags=re.M)
        reference = (ROOT / "docs" / "scenario.md").read_text()
        losses = re.search(r"^## loss\n(.*?)^## ", reference, flags=re.M | re.S).group(1)
        metrics = re.search(r"^## metrics\n(.*?)^## ", reference, flags=re.M | re.S).group(1)
        self.kinds = set(re.findall(r"^\*\*(\w+)\*\*:", reference, flags=re.M)) | set(re.findall(r"^\| `(\w+)` \|", losses, flags=re.M))
        self.metrics = set(re.findall(r"^\| `(\w+)` \|", metrics, flags=re.M))

    def matches(self, place):
        """The names that a place stands for. Empty if there is none."""
        kind, _, name = place.partition(" ")
        if kind in IN_SCENARIO:
            scenario, _, pattern = name.partition(".")
            return sorted(one for one in self.scenarios.get(scenario, {kind: ()})[kind] if fnmatchcase(one, pattern))
        if kind == "page":
            return [name] if (ROOT / name).is_file() else []
        listed = {"scenario": self.scenarios, "check": self.checks, "metric": self.metrics, "kind": self.kinds}.get(kind, ())
        return [one for one in listed if fnmatchcase(one, name)]


def unknown(entries, names):
    """What is wrong with the data, one line each."""
    for entry in entries:
        about = f"items.json: {entry['source']}, {entry['item']}"
        if entry["source"] not in SOURCES or entry["state"] not in STATES:
            yield f"{about}: no source {entry['source']} or no state {entry['state']}"
        if (entry["state"] in ("partial", "absent")) != bool(entry.get("reason")):
            yield f"{about}: partial and absent items have a reason, others have none"
        if (entry["state"] == "absent") == bool(entry["where"]):
            yield f"{about}: absent items have no place, others have one"
        yield from (f"{about}: no {place}" for place in entry["where"] if not names.matches(place))


def waits(entry, names, runs):
    """Whether an item counts by its first scenario, and that scenario has no run in the results."""
    places = (place.partition(" ") for place in entry["where"])
    scenarios = [name.partition(".")[0] for kind, _, name in places if kind in (*IN_SCENARIO, "scenario")]
    return entry["state"] in ("done", "counterpart") and bool(scenarios) and names.scenarios[scenarios[0]]["name"] not in runs


def linked(entry, names, runs):
    """The places of an entry as Markdown, grouped by scenario."""
    parts = {}
    for place in entry["where"]:
        kind, _, name = place.partition(" ")
        scenario, _, rest = name.partition(".")
        if kind in (*IN_SCENARIO, "scenario"):
            stem = runs.get(names.scenarios[scenario]["name"])
            file = f"../results/runs/{stem}.json" if stem else f"../../scenarios/{scenario}.json"
            found = parts.setdefault(f"[{scenario.partition('/')[2]}]({file})", [])
            if kind in IN_SCENARIO:
                found.append(f"`{rest}`" if kind == "claim" else f"{kind} `{rest}`")
        elif kind == "check":
            first = names.matches(place)[0]
            parts[f"check [`{name}`](../theorems.md#{first.replace('.', '')})"] = []
        else:
            parts[f"[{name}](../../{name})" if kind == "page" else f"`{name}`"] = []
    return "; ".join(f"{head}: {', '.join(found)}" if found else head for head, found in parts.items())


def page(entries, names, runs):
    """The page. `runs` are the stems of the runs in the results, by the scenario's name."""
    counts = {source: Counter(entry["state"] for entry in entries if entry["source"] == source) for source in SOURCES}
    total = sum(counts.values(), Counter())
    waiting = sum(waits(entry, names, runs) for entry in entries)
    lines = ["# Every item of five papers", "",
             f"moelab began with five papers. They hold {len(entries)} items: figures, tables, statements, definitions, baselines, metrics and claims. "
             f"moelab has {total['done'] + total['counterpart']} of them, itself or as a counterpart. "
             f"{f'{waiting} of these wait for a full run. ' if waiting else ''}This page lists all items and says where each one is.", "",
             *(f"- **{state.capitalize()}**: {meaning}" for state, meaning in STATES.items()), "",
             "`*` matches any text in a name. A scenario's name leads to its run, or to its file where the results have no run. "
             "The data are in [items.json](items.json).", "",
             "| source | items | " + " | ".join(STATES) + " |", "|---|---|" + "---|" * len(STATES)]
    for source, title in SOURCES.items():
        lines.append(f"| [{title}]({source}.md) | {sum(counts[source].values())} | " + " | ".join(str(counts[source][s]) for s in STATES) + " |")
    lines.append(f"| all | {len(entries)} | " + " | ".join(str(total[s]) for s in STATES) + " |")
    for source, title in SOURCES.items():
        lines += ["", f"## {title}", "", "| item | in the paper | state | where, and what is missing |", "|---|---|---|---|"]
        for entry in (entry for entry in entries if entry["source"] == source):
            where = ". ".join(filter(None, (linked(entry, names, runs), entry.get("reason"), waits(entry, names, runs) and "Not run in full yet.")))
            lines.append(f"| {entry['item']} | {entry['place']} | {entry['state']} | {where} |")
    return "\n".join(lines) + "\n"


def present_page(runs):
    return page(load(), Names(), runs)
