"""How much room texts take, by the rules of plots/page.h and plots/page.h. Lengths in points."""

from __future__ import annotations

# Advance widths of DejaVu Sans from space to tilde, in thousandths of the size.
_ADVANCE = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
)


def text_width(text: str, size: float) -> float:
    """The length of a line. A letter beyond ASCII counts as one em at most."""
    return sum(_ADVANCE[ord(letter) - 32] if " " <= letter <= "~" else 1000 for letter in text) * size / 1000


def widest(texts: list[str], size: float) -> float:
    return max((text_width(text, size) for text in texts), default=0)


def wrapped(text: str, size: float, width: float) -> list[str]:
    """Lines of at most ``width``; words that are longer are broken."""
    lines = []
    line = ""
    for word in text.split():
        if line and text_width(f"{line} {word}", size) > width:
            lines.append(line)
            line = ""
        while not line and text_width(word, size) > width and len(word) > 1:
            letters = max((n for n in range(1, len(word)) if text_width(word[:n], size) <= width), default=1)
            lines.append(word[:letters])
            word = word[letters:]
        line += f" {word}" if line else word
    return [*lines, line] if line else lines


def fitted_line(text: str, size: float, width: float) -> str:
    """The text on one line, its end replaced by … where it is longer."""
    if text_width(text, size) <= width:
        return text
    lines = wrapped(text, size, width - text_width("…", size))
    return f"{lines[0]}…" if lines else ""


def fitted_lines(text: str, size: float, width: float, most: int) -> list[str]:
    """At most so many lines, the last of which then ends in …."""
    lines = wrapped(text, size, width)
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], fitted_line(f"{lines[most - 1]} …", size, width)]
