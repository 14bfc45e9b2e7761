"""Makes the SVG files of gnuplot small: the same picture in relative coordinates, with a class for each style.

A unit of a small file is a tenth of a point, so coordinates are whole numbers.
"""

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import groupby

SVG, HREF = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
# What a shape takes from its groups, and what SVG draws without it. Opacity is not inherited, and no group has it.
STYLES = {"fill": "#000", "fill-opacity": "1", "stroke": "none", "stroke-width": "1", "stroke-opacity": "1", "stroke-linecap": "butt",
          "stroke-linejoin": "miter", "stroke-dasharray": "none", "font-family": "", "font-size": "16", "text-anchor": "start",
          "color": "#000", "shape-rendering": "auto", "opacity": "1"}
OF_TEXT = ("fill", "fill-opacity", "font-family", "font-size", "text-anchor", "opacity")
OF_LINE = ("stroke", "stroke-width", "stroke-opacity", "stroke-linecap", "stroke-linejoin", "stroke-dasharray", "shape-rendering", "opacity")
OPAQUE = ("opacity", "fill-opacity", "stroke-opacity")
# Without a style, a small file has no fill, as most shapes are lines, and SVG's width of 1 is a tenth.
START = STYLES | {"fill": "none", "stroke-width": ".1", "font-size": "1.6"}
LENGTHS = ("stroke-width", "stroke-dasharray", "font-size", "x", "y", "dx", "dy", "width", "height", "r", "rx", "ry", "cx", "cy")
PLACES = ("x", "y", "width", "height")
SHAPES = ("path", "polygon", "rect", "text", "use", "image", "circle")
POINT = re.compile(r"translate\(([-\d.]+),([-\d.]+)\)(.*)")


def tag(node):
    return node.tag.removeprefix(f"{{{SVG}}}")


def tenths(number):
    """A number of points in tenths, which are finer than any screen shows."""
    return round(10 * float(number))


def in_tenths(text):
    """The same for each number of a style or of a scale, with all its digits."""
    return re.sub(r"\d*\.?\d+", lambda found: re.sub(r"^0\.", ".", f"{10 * float(found.group(0)):.6g}"), text)


def colour(text):
    """rgb( 51,  51,  51) as #333, and other colours as #rrggbb."""
    if found := re.fullmatch(r"rgb\(\s*(\d+),\s*(\d+),\s*(\d+)\)", text.strip()):
        text = "#" + "".join(f"{int(part):02x}" for part in found.groups())
    return re.sub(r"^#(.)\1(.)\2(.)\3$", r"#\1\2\3", text.replace("black", "#000"))


def style_value(name, text):
    if name in ("fill", "stroke", "color"):
        return colour(text)
    return re.sub("^0[.]", ".", f"{float(text):g}") if re.fullmatch(r"[\d.]+", text) else text.strip()


def css_value(name, value):
    """The value of a style in the units of a small file."""
    return (in_tenths(value) if name in LENGTHS else value) + "px" * (name == "font-size")


def short_path(text):
    """The path of a symbol with short numbers."""
    text = re.sub(r"-?\d*\.?\d+", lambda found: re.sub(r"^(-?)0\.", r"\1.", f"{float(found.group(0)):g}"), text)
    return re.sub(r",(?=-)", "", re.sub(r"\s*([A-Za-z])\s*", r"\1", text))


def lines_of(text, closed=False):
    """The lines of a path of M, L and z: the points of each in tenths, and whether it is closed. A move alone draws nothing."""
    lines = []
    for letter, numbers in re.findall(r"([A-Za-z]?)([^A-Za-z]*)", text):
        values = [tenths(number) for number in re.findall(r"-?[\d.]+", numbers)]
        if letter not in "MLZz":
            raise ValueError(f"a path with {letter}")
        if letter == "M" or not lines and values:
            lines.append([[], closed])
        elif letter in ("L", "") and values and lines[-1][1] and not closed:  # after z, a line starts where the last started
            lines.append([[lines[-1][0][0]], False])
        if values:
            lines[-1][0].extend(zip(values[::2], values[1::2]))
        if letter in ("Z", "z"):
            lines[-1][1] = True
    return [(points, is_closed) for points, is_closed in lines if len(points) > 1 or is_closed]


def path_of(lines):
    """Lines as a path in relative coordinates."""
    written, last, at = "", "", (0, 0)

    def put(letter, *values):
        nonlocal written, last
        if letter != last:
            written += letter
        for value in values:
            written += f"{value}" if written[-1].isalpha() or value < 0 else f",{value}"
        last = "l" if letter == "m" else letter

    for points, is_closed in lines:
        put("m", points[0][0] - at[0], points[0][1] - at[1])
        at = points[0]
        for x, y in points[1:]:
            put("h", x - at[0]) if y == at[1] else put("v", y - at[1]) if x == at[0] else put("l", x - at[0], y - at[1])
            at = (x, y)
        if is_closed:
            written, last, at = written + "z", "z", points[0]
    return written


