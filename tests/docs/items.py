"""Tests the list of the sources' items: every name in it exists, and the page shows the data."""

import json
import sys
import unittest
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs" / "site"))

import items  # noqa: E402
import results  # noqa: E402


class Items(unittest.TestCase):
    entries, names = items.load(), items.Names()

    def test_every_place_exists(self):
        self.assertEqual(list(items.unknown(self.entries, self.names)), [])

    def test_a_wrong_place_is_found(self):
        entry = {"source": "acmoe2025", "item": "x", "kind": "claim", "place": "1", "state": "done", "where": []}
        for place in ("claim acmoe2025/layers.no_such", "claim acmoe2025/no_such.full_*", "arm gates/gates.no_such", "scenario acmoe2025/none",
                      "figure acmoe2025/attacks.no_such", "check acmoe2025.lemma9", "metric no_such", "kind no_such", "page none.md", "odd x"):
            self.assertEqual(list(items.unknown([entry | {"where": [place]}], self.names)), [f"items.json: acmoe2025, x: no {place}"])

    def test_reasons_and_places_fit_the_state(self):
        entry = {"source": "acmoe2025", "item": "x", "kind": "claim", "place": "1", "where": ["kind cosine"]}
        self.assertEqual(len(list(items.unknown([entry | {"state": "partial"}], self.names))), 1)
        self.assertEqual(len(list(items.unknown([entry | {"state": "done", "reason": "why"}], self.names))), 1)
        self.assertEqual(len(list(items.unknown([entry | {"state": "absent", "reason": "why"}], self.names))), 1)
        self.assertEqual(len(list(items.unknown([entry | {"state": "done", "where": []}], self.names))), 1)
        self.assertEqual(list(items.unknown([entry | {"state": "partial", "reason": "why"}], self.names)), [])

    def test_every_item_is_listed_once(self):
        self.assertEqual(Counter(entry["source"] for entry in self.entries),
                         {"acmoe2025": 52, "graph_of_tokens2025": 47, "specialization2025": 44, "dikkala2023": 47, "perturbed_cosine": 27})
        listed = Counter((entry["source"], entry["item"], entry["place"]) for entry in self.entries)
        self.assertEqual([item for item, times in listed.items() if times > 1], [])

    def test_the_page_shows_the_data(self):
        ledger = results.Ledger(ROOT / "docs" / "results")
        self.assertEqual(items.PAGE.read_text(), items.present_page(ledger.stems), "docs/build --fill writes the page")

    def test_items_without_a_run_are_marked(self):
        entry = {"source": "acmoe2025", "item": "x", "kind": "claim", "place": "1", "state": "counterpart", "where": ["claim acmoe2025/layers.full_*"]}
        name = self.names.scenarios["acmoe2025/layers"]["name"]
        self.assertIn("Not run in full yet.", items.page([entry], self.names, {}))
        self.assertNotIn("Not run in full yet.", items.page([entry], self.names, {name: "acmoe_layers"}))
        for other in (entry | {"state": "partial", "reason": "why."}, entry | {"where": ["kind cosine", "check acmoe2025.lemma1.*"]}):
            self.assertNotIn("Not run in full yet.", items.page([other], self.names, {}))

    def test_a_state_is_one_word_of_the_data(self):
        changed = json.loads(json.dumps(self.entries))
        changed[0]["state"] = "absent" if changed[0]["state"] != "absent" else "done"
        self.assertNotEqual(items.page(changed, self.names, {}), items.page(self.entries, self.names, {}))


if __name__ == "__main__":
    unittest.main()
