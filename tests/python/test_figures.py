"""Figures: the program's data, drawn as the program draws them."""

from __future__ import annotations

import csv
import io
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import tiny_scenario

import moelab

pytest.importorskip("matplotlib")
from moelab.figures import draw  # noqa: E402


def test_figures_show_the_programs_data(tiny_run, moelab_program):
    moelab_program.text("plot", tiny_run.directory)
    drawn = list(csv.DictReader((Path(tiny_run.directory) / "figures" / "loss.csv").open()))
    data = tiny_run.figure_data("loss")
    assert [panel["name"] for panel in data["panels"]] == [""]
    series = data["panels"][0]["series"]
    points = [(line["name"], point["x"], point["mean"]) for line in series for point in line["points"]]
    assert points == [(row["series"], float(row["x"]), float(row["mean"])) for row in drawn]
    figure = tiny_run.figure("loss")
    axes = figure.axes[0]
    assert axes.get_xlabel() == data["x_label"] and axes.get_yscale() == "log"
    means = {line.get_label(): list(line.get_ydata()) for line in axes.lines if not line.get_label().startswith("_")}
    assert means == {line["name"]: [point["mean"] for point in line["points"]] for line in series}
    for kind in ("steps", "map", "plane", "load", "claim"):
        assert tiny_run.figure(kind)._repr_png_().startswith(b"\x89PNG")
    assert pickle.loads(pickle.dumps(figure)).axes[0].get_xlabel() == data["x_label"]
    with pytest.raises(moelab.UserError, match="did you mean 'loss'") as caught:
        tiny_run.figure("los")
    assert caught.value.path == "figure"


def test_censored_points_are_open_and_panels_share_their_axes():
    def point(x, mean, censored=False):
        return {"x": x, "mean": mean, "low": mean - 3, "high": mean + 3, "seeds": [], "censored": censored}

    series = [{"name": "learned", "look": "line", "points": [point(1, 2), point(2, 4, censored=True)]}]
    texts = {"id": "steps", "title": "", "caption": "", "x_label": "n", "y_label": "steps"}
    axes_of = {"x_log": False, "y_log": True, "x_range": None, "y_range": None, "x_categories": []}
    panels = [{"name": name, "series": series} for name in ("left", "right")]
    figure = draw({"kind": "lines", **texts, **axes_of, "panels": panels})
    assert [axes.get_title() for axes in figure.axes] == ["left", "right"]
    for axes in figure.axes:
        line, bounds = axes.lines
        assert list(line.get_ydata()) == [2, 4] and line.get_markevery() == [0]
        assert list(bounds.get_ydata()) == [4] and bounds.get_markerfacecolor() == "white"
        assert axes.get_ylim() == figure.axes[0].get_ylim() and axes.get_ylim()[0] > 0


