"""Tests the pages of results (docs/site/results.py) on a small ledger with hostile texts."""

import fnmatch
import json
import re
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs" / "site"))

import figures  # noqa: E402
import results  # noqa: E402
import tables  # noqa: E402
import typed_numbers  # noqa: E402

HOSTILE = "</td><script>alert(1)</script> ``` | ]( $$ ** {x} # & \"q\" 'a' \n```\n\n\x00 \ud800 <!-- ⟨é⟩"
POINT = {"at": {"data.dim": 3}, "left": 0.41, "left_interval": [0.38, 0.44], "right": 0.5, "right_interval": None,
         "estimate": -0.19845, "interval": [-0.28768, -0.10536], "level": 0.95, "scale": "log ratio", "verdict": "reproduced",
         "note": ""}


def claim(name, verdict="reproduced", points=(POINT,), **fields):
    return {"id": name, "verdict": verdict, "origin": "paper", "reading": "main", "regime": None, "source": "Fig. 1",
            "reported": None, "text": name, "statement": name, "p": 0.001, "seeds_to_decide": None, "points": list(points)} | fields


def run(name, claims, **fields):
    return {"version": 4, "run": name, "title": f"Run {name}", "source": "Doe 2020, Fig. 1", "work": "Doe 2020", "states": {"done": 4},
            "command": "moelab run x.json", "seconds": 12.5, "training_share": 0.5, "measuring_share": None,
            "builds": [{"name": "0.2.0", "cells": 4}], "figure": None, "claims": claims} | fields


def table_of(objects):
    """Objects as the program writes them: a table that names each field once."""
    columns = list(dict.fromkeys(name for each in objects for name in each))
    return {"columns": columns, "data": [[each.get(column) for column in columns] for each in objects]}


def ledger_of(runs, with_lists=True, checks=None, figures=None, notes=(), lines=()):
    """A ledger on disk, read again, with a scenario for each run. `lines` are further rows of claims.json."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "runs").mkdir()
        (folder / "figures").mkdir()
        for stem, text in (figures or {}).items():
            (folder / "figures" / f"{stem}.svg").write_text(text)
        (folder / "scenarios" / "doe").mkdir(parents=True)
        lines, families = list(lines), []
        for each in runs:
            stem = re.sub(r"[^\w-]", "-", each["run"], flags=re.A)
            points = [{"claim": i} | point for i, one in enumerate(each["claims"]) for point in one["points"]]
            claims = [{k: v for k, v in one.items() if k != "points"} for one in each["claims"]]
            (folder / "runs" / f"{stem}.json").write_text(json.dumps(
                each | {"claims": claims, "points": table_of(points)}))
            (folder / "scenarios" / "doe" / f"{stem}.json").write_text(json.dumps({"name": each["run"], "notes": list(notes)}))
            for one in each["claims"]:
                lines.append({"run": each["run"], "p_holm": 0.02, "p_bh": 0.01, "family": len(families)}
                             | {k: one[k] for k in ("id", "origin", "reading", "verdict", "p")})
                families.append({"origin": one["origin"], "reading": "main", "verdict": one["verdict"]})
        if with_lists:
            for name, rows in (("claims", lines), ("families", families)):
                (folder / f"{name}.json").write_text(json.dumps(table_of(rows)))
        if checks is not None:
            (folder / "checks.json").write_text(json.dumps(table_of(checks)))
        return results.Ledger(folder, folder / "scenarios")


class Shown(HTMLParser):
    """The texts, tags and anchors of the HTML parts of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.anchors, self.links, self.texts = [], [], [], []
        for part in re.findall(r"^```\{raw\} html\n(.*?)^```$", page, flags=re.M | re.S):
            self.feed(part)
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append(tag)
        self.anchors += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []

    def handle_data(self, data):
        self.texts.append(data)


