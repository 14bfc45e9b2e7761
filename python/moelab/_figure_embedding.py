"""Embeddings: points, regions and means in the plane."""

from __future__ import annotations

from typing import Any

from ._figure_parts import _AREA_COLOURS, _GREY, _WIDTH, _area_colour, _legend, _wrapped


def _draw_embedding_panel(axes: Any, panel: dict[str, Any]) -> None:
    from matplotlib.collections import PolyCollection

    corners = [
        [(r["x_low"], r["y_low"]), (r["x_high"], r["y_low"]), (r["x_high"], r["y_high"]), (r["x_low"], r["y_high"])]
        for r in panel["regions"]
    ]
    colours = [_area_colour(region["colour"]) for region in panel["regions"]]
    axes.add_collection(PolyCollection(corners, facecolors=colours, alpha=0.28, linewidth=0), autolim=False)
    for points, size in ((panel["points"], 1), (panel["arrows"], 5)):
        for colour in range(-1 if points is panel["points"] else 0, len(_AREA_COLOURS)):
            shown = [point for point in points if point["colour"] == colour]
            axes.scatter([p["x"] for p in shown], [p["y"] for p in shown], s=size, color=_area_colour(colour), zorder=2)
    for arrow in panel["arrows"]:
        if arrow["colour"] >= 0:
            axes.plot([0, arrow["x"]], [0, arrow["y"]], color="black", linewidth=0.8, zorder=1.9)
    means = panel["means"]
    axes.plot([p["x"] for p in means], [p["y"] for p in means], "x", color="black", markersize=3, markeredgewidth=1.2)
    axes.set_title(f"{panel['name']} {panel['note']}".rstrip(), loc="left", fontsize=7)
    axes.set_xticks([])
    axes.set_yticks([])


def _embedding_looks(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The labels that have a colour, by colour; then what else is drawn."""
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3}
    panels = data["panels"]
    parts = [part for panel in panels for part in panel["points"] + panel["regions"]]
    labels = {part["colour"]: part["label"] for part in reversed(parts)}
    looks: dict[str, dict[str, Any]] = {}
    for colour in sorted(colour for colour in labels if colour >= 0):
        looks[f"{data['label']} {labels[colour]}"] = {**dot, "color": _area_colour(colour)}
    if -1 in labels:
        looks[f"another {data['label']}"] = {**dot, "color": _GREY}
    if any(panel["means"] for panel in panels):
        looks[data["mean_name"]] = {**dot, "marker": "x", "color": "black"}
    if any(arrow["colour"] >= 0 for panel in panels for arrow in panel["arrows"]):
        looks[data["arrow_name"]] = {"color": "black", "linewidth": 0.8}
    return looks


def _draw_embedding(figure: Any, data: dict[str, Any]) -> None:
    panels = data["panels"]
    columns = min(max(len(panels), 1), 2)
    grid = figure.subplots(-(-max(len(panels), 1) // 2), columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for place, (axes, panel) in enumerate(zip(grid.flat, panels)):
        _draw_embedding_panel(axes, panel)
        if columns == 1:
            axes.set_box_aspect(1)  # as square as one of two
        if place + 2 >= len(panels):
            axes.set_xlabel(_wrapped(data["x_label"], 1.6))
        if place % 2 == 0:
            axes.set_ylabel(_wrapped(data["y_label"], 1.6))
    grid[0, 0].set_xlim(data["x_range"])
    grid[0, 0].set_ylim(data["y_range"])
    _legend(figure, _embedding_looks(data), _WIDTH)
