#!/usr/bin/env python3
"""Tests the examples of the scenario reference: field_examples.py PROGRAM

Every field has an example, and the program accepts the scenarios that the examples come from. Other tests run those of
scenarios/.
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs" / "site"))

import examples  # noqa: E402

# The files are a data set that no test has.
WITHOUT = [("data", "image_clusters", "path")]
PROGRAM = ""


class Examples(unittest.TestCase):
    def test_every_field_has_an_example(self):
        uses = examples.Uses(ROOT)
        _, *sections = re.split(r"^## ", (ROOT / "docs" / "scenario.md").read_text(), flags=re.M)
        fields, without = 0, []
        for section in sections:
            title, _, body = section.partition("\n")
            text, left = examples.with_examples(title, body, uses)
            rows = [line for line in text.split("\n") if examples.ROW.match(line.rpartition(" | ")[0] + " |")]
            fields += len(rows)
            without += left
        self.assertGreater(fields, 600)
        self.assertEqual(without, WITHOUT)

    def test_an_unknown_field_has_none(self):
        section = f"{examples.HEAD}\n|---|---|---|---|\n| `unheard` | number | optional | x |\n| `steps` | number | default 7 | x |"
        text, without = examples.with_examples("train", section, examples.Uses(ROOT))
        self.assertEqual(without, [("train", "", "unheard")])
        self.assertIn('| `"steps": ', text)

    def test_the_program_accepts_the_scenarios(self):
        files = sorted((ROOT / "docs" / "example" / "scenarios").glob("*.json"))
        self.assertGreater(len(files), 5)
        for file in files:
            done = subprocess.run([PROGRAM, "validate", file], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