class Pages(unittest.TestCase):
    def page(self, *claims, **fields):
        return results.run_page(ledger_of([run("demo", list(claims), **fields)]), "demo")

    def test_hostile_texts_stay_texts(self):
        hostile = run("demo", [claim(HOSTILE, text=HOSTILE, statement=HOSTILE + "2", regime=HOSTILE, source=HOSTILE, reported=HOSTILE,
                                     points=[POINT | {"at": HOSTILE, "note": HOSTILE, "left": HOSTILE}])],
                      title=HOSTILE, command=HOSTILE, builds=[{"name": HOSTILE, "cells": 1}], states={HOSTILE: 1})
        checks = [{"id": "a." + HOSTILE, "statement": HOSTILE, "source": HOSTILE, "verdict": "holds", "expected": True,
                   "measured": HOSTILE, "predicted": 1, "error_bound": None}]
        ledger = ledger_of([hostile], checks=checks, notes=[HOSTILE])
        for file, (page, text) in results.pages(ledger, "# Results\n\nFiles.\n").items():
            shown = Shown(text)
            self.assertNotIn("script", shown.tags, page)
            self.assertNotIn("<script", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S).replace("\\<script", ""), page)
            self.assertEqual(text.count("\n```"), 2 * text.count("```{raw} html"), page)
            self.assertNotIn("\0", text)
            text.encode()
            if file.endswith("demo.json"):
                self.assertGreaterEqual(shown.text.count("</td><script>alert(1)</script> ``` | ]( $$"), 9)
                title = re.search(r"^# (.*)$", text, flags=re.M).group(1)
                self.assertEqual(re.sub(r"\\(.)", r"\1", title), results.one_line(HOSTILE))
                self.assertIsNone(re.search(r"(?<!\\)[<`$*\[\]|]", title))

    def test_different_claims_have_different_anchors(self):
        names = ["a b", "a-b", "a.b", "a<b", "a@b", "A b"]
        self.assertEqual(len({results.anchor(name) for name in names}), len(names))
        shown = Shown(self.page(*map(claim, names)))
        self.assertEqual(len(set(shown.anchors)), len(shown.anchors))
        for link in shown.links:
            self.assertIn(link.removeprefix("#"), shown.anchors)

    def test_logarithms_are_shown_as_ratios(self):
        self.assertIn("ratio 0.820 [0.750, 0.900]", Shown(self.page(claim("a"))).text)
        self.assertIn("difference −0.198 [−0.288, −0.105]", Shown(self.page(claim("a", points=[POINT | {"scale": "difference"}]))).text)

    def test_other_levels_are_named(self):
        self.assertNotIn("% interval", Shown(self.page(claim("a"))).text)
        self.assertIn("(99.75 % interval)", Shown(self.page(claim("a", points=[POINT | {"level": 0.9975}]))).text)

    def test_points_outside_the_regime_are_said_and_do_not_decide(self):
        outside = POINT | {"verdict": "outside", "estimate": 2.0, "interval": [1.9, 2.1], "at": {"data.dim": 9}}
        text = Shown(self.page(claim("a", points=[POINT, outside]))).text
        self.assertIn("outside the regime", text)
        self.assertLess(text.index("data.dim = 3"), text.index("data.dim = 9"))
        self.assertEqual(results.deciding_point(claim("a", points=[POINT, outside])), 0)
        refuted = POINT | {"verdict": "refuted"}
        self.assertEqual(results.deciding_point(claim("a", "refuted", points=[POINT, refuted, refuted])), 1)

    def test_older_points_have_texts_and_no_p(self):
        old = {"at": "data.dim = 3 against 2", "left": "median 190", "left_interval": None, "right": "-", "right_interval": None,
               "estimate": None, "interval": None, "level": 0.95, "scale": None, "verdict": "inconclusive", "note": "sign test"}
        text = Shown(self.page(claim("a", "inconclusive", points=[old], p=None))).text
        for part in ("data.dim = 3 against 2", "median 190 against -", "sign test", "–"):
            self.assertIn(part, text)

    def test_odd_numbers(self):
        for odd in ({"interval": [None, None]}, {"interval": [None, 0.1]}, {"interval": [0.0, 0.0]}, {"estimate": 1e6}, {"estimate": float("nan")},
                    {"left": 4e11, "left_interval": [-6e11, 1.5e12]}, {"estimate": -40.0, "interval": [-90.0, 3.0]}, {"left_at": {"a": 1}, "right_at": {"a": 2}},
                    {"left_step": 100, "right_step": 0}, {"pairs": 4, "test": "sign", "lost": {"left": 1, "right": 0}}):
            self.page(claim("a", points=[POINT | odd]))
        self.page(claim("a", points=[]), seconds=None, figure=None, builds=[], states={})
        self.assertEqual(results.estimate_text(POINT | {"interval": [None, -0.10536]}), "0.820 [−∞, 0.900]")
        self.assertTrue(results.estimate_text(POINT | {"estimate": -40.0, "interval": [-90.0, 3.0]}).startswith("4.248e−18"))

    def test_a_ratio_near_one_shows_on_which_side_it_lies(self):
        self.assertEqual(results.estimate_text(POINT | {"estimate": 0.006, "interval": [0.002, 0.01]}), "1.0060 [1.0020, 1.0101]")
        self.assertEqual(results.estimate_text(POINT | {"estimate": 0.006, "interval": [0.002, 0.01], "scale": "difference"}), "0.0060 [0.0020, 0.0100]")

    def test_figures_that_are_older_than_the_layout_are_said(self):
        drawn = "<svg><title>moelab_layout_{}</title></svg>"
        ledger = ledger_of([run(name, [claim("a")], figure=f"figures/{name}.svg") for name in ("new", "old", "oldest")],
                           figures={"new": drawn.format(results.present_layout()), "old": drawn.format(1), "oldest": "<svg/>"})
        self.assertEqual(ledger.older_figures, ["old", "oldest"])
        said = [stem for stem in ledger.runs if "An earlier version of the program drew" in results.run_page(ledger, stem)]
        self.assertEqual(said, ["old", "oldest"])
        shipped = results.older_figures(ROOT / "docs" / "results")
        print(f"{len(shipped)} figures in docs/results are older than the layout: {', '.join(shipped)}")

    def test_works_have_short_names(self):
        for work, short in (("Doe 2020", "Doe 2020"), ("", "no paper"), ("2408.15664; theory", "arXiv 2408.15664; theory"),
                            ("Nguyen et al., Statistical Advantages of Perturbing Cosine Router (slides)", "Nguyen et al. (slides)")):
            self.assertEqual(results.short_work(work), short)

    def test_home_counts_families_and_claims(self):
        home = results.home_page(ledger_of([run("x", [claim("a"), claim("b", "refuted", origin="ours")]), run("y", [claim("a")])]), "# R\n\nF.\n\n## More\n")
        shown = Shown(home)
        self.assertIn("3 claims in 3 families", home)
        self.assertIn("Doe 2020 paper 2 ( 2 )", shown.text)
        self.assertNotIn("fragile=fragile", " ".join(shown.links))
        self.assertIn("index.html?paper=Doe%202020&whose=ours&verdict=refuted#claims", shown.links)
        self.assertIn("runs/y.html#claim-a", shown.links)
        self.assertLess(home.index("## Claims"), home.index("## More"))

    def test_findings_come_before_the_claims(self):
        home = results.home_page(ledger_of([run("x", [claim("a")])]), "# R\n\nF.\n\n## Five findings\n\n1. One.\n\n## More\n")
        places = [home.index(head) for head in ("## Summary", "## Five findings", "## By paper", "## Claims", "## More")]
        self.assertEqual(places, sorted(places))
        self.assertEqual(home.count("## Five findings"), 1)

    def test_a_family_depends_if_it_holds_here_and_fails_there(self):
        ledger = ledger_of([run("x", [claim("a")]), run("y", [claim("a", "refuted")])])
        ledger.families, ledger.members = ledger.families[:1], [sum(ledger.members, [])]
        self.assertIn("<td>1</td>", results.counts_table(ledger)[2])
        row = next(line for line in results.summary_table(ledger) if "all other papers" in line)
        self.assertEqual(row, "<tr><td>all other papers</td><td></td><td></td><td>1</td><td></td><td></td></tr>")

    def test_a_family_depends_if_it_is_too_small_to_matter_somewhere(self):
        def depends(*verdicts, claimed="inconclusive"):
            ledger = ledger_of([run("x", [claim("a", claimed, [POINT | {"verdict": verdict} for verdict in verdicts])])])
            return ledger.depends(ledger.members[0])

        self.assertTrue(depends("reproduced", "equivalent", "uninformative"))
        self.assertFalse(depends("reproduced", "equivalent", "inconclusive"))
        self.assertFalse(depends("reproduced", "uninformative"))
        self.assertFalse(depends("equivalent", "equivalent", claimed="equivalent"))

    def test_a_refuted_statement_has_both_sides(self):
        ledger = ledger_of([run("x", [claim("a")]), run("y", [claim("a", "refuted"), claim("b", "refuted"), claim("c")])])
        ledger.families, ledger.members = ledger.families[:3], [ledger.members[0] + ledger.members[1], *ledger.members[2:]]
        rows = [line for line in results.refuted_page(ledger).splitlines() if line.startswith("<tr><td")]
        self.assertEqual(len(rows), 2)  # c is not refuted
        self.assertIn("y.<wbr>a", rows[0].split("<td>")[1])
        self.assertIn("x.<wbr>a", rows[0].split("<td>")[2])
        self.assertIn("The setting: another claim holds.", rows[0])
        self.assertIn("No other claim tests these words.", rows[1])

    def test_a_refuted_claim_that_holds_elsewhere_depends_on_the_point(self):
        points = [POINT | {"verdict": "reproduced", "at": {"n": 1}}, POINT | {"verdict": "refuted", "at": {"n": 2}}]
        ledger = ledger_of([run("x", [claim("a", "refuted", points)])])
        self.assertEqual(results.what_it_depends_on(ledger, ledger.members[0]), "A holds at n = 1, not at n = 2.")

    def test_open_claims_are_counted_by_what_would_decide_them(self):
        lines = results.open_table(ledger_of([run("x", [
            claim("a", "inconclusive", seeds_to_decide=50), claim("b", "inconclusive", seeds_to_decide=51),
            claim("c", "inconclusive"), claim("d", "inconclusive", origin="ours"), claim("e")])]))
        counts = re.findall(r"<td>(\d*)</td></tr>", "".join(lines))
        self.assertEqual(counts, ["1", "1", "", "", "1", ""])

    def test_a_claim_is_fragile_within_one_standard_error_of_its_line(self):
        # Ten pairs: the quantile is 2.262, so the standard error of ± 0.2262 is 0.1.
        def fragile(estimate, half=0.2262, verdict="reproduced", **fields):
            point = POINT | {"estimate": estimate, "interval": [estimate - half, estimate + half], "pairs": 10, "verdict": verdict}
            return results.is_fragile(claim("a", verdict, points=[point], **fields))

        self.assertTrue(fragile(0.25))
        self.assertTrue(fragile(-0.32, verdict="refuted"))
        self.assertFalse(fragile(0.33))
        self.assertTrue(fragile(0.2, verdict="inconclusive"))
        self.assertFalse(fragile(0.1, verdict="inconclusive"))
        self.assertFalse(fragile(0.25, statement="a ~ b"))  # another line
        self.assertFalse(fragile(0.25, verdict="equivalent"))
        self.assertFalse(results.is_fragile(claim("a", points=[])))
        for pairs, quantile in ((3, 4.3027), (5, 2.7764), (20, 2.0930)):  # tables of Student's t
            self.assertAlmostEqual(results.student_quantile(0.95, pairs) / quantile, 1, delta=0.04)

    def test_missing_and_old_lists_are_reported(self):
        self.assertEqual(ledger_of([run("x", [claim("a")])]).missing, [])
        old = ledger_of([run("x", [claim("a")])], lines=[{"run": "y", "id": "b"}])
        self.assertEqual(len(old.claims), 1)
        self.assertIn("claims that no run has", old.missing[0])
        self.assertIn("moelab report --ledger", ledger_of([run("x", [claim("a")])], with_lists=False).missing[0])


