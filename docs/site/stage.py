"""Makes the pages that Sphinx reads from the Markdown of the repository.

Pages of docs/ keep their place. Pages that live elsewhere, or that the program writes, get a place in the site (PLACES).
The long references that the program writes are split, a page for each kind. Links are rewritten to match. A list of
links in an index page is the navigation of its folder.
"""

import json
import os
import re
import shutil
from pathlib import Path, PurePosixPath

import claim_words
import examples
import figures
import items
import results
import tables
from cpp import cpp_pages

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")

# Pages whose place in the repository is not their place in the site.
PLACES = {
    "docs/commands.md": "reference/commands.md",
    "docs/bad_input.md": "reference/errors.md",
    "docs/extending.md": "develop/extending.md",
    "docs/calibration.md": "explanation/calibration.md",
    "docs/reliability.md": "explanation/reliability.md",
    "bench/README.md": "develop/benchmarks.md",
    "bench/scenarios.md": "develop/scenario_times.md",
    "python/README.md": "reference/python.md",
    "CONTRIBUTING.md": "develop/contributing.md",
    "CHANGELOG.md": "develop/changelog.md",
    "docs/notebooks/first_study.ipynb": "tutorials/first_study_notebook.md",
    "docs/notebooks/your_router.ipynb": "tutorials/your_router.md",
    "docs/notebooks/a_language_models_router.ipynb": "tutorials/a_language_models_router.md",
    "docs/notebooks/a_question_decided.ipynb": "tutorials/a_question_decided.md",
}
# Split by stage_scenario() and stage_theorems().
SPLIT = {"docs/scenario.md": "reference/scenario/index.md", "docs/theorems.md": "reference/theorems/index.md"}
# Folders whose pages link a term to the glossary at its first use, and terms that are also everyday words.
WITH_TERMS = ("tutorials/", "howto/", "explanation/", "papers/", "questions/")
GLOSSARY = "reference/glossary.md"
EVERYDAY = {"family", "floor", "load", "origin", "phase", "point", "reading", "record", "soft", "shuffled", "arm"}
# Terms that are everyday words outside the pages of papers.
OF_PAPERS = {"hash", "open", "ours"}
# Pages whose tables need the width that the contents of a page take.
WIDE = ("develop/scenario_times.md", "papers/items.md", "results/decided.md", "results/gates.md", "results/language.md", "results/rates.md")
# The README is the repository's first page; the site has its own.
HOME = {"README.md": "index.md", "docs/index.md": "index.md"}


def slug(heading):
    """The anchor that code hosts and MyST give a heading."""
    text = re.sub(r"&lt;|&gt;|&amp;", "", heading.strip().lower()).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def outside_code(text, change):
    """Applies `change` to the parts of a page that are not code."""
    parts = re.split(r"(^```.*?^```[^\n]*$|`[^`\n]*`)", text, flags=re.M | re.S)
    # Links may hold code: protect it, rewrite the links, put it back.
    kept = []

    def protect(index_part):
        index, part = index_part
        if index % 2 == 0:
            return part
        kept.append(part)
        return f"\0{len(kept) - 1}\0"

    changed = change("".join(map(protect, enumerate(parts))))
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found.group(1))], changed)


def link_terms(text, page, terms):
    """The page with a link to the glossary at the first use of each term, in prose alone."""
    to = os.path.relpath(GLOSSARY, PurePosixPath(page).parent)
    linked = set(re.findall(r"glossary\.md#([\w-]+)", text))
    # Code, equations, tables, headings, lists of links, links and titles in italics stay.
    parts = re.split(r"(^```.*?^```[^\n]*$|(?<!\*)\*[^*\n]+\*(?!\*)|<a [^>]*>.*?</a>|\$\$.*?\$\$|^[#|][^\n]*$|!?\[(?:[^\[\]]|\[[^\]]*\])*\]\([^)]*\)|`[^`\n]*`|\$[^$\n]+\$)",
                     text, flags=re.M | re.S)

    def link(found):
        anchor = terms[found.group(1).lower()]
        if anchor in linked:
            return found.group(0)
        linked.add(anchor)
        return f"[{found.group(0)}]({to}#{anchor})"

    names = "|".join(sorted(map(re.escape, terms), key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w-])({names})s?(?![\w-])", re.I)
    return "".join(pattern.sub(link, part) if i % 2 == 0 else part for i, part in enumerate(parts))


