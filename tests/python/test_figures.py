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


def painted_texts(figure: Any) -> list[str]:
    """The texts of a figure, with axes and ticks."""
    from matplotlib.text import Text

    figure.savefig(io.BytesIO(), format="png")
    return [text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


def test_all_texts_and_frames_are_where_the_program_laid_them_out(tiny_run):
    for id in tiny_run.about["figures"]:
        data = tiny_run.figure_data(id)
        layout, figure = data["layout"], draw(data)
        assert list(72 * figure.get_size_inches()) == pytest.approx([layout["width"], layout["height"]])
        painted = "\n".join(painted_texts(figure))
        for frame in layout["panels"]:
            for text in frame["texts"]:
                assert text["text"] in painted, (id, text)
            box = [frame[name] / layout[of] for name, of in
                   (("left", "width"), ("bottom", "height"), ("width", "width"), ("height", "height"))]
            assert any(axes.get_position().bounds == pytest.approx(box) for axes in figure.axes), id
        if data["kind"] != "embedding":
            labels = {label for _, label in layout["x"]["ticks"] + layout["y"]["ticks"] if label}
            assert labels <= set(painted_texts(figure)), id


def test_censored_points_are_open_and_panels_share_their_axes(tiny_run):
    data = tiny_run.figure_data("loss")
    for line in data["panels"][0]["series"]:
        line["points"][-1]["censored"] = True
    figure = draw(data)
    (axes,) = figure.axes
    lines = [line for line in axes.lines if line.get_label() == "learned"]
    bounds = [line for line in axes.lines if line.get_label() == "_censored"]
    assert lines[0].get_markevery() == [0] and len(bounds) == 2
    assert all(line.get_markerfacecolor() == "white" and len(line.get_ydata()) == 1 for line in bounds)
    assert axes.get_ylim() == pytest.approx((data["layout"]["y"]["low"], data["layout"]["y"]["high"]))


def cell_texts(data: dict[str, Any]) -> list[str]:
    return [text.get_text() for axes in draw(data).axes for text in axes.texts]


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
        texts = cell_texts(data)
        cells = [cell for panel in data["layout"]["cells"] for cell in panel]
        assert sorted(texts) == sorted(text for cell in cells for text in (cell["number"], cell["interval"]) if text)
        inside = [text for text in texts if "–" in text or "±" in text]
        assert told and len(inside) == (0 if told[1] else 18), (data["caption"], inside)
        seen.add(told[0])
    assert seen == {
        "95 % interval of logarithms", "95 % intervals of logarithms in the CSV", "95 % interval",
    }


def test_colours_of_cells_are_those_of_the_layout(tiny_run):
    data = tiny_run.figure_data("map")
    figure = draw(data)
    image, scale = figure.axes[0].images[0], data["layout"]["scale"]
    for value, colour in ((scale["low"], scale["palette"][0]), (scale["high"], scale["palette"][-1])):
        assert [round(255 * part) for part in image.to_rgba(value)[:3]] == list(bytes.fromhex(colour[1:]))
    assert [text.get_text() for text in figure.axes[-1].get_yticklabels()] == [label for _, label in scale["ticks"]]


def test_notebooks_show_figure_and_verdicts(tiny_run):
    page = tiny_run._repr_html_()
    assert "<svg" in page and "learned_beats_frozen" in page and "<script" not in page


def test_styles_set_the_page(tiny_run):
    for style, width in (("icml", 3.25), ("neurips", 5.5), ("jmlr", 6.0), ({"width": 4, "height": 2.5, "title": False}, 4)):
        figure = tiny_run.figure("loss", style=style)
        assert figure.get_size_inches()[0] == pytest.approx(width, abs=0.01)
    assert figure.get_size_inches()[1] == pytest.approx(2.5, abs=0.01)
    for own, has_title in ((None, True), ({"title": False}, False)):
        frames = tiny_run.figure_data("loss", style=own)["layout"]["panels"]
        assert any(text["role"] == "title" for frame in frames for text in frame["texts"]) is has_title
    with pytest.raises(moelab.UserError, match="icml"):
        tiny_run.figure("loss", style="icm")
    with pytest.raises(moelab.UserError) as caught:
        tiny_run.figure("loss", style={"widht": 3})
    assert caught.value.path.startswith("style")


def test_saved_fonts_are_true_type_and_widths_exact_whatever_the_user_sets(tiny_run):
    import matplotlib

    with matplotlib.rc_context({"pdf.fonttype": 3, "pdf.compression": 0}):
        for style, inches in ((None, None), ("icml", 3.25), ("neurips", 5.5)):
            for id in tiny_run.about["figures"]:
                page = io.BytesIO()
                tiny_run.figure(id, style=style).savefig(page, format="pdf")
                assert b"/Type3" not in page.getvalue() and b"/FontFile2" in page.getvalue(), id
                box = re.search(rb"/MediaBox *\[ *0 +0 +([\d.]+)", page.getvalue())
                assert box and (inches is None or float(box[1]) / 72 == pytest.approx(inches, abs=0.01)), id


def test_figures_are_painted_into_axes_of_the_user(tiny_run):
    from matplotlib.figure import Figure

    own = Figure(figsize=(4, 3))
    axes = own.subplots()
    assert tiny_run.figure("loss", ax=axes) is own
    data = tiny_run.figure_data("loss")
    assert {line.get_label() for line in axes.lines} >= {line["name"] for line in data["panels"][0]["series"]}
    assert axes.get_xlabel() == data["x_label"] and axes.get_yscale() == "log" and axes.get_legend()
    with pytest.raises(moelab.UserError) as caught:
        tiny_run.figure("loss", ax=own.subplots(1, 3))
    assert caught.value.path == "ax"


def test_a_figure_needs_axes(tiny_run):
    with pytest.raises(moelab.UserError, match="needs axes of matplotlib"):
        tiny_run.figure("loss", ax=3)
