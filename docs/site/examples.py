"""Examples of the fields of a scenario: values from scenarios/ and docs/example/scenarios, which the tests check."""

import json
import re
from collections import Counter

MOST_LETTERS = 70  # a longer value is no example
HEAD = "| field | value | | meaning |"
ROW = re.compile(r"^\| `(\w+)` \| .* \| (?:required|optional|default (?P<default>.*)) \| .* \|$")
# Objects with free names, and objects that share the fields of another one.
FREE_NAMES = ("parameters", "tune")
SAME_FIELDS = {"crossing": "sweep", "right": "left"}


class Uses:
    """The values of a field, by the kind of the object that has the field or by the object's name."""

    def __init__(self, root):
        self.found = {}
        for folder in (root / "scenarios", root / "docs" / "example" / "scenarios"):
            for file in sorted(folder.rglob("*.json")):
                self.walk(json.loads(file.read_text()), "scenario")

    def walk(self, value, name):
        if isinstance(value, list):
            for entry in value:
                self.walk(entry, name)
        if not isinstance(value, dict):
            return
        kinds = [value[key] for key in ("kind", "generator", "op") if isinstance(value.get(key), str)]
        for key, entry in value.items():
            path, _, field = key.rpartition(".")
            for owner in {SAME_FIELDS.get(name, name), *kinds} if not path else {path.split(".")[-1]}:
                self.found.setdefault((owner, field), Counter())[json.dumps(entry, ensure_ascii=False)] += 1
            self.walk(entry, name if name in FREE_NAMES else field)

    def example(self, owners, field, default=None):
        """The most frequent value of a field in an object of one of the owners, best another one than the default. The
        default stands in; None without both."""
        for owner in owners:
            counts = self.found.get((owner, field), {})
            if short := [text for text in counts if len(text) <= MOST_LETTERS and text != "null"]:
                return f'"{field}": {min(short, key=lambda text: (text == default, -counts[text], len(text), text))}'
        return f'"{field}": {default}' if default else None


def with_examples(title, section, uses):
    """The text of a section of docs/scenario.md with a further column in its tables; the fields that have no example."""
    base, _, of = title.partition(" of ")
    lines, kind, without = [], "", []
    for line in section.split("\n"):
        if found := re.match(r"\*\*([^*]+)\*\*:", line):
            kind = found.group(1)
        if line == HEAD:
            line += " example |"
        elif lines and lines[-1].startswith(HEAD):
            line += "---|"
        elif found := ROW.match(line):
            owners = [name.replace("&lt;", "<").replace("\\", "") for name in (kind, base.split(".")[-1].lower(), of) if name]
            text = uses.example(owners, found.group(1), found.group("default"))
            if text is None:
                without.append((title, kind, found.group(1)))
            line += f" `{text}` |".replace("|", "\\|", text.count("|")) if text else " |"
        lines.append(line)
    return "\n".join(lines), without
