#!/usr/bin/env python3
"""Opens the built site in Chromium, from disk: look_at_site.py SITE FOLDER

Draws eleven pages as a desk and a phone show them, into FOLDER, for people to look at. Checks that the pages are there,
that equations are drawn, that the search finds a word, that tables have their filter, and that the address filters claims. Exit status: 77 without
Chromium or without the site.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = ["index.html", "tutorials/first_study.html", "howto/sweep_experts.html", "explanation/equations.html",
         "explanation/verdicts.html", "reference/scenario/model_router/cosine.html", "reference/glossary.html",
         "papers/acmoe2025.html", "results/index.html", "results/runs/dictionary32.html", "develop/extending.html"]
SIZES = {"desk": "1280,1000", "phone": "500,900"}  # the narrowest window that Chromium has
LEAST_BYTES = 15_000  # a drawn page; an empty one has less than 10,000


def chromium(*arguments):
    with tempfile.TemporaryDirectory() as profile:
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=8000",
                   "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


def main(site, folder):
    folder.mkdir(parents=True, exist_ok=True)
    wrong = []
    for page in PAGES:
        if not (site / page).exists():
            wrong.append(f"{page} does not exist")
            continue
        for size, window in SIZES.items():
            picture = folder / f"{page.replace('/', '_').removesuffix('.html')}_{size}.png"
            chromium(f"--window-size={window}", f"--screenshot={picture}", (site / page).as_uri())
            if not picture.exists() or picture.stat().st_size < LEAST_BYTES:
                wrong.append(f"{page} is not drawn ({size})")
    equations = chromium("--dump-dom", (site / "explanation/equations.html").as_uri())
    if equations.count("<mjx-container") < 50 or '<g data-mml-node="merror"' in equations:
        wrong.append("equations are not drawn")
    if 'placeholder="Filter rows"' not in chromium("--dump-dom", (site / "papers/dikkala2023.html").as_uri()):
        wrong.append("tables have no filter")
    claims = chromium("--dump-dom", (site / "results/index.html").as_uri() + "?verdict=refuted")
    body = claims.partition('data-rows="40"')[2].partition("</table>")[0]
    shown = re.findall(r'<tr>\s*<td class="verdict (\w+)"', body)
    if not shown or len(shown) > 40 or set(shown) != {"refuted"}:
        wrong.append(f"the address does not filter claims: {len(shown)} rows with the verdicts {sorted(set(shown))}")
    found = chromium("--dump-dom", (site / "search.html").as_uri() + "?q=uninformative")
    if not re.search(r"found [1-9]\d* page", found) or "explanation/verdicts.html" not in found:
        wrong.append("the search does not find 'uninformative'")
    first = re.search(r'id="search-results">.*?<li[^>]*><a href="([^"]*)"', chromium("--dump-dom", (site / "search.html").as_uri() + "?q=sweep+experts"), re.S)
    if not first or "howto/sweep_experts.html" not in first.group(1):
        wrong.append(f"the search for 'sweep experts' begins with {first and first.group(1)}")
    for line in wrong:
        print(f"look_at_site: {line}", file=sys.stderr)
    print(f"look_at_site: {len(PAGES)} pages in {folder}")
    return 1 if wrong else 0


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
if __name__ == "__main__":
    if not CHROMIUM:
        print("look_at_site skipped: no Chromium (packages/install browser)")
        sys.exit(77)
    if not Path(sys.argv[1], "index.html").exists():
        print("look_at_site skipped: the site is not built (docs/build)")
        sys.exit(77)
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
