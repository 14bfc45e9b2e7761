"""Tests that every file names the same release. CMakeLists.txt has the version; pyproject.toml reads it there."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def found(pattern, file):
    return re.search(pattern, (ROOT / file).read_text(), flags=re.M).groups()


class Release(unittest.TestCase):
    version, = found(r"^project\(moelab VERSION (\S+)", "CMakeLists.txt")

    def test_files_name_the_version(self):
        self.assertEqual(found(r"^version: (\S+)$", "CITATION.cff"), (self.version,))
        self.assertEqual(found(r"find_package\(moelab (\S+) ", "docs/example/program/CMakeLists.txt"),
                         (self.version.rpartition(".")[0],))
        self.assertIn('input = "CMakeLists.txt"', (ROOT / "pyproject.toml").read_text())

    def test_the_changelog_has_the_release_and_its_date(self):
        released = re.findall(r"^## (\d\S*) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
        self.assertEqual(released[0], (self.version, *found(r"^date-released: (\S+)$", "CITATION.cff")))
        self.assertEqual(released, sorted(released, key=lambda each: each[1], reverse=True))

    def test_a_release_says_what_was_added_changed_and_fixed(self):
        for part in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[1:]:
            kinds = re.findall(r"^### (.*)$", part, flags=re.M)
            self.assertEqual(kinds, [kind for kind in ("Added", "Changed", "Fixed") if kind in kinds])


if __name__ == "__main__":
    unittest.main()
