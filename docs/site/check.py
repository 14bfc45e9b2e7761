"""Checks of the built site and of its sources.

Links: every local link and anchor of every page of the site leads somewhere, and no page loads anything from the
network.

Sentences: no page has a sentence of more than 40 words or a table cell of more than 25. On average a page has at most
18 words and one comma in a sentence. It has 75 words in the paragraph at the 90th percentile, and half an odd turn of
phrase in a thousand words.

Numbers: pages about results take numbers from runs and tables (typed_numbers.py).
"""

import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

from figures import small
from typed_numbers import any_typed

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 40
MOST_IN_CELL = 25
MOST_ON_AVERAGE = {"words a sentence": 18, "commas a sentence": 1.0, "words of the paragraph at the 90th percentile": 75,
                   "odd turns in a thousand words": 0.5}
LEAST_SENTENCES = 5  # a shorter page has no average
ODD = re.compile(r"\b(that of|those of|of which|of whom|but for|(is|are) told|by itself|such a one|(one's|of its) own|"
                 r"for the sake|whoever|wherever|as a rule)\b", re.I)

ELSEWHERE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench/README.md", "python/README.md")


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "name" in values:
            self.anchors.add(values["name"])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in ("script", "img", "iframe") and values.get("src"):
            self.loaded.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon") and values.get("href"):
            self.loaded.append(values["href"])


def broken_links(site):
    pages = {file: Page(file.read_text(errors="replace")) for file in sorted(site.rglob("*.html"))
             if "_static" not in file.parts}
    for file, page in pages.items():
        here = file.relative_to(site)
        for link in page.loaded:
            if urlparse(link).scheme not in ("", "data"):
                yield f"{here}: loads {link} from the network"
        for link in page.links + page.loaded:
            parts = urlparse(link)
            if parts.scheme or parts.netloc:
                continue
            target = file if not parts.path else Path(os.path.normpath(file.parent / unquote(parts.path)))
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                yield f"{here}: no page {link}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{here}: no anchor {link}"


def prose(text):
    """The paragraphs and list items of a page, without code, tables, headings and links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^(\||#|!\[).*$", "", text, flags=re.M)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.S)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\$[^$\n]+\$|`[^`]*`", "x", text)  # an equation or a name is a word
    return re.split(r"\n\s*\n|\n\s*[-*] |\n\s*\d+\. ", text)


def long_sentences(name, text):
    for paragraph in prose(text):
        for sentence in re.split(r"(?<=[.!?:])\s+", paragraph):
            if len(sentence.split()) > MOST_WORDS:
                yield f"{name}: a sentence of {len(sentence.split())} words: {' '.join(sentence.split()[:10])} …"
    for line in text.splitlines():
        if not line.startswith("|"):
            continue
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "x", line))
        for cell in plain.strip().strip("|").split("|"):
            if len(cell.split()) > MOST_IN_CELL:
                yield f"{name}: a table cell of {len(cell.split())} words: {' '.join(cell.split()[:10])} …"


def averages(name, text):
    paragraphs = [paragraph for paragraph in prose(text) if len(paragraph.split()) > 4]
    sentences = [s for p in paragraphs for s in re.split(r"(?<=[.!?])\s+", p) if len(s.split()) > 2]
    if len(sentences) < LEAST_SENTENCES:
        return
    joined, lengths = " ".join(paragraphs), sorted(len(p.split()) for p in paragraphs)
    found = (sum(lengths) / len(sentences), joined.count(",") / len(sentences), lengths[int(0.9 * len(lengths))],
             1000 * len(ODD.findall(joined)) / sum(lengths))
    for (what, most), value in zip(MOST_ON_AVERAGE.items(), found):
        if value > most:
            yield f"{name}: {value:.2f} {what}, at most {most}"


def all_pages():
    return [str(file.relative_to(ROOT)) for file in sorted((ROOT / "docs").rglob("*.md"))] + list(ELSEWHERE)


def check(site):
    """Prints what is wrong; returns the exit status."""
    found = list(broken_links(site))
    for file in all_pages():
        text = (ROOT / file).read_text()
        found += [*long_sentences(file, text), *averages(file, text)]
    found += [f"{file.relative_to(ROOT)}: docs/build --fill makes it small"
              for file in sorted((ROOT / "docs" / "results" / "figures").glob("*.svg")) if small(file.read_text()) != file.read_text()]
    for file in sorted(ROOT.glob("docs/*/*.md")):
        found += any_typed(str(file.relative_to(ROOT)), file.read_text())
    for line in found:
        print(f"docs/build: {line}", file=sys.stderr)
    return 1 if found else 0