class Numbers(unittest.TestCase):
    ledger = ledger_of([run("x", [claim("a", points=[POINT, POINT | {"left": 0.7, "left_interval": [0.6, 0.8]}]), claim("at_0.1_low"), claim("at_0.1")])])

    def filled(self, text):
        wrong = []
        return results.filled(self.ledger, text, wrong, lambda prefix, stem, claim, target, now: f"<{stem}#{target}={now}>"), wrong

    def test_a_present_number_is_kept(self):
        self.assertEqual(self.filled("so [0.820 [0.750, 0.900]](../results/runs/x.json#a.estimate)."), ("so <x#a.estimate=0.820 [0.750, 0.900]>.", []))
        self.assertEqual(self.filled("[0.410 ± 0.030](runs/x.json#a.1.left)"), ("<x#a.1.left=0.410 ± 0.030>", []))
        self.assertEqual(self.filled("[reproduced](runs/x.json#a.verdict)")[1], [])
        self.assertEqual(self.filled("[0.820](runs/x.json#at_0.1_low.value)"), ("<x#at_0.1_low.value=0.820>", []))
        self.assertEqual(self.filled("[0.820](runs/x.json#at_0.1.value)"), ("<x#at_0.1.value=0.820>", []))
        self.assertEqual(self.filled("[0.820](runs/x.json#at_0.1.1.value)"), ("<x#at_0.1.1.value=0.820>", []))

    def test_the_sides_alone_without_factor_and_offset(self):
        difference = POINT | {"left": 2.267, "right": 2.839, "estimate": -0.573, "interval": [-0.594, -0.552], "scale": "difference"}
        self.ledger = ledger_of([run("x", [claim("factor", statement="a loss < 0.5 × b loss"), claim("plain"),
                                           claim("offset", statement="a loss < b (loss - 0.03)", points=[difference]),
                                           claim("both", statement="a loss < 0.5 × b loss", points=[difference])])])
        self.assertEqual(self.filled("[](runs/x.json#factor.sides)")[0], "<x#factor.sides=0.410 [0.375, 0.450]>")
        self.assertEqual(self.filled("[](runs/x.json#offset.sides)")[0], "<x#offset.sides=−0.603 [−0.624, −0.582]>")
        for name in ("plain", "both"):
            self.assertIn("has no sides there", self.filled(f"[](runs/x.json#{name}.sides)")[1][0])

    def test_an_older_number_is_replaced_and_reported(self):
        text, wrong = self.filled("[0.5](runs/x.json#a.value)")
        self.assertEqual(text, "<x#a.value=0.820>")
        self.assertIn("is 0.820, the page has 0.5", wrong[0])

    def test_unknown_names_are_reported(self):
        for target, said in (("y.json#a.value", "no run y"), ("x.json#b.value", "no claim b"), ("x.json#a.size", "no field size"),
                             ("x.json#a.3.value", "not a point 3"), ("x.json#a.0.value", "not a point 0")):
            text, wrong = self.filled(f"[1](runs/{target})")
            self.assertIn(said, wrong[0])
            self.assertEqual(text, f"[1](runs/{target})")

    def test_other_links_stay(self):
        text = "[run](../results/runs/x.json) and [x](https://a.b/c#d.e)"
        self.assertEqual(self.filled(text), (text, []))

    def test_summary_counts_statements(self):
        ledger = ledger_of([run("x", [claim("a"), claim("b", "refuted"), claim("c", "inconclusive", origin="ours")])])
        text = results.paper_summary(ledger, ["x"], "papers")
        self.assertIn("Of 2 statements of the paper, 1 holds, 1 fails and 0 are open. Of 1 claim of ours, 1 is open.", text)
        self.assertIn("../results/index.html?paper=Doe%202020#claims", text)

    def test_typed_numbers_are_found(self):
        text = "| 0.5 [0.4, 0.6] | −0.25 ± 0.19 | [0.7 ± 0.1](runs/x.json#a.left) | `1 ± 2` | x[3] |"
        self.assertEqual(typed_numbers.typed(text), ["0.5 [0.4, 0.6]", "−0.25 ± 0.19"])
        self.assertEqual(len(list(typed_numbers.any_typed("docs/papers/new.md", text))), 1)

    def test_tables_of_the_build_are_not_typed(self):
        self.assertEqual(typed_numbers.typed("<!-- table a -->\n| 0.5 [0.4, 0.6] |\n<!-- end of table -->\n1 ± 2"), ["1 ± 2"])