def notebook_page(path):
    """A notebook as a page: its texts, and its code without outputs."""
    cells = json.loads(path.read_text())["cells"]
    texts = []
    for cell in cells:
        source = "".join(cell["source"])
        texts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(texts) + f"\n\nThe notebook is [{path.name}]({path.name}).\n"


class Stage:
    def __init__(self, folder):
        self.folder = folder
        self.pages = {}    # file of the repository → page of the site
        self.anchors = {}  # (file of the repository, anchor) → page of the site, where a file is split
        self.links = {}    # page → the pages that it links to, in order
        self.broken = []   # links that lead to no file

    def write(self, page, text):
        target = self.folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def rewritten(self, text, origin, page):
        """Rewrites the links of the file `origin` for its `page` of the site."""
        here = PurePosixPath(page).parent
        order = self.links.setdefault(page, [])

        def link(found):
            image, label, target = found.groups()
            if re.match(r"[a-z]+:", target):
                return found.group(0)
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(origin), path)) if path else origin
            if file not in self.pages and (ROOT / file).is_dir():
                file = next((file + "/" + name for name in ("index.md", "README.md") if file + "/" + name in self.pages), file)
                if file not in self.pages:
                    return label  # a folder: a site has none
            place = self.anchors.get((file, anchor)) or self.pages.get(file)
            if place:
                if place != page:
                    order.append(place)
                to = os.path.relpath(place, here) if place != page else ""
                return f"{image}[{label}]({to}{'#' + anchor if anchor else ''})"
            if not (ROOT / file).exists():
                self.broken.append(f"{origin}: no file {target}")
                return label
            return f"{image}[{label}]({os.path.relpath(ROOT / file, self.folder / here)})"

        return outside_code(text, lambda part: LINK.sub(link, part))

    def split_scenario(self):
        """docs/scenario.md: a page for each section, and a page for each kind where a section has many fields."""
        origin = "docs/scenario.md"
        text = (ROOT / origin).read_text()
        head, *sections = re.split(r"^## ", text, flags=re.M)
        pages = {}  # page → text
        kinds_of = {}
        indexes = {}  # section → its page, where its kinds have pages
        uses = examples.Uses(ROOT)
        for section in sections:
            title, _, body = section.partition("\n")
            body, _ = examples.with_examples(title, body, uses)
            base, _, of = title.partition(" of ")
            root = base.split(".")[0]
            place = f"reference/scenario/{root.lower()}.md"
            if title == "Scenario":
                place = "reference/scenario/fields.md"
            elif title in ("data", "model.router", "model.gating.train", "model.expert", "metrics", "claims", "figures"):
                name = title.replace(".train", "").replace(".", "_")
                intro, *kinds = re.split(r"^(?=\*\*[^*\n]+\*\*:)", body, flags=re.M)
                index = f"reference/scenario/{name}/index.md"
                self.anchors[origin, slug(title)] = indexes[title] = index
                shared = re.search(r"^\*\*(Fields of every [^*\n]+)\*\*$", intro, flags=re.M)
                lines = []
                for kind in kinds:
                    shown = re.match(r"\*\*([^*\n]+)\*\*:[ ]*([^\n]*)", kind)
                    words = {"&lt;": "below", "\\>": "above", ">": "above", "~": "equal"}.get(shown.group(1), shown.group(1))
                    # Another symbol cannot be a file name: its characters become their numbers.
                    words = re.sub(r"[^\w.-]", lambda one: f"u{ord(one.group(0)):x}", words)
                    page = f"reference/scenario/{name}/{words}.md"
                    kinds_of[name, shown.group(1)] = page
                    pages[page] = f"# {title}: {shown.group(1)}\n\n{kind[shown.end(1) + 3:].strip()}\n"
                    if shared:
                        pages[page] += f"\n[{shared.group(1)}](index.md) belong to it, too.\n"
                    lines.append(f"| [{shown.group(1)}]({words}.md) | {shown.group(2)} |")
                pages[index] = f"# {title}\n\n{intro.strip()}\n\n| kind | what it is |\n|---|---|\n" + "\n".join(lines) + "\n"
                continue
            elif of and (root, of) in kinds_of:
                place = kinds_of[root, of]
            elif of and ("_".join(base.split(".")[:2]), of) in kinds_of:
                place = kinds_of["_".join(base.split(".")[:2]), of]
            elif root in indexes:
                place = indexes[root]
            self.anchors[origin, slug(title)] = place
            heading = f"# {title}" if place not in pages else f"\n## {title}"
            pages[place] = pages.get(place, "") + f"{heading}\n{body}"
        names = ["fields", "data/index", "model", "model_router/index", "model_expert/index", "model_gating/index", "loss",
                 "train", "phases", "metrics/index", "sweep", "seeds", "objective", "tune", "claims/index", "figures/index"]
        pages["reference/metrics.md"] = metrics_page(next(body for body in sections if body.startswith("metrics\n")))
        contents = "\n".join(f"- [{re.match('# (.*)', pages[f'reference/scenario/{name}.md']).group(1)}]({name}.md)" for name in names)
        pages["reference/scenario/index.md"] = head.strip() + "\n\n" + contents + "\n"
        return origin, pages

    def split_theorems(self):
        """docs/theorems.md: a page for each paper."""
        origin = "docs/theorems.md"
        head, *sections = re.split(r"^## ", (ROOT / origin).read_text(), flags=re.M)
        pages, lines = {}, []
        for section in sections:
            title, _, body = section.partition("\n")
            name = re.search(r"^### ([a-z0-9_]+)", body, flags=re.M).group(1)
            page = f"reference/theorems/{name}.md"
            if page in pages:
                pages[page] += f"\n## {title}\n{body}"
            else:
                pages[page] = f"# Checks: {title}\n{body.replace('### ', '## ')}"
                lines.append(f"- [{title}]({name}.md)")
            self.anchors[origin, slug(title)] = page
            for check in re.findall(r"^### (.*)$", body, flags=re.M):
                self.anchors[origin, slug(check)] = page
        pages["reference/theorems/index.md"] = head.strip() + "\n\n" + "\n".join(lines) + "\n"
        return origin, pages

    def list_unlinked(self):
        """Adds links to pages that the index of their folder does not name, at its end."""
        for index in [page for page in self.links if page.endswith("/index.md")]:
            folder = index.removesuffix("index.md")
            named = {link for page, links in self.links.items() if page.startswith(folder) for link in links}
            for page in sorted(self.pages.values()):
                if page.startswith(folder) and "/" not in page.removeprefix(folder) and page != index and page not in named:
                    title = re.search(r"^# (.*)$", (self.folder / page).read_text(), flags=re.M).group(1)
                    with open(self.folder / index, "a") as file:
                        file.write(f"- [{title}]({page.removeprefix(folder)})\n")
                    self.links[index].append(page)

    def navigation(self):
        """Adds to each index page what its links say: the pages below it, each in one place."""
        placed = {"index.md"}
        indexes = sorted((page for page in self.links if page.rpartition("/")[2] == "index.md"), key=lambda page: -page.count("/"))
        for index in indexes:
            folder = str(PurePosixPath(index).parent) + "/" if "/" in index else ""
            below = []
            for page in self.links[index]:
                is_own = page.startswith(folder) if folder else page.count("/") == 1 and page.endswith("/index.md")
                if page in placed or page == index or not is_own:
                    continue
                placed.add(page)
                below.append(os.path.relpath(page, folder or "."))
            if below:
                with open(self.folder / index, "a") as file:
                    file.write("\n```{toctree}\n:hidden:\n\n" + "\n".join(below) + "\n```\n")