def heat_map(panels: list[dict[str, Any]], **others: Any) -> dict[str, Any]:
    """Data of a heat map with as many columns as the first panel has values, in one row if nothing else is said."""
    data = {
        "kind": "heat_map", "id": "map", "title": "", "caption": "", "x_label": "n", "y_label": "E",
        "value_label": "steps", "y_names": ["a"], "compact": False, "low": 0, "high": 1, "panels": panels,
    } | others
    return {"x_names": [str(i) for i in range(len(panels[0]["values"]) // len(data["y_names"]))]} | data


def panel(values: list[float | None], intervals: list[Any] | None = None, censored: list[bool] | None = None) -> Any:
    return {"name": "learned", "values": values, "intervals": intervals or [], "censored": censored or []}


def cell_texts(data: dict[str, Any]) -> list[str]:
    return [text.get_text() for axes in draw(data).axes for text in axes.texts]


def test_cells_of_heat_maps_whose_median_is_censored_say_so():
    data = heat_map([panel([100, 200, None], censored=[False, True, False])], low=100, high=200)
    assert cell_texts(data) == ["100", ">200"]


def test_numbers_of_cells_are_written_as_the_program_writes_them():
    values = [400.4, 99.4, 99.6, 9999.4, 12345, -123.4, 0.12345, None]
    assert cell_texts(heat_map([panel(values)])) == ["400", "99", "100", "9999", "1.2e+04", "-123", "0.12"]
    exact = [panel([400, 0.5], [[388, 412], [0.38, 0.62]])]
    assert cell_texts(heat_map(exact)) == ["400", "±12", "0.5", "±0.1"]


def test_numbers_have_the_digits_that_their_colours_need_and_scales_end_at_the_values():
    near = heat_map([panel([100.04, 100.5, 101])], low=100.04, high=101)
    assert cell_texts(near) == ["100.04", "100.5", "101"]
    scale = [text.get_text() for text in draw(near).axes[-1].get_yticklabels()]
    assert scale == ["100.2", "100.4", "100.6", "100.8", "101"]
    narrow = heat_map([panel([100.04, 101] * 8)], low=100.04, high=101)
    assert cell_texts(narrow) == []  # no room for any
    alike = draw(heat_map([panel([2, 2])], low=2, high=2))
    assert [text.get_text() for text in alike.axes[-1].get_yticklabels()] == ["2"]


def test_few_rows_are_as_high_as_the_label_of_the_scale_needs():
    def height(label: str) -> float:
        rows = heat_map([panel([0, 1])], y_names=["a", "b"], value_label=label)
        return draw(rows).axes[0].get_window_extent().height

    assert height("the share of the rows that another expert serves") > 1.2 * height("loss")


def test_intervals_that_are_not_symmetric_stand_with_both_ends():
    skew = [panel([0.5, 400, None], [[0.12, 0.88], [250.4, 640], None])]
    assert cell_texts(heat_map(skew)) == ["0.5", "0.12–0.88", "400", "250–640"]
    narrow = [panel([0.5] * 8, [[0.12, 0.9]] * 8)]
    assert cell_texts(heat_map(narrow)) == ["0.5"] * 8


def test_cells_have_intervals_where_the_captions_of_the_program_say_so(tmp_path):
    scenario = tiny_scenario() | {"claims": [], "save": [], "metrics": ["task", "routing"]}
    scenario["train"] |= {"steps": 2, "record_every": 2}
    del scenario["arms"]
    scenario["sweep"] = {"data.train_samples": [32, 48, 64], "model.experts": [2, 3, 4, 5, 6, 7]}
    swept = list(scenario["sweep"])
    values = ("test_nmse_top1", "routing_entropy")
    scenario["figures"] = [
        {"id": f"{value}_{x.partition('.')[2]}", "kind": "heat_map", "x": x, "y": y, "value": value}
        for value in values
        for x, y in (swept, swept[::-1])
    ]
    run = moelab.run(scenario, out=tmp_path / "run", progress=False)
    seen = set()
    for id in run.about["figures"]:
        data = run.figure_data(id)
        told = re.search(r"95 % intervals?(?: of logarithms)?( in the CSV)?", data["caption"])
        inside = [text for text in cell_texts(data) if "–" in text or "±" in text]
        assert told and len(inside) == (0 if told[1] else 18), (data["caption"], inside)
        seen.add(told[0])
    assert seen == {
        "95 % interval of logarithms", "95 % intervals of logarithms in the CSV", "95 % interval",
    }


def square(side: int, count: int, **others: Any) -> dict[str, Any]:
    names = [str(i) for i in range(side)]
    panels = [panel([i % 3 / 2 for i in range(side * side)]) for _ in range(count)]
    return heat_map(panels, compact=True, x_names=names, y_names=names, title="Rows", **others)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_cells_of_compact_maps_are_square_and_fill_the_page(count):
    figure = draw(square(64, count))
    figure.savefig(io.BytesIO(), format="png")
    maps = figure.axes[:-1]
    assert len(maps) == count
    boxes = [axes.get_window_extent() for axes in figure.axes]
    for box in boxes[:-1]:
        # One map would be higher than is allowed.
        assert box.height == pytest.approx(box.width, rel=0.02) or (count == 1 and box.height < box.width)
        assert box.height == pytest.approx(boxes[-1].height) and box.y0 == pytest.approx(boxes[-1].y0)
    height = figure.subfigs[0].bbox.height
    assert sum(box.width for box in boxes) > 0.6 * figure.bbox.width and boxes[0].height > height - 0.85 * figure.dpi
    labels = [text.get_text() for text in maps[0].get_xticklabels()]
    assert labels == [text.get_text() for text in maps[0].get_yticklabels()] or count == 3
    assert all(int(label) % (5 if count == 1 else 10) == 0 for label in labels)
    for axes in maps:
        assert not overlapping(figure, axes.get_xticklabels()) and not overlapping(figure, axes.get_yticklabels())


def test_scales_around_zero_are_orange_white_and_blue():
    figure = draw(square(4, 1, low=-1, high=1))
    image = figure.axes[0].images[0]
    low, middle, high = (image.to_rgba(value) for value in (-1, 0, 1))
    assert low[0] > low[1] > low[2] and high[2] > high[1] > high[0] and min(middle) > 0.99
    assert [text.get_text() for text in figure.axes[-1].get_yticklabels()] == ["-1", "-0.5", "0", "0.5", "1"]


def overlapping(figure: Any, texts: Any) -> list[tuple[str, str]]:
    """Which of the texts lie on one another."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    return [(one, other) for i, (one, a) in enumerate(boxes) for other, b in boxes[:i] if a.overlaps(b)]


def test_names_of_rates_stand_at_the_margin():
    from matplotlib.text import Text

    errors = [(1000, 0.03), (8000, 0.01)]
    points = [{"x": x, "mean": y, "low": 0.8 * y, "high": 2 * y, "fitted": y} for x, y in errors]
    line = {"name": "3 experts", "slope": "-0.50 ± 0.05", "points": points}
    rows = ["cosine router", "perturbed cosine router"]
    columns = ["linear experts", "polynomial experts", "ReLU experts"]
    figure = draw({
        "kind": "rate_panels", "id": "rates", "title": "Rates", "caption": "", "x_label": "n", "y_label": "error",
        "rows": rows, "columns": columns, "references": [{"slope": -0.5, "name": "slope −1/2"}], "panels": [[line]] * 6,
    })
    figure.savefig(io.BytesIO(), format="png")
    assert [axes.get_title() for axes in figure.axes] == [*columns, "", "", ""]
    names = [text for axes in figure.axes for text in axes.texts if text.get_text() in rows]
    assert [text.get_text() for text in names] == rows
    assert all(text.get_window_extent().x0 > text.axes.get_window_extent().x1 for text in names)
    sides = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    minor = [text for axis in sides for text in axis.get_ticklabels(minor=True)]
    assert minor and not any(text.get_text() for text in minor)
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    shown = [text for text in texts if not text.get_text().startswith("$")]  # ticks beyond the axes are never drawn
    assert not overlapping(figure, shown)
    lowest = min(point["low"] for point in points)
    for axes in figure.axes:
        slope = next(text for text in axes.texts if text.get_text() == line["slope"])
        assert slope.get_window_extent().y1 < axes.transData.transform((1000, lowest))[1]


def test_notebooks_show_figure_and_verdicts(tiny_run):
    page = tiny_run._repr_html_()
    assert "<svg" in page and "learned_beats_frozen" in page and "<script" not in page
