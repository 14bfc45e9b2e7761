"""Makes the SVG files of gnuplot small: the same picture without empty groups, repeated attributes and unused symbols."""

import re
import xml.etree.ElementTree as ElementTree

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
HREF = f"{{{XLINK}}}href"
# A child inherits these from its group. SVG's own start values need no attribute.
INHERITED = {"fill": "black", "stroke": "none", "stroke-width": "1", "stroke-linecap": "butt", "stroke-linejoin": "miter",
             "font-family": "", "font-size": "", "text-anchor": "start"}
PLACES = ("d", "points", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "width", "height")


def tag(node):
    return node.tag.removeprefix(f"{{{SVG}}}")


def short(number):
    """A tenth of a point is finer than any screen shows."""
    text = f"{float(number):.1f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def colour(text):
    """rgb( 51,  51,  51) as #333333."""
    found = re.fullmatch(r"rgb\(\s*(\d+),\s*(\d+),\s*(\d+)\)", text.strip())
    return "#" + "".join(f"{int(part):02x}" for part in found.groups()) if found else text


def plain(node, color):
    """Writes colours and places of a node and of its children in short. Only symbols keep the word currentColor."""
    color = colour(node.get("color", color))
    for name, value in list(node.attrib.items()):
        if name in ("fill", "stroke", "color"):
            node.set(name, color if value == "currentColor" else colour(value))
        elif name in PLACES and tag(node) not in ("svg", "image"):
            value = re.sub(r"-?\d*\.\d+", lambda found: short(found.group(0)), " ".join(value.split()))
            node.set(name, re.sub(r" ?([MLHVZhvz]) ?", r"\1", value))
        elif name == "transform":
            node.set(name, re.sub(r"translate\(([-\d.]+),([-\d.]+)\)",
                                  lambda found: f"translate({short(found.group(1))},{short(found.group(2))})", value.strip()))
        elif name in ("stroke-width", "font-size", "fill-opacity", "stroke-opacity"):
            node.set(name, f"{float(value):g}")
    if tag(node) == "g":
        node.attrib.pop("color", None)
    for name in ("class", "id") if tag(node) not in ("svg", "text") else ():
        node.attrib.pop(name, None)
    if tag(node) != "text":
        node.text = (node.text or "").strip() or None
    for child in list(node):
        child.tail = child.tail if tag(node) in ("text", "tspan") else None
        if tag(child) in ("title", "desc"):
            node.remove(child)
        elif tag(child) != "defs":
            plain(child, color)


def shrink(node, inherited):
    """Removes what a node inherits, empty groups, and borders between groups that are alike."""
    own = inherited | {name: node.get(name) for name in INHERITED if node.get(name)}
    for name in INHERITED:
        if node.get(name) == inherited[name]:
            del node.attrib[name]
    children = []
    for child in list(node):
        node.remove(child)
        if tag(child) != "defs":
            shrink(child, own)
        for piece in list(child) if tag(child) == "g" and not child.attrib else [child]:
            if tag(piece) == "g" and children and piece.attrib == children[-1].attrib and tag(children[-1]) == "g":
                children[-1].extend(piece)
                merged = children.pop()
                shrink(merged, own)
                piece = merged
            if tag(piece) != "g" or len(piece):
                children.append(piece)
    node.extend(children)


def references(node):
    """The symbols and filters that a node names."""
    return [name for value in node.attrib.values() for name in re.findall(r"#([A-Za-z][\w-]*)", value)]


def small(text):
    """The file of a figure in short; a short file stays the same."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(text)
    plain(root, "black")
    fonts = [node.get("font-family") for node in root.iter() if node.get("font-family")]
    if fonts:
        root.set("font-family", max(sorted(set(fonts)), key=fonts.count))
    root.set("fill", "none")
    shrink(root, INHERITED)
    for defs in root.iter(f"{{{SVG}}}defs"):
        symbols = {id(node) for node in defs.iter()}
        wanted = {name for node in root.iter() if id(node) not in symbols for name in references(node)}
        while more := {name for symbol in defs if symbol.get("id") in wanted
                      for node in symbol.iter() for name in references(node)} - wanted:
            wanted |= more
        for symbol in list(defs):
            symbol.tail = defs.text = None
            if symbol.get("id") not in wanted:
                defs.remove(symbol)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True).replace(" />", "/>") + "\n"