def metrics_page(section):
    """Every metric by name, with its group, from the section on metrics."""
    rows, group = [], ""
    for line in section.splitlines():
        if found := re.match(r"\*\*([^*]+)\*\*:", line):
            group = found.group(1)
        elif (cells := re.match(r"\| (`[a-z]\w*(?:\.&lt;name>)?`) \| (.*) \| (.*) \|$", line)) and line.count(" | ") < 3:
            rows.append((cells.group(1), group, cells.group(2), cells.group(3)))
    lines = [f"| {name} | [{group}](scenario/metrics/{group}.md) | {meaning} | {needs} |" for name, group, meaning, needs in sorted(rows)]
    return ("# Metrics, by name\n\nA metric's name in `metrics` chooses its group. `moelab list NAME` prints the same.\n\n"
            "| metric | group | meaning | needs |\n|---|---|---|---|\n" + "\n".join(lines) + "\n")


def python_api():
    """The page of the Python package, from its docstrings."""
    parts = [("Runs", ["run", "read", "Run"]), ("Data and scenarios", ["sample", "Sample", "validate", "check"]),
             ("Training", ["train", "Model", "routers"]), ("Measuring", ["analyze"]),
             ("scikit-learn", ["MoERegressor", "MoEClassifier"]), ("Errors", ["UserError"])]
    source = (ROOT / "python" / "moelab" / "__init__.py").read_text()
    names = set(re.findall(r'^    "(\w+)",$', source, flags=re.M))
    left = sorted(names - {name for _, listed in parts for name in listed})
    lines = ["# Python, by name", "", "Every public name of the package `moelab`, from its docstrings.", ""]
    for title, listed in [*parts, *([("More", left)] if left else [])]:
        lines += [f"## {title}", ""]
        for name in listed:
            if name not in names:
                continue
            kind = "automodule" if name in ("routers", "scenarios") else "autoclass" if name[0].isupper() else "autofunction"
            members = "" if kind == "autofunction" else "\n   :members:"
            lines += ["```{eval-rst}", f".. {kind}:: moelab.{name}{members}", "```", ""]
    return "\n".join(lines)


