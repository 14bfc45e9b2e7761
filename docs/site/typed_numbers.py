"""Lists numbers with intervals that stand typed in pages about results: docs/site/typed_numbers.py

A number that a link takes from a run (results.py) is not listed. `docs/build --check` allows no page more than MOST.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"[−-]?(?:\d[\d ]*)?\.?\d+"
INTERVAL = re.compile(rf"{NUMBER}(?: ± {NUMBER}| \[{NUMBER}, {NUMBER}\])")
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\([^)]*\)")
FOLDERS = ("docs/papers/", "docs/results/")

# What is left: tables of arms, adaptive runs and fits, which the claims of the runs do not have. Numbers only fall.
MOST = {"docs/papers/beyond.md": 6, "docs/papers/dikkala2023.md": 4, "docs/papers/graph_of_tokens2025.md": 3,
        "docs/papers/perturbed_cosine.md": 1, "docs/papers/specialization2025.md": 7, "docs/results/decided.md": 451,
        "docs/results/gates.md": 202, "docs/results/language.md": 179, "docs/results/rates.md": 108}


def typed(text):
    """The numbers with an interval outside links and code."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)
    return [found.group(0).strip() for found in INTERVAL.finditer(LINK.sub("", text))]


def too_many(name, text):
    found = typed(text)
    if name.startswith(FOLDERS) and len(found) > MOST.get(name, 0):
        yield (f"{name}: {len(found)} typed numbers with intervals, at most {MOST.get(name, 0)}: "
               f"take them from a run (docs/develop/documentation.md): {'; '.join(found[:5])} …")


if __name__ == "__main__":
    for file in sorted(ROOT.glob("docs/*/*.md")):
        page = str(file.relative_to(ROOT))
        if page.startswith(FOLDERS):
            for number in typed(file.read_text()):
                print(f"{page}: {number}")
    sys.exit(0)