class Shape:
    """A shape with its whole style. `lines` are the lines of a path, `spots` the places of a symbol, and `box` is where it draws."""

    def __init__(self, node, style, transform):
        self.tag, self.node = tag(node), node
        if self.tag not in SHAPES:
            raise ValueError(f"a {self.tag}")
        self.own = {"href" if name == HREF else name: value for name, value in node.attrib.items()
                    if name not in STYLES and name not in ("class", "id", "transform")}
        for name, value in self.own.items():
            if name in LENGTHS:
                self.own[name] = str(tenths(value)) if name in PLACES and self.tag != "image" else in_tenths(value)
        self.lines, self.spots, self.box = [], [], (-math.inf, -math.inf, math.inf, math.inf)
        transform = " ".join(part for part in (transform, node.get("transform", "").strip()) if part)
        if found := POINT.fullmatch(transform):
            x, y, rest = tenths(found.group(1)), tenths(found.group(2)), found.group(3).strip()
            if scale := re.fullmatch(r"scale\(([\d.]+)\)", rest):
                rest = in_tenths(rest)
            elif rest and not re.fullmatch(r"rotate\([-\d.]+\)", rest):
                raise ValueError(f"the transform {rest}")
            self.own |= {"x": f"{x}", "y": f"{y}"} if self.tag == "text" and not rest else {
                "transform": f"translate({x},{y}){' ' + rest if rest else ''}"}
            spot = (x, y)
            if self.tag == "text":  # a letter is at most as wide as high
                height = 10 * float(style["font-size"])
                width = height * len("".join(node.itertext()))
                left, right = {"start": (0, 1), "middle": (.5, .5), "end": (1, 0)}[style["text-anchor"]] if not rest else (1, 1)
                up = width if rest else 0
                self.set_box([(spot[0] - left * width, spot[1] - up), (spot[0] + right * width, spot[1] + up)], height)
            elif self.tag == "use" and scale:
                self.spots = [spot]
                self.set_box([spot], 40 * float(scale.group(1)))
        elif transform:
            raise ValueError(f"the transform {transform}")
        if self.tag in ("path", "polygon") and not transform:
            self.lines = lines_of(self.own.pop("d" if self.tag == "path" else "points"), self.tag == "polygon")
            self.tag = "path"
            self.set_box([point for points, _ in self.lines for point in points], 30 * float(style["stroke-width"]))
        wanted = OF_TEXT if self.tag == "text" else ("color", "opacity") if self.tag in ("use", "image") else [
            name for name in OF_LINE + ("fill", "fill-opacity") if name in ("opacity", "fill", "stroke", "shape-rendering")
            or style[name.split("-")[0]] != "none"]
        self.style = {name: style[name] for name in wanted if style[name] != START[name]}
        # Shapes with the same key are drawn as one. Where shapes of one style overlap, opacity shows them apart.
        is_one = (self.lines or self.spots) and not self.own.keys() - {"href", "transform"}
        self.key = None if any(style[name] != "1" for name in OPAQUE) else (
            self.tag, self.own.get("href"), self.spots and rest, *self.style.items()) if is_one or self.tag == "text" else None

    def set_box(self, points, margin):
        if points:
            xs, ys = zip(*points)
            self.box = (min(xs) - margin, min(ys) - margin, max(xs) + margin, max(ys) + margin)

    def is_empty(self):
        return self.tag == "path" and not self.lines or self.tag == "text" and not "".join(self.node.itertext()).strip()

    def is_over(self, other):
        return self.box[0] < other.box[2] and other.box[0] < self.box[2] and self.box[1] < other.box[3] and other.box[1] < self.box[3]

    def join(self, other):
        self.lines += other.lines
        self.spots += other.spots
        self.box = (*map(min, self.box[:2], other.box[:2]), *map(max, self.box[2:], other.box[2:]))


def shapes_of(node, style, transform, found):
    """Adds the shapes below a group with their styles."""
    for child in node:
        if tag(child) in ("title", "desc", "defs"):
            continue
        own = style | {"opacity": "1"} | {name: style_value(name, value) for name, value in child.attrib.items() if name in STYLES}
        for name in ("fill", "stroke"):
            own[name] = own["color"] if own[name] == "currentColor" else own[name]
        if tag(child) != "g":
            found.append(Shape(child, own, transform))
        elif set(child.attrib) <= {*STYLES, "class", "id", "transform"} - {"opacity"}:
            shapes_of(child, own, " ".join(filter(None, (transform, child.get("transform", "").strip()))), found)
        else:
            raise ValueError(f"a group with {', '.join(child.attrib)}")


def joined(shapes):
    """The shapes, with equal keys together. A shape moves to an earlier one if it meets no shape between the two."""
    placed = []
    for shape in shapes:
        for i in reversed(range(len(placed))):
            if shape.key and placed[i].key == shape.key:
                if shape.tag == "text":
                    placed.insert(i + 1, shape)
                else:
                    placed[i].join(shape)
                break
            if shape.is_over(placed[i]):
                placed.append(shape)
                break
        else:
            placed.append(shape)
    return placed