def with_results(text, file, page, ledger, of_arms, scenarios, broken):
    """A page with the present numbers of runs and tables. The page of a paper gets counts and links to its runs, too."""
    here = str(PurePosixPath(page).parent)

    def number(prefix, stem, claim, target, now):
        return f'<a href="{os.path.relpath(f"results/runs/{stem}.html", here)}#{results.anchor(claim)}">{now}</a>'

    def of_table(prefix, target, name, now):
        shown = of_arms[name].get("page", f"tables/{name}.json")
        return now if file == f"docs/results/{shown}" else f"[{now}]({prefix.removesuffix('tables/')}{shown})"

    wrong = []
    text = tables.filled(ledger, of_arms, text, wrong, of_table)
    text = outside_code(text, lambda part: results.filled(ledger, part, wrong, number))
    broken += [f"{file}: {line}" for line in wrong]
    runs = scenarios.get(PurePosixPath(file).stem, {}) if file.startswith("docs/papers/") else {}
    if runs:
        text = re.sub(r"(?<!\[)`(\w+\.json)`", lambda found: f"[{found.group(0)}](../results/runs/{runs[found.group(1)]}.json)"
                      if found.group(1) in runs else found.group(0), text)
        if summary := results.paper_summary(ledger, list(runs.values()), here):
            text = re.sub(r"^(?=## )", lambda _: summary + "\n\n", text, count=1, flags=re.M)  # behind the summary by hand
    return text


def fill():
    """Writes the present numbers of the results, and the list of items, into the pages of docs/. Makes figures and tables small.

    Before that it gives the claims of the results the words of their scenarios.
    """
    if changed := claim_words.refresh(ROOT / "docs" / "results", ROOT / "scenarios"):
        print(f"docs/build: {changed} claims of docs/results/runs have other words now, as in their scenarios. `moelab report --ledger "
              "docs/results` makes the lists of claims again.")
    ledger = results.Ledger(ROOT / "docs" / "results")
    of_arms = tables.load(ROOT / "docs" / "results")
    items.PAGE.write_text(items.present_page(ledger.stems))
    for file in sorted((ROOT / "docs" / "results" / "figures").glob("*.svg")):
        file.write_text(figures.small(file.read_text()))
    for file in sorted((ROOT / "docs" / "results" / "tables").glob("*.json")):
        file.write_text(tables.written(json.loads(file.read_text())))
    for file in sorted((ROOT / "docs").rglob("*.md")):
        text = tables.filled(ledger, of_arms, file.read_text(), [], lambda prefix, target, name, now: f"[{now}]({prefix}{target})")
        text = outside_code(text, lambda part: results.filled(
            ledger, part, [], lambda prefix, stem, claim, target, now: f"[{now}]({prefix}{stem}.json#{target})"))
        if text != file.read_text():
            file.write_text(text)


