"""Lists numbers with intervals that stand typed in pages about results: docs/site/typed_numbers.py

Numbers that a link takes from a run (results.py) or a table (tables.py) are not listed. Tables that the build writes are
not listed either. `docs/build --check` allows no other numbers.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"[−-]?(?:\d[\d ]*)?\.?\d+"
INTERVAL = re.compile(rf"{NUMBER}(?: ± {NUMBER}| \[{NUMBER}, {NUMBER}\])")
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\([^)]*\)")
FOLDERS = ("docs/papers/", "docs/results/")
TABLE = re.compile(r"<!-- table .*?<!-- end of table -->", re.S)


def typed(text):
    """The numbers with an interval outside links, code and tables that the build writes."""
    text = TABLE.sub("", text)
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)
    return [found.group(0).strip() for found in INTERVAL.finditer(LINK.sub("", text))]


def any_typed(name, text):
    found = typed(text)
    if name.startswith(FOLDERS) and found:
        yield (f"{name}: {len(found)} typed numbers with intervals: take them from a run or a table "
               f"(docs/develop/documentation.md): {'; '.join(found[:5])}")


if __name__ == "__main__":
    for file in sorted(ROOT.glob("docs/*/*.md")):
        page = str(file.relative_to(ROOT))
        if page.startswith(FOLDERS):
            for number in typed(file.read_text()):
                print(f"{page}: {number}")
    sys.exit(0)