def letters(number):
    """A short name: a, b, …, z, ba, bb, …"""
    return (letters(number // 26) if number >= 26 else "") + chr(ord("a") + number % 26)


class Writer:
    """Writes shapes; `classes` and `markers` have what they use, with names."""

    def __init__(self):
        self.classes, self.markers = {}, {}

    def class_of(self, style):
        return self.classes.setdefault(tuple(style.items()), letters(len(self.classes)))

    def element(self, parent, shape, style):
        if len(shape.spots) > 1:  # equal symbols are the markers of one path
            marker = (shape.own["href"], re.search(r"scale.*", shape.own["transform"]).group(0), shape.style.get("color", START["color"]))
            name = self.markers.setdefault(marker, f"m{len(self.markers)}")
            own = {"class": self.class_of({"marker": f"url(#{name})"}), "d": path_of([(shape.spots, False)])}
            return ElementTree.SubElement(parent, f"{{{SVG}}}path", own)
        own = {"class": self.class_of(style)} if style else {}
        made = ElementTree.SubElement(parent, f"{{{SVG}}}{shape.tag}", own | shape.own)
        if shape.lines:
            made.set("d", path_of(shape.lines))
        if shape.tag == "text":
            made.text = shape.node.text
            made.extend(shape.node)
            for part in made.iter():
                if part is not made:
                    part.attrib = {name: in_tenths(value) if name in LENGTHS else value for name, value in part.attrib.items()}
        return made

    def shapes(self, parent, shapes):
        for key, alike in groupby(joined(shapes), lambda shape: shape.key if shape.tag == "text" else None):
            alike = list(alike)
            if key and len(alike) > 1:
                group = ElementTree.SubElement(parent, f"{{{SVG}}}g", {"class": self.class_of(alike[0].style)})
            for shape in alike:
                self.element(group if key and len(alike) > 1 else parent, shape, {} if key and len(alike) > 1 else shape.style)


def symbols(root, names):
    """The symbols with these names, and those that they use, in the order of the file."""
    found = {symbol.get("id"): symbol for defs in root.iter(f"{{{SVG}}}defs") for symbol in defs}
    wanted = set(names)
    while more := {name for symbol in found.values() if symbol.get("id") in wanted for node in symbol.iter()
                   for value in node.attrib.values() for name in re.findall(r"#([A-Za-z][\w-]*)", value)} - wanted:
        wanted |= more
    return [symbol for name, symbol in found.items() if name in wanted]


def small(text):
    """The file of a figure in short. A short file, and one with parts that gnuplot does not write, stay the same."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(text)
    if root.find(f"{{{SVG}}}style") is not None:
        return text
    box = (root.get("viewBox") or f"0 0 {root.get('width', '')} {root.get('height', '')}").split()
    if len(box) != 4:
        return text
    shapes = []
    try:
        shapes_of(root, STYLES | {name: style_value(name, value) for name, value in root.attrib.items() if name in STYLES}, "", shapes)
    except ValueError:
        return text
    shapes = [shape for shape in shapes if not shape.is_empty()]
    made = ElementTree.Element(root.tag, {name: root.get(name) for name in ("width", "height") if root.get(name)} | {
        "viewBox": " ".join(in_tenths(number) for number in box), "fill": "none"})
    fonts = [shape.style["font-family"] for shape in shapes if shape.style.get("font-family")]
    if fonts:
        made.set("font-family", max(sorted(set(fonts)), key=fonts.count))
        for shape in shapes:
            if shape.style.get("font-family") == made.get("font-family"):
                del shape.style["font-family"]
    title = root.find(f"{{{SVG}}}title")
    if title is not None and (title.text or "").startswith("moelab_layout_"):  # says which layout drew the figure
        ElementTree.SubElement(made, title.tag).text = title.text
    style, defs = ElementTree.SubElement(made, f"{{{SVG}}}style"), ElementTree.SubElement(made, f"{{{SVG}}}defs")
    writer = Writer()
    writer.shapes(made, shapes)
    defs.extend(symbols(root, {value for shape in shapes for value in re.findall(r"#([A-Za-z][\w-]*)", shape.own.get("href", ""))}))
    for symbol in defs.iter():
        symbol.tail = None
        symbol.attrib = {"href" if name == HREF else name: short_path(value) if name == "d" else style_value(name, value)
                         for name, value in symbol.attrib.items() if name not in ("x", "y", "cx", "cy") or value != "0"}
    for (symbol, scale, color), name in writer.markers.items():
        marker = ElementTree.SubElement(defs, f"{{{SVG}}}marker", {"id": name})  # its unit is the width of a line, which is 1 here
        ElementTree.SubElement(marker, f"{{{SVG}}}use", {"href": symbol, "transform": scale, "color": color})
    if not len(defs):
        made.remove(defs)
    style.text = "marker{overflow:visible}" * bool(writer.markers) + "".join(
        f".{name}{{{';'.join(f'{key}:{css_value(key, value)}' for key, value in rules)}}}" for rules, name in writer.classes.items())
    return ElementTree.tostring(made, encoding="unicode", short_empty_elements=True).replace(" />", "/>") + "\n"