def stage(folder, xml):
    """Writes the pages of the site below `folder`; `xml` is what Doxygen read. Returns what is wrong, a line each."""
    shutil.rmtree(folder, ignore_errors=True)
    stage_ = Stage(folder)
    files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs").rglob("*.md"))
    for file in files:
        if not file.startswith("docs/site/"):
            stage_.pages[file] = str(PurePosixPath(file).relative_to("docs"))
    stage_.pages |= PLACES | SPLIT | HOME
    stage_.pages = {file: page for file, page in stage_.pages.items() if (ROOT / file).exists()}
    stage_.pages["docs/results"] = "results/index.md"
    ledger = results.Ledger(ROOT / "docs" / "results", ROOT / "scenarios")
    stage_.broken += ledger.missing
    of_arms = tables.load(ROOT / "docs" / "results")
    scenarios = results.scenario_runs(ROOT / "scenarios", ledger)
    index = "docs/results/index.md"
    made = results.pages(ledger, with_results((ROOT / index).read_text(), index, "results/index.md", ledger, of_arms, scenarios,
                                              stage_.broken))
    stage_.pages |= {file: page for file, (page, _) in made.items()}
    split = [stage_.split_scenario(), stage_.split_theorems()]
    headings = re.findall(r"^### (.*)$", (ROOT / "docs" / GLOSSARY).read_text(), flags=re.M)
    terms = {heading.lower(): slug(heading) for heading in headings if heading.lower() not in EVERYDAY}
    for file, page in stage_.pages.items():
        if file in SPLIT or file in made or file in ("README.md", "docs/results"):
            continue
        path = ROOT / file
        text = notebook_page(path) if file.endswith(".ipynb") else path.read_text()
        if file.endswith(".ipynb"):  # the link at its end leads to the notebook
            text, _, end = text.rpartition("\n\nThe notebook")
            text = stage_.rewritten(text, file, page)
            text += "\n\nThe notebook" + end.replace(f"({path.name})", f"({os.path.relpath(path, (folder / page).parent)})")
        else:
            text = stage_.rewritten(with_results(text, file, page, ledger, of_arms, scenarios, stage_.broken), file, page)
        if page == GLOSSARY:  # the index of the site has the terms, next to the names of Python
            text = re.sub(r"^### (.*)$", r"```{index} single: \1\n```\n\n### \1", text, flags=re.M)
        if page.startswith(WITH_TERMS) and not page.endswith("index.md"):
            text = link_terms(text, page, {term: anchor for term, anchor in terms.items()
                                           if page.startswith("papers/") or term not in OF_PAPERS})
        stage_.write(page, (results.WIDE if page in WIDE else "") + text)
    for origin, pages in split:
        for page, text in pages.items():
            own = re.sub(r"\]\(((?!#)[^()#]*\.md)\)", r"](@\1)", text)  # links among the parts
            own = stage_.rewritten(own.replace("](@", "](own:"), origin, page)
            for target in re.findall(r"\]\(own:([^)]*)\)", own):
                stage_.links[page].append(os.path.normpath(os.path.join(os.path.dirname(page), target)))
            stage_.write(page, own.replace("](own:", "]("))
    stage_.write("reference/python_api.md", python_api())
    stage_.links["reference/index.md"] += ["reference/metrics.md", "reference/python_api.md"]
    stage_.links["reference/cpp/index.md"] = []
    with open(folder / "reference" / "index.md", "a") as file:
        file.write("- [All metrics, by name](metrics.md)\n- [Python, by name](python_api.md)\n"
                   "- [C++, by header](cpp/index.md)\n- <a href=\"../genindex.html\">Index of terms and names</a>\n")
    for page, text in cpp_pages(xml).items():
        stage_.write(page, text)
        stage_.links["reference/cpp/index.md" if page != "reference/cpp/index.md" else "reference/index.md"].append(page)
    for file, (page, text) in made.items():
        stage_.write(page, stage_.rewritten(text, file, page))
    stage_.links["results/runs/index.md"] = [page for page, _ in made.values() if page.startswith("results/runs/")]
    stage_.list_unlinked()
    stage_.navigation()
    return stage_.broken
