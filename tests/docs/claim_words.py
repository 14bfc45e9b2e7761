"""Tests that the results show claims with the words, origins and readings that their scenarios have."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs" / "site"))

import claim_words  # noqa: E402

COLUMNS = ["id", "verdict", "origin", "reading", "source", "text", "statement", "p"]
ROWS = [["small_wins", "refuted", "paper", "main", "Fig. 1", "Old “words”.", "small test_loss < large test_loss", 1e-16],
        ["large_learns", "reproduced", "paper", "main", "Fig. 1", "As before.", "large test_loss < 1", 0.001],
        ["gone", "reproduced", "ours", "main", "Fig. 1", "No such claim now.", "large nmse < 1", 0.001]]
SMALL_WINS = {"id": "small_wins", "left": {"arm": "small", "metric": "test_loss"}, "op": "<", "right": {"arm": "large", "metric": "test_loss"},
              "origin": "paper", "reading": "other", "source": "Fig. 2", "text": "New “words”."}
EACH_LEARNS = {"id": "{arm}_learns", "arms": ["*"], "left": {"arm": "{arm}", "metric": "test_loss"}, "op": "<", "right": {"value": 1},
               "origin": "ours", "source": "Fig. 1", "text": "{arm} learns."}


def refreshed(claims, base=None):
    """The rows of a small run, with the words of these claims of its scenario; and how many changed."""
    with tempfile.TemporaryDirectory() as name:
        results, scenarios = Path(name) / "results", Path(name) / "scenarios"
        (results / "runs").mkdir(parents=True)
        (scenarios / "doe").mkdir(parents=True)
        data = ",\n".join(json.dumps(dict(zip(COLUMNS, row)), ensure_ascii=False, separators=(",", ":")) for row in ROWS)
        text = ('{\n"run": "doe",\n"claims": [\n' + data +
                '\n],\n"points": {"columns": ["claim"],\n"data": [\n[0]\n]}\n}\n')
        file = results / "runs" / "doe.json"
        file.write_text(text)
        scenario = {"name": "doe"} | ({"claims": claims} if claims is not None else {}) | ({"extends": "base.json"} if base else {})
        (scenarios / "doe" / "doe.json").write_text(json.dumps(scenario))
        if base:
            (scenarios / "doe" / "base.json").write_text(json.dumps({"name": "base", "claims": base}))
        changed = claim_words.refresh(results, scenarios)
        after = file.read_text()
        if not changed:
            assert after == text
        return json.loads(after)["claims"], changed


class ClaimWords(unittest.TestCase):
    def test_the_results_have_the_words_of_the_scenarios(self):
        stale = [f"{file.stem}.{claim}: {sorted(changed)}" for file, claim, changed in
                 claim_words.differences(ROOT / "docs" / "results", ROOT / "scenarios")]
        self.assertEqual(stale, [], "`docs/build --fill` writes them")

    def test_words_follow_and_numbers_stay(self):
        rows, changed = refreshed([SMALL_WINS])
        self.assertEqual(changed, 1)
        self.assertEqual(rows[0], dict(zip(COLUMNS, ROWS[0])) | {"reading": "other", "source": "Fig. 2", "text": "New “words”."})
        self.assertEqual([list(row.values()) for row in rows[1:]], ROWS[1:])

    def test_an_excluded_reading_has_no_verdict(self):
        rows, _ = refreshed([SMALL_WINS | {"reading": "excluded"}])
        self.assertEqual((rows[0]["verdict"], "p" in rows[0]), ("excluded", False))

    def test_a_claim_that_compares_another_metric_keeps_its_words(self):
        other = SMALL_WINS | {"left": {"arm": "small", "metric": "perplexity"}}
        self.assertEqual(refreshed([other])[1], 0)

    def test_a_claim_written_for_each_arm(self):
        rows, changed = refreshed([EACH_LEARNS])
        self.assertEqual((changed, rows[1]["origin"], rows[1]["text"]), (1, "ours", "large learns."))

    def test_claims_of_the_scenario_that_is_extended(self):
        self.assertEqual(refreshed(None, [SMALL_WINS])[1], 1)
        self.assertEqual(refreshed([], [SMALL_WINS])[1], 0)

    def test_claims_of_one_id_for_different_arms(self):
        smooth, relu = ({"id": "{arm}_shared", "arms": arms, "text": text} for arms, text in ((["linear", "gelu*"], "smooth"), (["relu"], "kinks")))
        self.assertEqual([claim_words.scenario_claim(f"{arm}_shared", [smooth, relu])["text"] for arm in ("linear", "gelu2", "relu")],
                         ["smooth", "smooth", "kinks"])
        self.assertIsNone(claim_words.scenario_claim("tanh_shared", [smooth, relu]))

    def test_the_pattern_that_fixes_most_of_an_id(self):
        general, special = {"id": "{arm}_exact", "arms": ["*"]}, {"id": "{arm}_gate_exact", "arms": ["*"], "text": "gates of {arm}"}
        self.assertEqual(claim_words.scenario_claim("linear_gate_exact", [general, special])["text"], "gates of linear")


if __name__ == "__main__":
    unittest.main()