class Tables(unittest.TestCase):
    ledger = ledger_of([run("x", [claim("a"), claim("b", "refuted")]), run("y", [claim("a"), claim("b", points=[POINT | {"estimate": -0.105}])])])
    tables = {"t": {"page": "t.md", "columns": {"arm": "arm", "loss": "loss", "none": "none"},
                    "rows": {"one.two": {"arm": "`one`", "loss": {"mean": 2.848, "low": 2.83, "high": 2.87}, "verdict": "refuted"},
                             "three": {"arm": "three", "loss": {"claim": "x#a.left"}}}},
              "difference": {"columns": {"claim": "claim", "left": "x", "right": "y", "estimate": "estimate"}, "compare": ["x", "y"]}}

    def filled(self, text):
        wrong = []
        return tables.filled(self.ledger, self.tables, text, wrong, lambda prefix, target, name, now: f"<{prefix}{target} {name}={now}>"), wrong

    def test_a_table_is_written_into_its_block(self):
        text, wrong = self.filled("a\n<!-- table t -->\nold\n<!-- end of table -->\nb")
        self.assertEqual(text, "a\n<!-- table t -->\n| arm | loss | none |\n|---|---|---|\n| `one` | 2.848 [2.83, 2.87] | – |\n"
                               "| three | [0.410 ± 0.030](runs/x.json#a.left) | – |\n<!-- end of table -->\nb")
        self.assertIn("table t is old", wrong[0])
        self.assertEqual(self.filled(text), (text, []))

    def test_a_table_of_two_runs_has_other_verdicts_alone(self):
        text = self.filled("<!-- table difference -->\n<!-- end of table -->")[0]
        self.assertIn("| `b` | [refuted](runs/x.json#b.verdict) | [reproduced](runs/y.json#b.verdict) | [0.900 [0.750, 0.900]](runs/y.json#b.estimate) |", text)
        self.assertNotIn("`a`", text)

    def test_a_table_is_written_with_a_row_on_each_line(self):
        for table in self.tables.values():
            self.assertEqual(json.loads(tables.written(table)), table)
        self.assertEqual(tables.written({"columns": {"a": "a", "b": "β"}, "rows": {"x": {"a": 0.5}, "y": {"b": "n"}}}),
                         '{\n"columns": {"a":"a","b":"β"},\n"rows": {\n"x": {"a":0.5},\n"y": {"b":"n"}\n}\n}\n')

    def test_single_numbers(self):
        self.assertEqual(self.filled("[2.848 [2.83, 2.87]](tables/t.json#one.two.loss)"), ("<tables/t.json#one.two.loss t=2.848 [2.83, 2.87]>", []))
        self.assertEqual(self.filled("[2.848](../tables/t.json#one.two.loss.mean)"), ("<../tables/t.json#one.two.loss.mean t=2.848>", []))
        self.assertEqual(self.filled("[refuted](tables/t.json#one.two.verdict)")[1], [])
        text, wrong = self.filled("[3](tables/t.json#one.two.loss.mean)")
        self.assertIn("is 2.848, the page has 3", wrong[0])
        for target in ("u.json#a.b", "t.json#two.loss", "t.json#three.size", "t.json#three.loss"):
            self.assertIn("not there", self.filled(f"[1](tables/{target})")[1][0])
        self.assertIn("not there", self.filled("<!-- table u -->\n<!-- end of table -->")[1][0])

    def test_numbers_are_rounded_to_their_interval(self):
        for cell, shown in (({"mean": 0.4188, "half": 0.08}, "0.419 ± 0.080"), ({"mean": -0.59, "half": 0.1}, "−0.59 ± 0.10"),
                            ({"mean": -0.00492, "low": -0.00898, "high": -0.000859}, "−0.0049 [−0.0090, −0.0009]"),
                            ({"mean": 1.06, "low": 1.0, "high": 1.12}, "1.06 [1.00, 1.12]"), ({"mean": 1}, "1"), (0.0138, "0.0138"), (265, "265")):
            self.assertEqual(tables.number_text(cell), shown)
        self.assertEqual(tables.number_text({"mean": -0.3, "half": 0.1}, 2), "−0.30 ± 0.10")
        self.assertEqual(tables.cell_text(self.ledger, {"mean": 1.5, "half": 0.2, "scale": "ratio", "note": "4 of 5"}), "ratio 1.5 ± 0.2 (4 of 5)")


