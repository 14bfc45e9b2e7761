"""Pages of the C++ libraries, from the comments `///` of their public headers."""

import re

# Library, its folder, and what it is for.
LIBRARIES = [
    ("base", "sim/base", "arrays, random streams, vector kernels, typed options, errors"),
    ("data", "sim/data", "generators, contaminations of test data, files"),
    ("model", "sim/model", "the network, its parameters, and the kinds of models"),
    ("train", "sim/train", "optimizers, schedules, batches, fits, the trainer"),
    ("stats", "analysis/stats", "intervals, claims, rates, crossings, the table of results"),
    ("metrics", "analysis/metrics", "metric groups"),
    ("theory", "analysis/theory", "theorem checks"),
    ("figures", "plots", "data and layout of figures, painters, the report's page"),
]


def escaped(line):
    """A line of a comment as Markdown; what stands between backticks stays."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]|$#])", r"\\\1", part) for part in parts)


def comment_page(comment):
    """A comment of several lines; indented lines are equations or tables and keep their form."""
    lines, indented = [], []

    def close():
        if indented:
            lines.extend(["", "```text", *indented, "```", ""])
            indented.clear()

    for line in comment:
        if line.startswith("   ") and not line.strip().startswith("- "):
            indented.append(line.rstrip())
            continue
        close()
        lines.append(escaped(line.rstrip()))
    close()
    return "\n".join(lines)


def declaration(lines):
    """The declaration that begins here: up to its body or its end, without initialisers of members."""
    text = []
    for line in lines:
        code = re.sub(r"\s*///?<.*$", "", line.rstrip())
        code = re.sub(r"\s*//.*$", "", code)
        if not code.strip():
            break
        text.append(code)
        if re.search(r"[;{]\s*$|[;{}]", code):
            break
    joined = "\n".join(text)
    return re.sub(r"\s*(= \{.*|\{.*|;)$", "", joined, flags=re.S).rstrip()


def header_page(header, name):
    """The section of a header, or an empty text where it documents nothing."""
    lines = header.read_text().splitlines()
    at, sections, about = 0, [], []
    while at < len(lines):
        found = re.match(r"///(?: (.*)|)$", lines[at])
        if not found:
            at += 1
            continue
        comment = []
        while at < len(lines) and (found := re.match(r"///(?: (.*)|)$", lines[at])):
            comment.append(found.group(1) or "")
            at += 1
        if at < len(lines) and not lines[at].strip():
            about = about or comment
            continue
        code = declaration(lines[at:])
        if code and not code.startswith("#"):
            sections.append(f"```cpp\n{code};\n```\n\n{comment_page(comment)}\n")
    if not sections and not about:
        return ""
    return f"## {name}\n\n{comment_page(about)}\n\n" + "\n".join(sections)


def cpp_pages(root):
    """Page of the site → text."""
    pages, lines = {}, []
    for library, folder, purpose in LIBRARIES:
        texts = [header_page(header, str(header.relative_to(root))) for header in sorted((root / folder).rglob("*.h"))]
        pages[f"reference/cpp/{library}.md"] = (f"# moelab::{library}\n\nThe library `moelab::{library}`: {purpose}.\n\n"
                                                + "\n".join(text for text in texts if text))
        lines.append(f"| [{library}]({library}.md) | `{folder}/` | {purpose} |")
    pages["reference/cpp/index.md"] = (
        "# C++, by header\n\nPublic headers of each library, from their comments. `find_package(moelab)` gives the"
        " libraries ([how](../../howto/from_other_programs.md)).\n\n| library | folder | holds |\n|---|---|---|\n"
        + "\n".join(lines) + "\n")
    return pages
