"""Gives the claims in docs/results/runs the words that they have in their scenarios today.

A scenario may correct the text or the source of a claim, say that it is not the paper's, or make it another reading.
None of this needs a new run: what was measured is the same. Changed tests and new claims do need one.
"""

import json
import re
from fnmatch import fnmatchcase

from items import complete

FIELDS = ("origin", "reading", "source", "text")


def scenario_claim(claim_id, claims):
    """The claim of a scenario with this id, the name of its arm filled in where it is written for many. None if it is not there."""
    found = []
    for claim in claims:
        pattern = claim["id"] if "arms" not in claim or "{arm}" in claim["id"] else claim["id"] + "_{arm}"
        match = re.fullmatch(re.escape(pattern).replace(re.escape("{arm}"), "(?P<arm>.+)", 1), claim_id)
        arm = match.groupdict().get("arm", "") if match else ""
        if match and (not arm or any(fnmatchcase(arm, pattern) for pattern in claim["arms"])):
            found.append((arm, claim))
    if not found:
        return None
    arm, claim = min(found, key=lambda each: len(each[0]))  # the pattern that fixes most of the id
    return json.loads(json.dumps(claim).replace("{arm}", arm))


def metrics_of(claim):
    """The metrics that a claim of a scenario compares."""
    return [side["metric"] for side in (claim, claim.get("left", {}), claim.get("right", {})) if "metric" in side]


def scenarios_by_name(folder):
    """The files of scenarios by the names of their runs."""
    return {json.loads(file.read_text()).get("name"): file for file in sorted(folder.glob("*/*.json"))}


def differences(results, scenarios):
    """Yields (file of the run, id, fields that differ) for each claim with other words than its scenario has.

    A claim that compares other metrics now keeps its words, until its run is made again.
    """
    files = scenarios_by_name(scenarios)
    for file in sorted((results / "runs").glob("*.json")):
        run = json.loads(file.read_text())
        written = complete(files[run["run"]]).get("claims") or [] if run["run"] in files else []
        for claim in run["claims"]:
            now = scenario_claim(claim["id"], written)
            if not now or any(metric not in claim["statement"] for metric in metrics_of(now)):
                continue
            words = {"reading": "main"} | {field: now[field] for field in FIELDS if field in now}
            changed = {field: value for field, value in words.items() if claim.get(field, value) != value}
            if changed:
                yield file, claim["id"], changed


def refresh(results, scenarios):
    """Writes the present words into the runs. Returns the number of claims that changed."""
    changes = {}
    for file, claim_id, changed in differences(results, scenarios):
        changes.setdefault(file, {})[claim_id] = changed
    for file, of_claims in changes.items():
        text = file.read_text()
        begin = text.index('"claims": [\n')
        end = text.index("\n]", begin)
        lines = text[begin:end].split("\n")
        for i in range(1, len(lines)):  # a claim on each line
            row = lines[i].rstrip(",")
            claim = json.loads(row)
            if claim["id"] in of_claims:
                claim |= of_claims[claim["id"]]
                if claim["reading"] == "excluded":
                    claim["verdict"] = "excluded"
                    claim.pop("p", None)
                lines[i] = json.dumps(claim, ensure_ascii=False, separators=(",", ":")) + lines[i][len(row):]
        file.write_text(text[:begin] + "\n".join(lines) + text[end:])
    return sum(len(of_claims) for of_claims in changes.values())