class Shipped(unittest.TestCase):
    FOLDER = ROOT / "docs" / "results"

    def test_a_claim_takes_at_most_1400_bytes_on_average(self):
        claims = len(json.loads((self.FOLDER / "claims.json").read_text())["data"])
        self.assertLessEqual(sum(file.stat().st_size for file in self.FOLDER.rglob("*") if file.is_file()), 1400 * claims)

    def test_every_refuted_statement_says_what_it_depends_on(self):
        ledger = results.Ledger(ROOT / "docs" / "results")
        page = results.refuted_page(ledger)
        self.assertEqual([re.sub("<[^>]*>", " ", row)[:200] for row in page.splitlines() if "No other claim tests these words" in row], [])

    def test_sentences_on_what_a_verdict_depends_on_have_a_refuted_claim(self):
        ledger = results.Ledger(ROOT / "docs" / "results")
        refuted = [f"{line['run']}.{line['id']}" for line in ledger.claims
                   if line["origin"] == "paper" and line["verdict"] == "refuted"]
        self.assertEqual([pattern for pattern in ledger.sentences if not fnmatch.filter(refuted, pattern)], [])

    def test_what_no_page_shows_is_not_stored(self):
        self.assertFalse({"details", "curve"} & set(json.loads((self.FOLDER / "checks.json").read_text())["columns"]))
        for file in (self.FOLDER / "runs").glob("*.json"):
            stored = json.loads(file.read_text())
            self.assertFalse("cells" in stored or any("quote" in claim for claim in stored["claims"]), file.stem)

    def test_tables_and_figures_are_written_small(self):
        for file in (self.FOLDER / "tables").glob("*.json"):
            self.assertEqual(tables.written(json.loads(file.read_text())), file.read_text(), file.stem)
        for file in (self.FOLDER / "figures").glob("*.svg"):
            text = file.read_text()
            self.assertEqual(figures.small(text), text, file.stem)
            size, box = (re.search(rf'{name}="([^"]*)"', text)[1] for name in ("width", "viewBox"))
            self.assertEqual(float(box.split()[2]), 10 * float(size), file.stem)  # tenths of a point


class Figures(unittest.TestCase):
    GROUP = '<g fill="none" color="black" stroke="currentColor" stroke-width="0.60" stroke-linecap="butt" stroke-linejoin="miter">'
    DEFS = '<defs>\n <circle id="a" r="1" fill="currentColor"/><use id="b" xlink:href="#a"/><circle id="c"/></defs>'

    def small(self, inner):
        return figures.small('<svg width="99" height="99" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
                             f"<title>Gnuplot</title>{self.DEFS}{inner}</svg>")

    def shown(self, inner):
        """What is drawn, without the styles and symbols."""
        return re.sub(r"^.*</(style|defs)>|</svg>\n$", "", self.small(inner))

    def test_styles_become_classes_and_unused_symbols_go(self):
        short = self.small(f'{self.GROUP}</g>{self.GROUP}<path stroke="rgb( 51,  51,  51)" d="M1.26,2.00 L3.04,4.0 "/></g>'
                           f'{self.GROUP}<use xlink:href="#b" color="rgb(0, 114, 178)" transform="translate(1.26,2.04) scale(1.5)"/>'
                           '<g stroke="none" fill="black"><text>a &lt; <tspan dy="-1">2</tspan> b</text></g></g>')
        for kept in (".a{stroke:#333;stroke-width:6}", '<path class="a" d="m13,20,17,20"/>', 'id="a"', 'id="b"', "{color:#0072b2}",
                     'href="#b" transform="translate(13,20) scale(15)"', '>a &lt; <tspan dy="-10">2</tspan> b</text>', 'fill="currentColor"'):
            self.assertIn(kept, short)
        for gone in ("Gnuplot", 'id="c"', "linecap", "rgb"):
            self.assertNotIn(gone, short)
        self.assertEqual(figures.small(short), short)

    def test_shapes_of_one_style_are_one_where_none_between_meets_them(self):
        line, other = '<path d="M1,1 L2,1 L2,3"/>', '<path stroke="rgb(255,0,0)" d="M{0},9 L{0},0"/>'
        self.assertEqual(self.shown(f"{self.GROUP}{line}{other.format(50)}{line}</g>"),
                         '<path class="a" d="m10,10h10v20m-10-20h10v20"/><path class="b" d="m500,90v-90"/>')
        self.assertEqual(self.shown(f"{self.GROUP}{line}{other.format(1)}{line}</g>").count("<path"), 3)
        clear = line.replace("d=", 'opacity="0.5" d=')
        self.assertEqual(self.shown(f"{self.GROUP}{clear}{clear}</g>").count("<path"), 2)

    def test_equal_symbols_are_markers_of_a_path(self):
        use = '<use xlink:href="#a" color="rgb(0,0,9)" transform="translate({0},{0}) scale(2)"/>'
        short = self.small(use.format(1) + use.format(2.04))
        for kept in ("marker{overflow:visible}.a{marker:url(#m0)}", '<path class="a" d="m10,10,10,10"/>',
                     '<marker id="m0"><use href="#a" transform="scale(20)" color="#000009"/></marker>'):
            self.assertIn(kept, short)

    def test_closed_lines_and_texts(self):
        self.assertEqual(self.shown('<polygon fill="rgb(0,0,9)" points="1,1 2,1 2,0.5"/>'), '<path class="a" d="m10,10h10v-5z"/>')
        self.assertEqual(self.shown('<path d="M1,1 L2,2 Z L3,3 M9,9"/>'), '<path class="a" d="m10,10,10,10zm0,0,20,20"/>')
        text = '<g transform="translate({0},5)" fill="black"><text>{0}</text></g>'
        self.assertEqual(self.shown(text.format(1) + text.format(60) + "<text> </text>"),
                         '<g class="a"><text x="10" y="50">1</text><text x="600" y="50">60</text></g>')

    def test_the_layout_stays_and_other_files_do_not_change(self):
        layout = '<svg width="9" height="9" xmlns="http://www.w3.org/2000/svg"><title>moelab_layout_3</title><path d="M1,1 L2,2"/></svg>'
        self.assertIn("<title>moelab_layout_3</title>", figures.small(layout))
        self.assertIn('width="9" height="9" viewBox="0 0 90 90"', figures.small(layout))
        for inner in ('<path d="M1,1 C2,2 3,3 4,4"/>', '<g opacity="0.5"><path d="M1,1 L2,2"/></g>', '<line x1="1"/>',
                      '<g transform="rotate(45)"><path d="M1,1 L2,2"/></g>'):
            self.assertIn(inner, figures.small(f'<svg width="9" height="9" xmlns="http://www.w3.org/2000/svg">{inner}</svg>'))


if __name__ == "__main__":
    unittest.main()
